//! A clock of a server's own: libfaketime stands before the C library and adds what a file says to the time of day. The machine's
//! clock is never touched, and neither is the clock that only ever goes forward.
//!
//! The file is read again when what was read last is a second old: a step is seen by the server within that time.

use crate::error::LocalError;
use crate::machine::Machine;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The library for programs with threads, below the folders that hold libraries.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// glibc's allocator as a library of its own, below the same folders.
const ALLOCATOR: &str = "libc_malloc_debug.so.0";

/// Text in a program that asks for a jemalloc of the system; one that is built in does no harm.
const JEMALLOC: &[u8] = b"libjemalloc.so";

/// Folders in which Debian, Fedora, Arch and self-built systems put libraries.
const FOLDERS: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/lib64",
];

/// Libraries that a program is started with so that its clock can be stepped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preload {
    library: PathBuf,
    /// glibc's own allocator, in place of one that the library clashes with.
    allocator: Option<PathBuf>,
}

impl Preload {
    /// Finds what `program` needs, before a run that needs it.
    pub fn of_program(program: &Path) -> Result<Preload, LocalError> {
        let missing = |why: &str| LocalError::NotPermitted {
            what: "a clock of the server's own".into(),
            why: why.into(),
            lost: "no clock is stepped: faults of kind clock_step do not come".into(),
        };
        let why = "libfaketime is not installed (Debian: apt-get install libfaketime)";
        let library = find(LIBRARY).ok_or_else(|| missing(why))?;
        let bytes = fs::read(program).map_err(|e| LocalError::failed_step(program.display(), e))?;
        if !bytes.windows(JEMALLOC.len()).any(|part| part == JEMALLOC) {
            return Ok(Preload { library, allocator: None });
        }
        // jemalloc asks for the time while it begins, and the library asks for memory while it begins.
        let why =
            "jemalloc and libfaketime cannot be in one process, and libc_malloc_debug.so.0 is not installed";
        let allocator = Some(find(ALLOCATOR).ok_or_else(|| missing(why))?);
        Ok(Preload { library, allocator })
    }

    /// In words, for the record.
    pub fn describe_preload(&self) -> String {
        let allocator = match self.allocator {
            Some(_) => ", with glibc's allocator in place of jemalloc, beside which it does not run",
            None => "",
        };
        format!(
            "libfaketime, which the server has for the whole run and reads its file anew each second{allocator}"
        )
    }

    /// Returns the words before a program so that its clock follows `file`.
    pub fn command_prefix(&self, machine: &Machine, file: &Path) -> Result<Vec<String>, LocalError> {
        let env =
            machine.find_program("env").ok_or_else(|| LocalError::Absent("env is not on PATH".into()))?;
        let mut preloaded = OsString::from(&self.library);
        let others = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty());
        for other in self.allocator.iter().map(OsString::from).chain(others) {
            preloaded.push(":");
            preloaded.push(other);
        }
        Ok(vec![
            env.display().to_string(),
            format!("LD_PRELOAD={}", preloaded.display()),
            format!("FAKETIME_TIMESTAMP_FILE={}", file.display()),
            "FAKETIME_CACHE_DURATION=1".into(),
            "FAKETIME_DONT_FAKE_MONOTONIC=1".into(),
        ])
    }
}

/// A file below the folders that hold libraries.
fn find(name: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

/// Returns the files that the library makes for a process, and leaves where that is killed.
pub fn leftover_files(pid: u32) -> [PathBuf; 2] {
    [format!("/dev/shm/faketime_shm_{pid}").into(), format!("/dev/shm/sem.faketime_sem_{pid}").into()]
}

/// Sets the clock of what follows `file` ahead or back by so much against the machine's.
pub fn set_offset(file: &Path, step_ns: i64) -> Result<(), LocalError> {
    // A reader finds the old text or the new one.
    let new = file.with_extension("new");
    let written = fs::write(&new, describe_step(step_ns)).and_then(|()| fs::rename(&new, file));
    written.map_err(|e| LocalError::failed_step(file.display(), e))
}

fn describe_step(step_ns: i64) -> String {
    let (sign, ns) = (if step_ns < 0 { '-' } else { '+' }, step_ns.unsigned_abs());
    format!("{sign}{}.{:09}\n", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// An error if a process does not have the library: one that is linked statically never will.
pub fn confirm_loaded(machine: &Machine, pid: u32, name: &str) -> Result<(), LocalError> {
    let path = machine.proc.join(pid.to_string()).join("maps");
    let maps = fs::read_to_string(&path).map_err(|e| LocalError::failed_step(path.display(), e))?;
    match maps.contains("libfaketime") {
        true => Ok(()),
        false => Err(LocalError::refuse(
            name,
            format!(
                "{name}: its clock cannot be stepped: it has not loaded libfaketime, as programs do that are linked statically"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_written_as_the_library_reads_them() {
        let words = |ns: i64| crate::clock::describe_step(ns);
        assert_eq!(words(0), "+0.000000000\n");
        assert_eq!(words(3_600_500_000_000), "+3600.500000000\n");
        assert_eq!(words(-250_000_000), "-0.250000000\n");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("clock");
        set_offset(&file, -1_000_000_000).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "-1.000000000\n");
        let program = folder.path().join("program");
        for (needs, other) in [(&b"libc.so.6"[..], false), (&b"libc.so.6 libjemalloc.so.2"[..], true)] {
            fs::write(&program, needs).unwrap();
            // If the libraries are not installed, that is said.
            match Preload::of_program(&program) {
                Ok(preload) => {
                    let prefix = preload.command_prefix(&Machine::default(), &file).unwrap();
                    assert!(prefix[0].ends_with("/env") && prefix[1].contains(LIBRARY), "{prefix:?}");
                    assert_eq!(prefix[1].contains(ALLOCATOR), other, "{prefix:?}");
                    assert_eq!(preload.describe_preload().contains("in place of jemalloc"), other);
                }
                Err(error) => assert!(error.to_string().contains("no clock is stepped"), "{error}"),
            }
        }
        assert!(
            confirm_loaded(&Machine::default(), std::process::id(), "this").is_err(),
            "it is not loaded here"
        );
    }
}
