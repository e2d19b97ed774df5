//! Reads a recording in a thread of its own, ahead of the one that learns from it.

use crate::entry::Entry;
use crate::format::{RecordedEvent, RecordingError, RecordingReader};
use std::path::Path;
use std::sync::mpsc::{channel, sync_channel};

/// Commands that are handed over together. Each may hold as much as a recording keeps of a command.
const BATCH: usize = 128;

/// Batches that are under way.
const BATCHES: usize = 4;

/// Hands each command that `prepare` chooses to `learn`, in their order, with what it has put down of it. Both are called in
/// threads of their own.
///
/// # Errors
/// The file cannot be read.
pub(super) fn read_ahead<Prepared: Clone + Default + Send>(
    path: &Path,
    mut prepare: impl FnMut(&Entry, &mut Prepared) -> bool + Send,
    mut learn: impl FnMut(&Entry, &Prepared),
) -> Result<(), RecordingError> {
    let mut reader = RecordingReader::open_file(path)?;
    let (full, filled_batches) = sync_channel::<(Vec<(Entry, Prepared)>, usize)>(BATCHES);
    let (empty, batches) = channel();
    // Batches go round; those that are not taken any more are dropped.
    (0..BATCHES).for_each(|_| drop(empty.send(vec![<(Entry, Prepared)>::default(); BATCH])));
    // What both ends hold goes with them: a thread that has failed keeps the other from waiting for ever.
    std::thread::scope(move |scope| {
        let reading = scope.spawn(move || -> Result<(), RecordingError> {
            // Times are counted from the entry before.
            let mut at_ns = 0;
            while let Ok(mut batch) = batches.recv() {
                let (mut filled, mut is_over) = (0, false);
                while filled < BATCH && !is_over {
                    let (entry, prepared) = &mut batch[filled];
                    entry.at_ns = at_ns;
                    let event = reader.next_event(entry)?;
                    at_ns = entry.at_ns;
                    match event {
                        Some(RecordedEvent::Entry) => filled += usize::from(prepare(entry, prepared)),
                        Some(RecordedEvent::LateReply { .. }) => {}
                        None => is_over = true,
                    }
                }
                if full.send((batch, filled)).is_err() || is_over {
                    break;
                }
            }
            Ok(())
        });
        for (batch, filled) in filled_batches {
            batch[..filled].iter().for_each(|(entry, prepared)| learn(entry, prepared));
            drop(empty.send(batch));
        }
        reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Arguments;
    use crate::format::{RecordingHeader, RecordingPoint, RecordingWriter};

    #[test]
    fn commands_come_in_their_order_and_only_those_that_are_chosen() {
        let header = RecordingHeader {
            protocol: crate::RecordedProtocol::Redis,
            source: "test".into(),
            point: RecordingPoint::Unknown,
            begins_ns: None,
            clock_step_ns: 1,
            lacks: Vec::new(),
            value_limit: 1 << 16,
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.dyno");
        let mut writer = RecordingWriter::create_file(&path, &header).unwrap();
        for number in 0..3_000u64 {
            let arguments = Arguments::from_words(["GET", &number.to_string()]);
            writer.push_entry(&Entry { at_ns: number, arguments, ..Entry::default() }).unwrap();
        }
        writer.finish().unwrap();
        let mut found = Vec::new();
        let third = |entry: &Entry, twice: &mut u64| {
            *twice = 2 * entry.at_ns;
            entry.at_ns.is_multiple_of(3)
        };
        read_ahead(&path, third, |entry, twice| found.push((entry.at_ns, *twice))).unwrap();
        assert_eq!(found, (0..1_000).map(|number| (number * 3, number * 6)).collect::<Vec<_>>());
        assert!(read_ahead(&folder.path().join("none"), |_, _: &mut ()| true, |_, _| ()).is_err());
        let fails =
            || read_ahead(&path, |_, _: &mut ()| true, |entry, ()| assert!(entry.at_ns < 500, "on purpose"));
        assert!(std::panic::catch_unwind(fails).is_err());
        // Half a file.
        let half = std::fs::read(&path).unwrap();
        std::fs::write(&path, &half[..half.len() / 2]).unwrap();
        let mut count = 0;
        let _ = read_ahead(&path, |_, _: &mut ()| true, |_, ()| count += 1);
        assert!(count < 3_000, "{count}");
    }
}
