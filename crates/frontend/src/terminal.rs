//! The two streams: results on stdout, everything else on stderr, both without secrets. A closed pipe is no error.
//!
//! Servers, files and directories have words of their own. Their control characters are written out: no terminal obeys them,
//! nor does a later reader of a file or a pipe. Results of any length (exports, another tool's report) keep every byte, except
//! on a terminal.

use dyno_types::secret::conceal;
use dyno_types::system_error::without_numbers;
use indicatif::{ProgressBar, WeakProgressBar};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write, stderr, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// True if results are to have all details.
static DETAILS: AtomicBool = AtomicBool::new(false);

/// Has results shown with all details, or not.
pub fn show_details(all: bool) {
    DETAILS.store(all, Ordering::Relaxed);
}

/// Returns whether results are to have all details.
pub fn has_details() -> bool {
    DETAILS.load(Ordering::Relaxed)
}

/// Returns whether colours may be used on a stream: a terminal, and `NO_COLOR` not set.
fn colour(terminal: bool) -> bool {
    terminal
        && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var("TERM").as_deref() != Ok("dumb")
}

/// Returns whether messages and the live view may have colours.
pub fn errors_have_colours() -> bool {
    colour(stderr().is_terminal())
}

/// Returns whether a terminal would obey a character, or turn the order of others around, instead of showing it.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text of several lines as a terminal may have it.
fn shown(text: &str) -> Cow<'_, str> {
    let text = if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { Cow::Borrowed(text) };
    escaped(text, &['\n', '\t'])
}

/// Text as a file or a pipe may have it, JSON included.
fn piped(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char, next: Option<char>| {
        c.is_control() && !matches!(c, '\n' | '\t') && (c, next) != ('\r', Some('\n'))
    };
    if !text.contains(|c: char| c.is_control() && c != '\n') {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        // As JSON has it, so that JSON stays what it is.
        match obeyed(c, rest.clone().next()) {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    out.into()
}

/// The same for a stream: a terminal, or not.
fn for_stream(text: &str, terminal: bool) -> Cow<'_, str> {
    if terminal { shown(text) } else { piped(text) }
}

/// Text with the characters that a terminal would obey written out, but for some.
fn escaped<'a>(text: Cow<'a, str>, but: &[char]) -> Cow<'a, str> {
    let obeyed = |c: char| is_obeyed(c) && !but.contains(&c);
    if !text.contains(obeyed) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if obeyed(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out.into()
}

/// Columns of a line at most: as far as eyes follow it.
const MEASURE: usize = 120;

/// Size of the terminal that results or progress go to, where there is one and it says.
fn size() -> Option<rustix::termios::Winsize> {
    let of = |size: rustix::io::Result<rustix::termios::Winsize>| size.ok().filter(|size| size.ws_col > 0);
    of(rustix::termios::tcgetwinsize(stdout())).or_else(|| of(rustix::termios::tcgetwinsize(stderr())))
}

/// Columns of the terminal that results or progress go to, at most [`MEASURE`]; 80 where there is none, or it does not say.
pub fn columns() -> usize {
    size().map_or(80, |size| usize::from(size.ws_col).clamp(40, MEASURE))
}

/// Rows of the same terminal; 24 where there is none, or it does not say.
pub fn rows() -> usize {
    size().map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0).unwrap_or(24)
}

/// Returns whether progress goes to a terminal that can redraw lines.
pub fn live() -> bool {
    stderr().is_terminal() && std::env::var("TERM").as_deref() != Ok("dumb")
}

/// The first result that could not be written: a full disk, say.
static LOST: OnceLock<String> = OnceLock::new();

/// Writes a result; [`lost`] says at the end whether all of them were.
pub fn out(text: &str) {
    write(&for_stream(text, stdout().is_terminal()));
}

/// Writes a result whose lines a terminal breaks between words, but for commands: they are to be copied.
pub fn prose(text: &str) {
    if !stdout().is_terminal() {
        return out(text);
    }
    let text = conceal(text);
    let line = |line: &str| match line.trim_start().starts_with("dyno ") {
        true => line.to_owned(),
        false => wrapped(line, 0),
    };
    out(&text.split('\n').map(line).collect::<Vec<_>>().join("\n"));
}

/// Writes another program's text as that has it: carriage returns, say.
pub fn exact(text: &str) {
    write(text);
}

/// Writes a result that is one line, whatever names are in it.
pub fn line(text: &str) {
    write(&format!("{}\n", escaped(without_numbers(text), &['\t'])));
}

/// The same error; it names the limit of this process where that is behind it.
pub fn limited(error: std::io::Error) -> std::io::Error {
    dyno_rundir::files::name_limit(dyno_engine::files::OutOfFiles::name_limit(error))
}

/// Writes a result with dyno's own colours where there may be some: `text` renders it with or without. A text with escape
/// sequences in a name gets none.
pub fn styled(text: impl Fn(bool) -> String) {
    let plain = text(false);
    let clean = shown(&plain) == plain;
    if clean && colour(stdout().is_terminal()) { write(&text(true)) } else { out(&plain) }
}

fn write(text: &str) {
    match stdout().write_all(conceal(text).as_bytes()).and_then(|()| stdout().flush()) {
        // A reader that closed the pipe has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => CLOSED.store(true, Ordering::Relaxed),
        Err(error) => {
            let _ = LOST.set(limited(error).to_string());
        }
        Ok(()) => {}
    }
}

/// True once the reader of the results has closed the pipe.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Waits until the reader of the output wants the next line. Returns false if there is no reader: the pipe is closed, the disk
/// full, or the terminal gone.
pub fn waits_for_more(pause: Duration) -> bool {
    let end = Instant::now() + pause;
    loop {
        if CLOSED.load(Ordering::Relaxed) || lost().is_some() {
            return false;
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        let out = stdout();
        // Nothing is asked for: errors and the other end's closing are told all the same.
        let mut watched = [PollFd::new(&out, PollFlags::empty())];
        let timeout = Timespec::try_from(left.min(HOUR)).ok();
        match poll(&mut watched, timeout.as_ref()) {
            Ok(1..) => return false,
            Ok(0) | Err(Errno::INTR) => {}
            // What cannot be watched is written into.
            Err(_) => std::thread::sleep(left),
        }
    }
}

/// Longest single wait.
const HOUR: Duration = Duration::from_secs(3_600);

/// Returns the reason for which results are missing on stdout, if they are.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// Writes help, the version, or what is wrong with a command line: in `words`, where there are better ones than clap's.
pub fn answer(error: &clap::Error, words: Option<String>) -> io::Result<()> {
    if let Some(message) = words {
        self::error(&message);
        return Ok(());
    }
    let message = error.render().to_string();
    let clean = shown(&conceal(&message)).into_owned();
    match error.use_stderr() {
        _ if clean == message => error.print(),
        true => stderr().write_all(clean.as_bytes()),
        false => stdout().write_all(clean.as_bytes()),
    }
}

/// Writes progress or a note. A terminal gets its lines broken between words.
pub fn note(text: &str) {
    // Masked first: a secret in two lines is not found.
    let text = conceal(text);
    let text = without_numbers(&text);
    verbatim(&if stderr().is_terminal() { wrapped(&text, 0).into() } else { text });
}

/// Writes a line of progress as it is: another tool's line, say.
pub fn verbatim(text: &str) {
    let text = for_stream(text, stderr().is_terminal());
    let _ = writeln!(stderr(), "{}", conceal(&text));
}

/// Writes a part of a line of progress, which may begin the line anew.
pub fn progress(text: &str) {
    let _ = write!(stderr(), "{}", conceal(text));
    let _ = stderr().flush();
}

/// Breaks lines between words where the terminal ends; `begun` columns of the first are taken. Further lines are indented by two
/// columns more.
fn wrapped(text: &str, begun: usize) -> String {
    let wrap = |line: &str, begun: usize| {
        let depth = line.len() - line.trim_start_matches(' ').len();
        let (first, next) = (" ".repeat(begun), " ".repeat(depth + 2));
        // Paths and commands have hyphens, at which they must not be broken.
        let options = textwrap::Options::new(columns())
            .initial_indent(&first)
            .subsequent_indent(&next)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        textwrap::fill(line, options.break_words(false)).get(begun..).unwrap_or_default().to_owned()
    };
    let lines: Vec<String> =
        text.split('\n').enumerate().map(|(at, line)| wrap(line, if at == 0 { begun } else { 0 })).collect();
    lines.join("\n")
}

/// The view that redraws itself, while there is one.
static VIEW: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// Notes the view that redraws itself, or that there is none any more: lines of the log are put above it.
pub fn show_view(view: Option<&ProgressBar>) {
    *VIEW.lock().unwrap_or_else(PoisonError::into_inner) = view.map(ProgressBar::downgrade);
}

/// Writes a line of the log, above the view where there is one.
pub fn beside(text: &str) {
    let view = VIEW.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match view.and_then(|view| view.upgrade()) {
        Some(view) => view.suspend(|| note(text)),
        None => note(text),
    }
}

/// Writes a warning.
pub fn warn(text: &str) {
    marked("warning:", "33", text);
}

/// Writes an error.
pub fn error(text: &str) {
    marked("error:", "1;31", text);
}

/// Writes a text behind a mark. On a terminal further lines are indented: none of them can pass for another message.
fn marked(mark: &str, code: &str, text: &str) {
    let text = conceal(text);
    let text = &*without_numbers(&text);
    let _ = match (stderr().is_terminal(), errors_have_colours()) {
        (false, _) => writeln!(stderr(), "{mark} {}", piped(text)),
        (true, colours) => {
            let text = wrapped(&shown(text).replace('\n', "\n  "), mark.len() + 1);
            match colours {
                true => writeln!(stderr(), "\x1b[{code}m{mark}\x1b[0m {text}"),
                false => writeln!(stderr(), "{mark} {text}"),
            }
        }
    };
}

/// Standard output as a buffered writer for results of any length. A closed pipe is no error: its reader has seen enough.
pub struct Results {
    out: BufWriter<Stdout>,
    /// The line that a terminal is to show once it is whole.
    line: Option<Vec<u8>>,
}

impl Default for Results {
    fn default() -> Self {
        let line = stdout().is_terminal().then(Vec::new);
        Results { out: BufWriter::with_capacity(1 << 16, stdout()), line }
    }
}

impl Results {
    fn show_line(&mut self) -> io::Result<()> {
        let Some(line) = self.line.as_mut().map(std::mem::take) else { return Ok(()) };
        self.out.write_all(shown(&String::from_utf8_lossy(&line)).as_bytes())
    }
}

/// Returns the result of a write; one to a closed pipe counts as done, with `nothing`.
fn or_closed<T>(done: io::Result<T>, nothing: T) -> io::Result<T> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(nothing),
        done => done,
    }
}

impl Write for Results {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(line) = &mut self.line else { return or_closed(self.out.write(bytes), bytes.len()) };
        let taken = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        line.extend_from_slice(&bytes[..taken]);
        let whole = bytes[..taken].ends_with(b"\n");
        let done = if whole { self.show_line() } else { Ok(()) };
        or_closed(done.map(|()| taken), taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.show_line().and_then(|()| self.out.flush());
        or_closed(done, ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_is_not_dynos_own() {
        let hostile = "a\x1b[2J\x07b\u{9b}31mc\r\u{202e}d\x7f";
        assert_eq!(shown(hostile), r"a\u{1b}[2J\u{7}b\u{9b}31mc\r\u{202e}d\u{7f}");
        assert_eq!(shown("grün\t1\r\n2\n"), "grün\t1\n2\n");
        assert_eq!(escaped("a\nb\t".into(), &['\t']), "a\\nb\t");
        assert!(matches!(shown("p99 12 µs ± 1\n"), Cow::Borrowed(_)));
        assert_eq!(piped("a\x1b[2J\r\n\tb\rc\x07\n"), "a\\u001b[2J\r\n\tb\\u000dc\\u0007\n");
        assert!(matches!(piped("grün ± 1\n"), Cow::Borrowed(_)));
    }
}
