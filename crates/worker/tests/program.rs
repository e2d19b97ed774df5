//! The program `dyno-worker`, started as a controller starts it.

use dyno_hosts::protocol::frame::{Frame, read_frame, write_frame};
use dyno_hosts::protocol::worker::{FromWorker, PROTOCOL, ToWorker};
use std::process::{Command, Output, Stdio};

fn run(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno-worker"));
    command.args(words).stdin(Stdio::null()).output().expect("the program starts")
}

#[test]
fn it_ends_with_its_pipe_and_says_what_it_does_not_know() {
    let version = run(&["--version"]);
    assert!(String::from_utf8_lossy(&version.stdout).contains(env!("CARGO_PKG_VERSION")));
    for words in [&["worker", "--stdio"][..], &["host", "--stdio"]] {
        let ended = run(words);
        assert!(ended.status.success(), "{words:?}: {ended:?}");
    }
    let missing = run(&["relay", "--stdio", "--token", "/nowhere"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).starts_with("error: "), "{missing:?}");
    let patience = run(&["pod", "--patience", "soon"]);
    assert_eq!(patience.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&patience.stderr).starts_with("error: --patience: "), "{patience:?}");
    assert_eq!(run(&["run"]).status.code(), Some(2), "nothing but what a controller starts");
}

#[test]
fn it_greets_a_controller() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dyno-worker"))
        .args(["worker", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    let hello = ToWorker::Hello { protocol: PROTOCOL, now_ns: 7, log: Vec::new() };
    write_frame(&mut input, &Frame::Message(&hello)).expect("it listens");
    let mut output = child.stdout.take().expect("a pipe");
    let Frame::Message(FromWorker::Hello { protocol, pid, heard_ns, .. }) =
        read_frame(&mut output).expect("it answers")
    else {
        panic!("it greets first");
    };
    assert_eq!((protocol, pid, heard_ns), (PROTOCOL, child.id(), 7));
    drop(input);
    assert!(child.wait().expect("it ends").success());
}
