//! Files that dyno obeys: what they say is done, with the rights of whoever calls dyno. So they must be the caller's own, closed
//! to everybody else, and no links; a directory that somebody else has made, or can change, is read and never obeyed.

use rustix::fs::{Mode, OFlags, open};
use rustix::process::geteuid;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The most that is read of such a file, bytes: a journal of a day of faults has a hundredth of it.
const MOST: u64 = 64 << 20;

/// Why what a file or a directory says is not done.
#[derive(Debug, thiserror::Error)]
pub enum Untrusted {
    /// It is somebody else's, or others can change it.
    #[error("{0}")]
    Refused(String),
    /// It cannot be looked at.
    #[error("{0}: {1}")]
    Io(String, #[source] io::Error),
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> Untrusted {
    let name = path.display().to_string();
    move |error| Untrusted::Io(name, error)
}

fn check(path: &Path, about: &Metadata, closed: u32, how: &str) -> Result<(), Untrusted> {
    let (name, own) = (path.display(), geteuid().as_raw());
    if about.uid() != own {
        return Err(Untrusted::Refused(format!(
            "{name}: belongs to user {}, not to user {own} who calls dyno: what it says is not done",
            about.uid()
        )));
    }
    if about.mode() & closed != 0 {
        return Err(Untrusted::Refused(format!(
            "{name}: others can {how} it (mode {:o}): what it says is not done; if it is as you left it, `chmod {} {name}`",
            about.mode() & 0o7777,
            if about.is_dir() { "go-w" } else { "600" }
        )));
    }
    Ok(())
}

/// Refuses a directory that is not the caller's own, or that others can write to. A link to one that is, is followed.
pub fn directory(path: &Path) -> Result<(), Untrusted> {
    let about = std::fs::metadata(path).map_err(io_error(path))?;
    check(path, &about, 0o022, "write to")
}

/// The text of a file that is the caller's own, mode 0600, not a link, and in a directory of the same sort.
pub fn read(path: &Path) -> Result<String, Untrusted> {
    directory(path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")))?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = open(path, flags, Mode::empty()).map_err(|error| match error {
        rustix::io::Errno::LOOP => {
            Untrusted::Refused(format!("{}: is a link: what it leads to is not done", path.display()))
        }
        error => io_error(path)(error.into()),
    })?;
    let file = File::from(opened);
    let about = file.metadata().map_err(io_error(path))?;
    if !about.is_file() {
        return Err(Untrusted::Refused(format!("{}: is no file: what it says is not done", path.display())));
    }
    check(path, &about, 0o077, "read or write")?;
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text).map_err(io_error(path))?;
    Ok(text)
}

/// What tells this host from others: a hash of its machine-id, or its name where it has none.
pub fn host() -> String {
    let id = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    match id.trim() {
        "" => rustix::system::uname().nodename().to_string_lossy().into_owned(),
        id => {
            let digest = ring::digest::digest(&ring::digest::SHA256, format!("dyno {id}").as_bytes());
            digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_others_can_change_is_not_obeyed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        let mode =
            |path: &Path, bits| std::fs::set_permissions(path, PermissionsExt::from_mode(bits)).unwrap();
        std::fs::write(&file, "words").unwrap();
        mode(&file, 0o600);
        assert_eq!(read(&file).unwrap(), "words");
        mode(&file, 0o640);
        assert!(read(&file).unwrap_err().to_string().contains("chmod 600"));
        mode(&file, 0o600);
        symlink(&file, &link).unwrap();
        assert!(read(&link).unwrap_err().to_string().contains("is a link"));
        mode(folder.path(), 0o770);
        assert!(read(&file).unwrap_err().to_string().contains("others can write to it"));
        mode(folder.path(), 0o700);
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(read(&pipe).unwrap_err().to_string().contains("is no file"));
    }
}
