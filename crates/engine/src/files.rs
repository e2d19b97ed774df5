//! The limit of open files: each connection is one. What it refuses is the client's fault, never the server's.

use dyno_types::units::counted;
use dyno_types::{RefusalCode, Refused};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Files that are open beside connections: standard streams, the run directory, monitors, one of each load thread.
const BESIDE: u64 = 64;

/// No more files may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutOfFiles {
    /// By this process; its limit.
    #[error(
        "dyno itself has reached the limit of open files, {0} (`ulimit -n`): allow more, such as `ulimit -n 65536`, or open \
         fewer connections"
    )]
    Process(u64),
    /// By this whole host.
    #[error(
        "this host has reached its limit of open files: allow more, such as `sysctl fs.file-max=1000000`, or open fewer \
         connections"
    )]
    Host,
}

impl OutOfFiles {
    /// The limit behind an error, if one is.
    pub fn limit_behind(error: &io::Error) -> Option<OutOfFiles> {
        if let Some(known) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
            return Some(*known);
        }
        match Errno::from_io_error(error)? {
            Errno::MFILE => {
                Some(OutOfFiles::Process(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)))
            }
            Errno::NFILE => Some(OutOfFiles::Host),
            _ => None,
        }
    }

    /// The same error; it names the limit where one is behind it.
    pub fn name_limit(error: io::Error) -> io::Error {
        match OutOfFiles::limit_behind(&error) {
            Some(limit) => io::Error::other(limit),
            None => error,
        }
    }
}

/// Raises the limit of open files to what `connections` need, or as far as the system allows; refuses more connections than
/// there can be.
pub fn raise_file_limit(connections: usize) -> Result<(), Refused> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = connections as u64 + BESIDE;
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    // Only a privileged process may have more than its hard limit.
    let beyond = Rlimit { current: Some(wanted), maximum: limit.maximum.map(|most| most.max(wanted)) };
    if setrlimit(Resource::Nofile, beyond).is_ok() {
        return Ok(());
    }
    // A limit that this does not raise is told below.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
    match getrlimit(Resource::Nofile).current {
        Some(most) if connections as u64 + open > most => Err(Refused::new(
            RefusalCode::Limit,
            "users",
            format!(
                "{}: this process may open {most} files (`ulimit -Hn`) and has {open}: allow more, such as \
             `ulimit -n {wanted}`, or ask for fewer connections",
                counted(connections, "connection")
            ),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_named_and_other_errors_are_not_changed() {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let named = OutOfFiles::name_limit(Errno::MFILE.into());
        assert_eq!(OutOfFiles::limit_behind(&named), Some(OutOfFiles::Process(limit)));
        assert!(named.to_string().contains(&format!("{limit} (`ulimit -n`)")), "{named}");
        assert_eq!(OutOfFiles::limit_behind(&Errno::NFILE.into()), Some(OutOfFiles::Host));
        let other = OutOfFiles::name_limit(Errno::CONNREFUSED.into());
        assert_eq!(Errno::from_io_error(&other), Some(Errno::CONNREFUSED));
    }
}
