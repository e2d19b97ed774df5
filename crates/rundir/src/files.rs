//! Files of directories that others may have made: opened without following a link in their place and without waiting for
//! whoever might write into a pipe.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

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

/// Reads one as bytes.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads one as text.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// The same error; it names the limit of this process where one is behind it: of a file's length, or of open files.
pub fn named(error: io::Error) -> io::Error {
    use rustix::process::{Resource, getrlimit};
    let limit = |which| getrlimit(which).current.unwrap_or(u64::MAX);
    let words = match rustix::io::Errno::from_io_error(&error) {
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
    io::Error::new(error.kind(), words)
}
