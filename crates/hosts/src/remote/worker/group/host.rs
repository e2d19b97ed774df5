//! The far end of a group: starts its workers, takes the controller's frames to them, and adds up their seconds.
//!
//! Of their seconds only the sum travels.

use crate::protocol::frame::{
    Body, Frame, FrameError, Packed, encode_frame, encode_member, frame_of, read_body, read_frame, unpack,
};
use crate::protocol::group::{FromGroup, ToGroup};
use crate::protocol::outbox::Outbox;
use crate::protocol::silence::{GONE, LEASE, Silence};
use crate::protocol::worker::{FromWorker, PROTOCOL, ToWorker};
use crate::remote::worker::sums::WorkerSums;
use dyno_engine::net::monotonic_ns;
use dyno_types::child;
use dyno_types::sync::held;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Most workers of a group.
pub const MEMBERS: u32 = 4_096;
/// Time that workers may take to end by themselves once their input has closed.
const END: Duration = Duration::from_secs(5);

struct Member {
    child: Mutex<Child>,
    input: Mutex<Option<ChildStdin>>,
}

struct Group {
    members: Vec<Member>,
    sums: Mutex<WorkerSums>,
    output: Outbox,
    /// When the controller was last heard, monotonic nanoseconds.
    heard_ns: AtomicU64,
    /// True once the controller has gone.
    closed: AtomicBool,
}

/// Serves one controller until it closes the pipe, or is silent for longer than workers wait for it. Workers are `program worker
/// --stdio`; what they print as errors is this process' own.
///
/// # Errors
/// The first word is none, or a worker cannot be started.
pub fn serve_group(
    mut input: impl Read + Send + 'static,
    mut output: impl Write + Send + 'static,
    program: &Path,
) -> Result<(), FrameError> {
    let Frame::Message(ToGroup::Hello { protocol, workers }) = read_frame(&mut input)? else {
        return Err(FrameError::Malformed("the first word must be hello".into()));
    };
    output.write_all(&encode_frame(&Frame::Message(&FromGroup::Hello { protocol: PROTOCOL }))?)?;
    output.flush()?;
    if protocol != PROTOCOL || workers > MEMBERS {
        let text = format!(
            "the controller speaks protocol {protocol} with {workers} workers, this group {PROTOCOL} with at most {MEMBERS}"
        );
        return Err(FrameError::Malformed(text));
    }
    let started: Vec<(Member, ChildStdout)> =
        (0..workers).map(|_| start_member(program)).collect::<io::Result<_>>()?;
    let (members, outputs): (Vec<_>, Vec<_>) = started.into_iter().unzip();
    let mut sums = WorkerSums::new(members.len());
    (0..members.len()).for_each(|worker| sums.note_ended(worker));
    let group = Arc::new(Group {
        members,
        sums: Mutex::new(sums),
        output: Outbox::start(output)?,
        heard_ns: AtomicU64::new(monotonic_ns()),
        closed: AtomicBool::new(false),
    });
    let mut hearing = Vec::new();
    for (worker, output) in outputs.into_iter().enumerate() {
        let own = group.clone();
        let hear = move || own.hear(worker, output);
        hearing.push(std::thread::Builder::new().name(format!("worker-{worker}")).spawn(hear)?);
    }
    let own = group.clone();
    std::thread::Builder::new().name("pipe".into()).spawn(move || own.listen(&mut input))?;
    let mut silence = Silence::starting(group.heard_ns.load(Ordering::Relaxed));
    while !group.closed.load(Ordering::Relaxed) && !hearing.iter().all(|thread| thread.is_finished()) {
        std::thread::sleep(Duration::from_millis(50));
        let silent_ns = silence.look(group.heard_ns.load(Ordering::Relaxed), monotonic_ns());
        if u128::from(silent_ns) > (GONE * LEASE).as_nanos() {
            break;
        }
    }
    group.end();
    group.output.close(END);
    Ok(())
}

fn start_member(program: &Path) -> io::Result<(Member, ChildStdout)> {
    let mut command = child::clean_command(program);
    let mut child =
        command.args(["worker", "--stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let output = output.ok_or_else(|| io::Error::other("no pipe"))?;
    Ok((Member { child: Mutex::new(child), input: Mutex::new(input) }, output))
}

impl Group {
    /// Reads the controller's pipe to its end.
    fn listen(&self, input: &mut dyn Read) {
        while let Ok(body) = read_body(input) {
            self.heard_ns.store(monotonic_ns(), Ordering::Relaxed);
            match body {
                Body::Member(worker, body) => self.pass(worker, body),
                Body::Own(bytes) => match unpack::<ToGroup>(bytes) {
                    Ok(Packed::Message(ToGroup::Ping)) => {
                        let Ok(ping) = encode_frame(&Frame::Message(&ToWorker::Ping)) else { continue };
                        self.members.iter().for_each(|member| tell(member, &ping));
                    }
                    Ok(Packed::Message(ToGroup::Close { worker })) => {
                        if let Some(member) = self.members.get(worker as usize) {
                            drop(held(&member.input).take());
                        }
                    }
                    Ok(Packed::Message(ToGroup::Kill { worker })) => {
                        if let Some(member) = self.members.get(worker as usize) {
                            // It may have ended by itself.
                            let _ = held(&member.child).kill();
                        }
                    }
                    _ => break,
                },
            }
        }
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Takes a frame to a worker.
    fn pass(&self, worker: u32, body: Vec<u8>) {
        let Some(member) = self.members.get(worker as usize) else { return };
        let frame = frame_of(&body);
        if let Ok(Packed::Message(ToWorker::Start { .. })) = unpack(body) {
            // Its seconds are expected before it can send one.
            held(&self.sums).expect_phase(worker as usize);
        }
        tell(member, &frame);
    }

    /// Hears a worker to its end.
    fn hear(&self, worker: usize, mut output: ChildStdout) {
        let error = loop {
            if let Err(error) = self.hear_frame(worker, &mut output) {
                break error;
            }
        };
        if let Some(counts) = held(&self.sums).take_counts(worker)
            && let Ok(frame) = encode_frame::<FromWorker>(&Frame::Whole(Box::new(counts)))
        {
            let _ = self.output.send_bytes(encode_member(worker as u32, &frame[4..]));
        }
        self.note_ended(worker);
        let status = match error {
            FrameError::Malformed(_) => {
                // Nothing that it says can be understood any more; it may have ended by itself.
                let _ = held(&self.members[worker].child).kill();
                self.reap(worker);
                error.to_string()
            }
            FrameError::Closed | FrameError::Pipe(_) => self.reap(worker),
        };
        let ended = FromGroup::Ended { worker: worker as u32, why: error.to_string(), status };
        // A controller that is gone needs it no more.
        let _ = self.output.send(Frame::Message(&ended));
    }

    /// Takes one frame of a worker.
    fn hear_frame(&self, worker: usize, output: &mut ChildStdout) -> Result<(), FrameError> {
        let Body::Own(body) = read_body(output)? else {
            return Err(FrameError::Malformed("it speaks as a group".into()));
        };
        let frame = encode_member(worker as u32, &body);
        match unpack::<FromWorker>(body)? {
            Packed::Second(second) => {
                let mut sums = held(&self.sums);
                sums.take_second(worker, &second)?;
                self.send_sums(&mut sums);
                return Ok(());
            }
            // More than its counts.
            Packed::Whole(_) => drop(held(&self.sums).take_counts(worker)),
            Packed::Message(FromWorker::Done(_)) => self.note_ended(worker),
            Packed::Message(_) => {}
        }
        // A controller that is gone needs it no more.
        let _ = self.output.send_bytes(frame);
        Ok(())
    }

    fn note_ended(&self, worker: usize) {
        let mut sums = held(&self.sums);
        sums.note_ended(worker);
        self.send_sums(&mut sums);
    }

    fn send_sums(&self, sums: &mut WorkerSums) {
        sums.hand_out(&mut |second| {
            if let Err(error) = self.output.send::<FromGroup>(Frame::Second(Box::new(second))) {
                tracing::warn!(reason = %error, "a second could not be sent");
            }
        });
    }

    /// How a worker that says no more has ended; it is ended if it has not.
    fn reap(&self, worker: usize) -> String {
        let child = &self.members[worker].child;
        let end = Instant::now() + END;
        loop {
            let ended = held(child).try_wait();
            match ended {
                Ok(Some(status)) => return status.to_string(),
                Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
                Ok(None) => drop(held(child).kill()),
                Err(error) => return error.to_string(),
            }
        }
    }

    /// Closes all inputs, and ends workers that do not end with that.
    fn end(&self) {
        self.members.iter().for_each(|member| drop(held(&member.input).take()));
        let end = Instant::now() + END;
        for member in &self.members {
            while matches!(held(&member.child).try_wait(), Ok(None)) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(5));
            }
            let mut child = held(&member.child);
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Writes to a worker. That one is gone shows at its output.
fn tell(member: &Member, frame: &[u8]) {
    if let Some(input) = held(&member.input).as_mut() {
        let _ = input.write_all(frame).and_then(|()| input.flush());
    }
}
