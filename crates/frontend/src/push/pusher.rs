//! The queue and the thread that sends from it.

use super::snapshot::{Sender, Snapshot};
use crate::push::error::PushError;
use crate::push::http::ReceiverClient;
use crate::push::otlp;
use crate::push::receiver::{PushProtocol, Receiver};
use crate::push::remote_write::RemoteWrite;
use dyno_types::limits::PUSHES_WAITING;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Time before a push is tried again, which doubles with each failure.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest such time.
const LONGEST: Duration = Duration::from_secs(30);

/// How pushes have gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Snapshots that were taken.
    pub taken: u64,
    /// Snapshots that were not: refused, or no longer kept because the receiver did not answer.
    pub lost: u64,
    /// The first failure.
    pub first: Option<String>,
}

#[derive(Default)]
struct PusherState {
    queue: VecDeque<Arc<Snapshot>>,
    delivery: Delivery,
    /// The first failure, until it is told.
    untold: Option<String>,
    /// Nothing more is given.
    over: bool,
    /// The thread has ended.
    done: bool,
}

#[derive(Default)]
struct PusherShared {
    state: Mutex<PusherState>,
    changed: Condvar,
}

impl PusherShared {
    fn lock(&self) -> MutexGuard<'_, PusherState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends snapshots to one receiver.
pub struct Pusher {
    shared: Arc<PusherShared>,
    protocol: PushProtocol,
}

impl Pusher {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(receiver: Receiver, sender: Sender) -> io::Result<Self> {
        let shared = Arc::new(PusherShared::default());
        let (own, protocol) = (shared.clone(), receiver.protocol);
        let thread = std::thread::Builder::new().name("dyno-push".into());
        thread.spawn(move || send_all(&own, receiver, &sender))?;
        Ok(Pusher { shared, protocol })
    }

    /// Gives a snapshot without waiting for its delivery; where too many wait, the oldest is lost.
    pub fn push(&self, snapshot: Arc<Snapshot>) {
        let mut state = self.shared.lock();
        if state.queue.len() == PUSHES_WAITING {
            state.queue.pop_front();
            state.delivery.lost += 1;
        }
        state.queue.push_back(snapshot);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// The first failure, once.
    pub fn complaint(&self) -> Option<String> {
        self.shared.lock().untold.take()
    }

    /// Nothing more is given, and series end at `at`: sends what waits, at most for `patience`, and counts the rest as lost.
    pub fn finish(&self, at: SystemTime, patience: Duration) -> Delivery {
        if self.protocol == PushProtocol::RemoteWrite {
            self.push(Arc::new(Snapshot { at, families: Vec::new() }));
        }
        let deadline = Instant::now() + patience;
        let mut state = self.shared.lock();
        state.over = true;
        self.shared.changed.notify_all();
        while !state.done {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.delivery.lost += state.queue.len() as u64;
        state.queue.clear();
        state.delivery.clone()
    }
}

impl Drop for Pusher {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_all();
    }
}

/// What turns snapshots into requests.
enum Encoder {
    RemoteWrite(RemoteWrite),
    Otlp,
}

fn send_all(shared: &PusherShared, receiver: Receiver, sender: &Sender) {
    let mut encoder = match receiver.protocol {
        PushProtocol::RemoteWrite => Encoder::RemoteWrite(RemoteWrite::default()),
        PushProtocol::Otlp => Encoder::Otlp,
    };
    let client = ReceiverClient::new(receiver);
    let mut pause = PAUSE;
    while let Some(snapshot) = next(shared) {
        let sent = send(&client, &mut encoder, sender, &snapshot);
        let mut state = shared.lock();
        if let Err(error) = &sent
            && state.delivery.first.is_none()
        {
            tracing::warn!(%error, "a push has failed");
            state.delivery.first = Some(error.to_string());
            state.untold = state.delivery.first.clone();
        }
        // The oldest of a queue that was full may have gone meanwhile, and is counted.
        let is_first = state.queue.front().is_some_and(|first| Arc::ptr_eq(first, &snapshot));
        match sent {
            Ok(()) => {
                state.delivery.taken += 1;
                // It was counted as lost, and is not.
                if !is_first {
                    state.delivery.lost = state.delivery.lost.saturating_sub(1);
                }
                pause = PAUSE;
            }
            // At the end dyno does not wait for a receiver to come back.
            Err(error) if error.again() && !state.over => {
                let end = Instant::now() + error.after().unwrap_or(pause);
                pause = (pause * 2).min(LONGEST);
                wait(shared, state, end);
                continue;
            }
            Err(error) if error.again() => break,
            Err(_) if is_first => state.delivery.lost += 1,
            Err(_) => {}
        }
        if is_first {
            state.queue.pop_front();
        }
    }
    shared.lock().done = true;
    shared.changed.notify_all();
}

/// The snapshot that waits for longest; `None` at the end.
fn next(shared: &PusherShared) -> Option<Arc<Snapshot>> {
    let mut state = shared.lock();
    loop {
        match state.queue.front() {
            Some(first) => return Some(first.clone()),
            None if state.over => return None,
            None => state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// Waits until `end`, or until nothing more is given.
fn wait(shared: &PusherShared, mut state: MutexGuard<'_, PusherState>, end: Instant) {
    while !state.over {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let waited = shared.changed.wait_timeout(state, left);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn send(
    client: &ReceiverClient,
    encoder: &mut Encoder,
    sender: &Sender,
    snapshot: &Snapshot,
) -> Result<(), PushError> {
    match encoder {
        Encoder::RemoteWrite(remote_write) => {
            client.post(&remote_write.encode(sender, snapshot)?)?;
            remote_write.taken();
        }
        Encoder::Otlp => {
            if let Some((points, message)) = otlp::rejected(&client.post(&otlp::encode(sender, snapshot))?) {
                return Err(PushError::Partly { points, message });
            }
        }
    }
    Ok(())
}
