//! The thread that makes a recording of what has passed.

use super::traffic_queue::{Batch, TrafficEvent, TrafficReceiver};
use crate::exchange::{Exchange, ExchangeSettings, ExchangeSink};
use crate::format::{OrderedEntries, RecordingError, RecordingTotals, RecordingWriter};
use crate::{Entry, RecordedReply};
use dyno_engine::net::monotonic_ns;
use std::io::Write;
use std::time::Duration;

/// Interval at which what was recorded is written, so that it outlives a crash, nanoseconds.
const WRITE_NS: u64 = 5_000_000_000;

/// Pairs, orders and writes.
pub(super) struct Recorder<W: Write> {
    sink: CountingSink<W>,
    /// Connections by their places: number and state.
    open: Vec<Option<(u32, Exchange)>>,
    exchanges: ExchangeSettings,
    begins_ns: u64,
    written_ns: u64,
}

/// The recording, and replies that lead clients elsewhere or name other servers.
struct CountingSink<W: Write> {
    ordered: OrderedEntries<W>,
    redirections: u64,
}

impl<W: Write> ExchangeSink for CountingSink<W> {
    fn take_entry(&mut self) -> Entry {
        self.ordered.take_spare()
    }

    fn push_command(&mut self, entry: Entry, awaits: bool) -> Result<u64, RecordingError> {
        self.ordered.push_command(entry, awaits)
    }

    fn push_reply(&mut self, ticket: u64, reply: RecordedReply) -> Result<(), RecordingError> {
        self.redirections += u64::from(reply.error == "MOVED" || reply.error == "ASK");
        self.ordered.push_reply(ticket, reply)
    }

    fn give_up(&mut self, ticket: u64) {
        self.ordered.give_up(ticket);
    }

    fn leave_out(&mut self, reason: &str, count: u64) {
        self.ordered.writer().leave_out(reason, count);
    }

    fn note_other_servers(&mut self) {
        self.redirections += 1;
    }
}

impl<W: Write> Recorder<W> {
    /// `begins_ns`: begin of the recording, monotonic.
    pub fn new(writer: RecordingWriter<W>, exchanges: ExchangeSettings, begins_ns: u64) -> Self {
        let sink = CountingSink { ordered: OrderedEntries::new(writer), redirections: 0 };
        Recorder { sink, open: Vec::new(), exchanges, begins_ns, written_ns: 0 }
    }

    /// Records until the relay has ended.
    pub fn record_all(&mut self, traffic: &TrafficReceiver) -> Result<(), RecordingError> {
        while let Some(batch) = traffic.next_batch(Duration::from_millis(500)) {
            self.take_batch(&batch)?;
            let is_idle = batch.records.is_empty();
            let now_ns = match batch.records.last() {
                Some(last) => last.at_ns,
                None => monotonic_ns().saturating_sub(self.begins_ns),
            };
            if !is_idle {
                traffic.give_back(batch);
            }
            if now_ns >= self.written_ns + WRITE_NS {
                self.written_ns = now_ns;
                self.sink.ordered.write_ready(now_ns)?;
                self.sink.ordered.writer().close_block()?;
            }
        }
        Ok(())
    }

    fn take_batch(&mut self, batch: &Batch) -> Result<(), RecordingError> {
        if batch.after_loss {
            for (_, exchange) in self.open.iter_mut().flatten() {
                exchange.note_gap(&mut self.sink);
            }
        }
        let mut at = 0;
        for record in &batch.records {
            let slot = record.slot as usize;
            if self.open.len() <= slot {
                self.open.resize_with(slot + 1, || None);
            }
            let place = &mut self.open[slot];
            // Its end was among what was dropped.
            let is_other = place.as_ref().is_some_and(|(number, _)| *number != record.connection);
            if is_other && let Some((_, mut other)) = place.take() {
                other.finish(&mut self.sink)?;
            }
            let (length, is_request) = match record.event {
                TrafficEvent::Opened => {
                    *place = Some((record.connection, self.exchanges.open_exchange(record.connection, true)));
                    continue;
                }
                TrafficEvent::Closed => {
                    if let Some((_, mut ended)) = place.take() {
                        ended.finish(&mut self.sink)?;
                    }
                    continue;
                }
                TrafficEvent::Request(length) => (length, true),
                TrafficEvent::Reply(length) => (length, false),
            };
            let bytes = &batch.bytes[at..at + length as usize];
            at += length as usize;
            // One whose begin was dropped is read like one behind a gap.
            let (_, exchange) = place.get_or_insert_with(|| {
                (record.connection, self.exchanges.open_exchange(record.connection, false))
            });
            if is_request {
                exchange.feed_request(record.at_ns, bytes, &mut self.sink)?;
            } else {
                exchange.feed_reply(record.at_ns, bytes, &mut self.sink)?;
            }
        }
        Ok(())
    }

    /// Replies that sent a client to another node of a cluster, or named members of a replica set.
    pub fn redirections(&self) -> u64 {
        self.sink.redirections
    }

    /// Ends the recording.
    pub fn finish(mut self, left_out: &[(&str, u64)]) -> Result<RecordingTotals, RecordingError> {
        for (_, mut exchange) in self.open.drain(..).flatten() {
            exchange.finish(&mut self.sink)?;
        }
        let mut writer = self.sink.ordered.into_writer()?;
        left_out.iter().for_each(|(reason, count)| writer.leave_out(reason, *count));
        writer.finish()
    }
}
