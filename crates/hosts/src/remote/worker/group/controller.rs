//! The near end of a group: one channel to a host, and its workers as members of a pool.

use crate::protocol::frame::{
    Body, Frame, FrameError, Packed, encode_member, read_body, unpack, write_frame,
};
use crate::protocol::group::{FromGroup, MemberPlace, ToGroup};
use crate::protocol::worker::{FromWorker, PROTOCOL};
use crate::remote::channel::{CarriedProgram, Channel, ProgramInput, Running};
use crate::remote::records::RemoteLogRecords;
use crate::remote::worker::event::WorkerEvent;
use dyno_types::sync::held;
use std::io::{self, Read, Write};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time that a group may take to end once its workers have.
const END: Duration = Duration::from_secs(1);

/// A group's channel, as long as one of its workers is known.
pub(crate) struct GroupEnd {
    pub(crate) input: ProgramInput,
    running: Mutex<Running>,
}

impl GroupEnd {
    /// Returns whether signs of life are given on its way for all together.
    pub(crate) fn is_kept_alive(&self) -> bool {
        held(&self.running).is_kept_alive()
    }

    fn say(&self, word: &ToGroup) {
        if let Some(input) = held(&self.input).as_mut() {
            // A group that is gone shows at the other end.
            let _ = write_frame(input, &Frame::Message(word));
        }
    }
}

impl Drop for GroupEnd {
    fn drop(&mut self) {
        drop(held(&self.input).take());
        held(&self.running).end(Instant::now() + END);
    }
}

/// A worker of a group.
struct GroupWorker {
    group: Arc<GroupEnd>,
    worker: u32,
    ended: Arc<Mutex<Option<String>>>,
}

impl CarriedProgram for GroupWorker {
    fn end_status(&self) -> Option<String> {
        held(&self.ended).clone()
    }

    fn abort(&self) {
        if self.end_status().is_none() {
            self.group.say(&ToGroup::Kill { worker: self.worker });
        }
    }
}

/// Standard input of a worker of a group; takes whole frames.
struct GroupInput {
    group: Arc<GroupEnd>,
    worker: u32,
}

impl Write for GroupInput {
    fn write(&mut self, frame: &[u8]) -> io::Result<usize> {
        let body = frame.get(4..).ok_or(io::ErrorKind::InvalidInput)?;
        match held(&self.group.input).as_mut() {
            Some(input) => input.write_all(&encode_member(self.worker, body))?,
            None => return Err(io::ErrorKind::BrokenPipe.into()),
        }
        Ok(frame.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        held(&self.group.input).as_mut().map_or(Ok(()), |input| input.flush())
    }
}

impl Drop for GroupInput {
    fn drop(&mut self) {
        self.group.say(&ToGroup::Close { worker: self.worker });
    }
}

/// What the listener of a group keeps of a worker.
struct HeardWorker {
    records: RemoteLogRecords,
    ended: Arc<Mutex<Option<String>>>,
}

/// A worker of a group that is to be opened.
pub(crate) struct GroupMember {
    /// Its number in the pool.
    pub(crate) at: usize,
    pub(crate) place: MemberPlace,
    pub(crate) records: RemoteLogRecords,
}

/// Opens a group of workers on its channel: for each its input and itself. Their sums are the first one's.
pub(crate) fn open_group(
    channel: Channel,
    members: Vec<GroupMember>,
    tell: Sender<(usize, WorkerEvent)>,
) -> io::Result<(Arc<GroupEnd>, Vec<(Box<dyn Write + Send>, Running)>)> {
    let Channel { input, output, running } = channel;
    let input: ProgramInput = Arc::new(Mutex::new(Some(input)));
    let group = Arc::new(GroupEnd { input, running: Mutex::new(running) });
    let places = members.iter().map(|member| member.place).collect();
    group.say(&ToGroup::Hello { protocol: PROTOCOL, workers: places });
    let numbers: Vec<usize> = members.iter().map(|member| member.at).collect();
    let first = numbers.first().copied().unwrap_or(0);
    let heard =
        members.into_iter().map(|GroupMember { records, .. }| HeardWorker { records, ended: Arc::default() });
    let heard: Vec<HeardWorker> = heard.collect();
    let member = |(worker, heard): (u32, &HeardWorker)| {
        let input: Box<dyn Write + Send> = Box::new(GroupInput { group: group.clone(), worker });
        let running = GroupWorker { group: group.clone(), worker, ended: heard.ended.clone() };
        (input, Running::Carried(Box::new(running)))
    };
    let members = (0..).zip(&heard).map(member).collect();
    let known = Arc::downgrade(&group);
    let listen = move || {
        let mut heard = heard;
        let error = hear(output, &mut heard, &numbers, &tell);
        let status = known.upgrade().and_then(|group| {
            // The pipe closes a moment before its process can be waited for.
            let end = Instant::now() + Duration::from_millis(500);
            loop {
                let status = held(&group.running).end_status();
                if status.is_some() || Instant::now() > end {
                    return status;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        for (at, heard) in numbers.iter().zip(&heard) {
            let mut ended = held(&heard.ended);
            if ended.is_none() {
                // Each lost worker asks for it: set it now, so that none waits for it.
                *ended = Some(status.clone().unwrap_or_else(|| error.to_string()));
                drop(ended);
                let _ = tell.send((*at, WorkerEvent::Lost(error.to_string())));
            }
        }
    };
    std::thread::Builder::new().name(format!("workers-{}", first + 1)).spawn(listen)?;
    Ok((group, members))
}

/// Hears a group to its end; why that came.
fn hear(
    mut output: Box<dyn Read + Send>,
    heard: &mut [HeardWorker],
    numbers: &[usize],
    tell: &Sender<(usize, WorkerEvent)>,
) -> FrameError {
    loop {
        match hear_frame(&mut *output, heard) {
            Ok(None) => {}
            Ok(Some((worker, event))) => {
                if tell.send((numbers[worker], event)).is_err() {
                    return FrameError::Closed;
                }
            }
            Err(error) => return error,
        }
    }
}

/// Reads a frame: what it means for the pool, and which of the group's workers it is of. A sum is of the first.
fn hear_frame(
    output: &mut dyn Read,
    heard: &mut [HeardWorker],
) -> Result<Option<(usize, WorkerEvent)>, FrameError> {
    let malformed = |message: String| Err(FrameError::Malformed(message));
    match read_body(output)? {
        Body::Own(bytes) => match unpack::<FromGroup>(bytes)? {
            Packed::Second(sum) => Ok(Some((0, WorkerEvent::Second(sum)))),
            Packed::Message(FromGroup::Hello { protocol }) if protocol == PROTOCOL => Ok(None),
            Packed::Message(FromGroup::Hello { protocol }) => malformed(format!(
                "its host speaks protocol {protocol}, this controller {PROTOCOL}: use the same dyno"
            )),
            Packed::Message(FromGroup::Ended { worker, why, status }) => match heard.get(worker as usize) {
                Some(own) => {
                    *held(&own.ended) = Some(status);
                    Ok(Some((worker as usize, WorkerEvent::Lost(why))))
                }
                None => malformed(format!("a group of {} speaks of worker {worker}", heard.len())),
            },
            Packed::Whole(_) => malformed("a group has measured nothing itself".into()),
        },
        Body::Member(worker, bytes) => {
            let (count, worker) = (heard.len(), worker as usize);
            let Some(own) = heard.get_mut(worker) else {
                return malformed(format!("a group of {count} speaks of worker {worker}"));
            };
            own.records.pass_waiting();
            match unpack::<FromWorker>(bytes)? {
                Packed::Message(FromWorker::Log(record)) => {
                    own.records.add_record(*record);
                    Ok(None)
                }
                Packed::Message(word) => Ok(Some((worker, WorkerEvent::Message(word)))),
                Packed::Whole(whole) => Ok(Some((worker, WorkerEvent::Whole(whole)))),
                Packed::Second(_) => malformed("seconds of a group's workers are added up".into()),
            }
        }
    }
}
