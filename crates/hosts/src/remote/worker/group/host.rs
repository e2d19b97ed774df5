//! The far end of a group: starts its workers, here and in other pods of its node, takes the controller's frames to them, and
//! adds up their seconds.
//!
//! Of their seconds only the sum travels.

use crate::protocol::frame::{
    Body, Frame, FrameError, Packed, encode_frame, encode_member, frame_of, read_body, read_frame, unpack,
};
use crate::protocol::group::{FromGroup, MemberPlace, ToGroup};
use crate::protocol::outbox::Outbox;
use crate::protocol::service::Service;
use crate::protocol::silence::{GONE, LEASE, Silence};
use crate::protocol::worker::{FromWorker, PROTOCOL, ToWorker};
use crate::remote::channel::{CarriedProgram, Channel, ProgramInput, Running};
use crate::remote::relay;
use crate::remote::relay::pod_channel::{PodInput, open_in_pod};
use crate::remote::worker::sums::WorkerSums;
use dyno_engine::net::monotonic_ns;
use dyno_types::child;
use dyno_types::sync::held;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// Most workers of a group.
pub const MEMBERS: usize = 4_096;
/// Time between two signs of life for workers in other pods.
const ALIVE: Duration = Duration::from_secs(1);
/// Time that workers may take to end by themselves once their input has closed.
const END: Duration = Duration::from_secs(5);

struct Member {
    running: Mutex<Running>,
    input: ProgramInput,
    /// The way to its pod, where it is in another one.
    pod: Option<PodInput>,
}

/// A worker that has been started, and what it says.
type StartedMember = (Member, Box<dyn Read + Send>);

/// The way to a pod, being opened.
type Opening<'scope> = ScopedJoinHandle<'scope, io::Result<(Channel, PodInput)>>;

/// A worker that could not be reached: why.
struct Unreached(String);

impl CarriedProgram for Unreached {
    fn end_status(&self) -> Option<String> {
        Some(self.0.clone())
    }

    fn abort(&self) {}
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
/// --stdio`; what they print as errors is this process' own. Pods that workers are in take the run's token, which `token` is the
/// file of. A worker whose pod cannot be reached has ended.
///
/// # Errors
/// The first word is none, a worker cannot be started here, or there is no token.
pub fn serve_group(
    mut input: impl Read + Send + 'static,
    mut output: impl Write + Send + 'static,
    program: &Path,
    token: &Path,
) -> Result<(), FrameError> {
    let Frame::Message(ToGroup::Hello { protocol, workers }) = read_frame(&mut input)? else {
        return Err(FrameError::Malformed("the first word must be hello".into()));
    };
    output.write_all(&encode_frame(&Frame::Message(&FromGroup::Hello { protocol: PROTOCOL }))?)?;
    output.flush()?;
    if protocol != PROTOCOL || workers.len() > MEMBERS {
        let text = format!(
            "the controller speaks protocol {protocol} with {} workers, this group {PROTOCOL} with at most {MEMBERS}",
            workers.len()
        );
        return Err(FrameError::Malformed(text));
    }
    let (members, outputs): (Vec<_>, Vec<_>) = start_members(&workers, program, token)?.into_iter().unzip();
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
    let mut kept = Instant::now();
    while !group.closed.load(Ordering::Relaxed) && !hearing.iter().all(|thread| thread.is_finished()) {
        std::thread::sleep(Duration::from_millis(50));
        if kept.elapsed() > ALIVE {
            kept = Instant::now();
            group.members.iter().filter_map(|member| member.pod.as_ref()).for_each(PodInput::keep_alive);
        }
        let silent_ns = silence.look(group.heard_ns.load(Ordering::Relaxed), monotonic_ns());
        if u128::from(silent_ns) > (GONE * LEASE).as_nanos() {
            break;
        }
    }
    group.end();
    group.output.close(END);
    Ok(())
}

/// Starts all workers; those in pods at the same time, because each way there takes its time.
fn start_members(places: &[MemberPlace], program: &Path, token: &Path) -> io::Result<Vec<StartedMember>> {
    let held = match places.iter().any(|place| matches!(place, MemberPlace::Pod(_))) {
        true => relay::token(token)?,
        false => Vec::new(),
    };
    std::thread::scope(|scope| {
        let start = |place: &MemberPlace| match *place {
            MemberPlace::Here => Err(start_here(program)),
            MemberPlace::Pod(address) => {
                let held = &held;
                Ok(scope.spawn(move || open_in_pod(address, held, &Service::Worker)))
            }
        };
        let all: Vec<_> = places.iter().map(start).collect();
        let join = |started: Result<Opening<'_>, io::Result<StartedMember>>| match started {
            Err(here) => here,
            Ok(there) => Ok(match there.join() {
                Ok(Ok((channel, pod))) => member_of(channel, Some(pod)),
                Ok(Err(why)) => unreached(why.to_string()),
                Err(_) => unreached("the way to its pod could not be opened".into()),
            }),
        };
        all.into_iter().map(join).collect()
    })
}

fn member_of(channel: Channel, pod: Option<PodInput>) -> StartedMember {
    let Channel { input, output, running } = channel;
    (Member { running: Mutex::new(running), input: Arc::new(Mutex::new(Some(input))), pod }, output)
}

/// A worker that has ended before it could say anything.
fn unreached(why: String) -> StartedMember {
    let running = Mutex::new(Running::Carried(Box::new(Unreached(why))));
    (Member { running, input: ProgramInput::default(), pod: None }, Box::new(io::empty()))
}

fn start_here(program: &Path) -> io::Result<StartedMember> {
    let mut command = child::clean_command(program);
    Ok(member_of(Channel::start(command.args(["worker", "--stdio"]))?, None))
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
                            // Not waited for: this thread takes frames to all other workers.
                            held(&member.running).kill();
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
    fn hear(&self, worker: usize, mut output: Box<dyn Read + Send>) {
        let error = loop {
            if let Err(error) = self.hear_frame(worker, &mut *output) {
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
                held(&self.members[worker].running).kill();
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
    fn hear_frame(&self, worker: usize, output: &mut dyn Read) -> Result<(), FrameError> {
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
        let running = &self.members[worker].running;
        let (mut end, mut killed) = (Instant::now() + END, false);
        loop {
            // Not waited for under the lock: it may have to be killed.
            let status = held(running).end_status();
            match status {
                Some(status) => return status,
                None if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
                None if killed => return "it does not end".into(),
                None => {
                    held(running).kill();
                    (end, killed) = (Instant::now() + END, true);
                }
            }
        }
    }

    /// Closes all inputs, and ends workers that do not end with that.
    fn end(&self) {
        self.members.iter().for_each(|member| drop(held(&member.input).take()));
        let end = Instant::now() + END;
        self.members.iter().for_each(|member| held(&member.running).end(end));
    }
}

/// Writes to a worker. That one is gone shows at its output.
fn tell(member: &Member, frame: &[u8]) {
    if let Some(input) = held(&member.input).as_mut() {
        let _ = input.write_all(frame).and_then(|()| input.flush());
    }
}
