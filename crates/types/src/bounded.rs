//! Files and streams that are read into memory: never more than a bound, whichever program made them. A device without an end
//! and a file with a hole of gigabytes cost no more than that.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::process::{Child, Output};

/// Bytes of a size, in words: `64 KiB`.
fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

fn too_long(what: &str, most: u64) -> io::Error {
    let message = format!("{what} longer than {}, the most that is read of it", size(most));
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

/// All bytes of a stream.
///
/// # Errors
/// It has more than `most` (kind `FileTooLarge`), or cannot be read.
pub fn read(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long("it is", most)) } else { Ok(bytes) }
}

/// The same of text.
///
/// # Errors
/// As [`read`]; or it is no UTF-8.
pub fn read_text(from: impl Read, most: u64) -> io::Result<String> {
    let bytes = read(from, most)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// All bytes of an open file. One that is longer by what its filesystem says is not read at all.
///
/// # Errors
/// As [`read`].
pub fn read_file(file: File, most: u64) -> io::Result<Vec<u8>> {
    no_longer(&file, most)?;
    read(file, most)
}

/// A text file by its path: one that is named on a command line or in a configuration. Links and pipes are followed.
///
/// # Errors
/// As [`read_text`].
pub fn text_file(path: impl AsRef<Path>, most: u64) -> io::Result<String> {
    let file = File::open(path)?;
    no_longer(&file, most)?;
    read_text(file, most)
}

/// The bytes of a file by its path, as [`text_file`].
///
/// # Errors
/// As [`read`].
pub fn bytes_file(path: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
    read_file(File::open(path)?, most)
}

/// A text of lines, none of which is longer than `line` bytes: a hole in the file is one line.
///
/// # Errors
/// The whole has more than `most` bytes, or a line more than `line` (kind `FileTooLarge`); it cannot be read, or is no UTF-8.
pub fn lines_file(file: File, most: u64, line: u64) -> io::Result<String> {
    no_longer(&file, most)?;
    let mut from = io::BufReader::new(file);
    let (mut all, mut next) = (Vec::new(), Vec::new());
    while next_line(&mut from, &mut next, line)? > 0 {
        all.extend_from_slice(&next);
        if all.len() as u64 > most {
            return Err(too_long("it is", most));
        }
    }
    String::from_utf8(all).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The next line of a stream, with its line feed, in place of what `line` holds; 0 at the end.
///
/// # Errors
/// It has more than `most` bytes (kind `FileTooLarge`), or cannot be read.
pub fn next_line(from: &mut impl BufRead, line: &mut Vec<u8>, most: u64) -> io::Result<usize> {
    line.clear();
    let taken = from.take(most.saturating_add(1)).read_until(b'\n', line)?;
    if taken as u64 > most { Err(too_long("a line of it is", most)) } else { Ok(taken) }
}

/// All that a stream says, and the rest of it read away if it is too long: its writer must not wait for a reader.
///
/// # Errors
/// As [`read`].
pub fn read_out(mut from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let bytes = read(&mut from, most);
    // The reason why it cannot be read has been told.
    let _ = io::copy(&mut from, &mut io::sink());
    bytes
}

/// What a program says on both streams until it ends, each up to `most` bytes.
///
/// # Errors
/// As [`read`], of either stream; or it cannot be waited for.
pub fn read_output(mut child: Child, most: u64) -> io::Result<Output> {
    drop(child.stdin.take());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let errors = scope.spawn(|| err.map_or(Ok(Vec::new()), |pipe| read_out(pipe, most)));
        let stdout = out.map_or(Ok(Vec::new()), |pipe| read_out(pipe, most));
        let stderr = errors.join().unwrap_or_else(|_| Err(io::Error::other("its errors were not read")));
        let status = child.wait()?;
        Ok(Output { status, stdout: stdout?, stderr: stderr? })
    })
}

/// The last `most` bytes of a file, as text: the end of a log.
///
/// # Errors
/// It cannot be read.
pub fn end_of(path: impl AsRef<Path>, most: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    io::Seek::seek(&mut file, io::SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Refuses a regular file that says that it is too long.
///
/// # Errors
/// It has more than `most` bytes (kind `FileTooLarge`).
pub fn no_longer(file: &File, most: u64) -> io::Result<()> {
    let about = file.metadata()?;
    if about.is_file() && about.len() > most { Err(too_long("it is", most)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn nothing_is_read_beyond_its_bound() {
        for (length, fits) in [(0, true), (1, true), (9, true), (10, true), (11, false)] {
            let text = "x".repeat(length);
            let found = read(text.as_bytes(), 10);
            assert_eq!(found.is_ok(), fits, "{length}");
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            std::fs::write(&path, &text).unwrap();
            assert_eq!(text_file(&path, 10).is_ok(), fits, "{length}");
            assert_eq!(bytes_file(&path, 10).is_ok(), fits, "{length}");
            assert_eq!(lines_file(File::open(&path).unwrap(), 100, 10).is_ok(), fits, "{length}");
        }
        let endless = text_file("/dev/zero", 1 << 20).unwrap_err();
        assert_eq!(endless.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(endless.to_string(), "it is longer than 1 MiB, the most that is read of it");
        assert_eq!(read_text(&b"\xff"[..], 10).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_program_says_no_more_than_its_bound_and_ends() {
        let shell = |script: &str| {
            let mut command = std::process::Command::new("sh");
            command.args(["-c", script]).stdin(std::process::Stdio::null());
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        };
        let told = read_output(shell("echo one; echo two >&2; exit 3"), 100).unwrap();
        assert_eq!(
            (told.stdout, told.stderr, told.status.code()),
            (b"one\n".to_vec(), b"two\n".to_vec(), Some(3))
        );
        // More than a pipe holds, on either stream.
        for script in ["head -c 1000000 /dev/zero", "head -c 1000000 /dev/zero >&2"] {
            assert_eq!(read_output(shell(script), 100).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        }
    }

    #[test]
    fn the_end_of_a_log_is_its_last_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(
            (end_of(&path, 4).unwrap(), end_of(&path, 100).unwrap()),
            ("two\n".into(), "one\ntwo\n".into())
        );
    }

    #[test]
    fn a_hole_costs_no_more_than_a_line() {
        let mut hole = tempfile::tempfile().unwrap();
        hole.write_all(b"a\nb\n").unwrap();
        hole.set_len(20 << 30).unwrap();
        let again = |hole: &File| hole.try_clone().unwrap();
        assert_eq!(read_file(again(&hole), 1 << 30).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        hole.set_len(100 << 20).unwrap();
        io::Seek::rewind(&mut hole).unwrap();
        let error = lines_file(again(&hole), 1 << 30, 1 << 10).unwrap_err();
        assert_eq!(error.to_string(), "a line of it is longer than 1 KiB, the most that is read of it");
        hole.set_len(4).unwrap();
        io::Seek::rewind(&mut hole).unwrap();
        assert_eq!(lines_file(again(&hole), 1 << 30, 1 << 10).unwrap(), "a\nb\n");
    }
}
