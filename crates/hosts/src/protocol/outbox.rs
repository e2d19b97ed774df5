//! What waits for the other end of a pipe.

use crate::protocol::frame::{Frame, encode_frame};
use dyno_types::sync::held;
use serde::Serialize;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that may wait before the writer waits, too: minutes of load and of monitors.
const LIMIT: usize = 64 << 20;
/// Bytes that go out with one call.
const TOGETHER: usize = 1 << 20;

#[derive(Default)]
struct Waiting {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
    /// True while the thread is in a call that writes.
    writing: bool,
    failed: Option<(io::ErrorKind, String)>,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

/// Frames on their way to a controller. A thread of its own writes them: a controller that takes nothing for a while (it was
/// stopped, its host sleeps) holds up neither load nor monitors.
#[derive(Clone)]
pub struct Outbox(Arc<Shared>);

impl Outbox {
    /// Starts the thread, which writes to `output` until the outbox is closed or `output` fails.
    pub fn start(mut output: impl Write + Send + 'static) -> io::Result<Outbox> {
        let outbox = Outbox(Arc::default());
        let own = outbox.clone();
        let carry = move || {
            while let Some(bytes) = own.next_bytes() {
                let written = output.write_all(&bytes).and_then(|()| output.flush());
                let mut waiting = held(&own.0.waiting);
                waiting.writing = false;
                if let Err(error) = written {
                    waiting.failed = Some((error.kind(), error.to_string()));
                    waiting.frames.clear();
                }
                drop(waiting);
                own.0.changed.notify_all();
            }
        };
        std::thread::Builder::new().name("outbox".into()).spawn(carry)?;
        Ok(outbox)
    }

    fn wait<'a>(&self, waiting: MutexGuard<'a, Waiting>) -> MutexGuard<'a, Waiting> {
        self.0.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner)
    }

    /// What waits, as much as goes with one call; none once there is nothing more to write.
    fn next_bytes(&self) -> Option<Vec<u8>> {
        let mut waiting = held(&self.0.waiting);
        while waiting.frames.is_empty() {
            if waiting.closed || waiting.failed.is_some() {
                return None;
            }
            waiting = self.wait(waiting);
        }
        let mut all = Vec::new();
        while all.len() < TOGETHER
            && let Some(frame) = waiting.frames.pop_front()
        {
            waiting.bytes -= frame.len();
            all.extend(frame);
        }
        waiting.writing = true;
        drop(waiting);
        self.0.changed.notify_all();
        Some(all)
    }

    /// Has frames written, one after another, with nothing between them. It waits where too much waits already.
    pub fn send_all<'a, M: Serialize + 'a>(
        &self,
        frames: impl IntoIterator<Item = Frame<&'a M>>,
    ) -> io::Result<()> {
        self.put(frames.into_iter().map(|frame| encode_frame(&frame)).collect::<io::Result<_>>()?)
    }

    /// Has the bytes of one frame written.
    pub fn send_bytes(&self, frame: Vec<u8>) -> io::Result<()> {
        self.put(vec![frame])
    }

    fn put(&self, frames: Vec<Vec<u8>>) -> io::Result<()> {
        let mut waiting = held(&self.0.waiting);
        while waiting.bytes > LIMIT && waiting.failed.is_none() && !waiting.closed {
            waiting = self.wait(waiting);
        }
        if let Some((kind, message)) = &waiting.failed {
            return Err(io::Error::new(*kind, message.clone()));
        }
        if waiting.closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        waiting.bytes += frames.iter().map(Vec::len).sum::<usize>();
        waiting.frames.extend(frames);
        drop(waiting);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Has one frame written.
    pub fn send<M: Serialize>(&self, frame: Frame<&M>) -> io::Result<()> {
        self.send_all([frame])
    }

    /// Waits until all is written, at most for `patience`, and ends the thread.
    pub fn close(&self, patience: Duration) {
        let end = Instant::now() + patience;
        let mut waiting = held(&self.0.waiting);
        waiting.closed = true;
        self.0.changed.notify_all();
        while (waiting.writing || !waiting.frames.is_empty()) && waiting.failed.is_none() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.0.changed.wait_timeout(waiting, left);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::read_frame;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    /// Far more than a pipe holds is taken while the other end reads nothing, and comes in order.
    #[test]
    fn what_is_not_taken_waits_and_comes_in_order() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let outbox = Outbox::start(near).unwrap();
        let words = |number: usize| format!("{number} {}", "x".repeat(10_000));
        (0..500).for_each(|number| outbox.send(Frame::Message(&words(number))).unwrap());
        for number in 0..500 {
            assert!(
                matches!(read_frame::<String>(&mut far), Ok(Frame::Message(read)) if read == words(number))
            );
        }
        outbox.send(Frame::Message(&"end")).unwrap();
        outbox.close(Duration::from_secs(20));
        assert!(matches!(read_frame::<String>(&mut far), Ok(Frame::Message(read)) if read == "end"));
        drop(outbox);
        assert_eq!(far.read(&mut [0]).unwrap(), 0, "the thread has ended, and with it its end of the pipe");
    }

    #[test]
    fn an_end_that_is_gone_shows_and_holds_nothing_up() {
        let (near, far) = UnixStream::pair().unwrap();
        drop(far);
        let outbox = Outbox::start(near).unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while outbox.send(Frame::Message(&"x")).is_ok() {
            assert!(Instant::now() < end, "the pipe is closed");
        }
        outbox.close(Duration::from_secs(20));
        assert!(Instant::now() < end);
    }

    #[test]
    fn a_close_does_not_wait_for_ever() {
        let (near, _far) = UnixStream::pair().unwrap();
        let outbox = Outbox::start(near).unwrap();
        (0..100).for_each(|_| outbox.send(Frame::Message(&"x".repeat(100_000))).unwrap());
        outbox.close(Duration::from_millis(50));
        assert!(!held(&outbox.0.waiting).frames.is_empty() || held(&outbox.0.waiting).writing);
    }
}
