//! The two streams: results on stdout, everything else on stderr, both without secrets. A closed pipe is no error.

use dyno_types::secret::conceal;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write, stderr, stdout};
use std::sync::OnceLock;

/// Whether colours may be used on a stream: a terminal, and `NO_COLOR` not set.
fn colour(terminal: bool) -> bool {
    terminal
        && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var("TERM").as_deref() != Ok("dumb")
}

/// Whether results may be coloured.
pub fn colour_out() -> bool {
    colour(stdout().is_terminal())
}

/// Whether progress goes to a terminal that can redraw lines.
pub fn live() -> bool {
    stderr().is_terminal() && std::env::var("TERM").as_deref() != Ok("dumb")
}

/// The first result that could not be written: a full disk, say.
static LOST: OnceLock<String> = OnceLock::new();

/// Writes a result; [`lost`] says at the end whether all of them were.
pub fn out(text: &str) {
    match stdout().write_all(conceal(text).as_bytes()).and_then(|()| stdout().flush()) {
        // Whoever closed the pipe has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = LOST.set(error.to_string());
        }
        _ => {}
    }
}

/// Why results are missing on stdout, if they are.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// Writes help, the version, or what is wrong with a command line.
pub fn answer(error: &clap::Error) -> io::Result<()> {
    let words = error.render().to_string();
    match conceal(&words) {
        shown if shown == words => error.print(),
        shown if error.use_stderr() => stderr().write_all(shown.as_bytes()),
        shown => stdout().write_all(shown.as_bytes()),
    }
}

/// Writes progress or a note.
pub fn note(text: &str) {
    let _ = writeln!(stderr(), "{}", conceal(text));
}

/// Writes a warning.
pub fn warn(text: &str) {
    let mark = if colour(stderr().is_terminal()) { "\x1b[33mwarning:\x1b[0m" } else { "warning:" };
    note(&format!("{mark} {text}"));
}

/// Writes an error.
pub fn error(text: &str) {
    let mark = if colour(stderr().is_terminal()) { "\x1b[1;31merror:\x1b[0m" } else { "error:" };
    note(&format!("{mark} {text}"));
}

/// Standard output as a buffered writer for results of any length. A closed pipe is no error: whoever closed it has
/// seen enough.
pub struct Results(BufWriter<Stdout>);

impl Results {
    /// With an empty buffer.
    pub fn new() -> Self {
        Results(BufWriter::with_capacity(1 << 16, stdout()))
    }
}

impl Write for Results {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}
