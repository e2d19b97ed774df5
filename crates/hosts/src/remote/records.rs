//! Records of the log that come from a worker or an agent.

use crate::protocol::offset::Offset;
use dyno_rundir::log::{Record, take_record};
use dyno_types::limits::LOG_WAITING;
use std::sync::{Arc, Mutex, PoisonError};

/// Puts the records of a source into the log of this process, on this host's clock: they wait until the clock there is known.
pub(crate) struct RemoteLogRecords {
    source: String,
    /// The clock there; none where it is this host's.
    clock: Option<Arc<Mutex<Offset>>>,
    waiting: Vec<Record>,
}

impl RemoteLogRecords {
    /// Creates the records of a source with this name.
    pub fn of_source(source: String, clock: Option<Arc<Mutex<Offset>>>) -> Self {
        RemoteLogRecords { source, clock, waiting: Vec::new() }
    }

    /// Takes one.
    pub fn add_record(&mut self, record: Record) {
        if self.waiting.len() < LOG_WAITING {
            self.waiting.push(record);
        }
        self.pass_waiting();
    }

    /// Puts in what waits, if the clock is known by now.
    pub fn pass_waiting(&mut self) {
        let known = self.clock.as_ref().map_or(Some(0), |clock| {
            let offset = *clock.lock().unwrap_or_else(PoisonError::into_inner);
            (offset != Offset::default()).then_some(offset.ns)
        });
        if let Some(offset_ns) = known {
            self.put(offset_ns);
        }
    }

    fn put(&mut self, offset_ns: i64) {
        for mut record in self.waiting.drain(..) {
            record.unix_ns = record.unix_ns.saturating_add_signed(-offset_ns);
            record.source.clone_from(&self.source);
            take_record(record);
        }
    }
}

impl Drop for RemoteLogRecords {
    /// Records that still wait when the source is gone has the time of its own clock, and says so.
    fn drop(&mut self) {
        self.pass_waiting();
        for record in &mut self.waiting {
            record.fields.insert("clock".into(), "not known".into());
        }
        self.put(0);
    }
}
