//! Decides whether a directory's files are followed: journals, locks, an experiment's text. The caller must own them, and no
//! other user may write them.

use crate::error::LocalError;
use dyno_rundir::files;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Files of an experiment's or a proof's directory that are obeyed; journals of what must be put back are looked at one by one.
const NAMES: [&str; 6] =
    ["experiment.json", "experiment.yaml", "journal.jsonl", "lock", "standing.json", "records.json"];

/// Returns whether a file's name is that of a journal of objects in a cluster.
pub fn is_of_pods(name: &str) -> bool {
    name.starts_with("kubernetes-") && name.ends_with(".json")
}

fn untrusted(path: &Path, why: impl std::fmt::Display) -> LocalError {
    LocalError::Untrusted(format!("{}: {why}", path.display()))
}

fn belongs(path: &Path, about: &Metadata) -> Result<(), LocalError> {
    if about.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let why = "not to you: dyno does what its journals say only where they are your own";
    Err(untrusted(path, format!("belongs to user {}, {why}", about.uid())))
}

/// A folder of the caller's own, no link, into which no other user writes.
pub(crate) fn folder(path: &Path) -> Result<(), LocalError> {
    let about = fs::symlink_metadata(path).map_err(|e| LocalError::failed_step(path.display(), e))?;
    if !about.is_dir() {
        return Err(untrusted(path, "is a link, or no folder: name the folder itself"));
    }
    belongs(path, &about)?;
    match about.mode() & 0o022 {
        0 => Ok(()),
        _ => Err(untrusted(path, "others may write into it: look at what is there, then `chmod go-w` it")),
    }
}

/// Opens a file that is to be obeyed; `None` if it is not there.
pub fn open(path: &Path, options: &mut OpenOptions) -> Result<Option<File>, LocalError> {
    let about = match fs::symlink_metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LocalError::failed_step(path.display(), error)),
    };
    folder(path.parent().unwrap_or(Path::new("/")))?;
    let file = files::open_with(path, options).map_err(|e| match e.kind() {
        io::ErrorKind::PermissionDenied => {
            belongs(path, &about).err().unwrap_or(LocalError::failed_step(path.display(), e))
        }
        io::ErrorKind::InvalidInput => untrusted(path, e),
        _ => LocalError::failed_step(path.display(), e),
    })?;
    let about = file.metadata().map_err(|e| LocalError::failed_step(path.display(), e))?;
    belongs(path, &about)?;
    match about.mode() & 0o077 {
        0 => Ok(Some(file)),
        _ => {
            let mode = about.mode() & 0o777;
            let why = "others may reach it: look at what it says, then `chmod 600` it";
            Err(untrusted(path, format!("has mode {mode:04o}, {why}")))
        }
    }
}

/// Looks at a directory that dyno is told to stop or to go on with, and at everything in it that is obeyed. It may be named by
/// a link; one that is not there belongs to no user.
pub fn check_directory(path: &Path) -> Result<(), LocalError> {
    let path = match path.canonicalize() {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(LocalError::failed_step(path.display(), error)),
    };
    folder(&path)?;
    for entry in fs::read_dir(&path).map_err(|e| LocalError::failed_step(path.display(), e))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if NAMES.contains(&name.as_str()) || is_of_pods(&name) {
            open(&entry.path(), OpenOptions::new().read(true))?;
        }
    }
    Ok(())
}

/// Makes a folder, with those above it, into which only its owner writes.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let about = fs::metadata(path)?;
    let open = about.mode() & 0o022 != 0 && about.uid() == rustix::process::geteuid().as_raw();
    match open {
        true => fs::set_permissions(path, Permissions::from_mode(about.mode() & 0o7755)),
        false => Ok(()),
    }
}

/// Writes a file that only its owner reads, one that was there before included.
pub fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    use io::Write as _;
    let mut options = OpenOptions::new();
    let mut file = files::open_with(path, options.create(true).write(true).truncate(true).mode(0o600))?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text)
}
