//! A folder through a pipe, as a tar archive.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Writes all that is in a folder; one that was never made is empty.
///
/// # Errors
/// Something in it cannot be read, or the pipe fails.
pub fn send_folder(folder: &Path, output: impl Write) -> io::Result<()> {
    let mut archive = tar::Builder::new(output);
    if folder.exists() {
        send_below(folder, Path::new(""), &mut archive)?;
    }
    archive.into_inner()?.flush()
}

/// What lies in a folder of a run may grow, or go, while it is sent: of a file as much goes as it had when it was looked at.
fn send_below(root: &Path, below: &Path, archive: &mut tar::Builder<impl Write>) -> io::Result<()> {
    for entry in std::fs::read_dir(root.join(below))? {
        let entry = entry?;
        let (name, path) = (below.join(entry.file_name()), entry.path());
        let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        match entry.file_type() {
            Err(error) if is_gone(&error) => {}
            Ok(kind) if kind.is_dir() => match send_below(root, &name, archive) {
                Err(error) if is_gone(&error) => {}
                sent => sent?,
            },
            Ok(kind) if kind.is_file() => match File::open(&path) {
                Err(error) if is_gone(&error) => {}
                file => {
                    let file = file?;
                    let about = file.metadata()?;
                    let mut head = tar::Header::new_gnu();
                    head.set_metadata(&about);
                    // A file that has become shorter is filled up.
                    let whole = file.chain(io::repeat(0)).take(about.len());
                    archive.append_data(&mut head, &name, whole)?;
                }
            },
            kind => drop(kind?),
        }
    }
    Ok(())
}

/// Puts what [`send_folder`] has written into a folder, which is made if it is not there; files of the same name are replaced.
/// Nothing is written outside of it.
///
/// # Errors
/// The pipe ends early or holds no archive, or a file cannot be written.
pub fn receive_folder(input: impl Read, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut archive = tar::Archive::new(input);
    archive.set_preserve_permissions(false);
    archive.set_preserve_ownerships(false);
    archive.unpack(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_arrives_as_it_was_and_nothing_beside_it() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir_all(from.path().join("runs/a")).unwrap();
        std::fs::write(from.path().join("runs/a/run.json"), "{}").unwrap();
        std::fs::write(from.path().join("journal.jsonl"), vec![b'x'; 3 << 20]).unwrap();
        let mut sent = Vec::new();
        send_folder(from.path(), &mut sent).unwrap();
        let target = to.path().join("new");
        std::fs::create_dir(&target).unwrap();
        std::fs::write(target.join("journal.jsonl"), "old").unwrap();
        receive_folder(sent.as_slice(), &target).unwrap();
        assert_eq!(std::fs::read(target.join("runs/a/run.json")).unwrap(), b"{}");
        assert_eq!(std::fs::metadata(target.join("journal.jsonl")).unwrap().len(), 3 << 20);
        // What breaks off within a file is no copy.
        assert!(receive_folder(&sent[..sent.len() / 2], &target).is_err());
        // A name that leads out of the folder is not followed.
        let mut wrong = tar::Builder::new(Vec::new());
        let mut head = tar::Header::new_gnu();
        head.as_gnu_mut().unwrap().name[..10].copy_from_slice(b"../outside");
        head.set_size(1);
        head.set_entry_type(tar::EntryType::Regular);
        head.set_cksum();
        wrong.append(&head, &b"x"[..]).unwrap();
        let _ = receive_folder(wrong.into_inner().unwrap().as_slice(), &target);
        assert!(!to.path().join("outside").exists());
    }
}
