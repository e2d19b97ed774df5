//! Starting a worker: its process, the first words, and the thread that hears it.

use super::crew::{Member, Recruit, Told};
use super::crew_error::CrewError;
use super::frame::{Frame, read_frame, write_frame};
use super::serve::unix_ns;
use super::{PROTOCOL, ToWorker};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// Starts a worker and says the first words.
pub(super) fn enlist(recruit: Recruit, at: usize, tell: &Sender<(usize, Told)>) -> Result<Member, CrewError> {
    let Recruit { mut command, assignment, way, log } = recruit;
    let trouble = |words: String| CrewError::Worker(format!("worker {}: {words}", at + 1));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    // Ctrl-C in a terminal goes to the foreground group; workers are told by the controller.
    command.process_group(0);
    let mut child = command.spawn().map_err(|e| {
        let program = command.get_program().to_string_lossy().into_owned();
        trouble(format!("{program} could not be started: {e}"))
    })?;
    let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(trouble("no pipe".into()));
    };
    let (instance, number, pid) = (assignment.instance, assignment.number, child.id());
    let hello = ToWorker::Hello { protocol: PROTOCOL, now_ns: unix_ns() };
    let said = write_frame(&mut input, &Frame::Message(&hello))
        .and_then(|()| write_frame(&mut input, &Frame::Message(&ToWorker::Assign(Box::new(assignment)))));
    if let Err(error) = said {
        let status = child.wait().map_or(String::new(), |status| format!(" ({status})"));
        return Err(trouble(format!("it ended at once{status}: {error}")));
    }
    let tell = tell.clone();
    let listen = move || {
        loop {
            let told = match read_frame(&mut output) {
                Ok(Frame::Message(word)) => Told::Message(word),
                Ok(Frame::Second(second)) => Told::Second(second),
                Err(error) => {
                    drop(tell.send((at, Told::Lost(error.to_string()))));
                    return;
                }
            };
            if tell.send((at, told)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name(format!("worker-{}", at + 1))
        .spawn(listen)
        .map_err(|e| trouble(e.to_string()))?;
    let input = Arc::new(Mutex::new(Some(input)));
    let pid = AtomicU32::new(pid);
    Ok(Member { child: Mutex::new(child), input, instance, number, pid, way, log, clock: Mutex::default() })
}
