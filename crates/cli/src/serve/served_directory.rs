//! The served folder, and nothing outside of it: names come from a browser, links may lead anywhere.

use super::http::decoded;
use dyno_types::limits::{SERVED_DEPTH, SERVED_FILES};
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Reasons for which a folder is not read.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// The system refuses.
    #[error("{folder}: {source}")]
    Io {
        /// The folder's name in addresses.
        folder: String,
        /// Error of the system.
        source: io::Error,
    },
    /// There are too many files below it.
    #[error("{0}: more than {SERVED_FILES} files")]
    TooMany(String),
    /// A link leads to somewhere else.
    #[error("{folder}: {entry:?} is a link that leads out")]
    LeadsOut {
        /// The folder's name in addresses.
        folder: String,
        /// The link's name.
        entry: OsString,
    },
    /// A pipe or a device would hold up its reader.
    #[error("{folder}: {entry:?} is no file")]
    NoFile {
        /// The folder's name in addresses.
        folder: String,
        /// Name of the entry.
        entry: OsString,
    },
}

/// The directory that is served.
#[derive(Clone, Debug)]
pub struct ServedDirectory {
    /// Directory that names are relative to.
    base: PathBuf,
    /// The folder to look into.
    start: PathBuf,
    /// The folder that nothing leaves, without links in its path.
    inside: PathBuf,
}

impl ServedDirectory {
    /// A folder of runs and experiments, or one of these itself.
    pub fn open(dir: &Path) -> std::io::Result<Self> {
        let inside = dir.canonicalize()?;
        // Listing is what fails for a file, or a folder that may not be read.
        std::fs::read_dir(&inside)?;
        let single = ["run.json", "experiment.json"].iter().any(|name| inside.join(name).is_file());
        let base = match inside.parent().filter(|_| single) {
            Some(parent) => parent.to_owned(),
            None => inside.clone(),
        };
        Ok(ServedDirectory { base, start: inside.clone(), inside })
    }

    /// Returns the directory in which runs and experiments are looked for.
    pub fn start(&self) -> &Path {
        &self.start
    }

    /// The name that a path has in addresses; `None` for what is not in here, or has no name that is text.
    pub fn name(&self, path: &Path) -> Option<String> {
        let below = path.strip_prefix(&self.base).ok()?;
        let parts: Option<Vec<&str>> = below.components().map(|part| part.as_os_str().to_str()).collect();
        parts.map(|parts| parts.join("/")).filter(|name| !name.is_empty())
    }

    /// The folder of a name, which was decoded before.
    pub fn folder(&self, name: &str) -> Option<PathBuf> {
        let below = Path::new(name);
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if name.is_empty()
            || !below.components().all(plain)
            || name.split('/').any(|part| matches!(part, "" | "." | ".."))
        {
            return None;
        }
        let path = self.base.join(below);
        let real = path.canonicalize().ok()?;
        (real.starts_with(&self.inside) && real.is_dir()).then_some(path)
    }

    /// The folder of a name in an address, as it was sent.
    pub fn folder_at(&self, sent: &str) -> Option<PathBuf> {
        // A slash within a part would make two of it.
        if sent.to_ascii_lowercase().contains("%2f") {
            return None;
        }
        self.folder(&decoded(sent)?)
    }

    /// Looks at everything that reports may read of a folder, and says how it is: the same number as before if nothing has
    /// changed. Fails where a link leads out, or something would hold up its reader.
    pub fn survey(&self, path: &Path) -> Result<u64, SurveyError> {
        let (mut stamp, mut left) = (DefaultHasher::new(), SERVED_FILES);
        self.look(path, SERVED_DEPTH, &mut stamp, &mut left)?;
        Ok(stamp.finish())
    }

    fn look(
        &self,
        path: &Path,
        depth: usize,
        stamp: &mut DefaultHasher,
        left: &mut usize,
    ) -> Result<(), SurveyError> {
        let name = || self.name(path).unwrap_or_default();
        let failed = |source| SurveyError::Io { folder: name(), source };
        let mut entries: Vec<_> = std::fs::read_dir(path).map_err(failed)?.flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            *left = left.checked_sub(1).ok_or_else(|| SurveyError::TooMany(name()))?;
            let file = entry.path();
            let own = entry.metadata().map_err(failed)?;
            if own.is_symlink() {
                let inside = file.canonicalize().is_ok_and(|real| real.starts_with(&self.inside));
                if !inside {
                    return Err(SurveyError::LeadsOut { folder: name(), entry: entry.file_name() });
                }
                // A link to a folder could lead in circles: nothing of ours is read through one.
                continue;
            }
            let kind = own.file_type();
            if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() {
                return Err(SurveyError::NoFile { folder: name(), entry: entry.file_name() });
            }
            if own.is_dir() {
                if depth > 1 {
                    self.look(&file, depth - 1, stamp, left)?;
                }
                continue;
            }
            let changed = own.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            (entry.file_name(), own.len(), changed).hash(stamp);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_leads_out() {
        let home = tempfile::tempdir().unwrap();
        let served = home.path().join("served");
        for folder in ["served/a/b", "served/with space", "secret", "served-too"] {
            std::fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        std::fs::write(home.path().join("secret/run.json"), "{}").unwrap();
        symlink(home.path().join("secret"), served.join("out")).unwrap();
        symlink("a", served.join("in")).unwrap();
        let directory = ServedDirectory::open(&served).unwrap();
        for good in ["a", "a/b", "with%20space", "in"] {
            assert!(directory.folder_at(good).is_some(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "../secret",
            "a/../../secret",
            "a/..",
            "%2e%2e/secret",
            "%2e%2e%2fsecret",
            "a%2f..%2f..%2fsecret",
            "/etc",
            "//etc",
            "out",
            "out/",
            "a//b",
            "a/",
            "missing",
            "a%00",
            "../served-too",
            "a\\..\\..\\secret",
        ] {
            assert_eq!(directory.folder_at(bad), None, "{bad}");
        }
        assert!(directory.survey(&served).unwrap_err().to_string().contains("leads out"));
        std::fs::write(served.join("a/file"), "1").unwrap();
        let before = directory.survey(&served.join("a")).unwrap();
        assert_eq!(directory.survey(&served.join("a")).unwrap(), before);
        std::fs::write(served.join("a/file"), "12").unwrap();
        assert_ne!(directory.survey(&served.join("a")).unwrap(), before);
        symlink("/etc/passwd", served.join("a/b/run.json")).unwrap();
        assert!(directory.survey(&served.join("a")).unwrap_err().to_string().contains("leads out"));
        assert_eq!(directory.name(&served.join("a/b")).as_deref(), Some("a/b"));
        assert_eq!(directory.name(home.path()), None);
    }

    #[test]
    fn a_single_run_is_served_by_its_name_and_nothing_beside_it() {
        let home = tempfile::tempdir().unwrap();
        for folder in ["one/monitor", "two"] {
            std::fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        std::fs::write(home.path().join("one/run.json"), "{}").unwrap();
        let directory = ServedDirectory::open(&home.path().join("one")).unwrap();
        assert_eq!(directory.name(directory.start()).as_deref(), Some("one"));
        assert!(directory.folder_at("one").is_some() && directory.folder_at("two").is_none());
    }
}
