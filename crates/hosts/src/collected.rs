//! Logs and configurations of servers and workers elsewhere, compressed, on their way into the run's directory.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dyno_types::secret::conceal;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Bytes of one file that are kept, of its end: what a server says last explains most.
pub const KEPT_BYTES: u64 = 8 << 20;

/// A file, compressed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CollectedFile {
    /// Name, with dots between folders.
    name: String,
    /// Its content by gzip, as base64.
    content: String,
}

impl CollectedFile {
    /// Takes a text; passwords that this process knows are masked in it.
    ///
    /// # Errors
    /// It cannot be compressed.
    pub fn of_text(name: &str, text: &str) -> io::Result<CollectedFile> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(conceal(text).as_bytes())?;
        Ok(CollectedFile { name: plain_name(name), content: STANDARD.encode(encoder.finish()?) })
    }

    /// Takes the end of a text.
    ///
    /// # Errors
    /// It cannot be compressed.
    pub fn of_end(name: &str, text: &str) -> io::Result<CollectedFile> {
        let from = text.len().saturating_sub(KEPT_BYTES as usize);
        let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        CollectedFile::of_text(name, &(cut_off(from as u64) + &text[from..]))
    }

    /// Takes the end of a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of_file(name: &str, path: &Path) -> io::Result<CollectedFile> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(KEPT_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(KEPT_BYTES).read_to_end(&mut bytes)?;
        let before = cut_off(length.saturating_sub(KEPT_BYTES));
        CollectedFile::of_text(name, &(before + &String::from_utf8_lossy(&bytes)))
    }

    /// Bytes that it takes on its way.
    pub fn size(&self) -> usize {
        self.content.len()
    }

    /// Writes it into a folder, as `NAME.gz`.
    ///
    /// # Errors
    /// It is no base64, or cannot be written.
    pub fn write_into(&self, folder: &Path) -> io::Result<()> {
        let bytes = STANDARD.decode(&self.content).map_err(io::Error::other)?;
        // The name comes from another host.
        fs::write(folder.join(format!("{}.gz", plain_name(&self.name))), bytes)
    }
}

/// Says how much is missing in front.
fn cut_off(bytes: u64) -> String {
    if bytes > 0 { format!("[{bytes} bytes before]\n") } else { String::new() }
}

/// A name that means no other folder.
fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '.' };
    name.chars().map(plain).collect::<String>().trim_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What another program reads.
    fn read(path: &Path) -> String {
        let out = std::process::Command::new("gzip").arg("-dc").arg(path).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    }

    #[test]
    fn the_end_of_a_file_is_kept_and_names_stay_in_their_folder() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "ready\n").unwrap();
        CollectedFile::of_file("redis-1/log", &log).unwrap().write_into(folder.path()).unwrap();
        assert_eq!(read(&folder.path().join("redis-1.log.gz")), "ready\n");
        let text = vec![b'a'; KEPT_BYTES as usize + 3];
        fs::write(&log, text).unwrap();
        let long = CollectedFile::of_file("../../etc/long", &log).unwrap();
        long.write_into(folder.path()).unwrap();
        let text = read(&folder.path().join("etc.long.gz"));
        assert!(text.starts_with("[3 bytes before]\naaa") && text.len() == KEPT_BYTES as usize + 17);
        assert!(long.size() < 100_000);
        let text = "é".repeat(KEPT_BYTES as usize / 2) + "z";
        CollectedFile::of_end("end", &text).unwrap().write_into(folder.path()).unwrap();
        let text = read(&folder.path().join("end.gz"));
        assert!(text.starts_with("[2 bytes before]\né") && text.ends_with("éz"), "characters stay whole");
        let strange = CollectedFile { name: "../x".into(), content: "no base64".into() };
        assert!(strange.write_into(folder.path()).is_err());
    }
}
