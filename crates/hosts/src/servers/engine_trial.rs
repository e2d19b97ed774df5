//! A trial of a storage engine: mongod is started on an empty folder, and has to listen.

use dyno_localhost::port::free_port;
use dyno_localhost::process;
use dyno_localhost::temporary::Temporary;
use dyno_types::bounded;
use dyno_types::limits::LOG_END_BYTES;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The code of an engine that is not in the program (`storage_engine_init.cpp` of the server, from 3.0 to 8.x).
const UNKNOWN: &str = "Location18656";

/// How long a start may last: longer than any that was seen on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of a log line that are told.
const LINE: usize = 300;

/// What came of the trial of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineTrial {
    /// The server listens with it.
    Listens,
    /// The program does not have it.
    Unknown,
    /// The program ended, for this reason as its log tells it.
    Ended(String),
    /// The server did not listen in time.
    Late,
    /// The trial could not be made on this machine.
    Untried,
}

/// Starts a mongod with a storage engine on an empty folder, and ends it again.
pub fn try_engine(program: &Path, engine: &str) -> EngineTrial {
    let (Ok(mut work_dir), Ok(port)) = (Temporary::for_server(), free_port()) else {
        return EngineTrial::Untried;
    };
    let log = work_dir.data_folder().join("log");
    let files = std::fs::File::create(&log).and_then(|file| Ok((file.try_clone()?, file)));
    let Ok((out, err)) = files else { return EngineTrial::Untried };
    let mut command = process::ending_with_dyno(program);
    command
        .args(["--storageEngine", engine, "--bind_ip", "127.0.0.1", "--port", &port.to_string(), "--dbpath"])
        .arg(work_dir.data_folder())
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .process_group(0);
    if engine == "mmapv1" {
        // It would make files of gigabytes. All versions that have it have these options.
        command.args(["--smallfiles", "--nojournal"]);
    }
    let Ok(mut child) = command.spawn() else { return EngineTrial::Untried };
    // Where it cannot be noted, the kernel ends it with dyno.
    let _ = work_dir.note_process(child.id());
    let begun = Instant::now();
    let trial = loop {
        // One that has ended is not the one that listens.
        if !matches!(child.try_wait(), Ok(None)) {
            break None;
        }
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            break Some(EngineTrial::Listens);
        }
        if begun.elapsed() > PATIENCE {
            break Some(EngineTrial::Late);
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    process::end_group(child.id());
    let _ = child.wait();
    trial.unwrap_or_else(|| judge_log(&bounded::end_of(&log, LOG_END_BYTES).unwrap_or_default()))
}

/// The reason why a program ended: its last line of an error, else its last line.
fn judge_log(log: &str) -> EngineTrial {
    if log.contains(UNKNOWN) {
        return EngineTrial::Unknown;
    }
    let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_error = |line: &&str| {
        // JSON from 4.4 on; before that the second word is the severity.
        [r#""s":"E""#, r#""s":"F""#].iter().any(|severity| line.contains(severity))
            || line.split_whitespace().nth(1).is_some_and(|word| word == "E" || word == "F")
    };
    let last = lines.clone().rfind(is_error).or_else(|| lines.next_back());
    let line = last.unwrap_or("it said nothing");
    EngineTrial::Ended(line.chars().take(LINE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_log_tells_an_unknown_engine_from_another_reason() {
        let old = "2020-01-01T00:00:00.000+0000 I CONTROL  [main] options\n\
                   2020-01-01T00:00:00.000+0000 I STORAGE  [main] exception: Location18656: Cannot start\n";
        assert_eq!(judge_log(old), EngineTrial::Unknown);
        let option = "Error parsing command line: unrecognised option '--smallfiles'\ntry 'mongod --help'\n";
        let EngineTrial::Ended(why) = judge_log(option) else { panic!() };
        assert_eq!(why, "try 'mongod --help'");
        let new = "{\"s\":\"E\",\"msg\":\"address in use\"}\n{\"s\":\"I\",\"msg\":\"shutting down\"}\n";
        assert_eq!(judge_log(new), EngineTrial::Ended("{\"s\":\"E\",\"msg\":\"address in use\"}".into()));
        assert_eq!(judge_log(""), EngineTrial::Ended("it said nothing".into()));
    }

    #[test]
    fn a_program_that_ends_does_not_have_the_engine_for_that() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("mongod");
        std::fs::write(&program, "#!/bin/sh\necho 'BadValue: no such thing'\nexit 2\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        // Another test that starts a program may still have the file open: it cannot be run that moment.
        let trial = || try_engine(&program, "wiredTiger");
        let found = (0..40).map(|_| trial()).find(|trial| *trial != EngineTrial::Untried);
        assert_eq!(found, Some(EngineTrial::Ended("BadValue: no such thing".into())));
    }
}
