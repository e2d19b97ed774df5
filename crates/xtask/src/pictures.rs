//! Pictures of a terminal for README and guides: a real run of the program that is named, in a pseudo-terminal, as SVG.

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use std::fmt::Write as _;
use std::io::{self, Read};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vt100::{Color, Parser, Screen};

const ROWS: u16 = 24;
const COLUMNS: u16 = 80;

/// Width and height of a character, pixels.
const CELL: (f64, f64) = (8.43, 18.0);

/// The longest that the run may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The run that is shown: an open loop on a Redis of its own, with thresholds.
const RUN: [&str; 12] = [
    "run",
    "--records",
    "100k",
    "--rate",
    "20k",
    "--duration",
    "20s",
    "--require",
    "p99(read) < 5ms",
    "--require",
    "errors < 0.1%",
    "--out",
];

/// Beginnings of the lines of the summary that docs/reading-results.md explains, by number.
const EXPLAINED: [&str; 9] =
    ["VALID", "  p99(read)", "load", "measure", "READ", "  server", "ideal client", "limit", "report:"];

/// Runs `program` and draws its live view and its summary, `live.svg` and `summary.svg` with numbers beside its lines; the run's
/// directory is left beside them.
///
/// # Errors
/// The program cannot be run, or shows no view.
pub fn pictures(program: &Path, folder: &Path) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
    let pty = native_pty_system().openpty(size).map_err(io::Error::other)?;
    let mut command = CommandBuilder::new(program.canonicalize()?);
    command.args(RUN);
    command.arg("run");
    command.cwd(folder);
    command.env("TERM", "xterm-256color");
    let mut child = pty.slave.spawn_command(command).map_err(io::Error::other)?;
    drop(pty.slave);
    let mut reader = pty.master.try_clone_reader().map_err(io::Error::other)?;
    let size = |n: u16| NonZero::new(n).unwrap_or(NonZero::<u16>::MIN);
    let (mut parser, begun) = (Parser::new(size(ROWS), size(COLUMNS), 0), Instant::now());
    let hidden = folder.canonicalize()?.display().to_string();
    let (mut live, mut buffer) = (None, [0; 4096]);
    while begun.elapsed() < PATIENCE {
        // The terminal's other end is gone: the program has ended.
        let Ok(n @ 1..) = reader.read(&mut buffer) else { break };
        parser.process(&buffer[..n]);
        let text = parser.screen().contents();
        if text.contains("measure ") && text.contains("<= ") && text.contains(", 5 s left") {
            live = Some(svg(parser.screen(), &hidden, &[]));
        }
    }
    child.wait()?;
    let live = live.ok_or_else(|| io::Error::other("no live view was shown"))?;
    let mut lines = parser.screen().rows(0, COLUMNS);
    if let Some(missing) = EXPLAINED.iter().find(|begins| !lines.any(|line| line.starts_with(**begins))) {
        let why =
            format!("no line of the summary begins with {missing:?}: pictures are made on a quiet host");
        return Err(io::Error::other(why));
    }
    let summary = svg(parser.screen(), &hidden, &EXPLAINED);
    Ok(vec![(folder.join("live.svg"), live.into_bytes()), (folder.join("summary.svg"), summary.into_bytes())])
}

fn colour(colour: Color) -> &'static str {
    match colour {
        Color::Idx(1 | 9) => "#ff7b72",
        Color::Idx(2 | 10) => "#7ee787",
        Color::Idx(3 | 11) => "#e3b341",
        _ => "#e6edf3",
    }
}

/// The screen as text on a dark ground, each run of equal cells by itself; the folder `hidden` is called `/results`: paths of
/// this machine are no part of a picture. Lines that begin as those of `explained`, in their order, get numbers.
fn svg(screen: &Screen, hidden: &str, explained: &[&str]) -> String {
    let line = |row: u16| screen.rows(0, COLUMNS).nth(usize::from(row)).unwrap_or_default();
    let last = (0..ROWS).rev().find(|row| !line(*row).trim().is_empty());
    let rows = last.map_or(1, |row| row + 1);
    let (width, height) = (CELL.0 * f64::from(COLUMNS) + 24.0, CELL.1 * f64::from(rows) + 24.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"DejaVu Sans Mono,Menlo,Consolas,monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    let mut explained = explained.iter().enumerate().peekable();
    for row in 0..rows {
        let y = 12.0 + CELL.1 * f64::from(row) + 13.5;
        if let Some((at, _)) = explained.next_if(|(_, begins)| line(row).starts_with(**begins)) {
            let (x, y, number) = (width - 16.0, y - 4.5, at + 1);
            let _ = writeln!(
                out,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"8.5\" fill=\"#e3b341\"/><text x=\"{x:.1}\" y=\"{:.1}\" \
                 font-size=\"12\" font-weight=\"bold\" text-anchor=\"middle\" fill=\"#0d1117\">{number}</text>",
                y + 4.3
            );
        }
        let mut column = 0;
        while column < COLUMNS {
            let look = |at: u16| screen.cell(row, at).map(|cell| (cell.fgcolor(), cell.bold(), cell.dim()));
            let from = column;
            let mut text = String::new();
            while column < COLUMNS && look(column) == look(from) {
                text.push_str(
                    screen
                        .cell(row, column)
                        .map(|cell| cell.contents())
                        .filter(|text| !text.is_empty())
                        .unwrap_or(" "),
                );
                column += 1;
            }
            if text.trim().is_empty() {
                continue;
            }
            let (fg, bold, dim) = look(from).unwrap_or((Color::Default, false, false));
            let weight = if bold { " font-weight=\"bold\"" } else { "" };
            let opacity = if dim { " opacity=\"0.7\"" } else { "" };
            let text = text
                .trim_end()
                .replace(hidden, "/results")
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;");
            let (x, length) = (12.0 + CELL.0 * f64::from(from), CELL.0 * text_width(&text));
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{}\"{weight}{opacity} textLength=\"{length:.1}\" \
                 lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\">{text}</text>",
                colour(fg)
            );
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Columns of a text in which characters are escaped.
fn text_width(text: &str) -> f64 {
    text.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">").chars().count() as f64
}
