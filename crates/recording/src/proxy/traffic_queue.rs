//! Copies of what has passed, on their way from the relay to the recorder.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// A batch is handed over when it has so many bytes.
const BATCH_BYTES: usize = 256 << 10;

/// Batches that wait at most: 32 MiB.
const BATCHES: usize = 128;

/// A batch is handed over at the latest after this time, nanoseconds.
const BATCH_NS: u64 = 10_000_000;

/// What has happened on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrafficEvent {
    Opened,
    /// So many bytes of the batch, from the client.
    Request(u32),
    /// So many from the server.
    Reply(u32),
    Closed,
}

/// An event, its connection and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrafficRecord {
    pub event: TrafficEvent,
    /// Place of the connection among those that are open.
    pub slot: u32,
    /// Its number.
    pub connection: u32,
    pub at_ns: u64,
}

/// Records and their bytes, end to end.
#[derive(Default)]
pub(super) struct Batch {
    pub records: Vec<TrafficRecord>,
    pub bytes: Vec<u8>,
    /// True if something before it was dropped.
    pub after_loss: bool,
}

/// The relay's end.
pub(super) struct TrafficSender {
    full: SyncSender<Batch>,
    spare: Receiver<Batch>,
    batch: Batch,
    /// The next attempt after there was no room.
    not_before_ns: u64,
    lost_bytes: u64,
}

/// The recorder's end.
pub(super) struct TrafficReceiver {
    full: Receiver<Batch>,
    spare: SyncSender<Batch>,
}

/// A queue.
pub(super) fn traffic_queue() -> (TrafficSender, TrafficReceiver) {
    let (full, receiver) = sync_channel(BATCHES);
    let (spare, spares) = sync_channel(BATCHES);
    let sender =
        TrafficSender { full, spare: spares, batch: Batch::default(), not_before_ns: 0, lost_bytes: 0 };
    (sender, TrafficReceiver { full: receiver, spare })
}

impl TrafficSender {
    /// Appends an event that has no bytes.
    pub fn push_event(&mut self, record: TrafficRecord) {
        self.batch.records.push(record);
    }

    /// Appends bytes that have passed.
    #[inline]
    pub fn push_bytes(&mut self, record: TrafficRecord, bytes: &[u8]) {
        self.batch.records.push(record);
        self.batch.bytes.extend_from_slice(bytes);
        if self.batch.bytes.len() >= BATCH_BYTES {
            self.hand_over(record.at_ns);
        }
    }

    /// When the batch is to be handed over at the latest; `None` if nothing is in it.
    pub fn due_ns(&self) -> Option<u64> {
        self.batch.records.first().map(|oldest| (oldest.at_ns + BATCH_NS).max(self.not_before_ns))
    }

    /// Bytes that were dropped because the recorder was slow.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Hands the batch over at this time, or drops what it holds where there is no room: connections that end stay in it.
    pub fn hand_over(&mut self, now_ns: u64) {
        let next = self.spare.try_recv().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, next);
        let Err(TrySendError::Full(mut batch) | TrySendError::Disconnected(mut batch)) =
            self.full.try_send(batch)
        else {
            return;
        };
        self.not_before_ns = now_ns + BATCH_NS;
        self.lost_bytes += batch.bytes.len() as u64;
        batch.bytes.clear();
        batch.records.retain(|record| record.event == TrafficEvent::Closed);
        batch.after_loss = true;
        self.batch = batch;
    }

    /// Hands the last batch over, and waits for room.
    fn hand_over_last(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        // A recorder that has failed takes nothing, and says so itself.
        let _ = self.full.send(batch);
    }
}

impl Drop for TrafficSender {
    fn drop(&mut self) {
        self.hand_over_last();
    }
}

impl TrafficReceiver {
    /// The next batch; an empty one if none came for a while, `None` after the last.
    pub fn next_batch(&self, patience: Duration) -> Option<Batch> {
        match self.full.recv_timeout(patience) {
            Ok(batch) => Some(batch),
            Err(RecvTimeoutError::Timeout) => Some(Batch::default()),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Gives the memory of a batch back.
    pub fn give_back(&self, mut batch: Batch) {
        batch.records.clear();
        batch.bytes.clear();
        batch.after_loss = false;
        let _ = self.spare.try_send(batch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(event: TrafficEvent, slot: u32) -> TrafficRecord {
        TrafficRecord { event, slot, connection: slot, at_ns: 5 }
    }

    #[test]
    fn a_slow_recorder_loses_bytes_and_hears_of_it() {
        let (mut sender, receiver) = traffic_queue();
        let bytes = vec![7; BATCH_BYTES];
        for _ in 0..BATCHES + 2 {
            sender.push_bytes(record(TrafficEvent::Request(BATCH_BYTES as u32), 1), &bytes);
        }
        assert_eq!(sender.lost_bytes(), 2 * BATCH_BYTES as u64);
        sender.push_event(record(TrafficEvent::Closed, 1));
        assert_eq!(sender.due_ns(), Some(5 + BATCH_NS));
        sender.hand_over(7 * BATCH_NS);
        sender.push_event(record(TrafficEvent::Opened, 2));
        // The next attempt is not at once, however old what waits is.
        assert_eq!(sender.due_ns(), Some(8 * BATCH_NS));
        for _ in 0..BATCHES {
            let batch = receiver.next_batch(Duration::from_secs(5)).unwrap();
            assert!(!batch.after_loss && batch.bytes.len() == BATCH_BYTES);
            receiver.give_back(batch);
        }
        drop(sender);
        let batch = receiver.next_batch(Duration::from_secs(5)).unwrap();
        let events: Vec<TrafficEvent> = batch.records.iter().map(|record| record.event).collect();
        assert!(batch.after_loss && batch.bytes.is_empty());
        assert_eq!(events, [TrafficEvent::Closed, TrafficEvent::Opened]);
        assert!(receiver.next_batch(Duration::from_secs(5)).is_none());
    }
}
