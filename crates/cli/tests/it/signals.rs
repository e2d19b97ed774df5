//! Signals that the process that started dyno has turned off.

use dyno_testkit::{Dyno, program, signal};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// `nohup dyno run ...`: the terminal's end is none of the run's.
#[test]
fn a_run_that_was_started_with_nohup_outlives_its_terminal() {
    let dyno = Dyno::new();
    let mut command = Command::new("sh");
    let script = "trap '' HUP; exec \"$0\" run null: -u 1 -d 2s --warmup 0s --out r --quiet";
    command.args(["-c", script]).arg(program()).current_dir(dyno.folder.path()).process_group(0);
    let mut run = command.spawn().unwrap();
    dyno.await_phase("r", "measure");
    signal(run.id(), "HUP");
    let code = run.wait().unwrap().code();
    // Null is as fast as the client: the run may be invalid, but it was not interrupted.
    assert!(matches!(code, Some(0 | 5)), "{code:?}");
    assert_eq!(dyno.summary("r")["status"], "complete");
}
