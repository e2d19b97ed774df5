//! Files of directories that others may have made: opened and written without following a link in their place and without
//! waiting for a writer of a pipe.

use dyno_types::bounded;
use dyno_types::limits::{DOCUMENT_BYTES, RESULT_BYTES, RESULT_LINE_BYTES};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Opens a regular file for reading. A link, a pipe, a device or a folder is an error of the kind `InvalidInput`.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// The same with other options.
pub fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file =
        options.custom_flags(flags.bits() as i32).open(path).map_err(|error| match error.raw_os_error() {
            Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => {
                io::Error::new(io::ErrorKind::InvalidInput, "is a link, which is not followed here")
            }
            _ => error,
        })?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "is no regular file")),
    }
}

/// Opens an empty regular file for writing; what an earlier one holds is lost.
pub fn create_file(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().create(true).write(true).truncate(true))
}

/// Reads one as bytes, at most [`DOCUMENT_BYTES`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    bounded::read_file(open(path)?, DOCUMENT_BYTES)
}

/// The same as text.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let bytes = read(path)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads a file of results, line by line: at most [`RESULT_BYTES`], of lines of at most [`RESULT_LINE_BYTES`].
pub(crate) fn read_lines(path: &Path) -> io::Result<String> {
    bounded::lines_file(open(path)?, RESULT_BYTES, RESULT_LINE_BYTES)
}

/// The complete lines of a text: the last one that a killed process wrote may be torn.
pub(crate) fn whole_lines(text: &str) -> std::str::Lines<'_> {
    text.rfind('\n').map_or("", |end| &text[..=end]).lines()
}

/// The same error; it names the limit of this process where one is behind it: of a file's length, or of open files.
pub fn name_limit(error: io::Error) -> io::Error {
    use rustix::process::{Resource, getrlimit};
    let limit = |which| getrlimit(which).current.unwrap_or(u64::MAX);
    let message = match rustix::io::Errno::from_io_error(&error) {
        Some(rustix::io::Errno::FBIG) => format!(
            "dyno itself may write no file longer than {} bytes (`ulimit -f`): allow more, such as `ulimit -f unlimited`",
            limit(Resource::Fsize)
        ),
        Some(rustix::io::Errno::MFILE) => format!(
            "dyno itself may have {} open files (`ulimit -n`): allow more, such as `ulimit -n 65536`",
            limit(Resource::Nofile)
        ),
        _ => return error,
    };
    io::Error::new(error.kind(), message)
}

/// Puts a file there in one step. A regular file of that name is replaced and its mode stays; a link, a pipe, a device or a
/// folder is left alone and is an error of the kind `InvalidInput`.
pub fn put_file(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, None)
}

/// The same of a file that only its owner reads.
pub fn put_private(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, Some(Permissions::from_mode(0o600)))
}

fn replace(path: &Path, content: &[u8], mode: Option<Permissions>) -> io::Result<()> {
    let there = match path.symlink_metadata() {
        Ok(there) if there.is_file() => Some(there.permissions()),
        Ok(there) => {
            let what = if there.is_symlink() {
                "is a link, which is not followed here"
            } else {
                "is no regular file"
            };
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let (mut file, part) = beside(path)?;
    let written = mode.or(there).map_or(Ok(()), |mode| file.set_permissions(mode));
    let written = written.and_then(|()| file.write_all(content)).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // It may have gone with its folder.
        let _ = std::fs::remove_file(&part);
    }
    written
}

/// A new file in the folder of `path`, under an unused name.
fn beside(path: &Path) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let part = path.with_file_name(format!(".dyno-{}-{number}.part", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&part) {
            Ok(file) => return Ok((file, part)),
            // Left by an earlier process of the same number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_no_regular_file_is_neither_read_nor_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("a"), "some").unwrap();
        assert_eq!(
            (read(&path("a")).unwrap(), read_to_string(&path("a")).unwrap()),
            (b"some".to_vec(), "some".into())
        );
        symlink(path("a"), path("link")).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::RUSR).unwrap();
        let link = create_file(&path("link")).unwrap_err();
        assert_eq!(
            (link.kind(), link.to_string().as_str()),
            (io::ErrorKind::InvalidInput, "is a link, which is not followed here")
        );
        // No process will ever write into the pipe: it is not awaited.
        for (name, message) in [
            ("link", "is a link, which is not followed here"),
            ("folder", "is no regular file"),
            ("pipe", "is no regular file"),
        ] {
            let error = open(&path(name)).unwrap_err();
            assert_eq!(
                (error.kind(), error.to_string().as_str()),
                (io::ErrorKind::InvalidInput, message),
                "{name}"
            );
        }
        assert_eq!(open(&path("gone")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read(&path("a")).unwrap(), b"some");
        create_file(&path("a")).unwrap();
        assert_eq!(read(&path("a")).unwrap(), b"");
    }

    #[test]
    fn a_line_without_an_end_is_no_line() {
        let lines = |text| whole_lines(text).collect::<Vec<_>>();
        assert_eq!(lines("a\r\n\nb\nto"), ["a", "", "b"]);
        assert_eq!((lines("a\n"), lines("torn"), lines("")), (vec!["a"], vec![], vec![]));
    }

    #[test]
    fn an_error_names_the_limit_of_this_process() {
        let words = |code: rustix::io::Errno| {
            name_limit(io::Error::from_raw_os_error(code.raw_os_error())).to_string()
        };
        let (long, many) = (words(rustix::io::Errno::FBIG), words(rustix::io::Errno::MFILE));
        assert!(
            long.starts_with("dyno itself may write no file longer than ")
                && long.ends_with("`ulimit -f unlimited`"),
            "{long}"
        );
        assert!(many.starts_with("dyno itself may have ") && many.ends_with("`ulimit -n 65536`"), "{many}");
        assert!(words(rustix::io::Errno::NOSPC).starts_with("No space left on device"));
        let full = io::Error::from_raw_os_error(rustix::io::Errno::FBIG.raw_os_error());
        assert_eq!(name_limit(full).kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn parts_of_a_killed_process_are_in_no_way() {
        let folder = tempfile::tempdir().unwrap();
        let part = |number: u32| folder.path().join(format!(".dyno-{}-{number}.part", std::process::id()));
        (0..300).for_each(|number| std::fs::write(part(number), "theirs").unwrap());
        put_file(&folder.path().join("a"), b"ours").unwrap();
        assert_eq!(std::fs::read(folder.path().join("a")).unwrap(), b"ours");
        assert!((0..300).all(|number| std::fs::read(part(number)).unwrap() == b"theirs"));
    }

    #[test]
    fn a_file_is_put_and_nothing_else_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        put_file(&path("a"), b"one").unwrap();
        std::fs::set_permissions(path("a"), Permissions::from_mode(0o640)).unwrap();
        put_file(&path("a"), b"two").unwrap();
        let mode = |name: &str| std::fs::metadata(path(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((std::fs::read(path("a")).unwrap(), mode("a")), (b"two".to_vec(), 0o640));
        put_private(&path("a"), b"three").unwrap();
        assert_eq!(mode("a"), 0o600);
        std::fs::write(path("other"), "theirs").unwrap();
        symlink(path("other"), path("link")).unwrap();
        symlink(path("nowhere"), path("dangling")).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
            .unwrap();
        for name in ["link", "dangling", "folder", "pipe"] {
            assert_eq!(
                put_file(&path(name), b"x").unwrap_err().kind(),
                io::ErrorKind::InvalidInput,
                "{name}"
            );
        }
        assert!(put_file(&path("gone/a"), b"x").is_err());
        assert_eq!(std::fs::read(path("other")).unwrap(), b"theirs");
        let left = std::fs::read_dir(folder.path()).unwrap().flatten();
        let left: Vec<_> =
            left.filter(|entry| entry.file_name().to_string_lossy().starts_with('.')).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
