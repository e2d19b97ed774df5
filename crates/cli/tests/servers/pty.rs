//! The live view in a terminal of 80 x 24, and what is printed where there is none.

use dyno_testkit::{Dyno, RedisProcess, skip, stderr, stdout};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The screen row by row. Rows that run into each other stay apart: the bar fills its row, and a line that is too long
/// takes two.
fn rows(screen: &vt100::Screen) -> String {
    let rows: Vec<String> = screen.rows(0, 80).map(|row| row.trim_end().to_owned()).collect();
    rows.join("\n").trim_end().to_owned()
}

/// The row of the bar, which fills it; `None` where the live view is not on the screen.
fn bar(screen: &str) -> Option<usize> {
    screen.lines().position(|l| {
        let of_phase = ["load ", "warmup ", "measure "].iter().any(|phase| l.starts_with(phase));
        of_phase && l.ends_with(" %") && l.chars().count() == 80
    })
}

/// Asserts that no line of the live view is so long that it takes two rows. What follows it is a result.
fn assert_narrow(screens: &[String]) {
    for screen in screens {
        let Some(bar) = bar(screen) else { continue };
        let long = screen.lines().skip(bar + 1).find(|l| l.chars().count() >= 80);
        assert_eq!(long, None, "a line fills its row, so it may have wrapped:\n{screen}");
    }
}

/// Runs dyno in a pseudo-terminal; every screen that was seen, and everything that was written.
fn watch(dyno: &Dyno, arguments: &[&str], no_color: bool) -> (Vec<String>, Vec<u8>) {
    let pty =
        native_pty_system().openpty(PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 }).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_dyno"));
    command.args(arguments);
    command.cwd(dyno.folder.path());
    command.env("TERM", "xterm-256color");
    if no_color {
        command.env("NO_COLOR", "1");
    }
    let mut child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    let mut reader = pty.master.try_clone_reader().unwrap();
    let (send, chunks) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = reader.read(&mut buffer) {
            if send.send(buffer[..n].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut parser =
        vt100::Parser::new(std::num::NonZero::new(24).unwrap(), std::num::NonZero::new(80).unwrap(), 0);
    let (mut screens, mut bytes) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        match chunks.recv_timeout(Duration::from_millis(200)) {
            Ok(chunk) => {
                parser.process(&chunk);
                bytes.extend(chunk);
                screens.push(rows(parser.screen()));
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) if child.try_wait().unwrap().is_none() => {}
            Err(_) => break,
        }
    }
    assert!(child.wait().unwrap().exit_code() <= 5);
    (screens, bytes)
}

#[test]
fn the_live_view_is_tidy() {
    let dyno = Dyno::new();
    // The engine alone: this test needs no server.
    let arguments = [
        "run",
        "null:",
        "--rate",
        "2000",
        "--duration",
        "4s",
        "--warmup",
        "1s",
        "--records",
        "1000",
        "--no-out",
    ];
    let (screens, bytes) = watch(&dyno, &arguments, false);
    let view = screens
        .iter()
        // Lags are counted in the measured part only.
        .find(|s| ["measure ", " left", "<= ", "lag p99"].iter().all(|w| s.contains(w)))
        .unwrap_or_else(|| panic!("no live view:\n{}", screens.last().unwrap()));
    for word in ["%", "rate ", "/s", "due 2,000/s", "p50", "p99", "█", "<= ", "ok", "failed", "lag p99"] {
        assert!(view.contains(word), "{word:?} is missing:\n{view}");
    }
    // It fills the window but for the line of the cursor: a line that is too long would make it more.
    let lines: Vec<&str> = view.lines().collect();
    let bar = bar(view).unwrap_or_else(|| panic!("no bar:\n{view}"));
    assert_eq!(lines.len() - bar, 23, "the view has wrapped:\n{view}");
    assert!(lines[bar + 1].ends_with(" left") && lines[bar + 22].contains(" failed"), "{view}");
    assert_narrow(&screens);
    assert!(screens.iter().any(|s| s.contains("warmup")), "the warm-up is not shown");
    let last = screens.last().unwrap();
    assert!(!last.contains("=>"), "the bar was left behind:\n{last}");
    assert!(bytes.windows(3).any(|w| w == b"\x1b[1"), "no colour on a terminal");
}

#[test]
fn the_summary_fits_the_screen() {
    let dyno = Dyno::new();
    let text = "run null: --rate 2000 --duration 3s --warmup 500ms --records 1000 --out d";
    let mut words: Vec<&str> = text.split(' ').collect();
    words.extend(["--require", "p99(read) < 5s", "--require", "throughput > 10"]);
    let (screens, _) = watch(&dyno, &words, true);
    let last = screens.last().unwrap();
    let starts = |word: &str| last.lines().any(|line| line.starts_with(word));
    assert!(
        ["VALID ", "SUSPECT ", "INVALID "].iter().any(|word| starts(word)),
        "the verdict is gone:\n{last}"
    );
    assert!(starts("response time ") && starts("report:  file:///"), "{last}");
}

/// The second in which the warm-up ends and the last, which lasts half of one, are no rates.
#[test]
fn parts_of_seconds_are_not_drawn_as_whole_ones() {
    let dyno = Dyno::new();
    let text = "run null: --rate 2000 --warmup 500ms --duration 2500ms --records 1000 --no-out";
    let (screens, _) = watch(&dyno, &text.split(' ').collect::<Vec<_>>(), false);
    // Of each view the time and the line of rates and percentiles.
    let views: Vec<(&str, &str)> = screens
        .iter()
        .filter_map(|screen| {
            let lines: Vec<&str> = screen.lines().collect();
            let at = bar(screen)?;
            Some((*lines.get(at + 1)?, *lines.get(at + 2)?)).filter(|(_, line)| line.starts_with("rate "))
        })
        .collect();
    let drawn = |line: &str| line.chars().filter(|c| ('▁'..='█').contains(c)).count();
    let parts: Vec<_> = views.iter().filter(|(time, _)| time.starts_with("1 s,")).collect();
    // No whole second has been seen yet: there is a rate, by the time that it took, and no bar.
    assert!(!parts.is_empty() && parts.iter().all(|(_, line)| drawn(line) == 0), "{views:?}");
    let whole: Vec<_> = views.iter().filter(|(time, _)| time.starts_with("2 s,")).collect();
    // There are 45 columns for three seconds or four: a second has 15 of them or 11, and two have 22 or more.
    let is_one = |line: &str| (1..=15).contains(&drawn(line));
    assert!(
        !whole.is_empty() && whole.iter().all(|(_, line)| line.contains("/s  ") && is_one(line)),
        "{views:?}"
    );
    // The last half second adds no bar.
    let last = views.iter().filter(|(time, _)| time.starts_with("3 s,"));
    assert!(last.clone().all(|(_, line)| is_one(line)), "{views:?}");
}

#[test]
fn the_server_is_shown_beside_the_client() {
    let Some(server) = dyno_testkit::RedisProcess::start(&[]) else {
        return dyno_testkit::skip("the server in the live view");
    };
    let dyno = Dyno::new();
    let uri = server.uri();
    let arguments =
        ["run", &uri, "--rate", "2000", "--duration", "4s", "--warmup", "0", "--records", "100", "--no-out"];
    let (screens, _) = watch(&dyno, &arguments, false);
    let view = screens
        .iter()
        .find(|s| bar(s).is_some() && s.contains(" commands/s"))
        .unwrap_or_else(|| panic!("the server is not shown:\n{}", screens.join("\n---\n")));
    let lines: Vec<&str> = view.lines().collect();
    let bar = bar(view).unwrap();
    assert_eq!(lines.len() - bar, 23, "{view}");
    assert!(lines[bar + 22].starts_with("server ") && lines[bar + 22].ends_with(" MiB"), "{view}");
    assert_narrow(&screens);
}

#[test]
fn long_words_and_large_numbers_do_not_wrap() {
    let dyno = Dyno::new();
    let arguments = [
        "run",
        "null:",
        "--ops",
        "100M",
        "--duration",
        "3s",
        "--warmup",
        "1s",
        "--rate",
        "ramp:900000-1000000:60s",
        "--connections",
        "10000",
        "--records",
        "1000",
        "--queue",
        "1000",
        "--no-out",
    ];
    let (screens, _) = watch(&dyno, &arguments, false);
    let described = |s: &&String| bar(s).is_some() && s.contains("901,667/s at first on");
    assert!(screens.iter().any(|s| described(&s)), "the load is not described");
    assert_narrow(&screens);
}

#[test]
fn no_color_is_obeyed() {
    let dyno = Dyno::new();
    let (_, bytes) = watch(&dyno, &["run", "null:", "--ops", "5000", "--no-out"], true);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // A colour or weight is ESC [ numbers m; cursor movements end in other letters.
    let painted = text.split('\x1b').skip(1).any(|rest| {
        let end = rest.trim_start_matches('[').trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        rest.starts_with('[') && end.starts_with('m')
    });
    assert!(!painted, "{text:?}");
}

#[test]
fn without_a_terminal_lines_are_plain_and_streams_apart() {
    let dyno = Dyno::new();
    let output =
        dyno.run(&["run", "null:", "--rate", "1000", "--duration", "6s", "--warmup", "0", "--no-out"]);
    dyno.assert_ran(&output);
    assert!(!stderr(&output).contains('\x1b') && !stdout(&output).contains('\x1b'));
    let progress = stderr(&output);
    assert!(progress.lines().any(|l| l.starts_with("measure 5 s: ") && l.contains("p99.9")), "{progress}");
    assert!(stdout(&output).contains("response time"));
    assert!(!stdout(&output).contains("measure 5 s: "));
    let quiet = dyno.run(&["run", "null:", "--ops", "5000", "--no-out", "--quiet"]);
    assert!(!stderr(&quiet).contains("measure"), "{}", stderr(&quiet));
}

/// A server on a free port that answers each request with what `answer` makes of it.
fn hostile(answer: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("redis://{}", listener.local_addr().unwrap());
    let answer = std::sync::Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || answer(stream));
        }
    });
    uri
}

/// Writes `to` over every `from` of the same length.
fn overwrite(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    for at in 0..bytes.len().saturating_sub(from.len() - 1) {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
}

/// Asserts that the terminal was told nothing but lines of text, and shown `words`.
fn assert_harmless(bytes: &[u8], message: &str) {
    let text = String::from_utf8_lossy(bytes);
    let obeyed =
        |c: char| (c.is_control() && !"\r\n\t".contains(c)) || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!text.contains(obeyed), "{text:?}");
    assert!(text.contains(message), "{message:?} is not in {text:?}");
}

#[test]
fn what_a_server_says_never_moves_the_cursor() {
    let dyno = Dyno::new();
    let refusing = hostile(|mut stream| {
        let mut buffer = [0; 4096];
        while let Ok(1..) = stream.read(&mut buffer) {
            // A title, a bell, a cleared screen, C1, and text from right to left.
            let reply = "-ERR \x1b]0;owned\x07\x1b[2J\u{9b}31m\u{202e}live\r\n".repeat(8);
            let _ = stream.write_all(reply.as_bytes());
        }
    });
    let (_, bytes) = watch(&dyno, &["run", &refusing, "--no-out", "--quiet"], true);
    assert_harmless(&bytes, r"\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}live");

    let Some(server) = RedisProcess::start(&[]) else { return skip("a hostile server on a terminal") };
    let port = server.port;
    // A real server whose version and whose answers to writes are not its own.
    let lying = hostile(move |mut client| {
        let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
        let mut buffer = [0; 65_536];
        while let Ok(n @ 1..) = server.read(&mut buffer) {
            overwrite(&mut buffer[..n], b"+OK\r\n", b"-\x1bc\r\n");
            if let Some(at) = buffer[..n].windows(14).position(|w| w == b"redis_version:") {
                buffer[at + 14..at + 18].copy_from_slice(b"\x1b[2J");
            }
            if client.write_all(&buffer[..n]).is_err() {
                return;
            }
        }
    });
    let words =
        ["run", &lying, "--records", "100", "--ops", "500", "--warmup", "0s", "--quiet", "--out", "lied"];
    let (_, bytes) = watch(&dyno, &words, true);
    assert_harmless(&bytes, r"\u{1b}[2J");
    assert_harmless(&bytes, r"could not be loaded: server_error \u{1b}c");
    // What is written keeps every byte.
    assert!(dyno.summary("lied")["database"].as_str().unwrap().contains("\x1b[2J"));
}

#[test]
fn a_strangers_directory_never_moves_the_cursor() {
    let dyno = Dyno::new();
    let name = "a\x1b]0;owned\x07b";
    let output = dyno.run(&["run", "null:", "--ops", "5000", "--warmup", "0s", "--out", name, "--quiet"]);
    dyno.assert_ran(&output);
    let path = dyno.path(name).join("summary.json");
    let (_, clean) = watch(&dyno, &["report", name], false);
    assert!(String::from_utf8_lossy(&clean).contains("\x1b[1"), "dyno's own colours are gone");
    let mut summary = dyno.summary(name);
    summary["title"] = "\x1b[8mhidden\nVALID  nobody".into();
    summary["database"] = "\u{9b}2J\u{202e}db".into();
    std::fs::write(&path, serde_json::to_string(&summary).unwrap()).unwrap();
    let title = r"\u{1b}[8mhidden\nVALID  nobody on \u{9b}2J\u{202e}db";
    // Colours or none: with such a title there are none.
    for no_color in [true, false] {
        let (_, bytes) = watch(&dyno, &["report", name], no_color);
        assert_harmless(&bytes, title);
    }
    let (_, bytes) = watch(&dyno, &["list", "."], true);
    assert_harmless(&bytes, r"a\u{1b}]0;owned\u{7}b");
    let (_, bytes) = watch(&dyno, &["export", name, "--format", "csv"], true);
    assert_harmless(&bytes, ",");
    // Nor does a later reader of a file or a pipe.
    let piped = dyno.run(&["report", name]);
    assert!(stdout(&piped).contains(r"\u001b[8mhidden\nVALID  nobody on \u009b2J"), "{}", stdout(&piped));
    assert!(!stdout(&piped).contains('\x1b'), "{}", stdout(&piped));
}
