use super::*;
use crate::entry::{Arguments, Entry, LongValue, RecordedKind, RecordedReply};
use dyno_types::command::ReplyKind;
use proptest::prelude::*;

fn header() -> RecordingHeader {
    RecordingHeader {
        protocol: RecordedProtocol::Redis,
        source: "capture".into(),
        point: RecordingPoint::Server,
        begins_ns: Some(5),
        clock_step_ns: 1_000,
        lacks: vec![Lack::Values],
        value_limit: 65_536,
    }
}

fn entry(at_ns: u64, connection: u32, words: &[&str], reply: Option<RecordedReply>) -> Entry {
    Entry { at_ns, connection, arguments: Arguments::from_words(words), reply, ..Entry::default() }
}

fn text(size: u64, after_ns: Option<u64>) -> RecordedReply {
    RecordedReply { kind: RecordedKind::Reply(ReplyKind::Text), size, error: String::new(), after_ns }
}

fn read_all(bytes: &[u8]) -> (Vec<Entry>, Vec<(u64, RecordedReply)>, RecordingReader<&[u8]>) {
    let mut reader = RecordingReader::new(bytes).unwrap();
    let (mut all, mut late, mut one) = (Vec::new(), Vec::new(), Entry::default());
    while let Some(event) = reader.next_event(&mut one).unwrap() {
        match event {
            RecordedEvent::Entry => all.push(one.clone()),
            RecordedEvent::LateReply { number, reply } => late.push((number, reply)),
        }
    }
    (all, late, reader)
}

fn written(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = RecordingWriter::new(&mut bytes, &header()).unwrap();
    for entry in entries {
        writer.push_entry(entry).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

#[test]
fn what_is_written_is_read() {
    let mut long = entry(9, 3, &["SET", "k"], None);
    long.arguments.push_long(LongValue { length: 1 << 30, hash: u64::MAX, compressed: 100 });
    (long.overlaps, long.implied) = (true, true);
    let error =
        RecordedReply { kind: RecordedKind::Error, size: 0, error: "WRONGTYPE".into(), after_ns: Some(0) };
    let all = [
        entry(0, 0, &["GET", "a\0\r\n"], Some(text(12, Some(7_000)))),
        entry(5, (1 << 26) - 1, &["PING"], Some(error)),
        long,
        entry(10, 1, &["SET", "", ""], Some(text(0, None))),
    ];
    let bytes = written(&all);
    let (found, late, reader) = read_all(&bytes);
    assert_eq!((found.as_slice(), late.len()), (&all[..], 0));
    assert_eq!(reader.header(), &header());
    let totals = reader.totals().unwrap();
    assert_eq!((totals.commands, totals.length_ns, totals.replies, totals.connections), (4, 10, 3, 1 << 26));
    assert_eq!(
        totals.by_name.iter().map(|(name, n)| (name.as_str(), *n)).collect::<Vec<_>>(),
        [("GET", 1), ("PING", 1), ("SET", 2)]
    );
    assert_eq!(totals.bytes, 3 + 4 + 4 + 4 + (1 << 30) + 3);
}

#[test]
fn blocks_are_read_one_by_one_and_a_file_that_was_cut_off_as_far_as_it_goes() {
    let value = "x".repeat(5_000);
    let all: Vec<Entry> = (0..1_000)
        .map(|n| entry(n * 1_000, n as u32 % 7, &["SET", &format!("k{n}"), &value], None))
        .collect();
    let bytes = written(&all);
    assert!(bytes.len() < 1_000_000, "it is compressed: {}", bytes.len());
    let (found, _, reader) = read_all(&bytes);
    assert!(found == all && !reader.was_cut_off());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    std::fs::write(&path, &bytes).unwrap();
    let totals = RecordingReader::peek_totals(&path).unwrap().unwrap();
    assert_eq!((totals.commands, totals.connections), (1_000, 7));
    // Five megabytes are five blocks.
    let mut seen = std::collections::BTreeSet::new();
    for length in (300..bytes.len()).step_by(37) {
        let (found, _, reader) = read_all(&bytes[..length]);
        assert!(reader.was_cut_off() && reader.totals().is_none(), "{length}");
        assert_eq!(found, all[..found.len()]);
        seen.insert(found.len());
        std::fs::write(&path, &bytes[..length]).unwrap();
        assert_eq!(RecordingReader::peek_totals(&path).unwrap(), None);
    }
    assert!(seen.len() >= 5, "{seen:?}");
}

#[test]
fn other_files_are_refused() {
    let refused = |bytes: &[u8]| match RecordingReader::new(bytes) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    assert!(refused(b"").contains("no recording"));
    assert!(refused(b"OK\n1339518083.1 [0 127.0.0.1:1] \"get\"").contains("no recording"));
    assert!(refused(b"DYNOREC2....").contains("later version (2)"));
    let mut bytes = written(&[entry(0, 0, &["PING"], None)]);
    let at = bytes.len() / 2;
    // A changed byte of a block is found by its checksum, at the latest.
    let block = bytes.windows(4).position(|four| four == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    bytes[block + 8] ^= 1;
    let mut reader = RecordingReader::new(&bytes[..]).unwrap();
    assert!(at > 0 && matches!(reader.next_event(&mut Entry::default()), Err(RecordingError::Damaged(_))));
}

#[test]
fn replies_find_their_commands_and_commands_keep_their_order() {
    let mut bytes = Vec::new();
    let mut ordered = OrderedEntries::new(RecordingWriter::new(&mut bytes, &header()).unwrap());
    let blocked = ordered.push_command(entry(0, 0, &["BLPOP", "q", "0"], None), true).unwrap();
    let second = ordered.push_command(entry(10, 1, &["GET", "a"], None), true).unwrap();
    let third = ordered.push_command(entry(20, 2, &["GET", "b"], None), true).unwrap();
    ordered.push_reply(third, text(3, Some(1))).unwrap();
    ordered.push_reply(second, text(2, Some(5))).unwrap();
    // More than a second later the first one is written without its reply.
    let silent = ordered.push_command(entry(2_000_000_000, 1, &["SUBSCRIBE", "c"], None), false).unwrap();
    ordered.push_reply(blocked, text(9, Some(3_000_000_000))).unwrap();
    ordered.give_up(silent);
    let lost = ordered.push_command(entry(2_000_000_001, 1, &["GET", "c"], None), true).unwrap();
    ordered.push_command(entry(2_000_000_002, 1, &["AUTH", "secret"], None), true).unwrap();
    ordered.give_up(lost);
    ordered.into_writer().unwrap().finish().unwrap();
    let (found, late, reader) = read_all(&bytes);
    let names: Vec<(String, u64, Option<u64>)> = found
        .iter()
        .map(|one| (one.arguments.command_name(), one.at_ns, one.reply.as_ref().map(|reply| reply.size)))
        .collect();
    assert_eq!(
        names,
        [
            ("BLPOP".into(), 0, None),
            ("GET".into(), 10, Some(2)),
            ("GET".into(), 20, Some(3)),
            ("SUBSCRIBE".into(), 2_000_000_000, None),
            ("GET".into(), 2_000_000_001, None)
        ]
    );
    assert_eq!(late, [(0, text(9, Some(3_000_000_000)))]);
    let totals = reader.totals().unwrap();
    assert_eq!((totals.replies, totals.left_out.get("credentials")), (3, Some(&1)));
    assert!(!bytes.windows(6).any(|six| six == b"secret"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(tail in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..400) {
        let mut bytes = written(&[entry(0, 0, &["GET", "a"], Some(text(1, None)))]);
        bytes.truncate(cut);
        bytes.extend(tail);
        if let Ok(mut reader) = RecordingReader::new(&bytes[..]) {
            let mut one = Entry::default();
            while let Ok(Some(_)) = reader.next_event(&mut one) {}
        }
    }
}

#[test]
fn names_beyond_measure_are_counted_together() {
    let mut writer = RecordingWriter::new(Vec::new(), &header()).unwrap();
    let long = "x".repeat(65);
    for name in [&long[..64], &long, "get", "GET"] {
        writer.push_entry(&entry(0, 0, &[name], None)).unwrap();
    }
    for n in 0..2_000 {
        writer.push_entry(&entry(0, 0, &[&format!("c{n}")], None)).unwrap();
    }
    let names = &writer.totals_so_far().by_name;
    assert_eq!((names.get("GET"), names.get(&long[..64].to_uppercase())), (Some(&2), Some(&1)));
    assert_eq!((names.len(), names.get("OTHER")), (1_000, Some(&1_004)));
    assert_eq!(names.values().sum::<u64>(), 2_004);
}

#[test]
fn little_memory_is_kept_for_entries_to_come() {
    let mut ordered = OrderedEntries::new(RecordingWriter::new(Vec::new(), &header()).unwrap());
    // A short command in the memory of a long one.
    let mut long = entry(0, 0, &["SET", "k", &"x".repeat(5_000)], None);
    long.arguments.clear();
    long.arguments.push_word(b"PING");
    ordered.push_command(long, false).unwrap();
    assert_eq!(ordered.take_spare().arguments.held_bytes(), 0);
    // All of them wait for the first one.
    let first = ordered.push_command(entry(0, 0, &["PING"], None), true).unwrap();
    for _ in 0..3_000 {
        ordered.push_command(entry(0, 0, &["PING"], None), false).unwrap();
    }
    ordered.push_reply(first, text(1, None)).unwrap();
    ordered.write_ready(0).unwrap();
    let spare =
        std::iter::from_fn(|| Some(ordered.take_spare()).filter(|one| one.arguments.held_bytes() > 0));
    assert_eq!(spare.count(), 1_000);
}
