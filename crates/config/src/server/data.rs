//! Where data lie.

use crate::server::invalid::InvalidSetting;
use crate::values::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One folder or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Paths {
    /// The same for all processes.
    One(PathBuf),
    /// Process i uses the one of number i modulo their number.
    Several(Vec<PathBuf>),
}

impl Paths {
    /// The folder of a process.
    pub fn of_process(&self, process: usize) -> &Path {
        match self {
            Paths::One(path) => path,
            Paths::Several(paths) => &paths[process % paths.len()],
        }
    }

    /// All of them.
    pub fn all_paths(&self) -> &[PathBuf] {
        match self {
            Paths::One(path) => std::slice::from_ref(path),
            Paths::Several(paths) => paths,
        }
    }
}

/// A filesystem that dyno can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Filesystem {
    /// XFS.
    Xfs,
    /// EXT4.
    Ext4,
    /// btrfs.
    Btrfs,
}

impl Filesystem {
    /// As mount and mkfs call it.
    pub fn name(self) -> &'static str {
        match self {
            Filesystem::Xfs => "xfs",
            Filesystem::Ext4 => "ext4",
            Filesystem::Btrfs => "btrfs",
        }
    }

    /// Smallest image that mkfs accepts and that holds anything, bytes.
    pub fn smallest_image(self) -> u64 {
        match self {
            Filesystem::Xfs => 300 << 20,
            Filesystem::Ext4 => 16 << 20,
            Filesystem::Btrfs => 128 << 20,
        }
    }
}

/// A filesystem in a file, mounted for the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageSpec {
    /// xfs, ext4 or btrfs.
    pub filesystem: Filesystem,
    /// Size of each image file, bytes; the file is sparse.
    pub size: Bytes,
    /// Image files; with several the filesystem is striped over them (RAID-0): btrfs by itself, the others by md.
    /// Default: 1.
    #[serde(default = "one")]
    pub members: u32,
    /// Options of mount. Default: noatime.
    #[serde(default = "noatime")]
    pub mount_options: Vec<String>,
}

fn one() -> u32 {
    1
}

fn noatime() -> Vec<String> {
    vec!["noatime".into()]
}

/// Which loaded data of a volume a run begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// Data equal to what this run would load, from whichever run they are.
    #[default]
    Matching,
    /// The same, if this experiment has loaded them: its first run begins with an empty volume.
    Own,
    /// None: every run loads.
    Never,
}

/// Loaded data that outlive their run, for later runs that would load the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeSpec {
    /// Name, by which runs find it: 1 to 40 small letters, digits and dashes. On this host it is a folder below
    /// `server.data.path` (without one it lies in the experiment's directory and goes when that ends), in Kubernetes the
    /// claims of `kubernetes.storage`.
    pub name: String,
    /// Which loaded data are used: `matching`, `own` or `never`. Others are removed and loaded anew, and the run says why.
    /// Default: matching.
    #[serde(default)]
    pub reuse: Reuse,
}

impl VolumeSpec {
    fn check(&self) -> Result<(), InvalidSetting> {
        let ends = [self.name.bytes().next(), self.name.bytes().last()];
        let sane = self.name.len() <= 40
            && self.name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
            && ends.iter().all(|end| end.is_some_and(|c| c != b'-'));
        match sane {
            true => Ok(()),
            false => Err(InvalidSetting::new(
                "volume.name",
                format!("{:?}: expected 1 to 40 small letters, digits and dashes between them", self.name),
            )),
        }
    }
}

/// Where data lie.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataSpec {
    /// Folder, or list of folders (process i uses number i modulo their number), in which dyno makes folders of its own
    /// for data, or the images. Default: the run directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Paths>,
    /// A filesystem in a file, mounted for the run (needs root). Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageSpec>,
    /// True if a copy of the loaded data is kept and put back before every cell. Default: false.
    #[serde(default)]
    pub snapshot: bool,
    /// Loaded data that outlive their run, for later runs that would load the same, see docs/local-rig.md. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeSpec>,
}

impl DataSpec {
    /// Refuses an invalid configuration, by its key.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        if let Some(paths) = &self.path {
            if paths.all_paths().is_empty() {
                return Err(InvalidSetting::new("path", "the list is empty"));
            }
            if self.image.is_some() && paths.all_paths().len() > 1 {
                return Err(InvalidSetting::new("path", "the images need one folder, not several"));
            }
        }
        if let Some(volume) = &self.volume {
            volume.check()?;
            if self.snapshot || self.image.is_some() {
                return Err(InvalidSetting::new(
                    "volume",
                    "loaded data outlive their run: remove snapshot and image",
                ));
            }
            if self.path.as_ref().is_some_and(|paths| paths.all_paths().len() > 1) {
                return Err(InvalidSetting::new("path", "a volume needs one folder, not several"));
            }
        }
        let Some(image) = &self.image else { return Ok(()) };
        let least = Bytes(image.filesystem.smallest_image());
        if image.size.0 < least.0 {
            let name = image.filesystem.name();
            return Err(InvalidSetting::new(
                "image.size",
                format!("{} is too small for {name}, at least {least}", image.size),
            ));
        }
        if image.members == 0 || image.members > 16 {
            return Err(InvalidSetting::new("image.members", format!("{}: expected 1 to 16", image.members)));
        }
        match image.mount_options.iter().find(|option| option.is_empty() || option.contains([',', ' '])) {
            Some(bad) => Err(InvalidSetting::new(
                "image.mount_options",
                format!("{bad:?}: expected one option in each entry"),
            )),
            None => Ok(()),
        }
    }
}
