//! Run directories in which something is wrong: whatever reads one says so, or makes of it what there is; it never panics and
//! never takes memory or time for a figure that stands there. `DAMAGED=20000` tries as many as it is told.

use dyno_testkit::{Dyno, RedisProcess};
use dyno_types::rng::{Purpose, Stream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What `make test` tries.
const FEW: u64 = 300;
/// Far more than a report of a few seconds takes on the slowest host.
const LONGEST: Duration = Duration::from_secs(30);
/// What a process may map: the program itself is a tenth of it.
const MEMORY_KIB: u64 = 3 << 20;

/// What may stand where a number stood.
const FIGURES: [&str; 20] = [
    "0",
    "-1",
    "1",
    "1.5",
    "-0.0",
    "4294967296",
    "99999999999",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1e18",
    "1e308",
    "-1e308",
    "1e-308",
    "1e400",
    "null",
    "\"x\"",
    "\"\"",
    "[]",
    "{}",
];

/// What reads run directories; `DIR` is one.
const READERS: [&[&str]; 13] = [
    &["report", "DIR"],
    &["report", "DIR", "--format", "html"],
    &["report", "DIR", "--format", "md"],
    &["report", "DIR", "--format", "json"],
    &["report", "DIR", "--format", "csv"],
    &["report", "DIR", "--format", "ycsb"],
    &["report", "DIR", "--format", "wsf"],
    &["report", "DIR", "--format", "bexhoma"],
    &["report", "DIR", "--format", "parquet", "--out", "table"],
    &["report", "DIR", "--format", "xlsx", "--out", "sheet"],
    &["explain", "DIR"],
    &["compare", "DIR", "DIR"],
    &["compare", "whole", "DIR"],
];

/// Where the digits of a number begin and end, for each number of a text.
fn numbers(text: &[u8]) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (at, byte) in text.iter().enumerate() {
        match found.last_mut() {
            _ if !(byte.is_ascii_digit() || *byte == b'.') => {}
            Some((_, end)) if *end == at => *end = at + 1,
            _ => found.push((at, at + 1)),
        }
    }
    found
}

/// Puts another figure in a number's place, changes a byte, repeats, removes or moves a line, or cuts the end off.
fn damaged(text: &[u8], draws: &mut Stream) -> Vec<u8> {
    let mut out = text.to_vec();
    for _ in 0..=draws.next_below(3) {
        let lines: Vec<&[u8]> = out.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.is_empty() {
            return out;
        }
        let mut draw = |below: usize| draws.next_below(below as u64) as usize;
        match draw(10) {
            0..=5 => {
                let numbers = numbers(&out);
                if let Some((begin, end)) = numbers.get(draw(numbers.len().max(1))) {
                    let figure = FIGURES[draw(FIGURES.len())].bytes();
                    out.splice(begin..end, figure);
                }
            }
            6 => {
                let (at, byte) = (draw(out.len()), draw(256) as u8);
                out[at] = byte;
            }
            7 | 8 => {
                let (from, to, stays) = (draw(lines.len()), draw(lines.len()), draw(2) == 0);
                let mut changed = lines.clone();
                let line = if stays { changed[from] } else { changed.remove(from) };
                changed.insert(to.min(changed.len()), line);
                if draw(3) == 0 {
                    changed.remove(0);
                }
                out = changed.concat();
            }
            _ => out.truncate(draw(out.len())),
        }
    }
    out
}

/// Files of a run that are read again.
fn files(run: &Path) -> Vec<PathBuf> {
    let read = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let kinds = ["json", "jsonl", "hlog", "csv"];
    let mut files: Vec<PathBuf> = read(run.to_owned()).chain(read(run.join("monitor"))).collect();
    files.retain(|path| path.extension().is_some_and(|kind| kinds.iter().any(|known| kind == *known)));
    files.sort();
    files
}

/// A run with everything that a directory can have: two phases, warm-up, monitors, a fault.
fn make(dyno: &Dyno, server: Option<&RedisProcess>) {
    let target = server.map_or("sqlite:a.db".into(), RedisProcess::uri);
    let text = format!(
        "target: {target}\nworkload: {{ycsb: {{workload: a, records: 100}}}}\nmonitors: {{interval: 500ms}}\n\
         phases: {{measure: {{connections: 2, rate: 200, duration: 2s, warmup: 1s}}}}\nclient: {{workers: 2}}\n\
         faults: [{{at: 1s, kind: pause, on: worker 1, for: 200ms}}]\n"
    );
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "x.yaml", "--out", "o", "-q"]));
    std::fs::rename(dyno.path("o/runs/cell0001-rep01"), dyno.path("whole")).unwrap();
}

/// Lets a command read the damaged directory; what is wrong with how it ended.
fn reads(dyno: &Dyno, arguments: &[&str]) -> Result<(), String> {
    let words: Vec<&str> =
        arguments.iter().map(|word| if *word == "DIR" { "damaged" } else { *word }).collect();
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_dyno"));
    command.args(&words).current_dir(dyno.path(".")).stdin(Stdio::null());
    let begun = Instant::now();
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    let well = matches!(done.status.code(), Some(0..=5)) && !said.contains("panicked");
    if well && begun.elapsed() < LONGEST {
        return Ok(());
    }
    Err(format!("{words:?}: {}, {:.1} s, {said}", done.status, begun.elapsed().as_secs_f64()))
}

#[test]
fn whatever_stands_in_a_run_directory_it_is_read_or_refused() {
    let dyno = Dyno::new();
    make(&dyno, RedisProcess::start(&[]).as_ref());
    let many = std::env::var("DAMAGED").ok().and_then(|n| n.parse().ok()).unwrap_or(FEW);
    let copied = Command::new("cp").args(["-r", "whole", "damaged"]).current_dir(dyno.path(".")).status();
    assert!(copied.unwrap().success());
    let files = files(&dyno.path("damaged"));
    assert!(files.len() > 10, "{files:?}");
    for number in 0..many {
        let mut draws = Stream::new(number, 0, Purpose::Key);
        let file = &files[draws.next_below(files.len() as u64) as usize];
        let text = std::fs::read(file).unwrap();
        std::fs::write(file, damaged(&text, &mut draws)).unwrap();
        // What the summary has need not be computed again; without it everything is.
        let summary = dyno.path("damaged/summary.json");
        let kept = (draws.next_below(3) == 0).then(|| std::fs::read(&summary).unwrap());
        kept.iter().for_each(|_| std::fs::remove_file(&summary).unwrap());
        let reader = READERS[draws.next_below(READERS.len() as u64) as usize];
        let ended = reads(&dyno, reader);
        assert_eq!(ended, Ok(()), "number {number}, {}", file.display());
        kept.iter().for_each(|text| std::fs::write(&summary, text).unwrap());
        std::fs::write(file, text).unwrap();
    }
}
