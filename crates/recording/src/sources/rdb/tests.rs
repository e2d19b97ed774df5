use super::*;
use crate::sources::tests::recorded;

/// A snapshot of version 10 with its checksum.
fn snapshot(parts: &[&[u8]]) -> Vec<u8> {
    let mut file = b"REDIS0010".to_vec();
    parts.iter().for_each(|part| file.extend_from_slice(part));
    file.push(0xff);
    let checksum = CHECKSUM.checksum(&file);
    file.extend_from_slice(&checksum.to_le_bytes());
    file
}

fn lines(file: &[u8]) -> (Vec<String>, RecordingTotals) {
    let (all, totals, header) = recorded(|new| record_rdb(&mut &*file, new));
    assert!(header.is_without(Lack::Times));
    let shown = |one: &Entry| {
        let words: Vec<_> = one.arguments.words().map(|word| word.escape_ascii().to_string()).collect();
        format!("{} {}", one.connection, words.join(" "))
    };
    (all.iter().map(shown).collect(), totals)
}

#[test]
fn the_checksum_is_that_of_redis() {
    // The test of Redis' own crc64.c.
    assert_eq!(CHECKSUM.checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
}

#[test]
fn keys_become_commands_that_restore_them() {
    let made = 1_700_000_000u32;
    let aux = [&[0xfa, 5][..], b"ctime", &[0xc2], &made.to_le_bytes()].concat();
    let until = |seconds: u64| [&[0xfc][..], &((u64::from(made) + seconds) * 1_000).to_le_bytes()].concat();
    let file = snapshot(&[
        &aux,
        &[0xfe, 0, 0xfb, 2, 1],
        &[0, 1, b'a', 0xc0, 1],
        &until(60),
        &[0xf8, 7],
        &[0, 1, b'b', 0xc0, 2],
        &until(0),
        &[0, 1, b'c', 1, b'3'],
        &[0xfe, 3],
        &[1, 1, b'd', 2, 1, b'x', 1, b'y'],
    ]);
    let (lines, totals) = lines(&file);
    let begins = |number: usize, message: &str| assert!(lines[number].starts_with(message), "{lines:?}");
    assert_eq!(
        (lines[0].as_str(), lines[2].as_str(), lines[4].as_str()),
        ("0 SELECT 0", "1 SELECT 0", "2 SELECT 3")
    );
    // The value as it was, the least version that has its type, and a checksum.
    begins(1, r"0 RESTORE a 0 \x00\xc0\x01\t\x00");
    begins(3, r"1 RESTORE b 60000 \x00\xc0\x02\t\x00");
    assert!(lines[3].ends_with("REPLACE IDLETIME 7"), "{lines:?}");
    begins(5, r"2 RESTORE d 0 \x01\x02\x01x\x01y\t\x00");
    assert_eq!(totals.left_out.get(EXPIRED), Some(&1));
    assert_eq!((lines.len(), totals.commands), (6, 6));
}

#[test]
fn without_its_time_a_snapshot_has_expiries_as_they_are() {
    let file = snapshot(&[&[0xfd, 1, 0, 0, 0], &[0, 1, b'a', 1, b'1']]);
    assert!(lines(&file).0[1].ends_with("REPLACE ABSTTL"));
    assert!(lines(&file).0[1].starts_with("0 RESTORE a 1000 "));
}

#[test]
fn damaged_files_are_refused() {
    let whole = snapshot(&[&[0, 1, b'a', 1, b'1']]);
    let refused = |file: &[u8]| {
        let mut new = NewRecording::new(1, |header| RecordingWriter::new(Vec::new(), header));
        record_rdb(&mut &*file, &mut new).unwrap_err().to_string()
    };
    for length in 9..whole.len() {
        assert!(refused(&whole[..length]).contains("cut off"), "{length}");
    }
    let mut other = whole.clone();
    other[13] = b'2';
    assert!(refused(&other).contains("checksum"));
    assert!(refused(b"REDIS0099").contains("version 99"));
    assert!(refused(&snapshot(&[&[99, 1, b'a', 1, b'1']])).contains("type 99"));
    assert!(
        refused(&snapshot(&[&[0, 1, b'a', 0x81, 255, 255, 255, 255, 255, 255, 255, 255]]))
            .contains("512 MiB")
    );
    assert!(is_rdb(&whole) && !is_rdb(b"REDIS") && !is_rdb(b"*1\r\n$3\r\nGET"));
}
