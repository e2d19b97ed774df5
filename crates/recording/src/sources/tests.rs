//! What tests of sources share.

use super::{NewRecording, SourceError};
use crate::entry::Entry;
use crate::format::{RecordedEvent, RecordingHeader, RecordingReader, RecordingTotals, RecordingWriter};
use std::io::{BufWriter, Seek};

/// The commands of a recording that `record` makes, its totals and its header.
pub(super) fn recorded(
    record: impl FnOnce(&mut NewRecording<'_, BufWriter<std::fs::File>>) -> Result<RecordingTotals, SourceError>,
) -> (Vec<Entry>, RecordingTotals, RecordingHeader) {
    let mut file = tempfile::tempfile().unwrap();
    let totals = {
        let begin =
            |header: &RecordingHeader| RecordingWriter::new(BufWriter::new(file.try_clone()?), header);
        record(&mut NewRecording::new(64 << 10, begin)).unwrap()
    };
    file.rewind().unwrap();
    let mut reader = RecordingReader::new(file).unwrap();
    let (mut all, mut entry) = (Vec::new(), Entry::default());
    let mut late = Vec::new();
    while let Some(event) = reader.next_event(&mut entry).unwrap() {
        match event {
            RecordedEvent::Entry => all.push(entry.clone()),
            RecordedEvent::LateReply { number, reply } => late.push((number, reply)),
        }
    }
    for (number, reply) in late {
        all[number as usize].reply = Some(reply);
    }
    assert_eq!(reader.totals(), Some(&totals));
    let header = reader.header().clone();
    (all, totals, header)
}
