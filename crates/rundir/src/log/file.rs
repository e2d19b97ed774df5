//! `log.jsonl`: bounded, and it says when it was cut.

use super::record::{Level, LogLine, Record};
use crate::files;
use dyno_types::limits::LOG_BYTES;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Name.
pub(super) const NAME: &str = "log.jsonl";

/// A log that is being written.
#[derive(Debug)]
pub(super) struct LogFile {
    file: File,
    /// Unix time from which its lines count, nanoseconds.
    epoch_ns: u64,
    bytes: u64,
    /// It is full, or could not be written.
    ended: bool,
}

impl LogFile {
    /// Opens the log of a folder; another one's lines stay.
    pub(super) fn open(folder: &Path, epoch_ns: u64) -> io::Result<LogFile> {
        let path = folder.join(NAME);
        let file = files::open_with(&path, OpenOptions::new().create(true).append(true).mode(0o600))
            .map_err(named(&path))?;
        let bytes = file.metadata().map_err(named(&path))?.len();
        Ok(LogFile { file, epoch_ns, bytes, ended: false })
    }

    /// Adds a line. What cannot be written any more is left out: a log never stops a run.
    pub(super) fn add(&mut self, record: &Record) {
        if self.ended {
            return;
        }
        let mut text = self.line(record);
        if self.bytes + text.len() as u64 > LOG_BYTES {
            self.ended = true;
            let message = format!("the log is cut here: it has reached its limit of {LOG_BYTES} bytes");
            let target = env!("CARGO_CRATE_NAME").to_owned();
            text = self.line(&Record {
                level: Level::Warn,
                target,
                message,
                fields: Default::default(),
                ..record.clone()
            });
        }
        self.bytes += text.len() as u64;
        self.ended |= self.file.write_all(text.as_bytes()).is_err();
    }

    fn line(&self, record: &Record) -> String {
        let t_ns = record.unix_ns as i64 - self.epoch_ns as i64;
        let line = LogLine { t_ns, record: record.clone() };
        // Names are texts and values are JSON: nothing of it can fail.
        serde_json::to_string(&line).unwrap_or_default() + "\n"
    }
}

fn named(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    let path = path.to_owned();
    move |error| io::Error::new(error.kind(), format!("{}: {}", path.display(), files::name_limit(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_says_so_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogFile::open(folder.path(), 5).unwrap();
        let record = Record { unix_ns: 7, message: "x".repeat(1_000), ..Record::default() };
        log.add(&record);
        log.bytes = LOG_BYTES - 1_000;
        (0..3).for_each(|_| log.add(&record));
        let text = std::fs::read_to_string(folder.path().join(NAME)).unwrap();
        let lines: Vec<LogLine> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!((lines[0].t_ns, lines[0].record.unix_ns), (2, 7));
        assert!(lines[1].record.message.starts_with("the log is cut here"), "{text}");
    }
}
