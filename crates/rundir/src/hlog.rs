//! The histogram log: HdrHistogram's interval log with V2-deflate histograms, one file a run.
//!
//! Every line carries a tag `PHASE.METRIC.OUTCOME.KIND` such as `measure.READ.ok.response`; values are in the unit
//! that the header names (nanoseconds, in steps of 64; microseconds for the YCSB front end). Any HdrHistogram tool
//! opens it; lines of one tag add up to the whole.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dyno_record::{Buckets, Counts as _, Scale, SparseBuckets, Totals, bucket_low, bucket_of};
use dyno_types::bounded::next_line;
use dyno_types::limits::RESULT_LINE_BYTES;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{DeserializeError, Deserializer, Serializer, V2DeflateSerializer};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, Read as _};
use std::str::Utf8Error;
use std::time::{SystemTime, UNIX_EPOCH};

/// The factor from a bucket's unit to the logged value: nanoseconds for the engine's unit, the unit itself for
/// microseconds.
fn factor(scale: Scale) -> u64 {
    match scale {
        Scale::Ns64 => 64,
        Scale::Micros => 1,
    }
}

/// HdrHistogram's form of merged counts, count by count.
pub fn to_hdr(buckets: &Buckets) -> Histogram<u64> {
    let factor = factor(buckets.bucket_scale());
    let top = buckets.iter().last().map_or(2, |(bucket, _)| bucket_low(bucket) + 2).max(4096) * factor * 2;
    let mut histogram = match Histogram::new_with_bounds(factor, top, 3) {
        Ok(histogram) => histogram,
        Err(_) => unreachable!("bounds are positive, and the highest is above twice the lowest"),
    };
    for (bucket, count) in buckets.iter() {
        // In range by construction of `top`.
        let _ = histogram.record_n(bucket_low(bucket) * factor, count);
    }
    histogram
}

/// The head of a log whose intervals count from `epoch`.
pub fn log_header(epoch: SystemTime, scale: Scale) -> String {
    let since = epoch.duration_since(UNIX_EPOCH).unwrap_or_default();
    let unit = if scale == Scale::Ns64 { "nanoseconds" } else { "microseconds" };
    format!(
        "#[Values in {unit}; Interval_Max in the same unit divided by 1000000]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: {}.{:03} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        since.as_secs(),
        since.subsec_millis()
    )
}

/// One line of a log: seconds from the epoch, length in seconds.
pub fn log_line(tag: Option<&str>, start_s: f64, length_s: f64, histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    // Writing into memory cannot fail.
    let _ = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
    let max = if histogram.is_empty() { 0 } else { histogram.max() };
    let tag = tag.map_or(String::new(), |t| format!("Tag={t},"));
    format!("{tag}{start_s:.3},{length_s:.3},{:.3},{}\n", max as f64 / 1e6, STANDARD.encode(bytes))
}

/// All lines of one interval of a phase.
pub fn interval_lines(
    phase: &str,
    metrics: &[String],
    start_s: f64,
    length_s: f64,
    totals: &Totals,
) -> String {
    let mut out = String::new();
    for (slot, found) in totals.slots.iter().enumerate() {
        let Some(found) = found else { continue };
        let outcome = if slot % 2 == 0 { "ok" } else { "failed" };
        for (kind, buckets) in [("service", &found.service), ("response", &found.response)] {
            let tag = format!("{phase}.{}.{outcome}.{kind}", metrics[slot / 2]);
            let _ = write!(out, "{}", log_line(Some(&tag), start_s, length_s, &to_hdr(buckets)));
        }
    }
    for (metric, server) in totals.server.iter().enumerate() {
        if let Some(server) = server {
            let tag = format!("{phase}.{}.ok.server", metrics[metric]);
            let _ = write!(out, "{}", log_line(Some(&tag), start_s, length_s, &to_hdr(server)));
        }
    }
    for (name, buckets) in totals.of_all() {
        if buckets.count() > 0 {
            let tag = format!("{phase}.client.{name}");
            let _ = write!(out, "{}", log_line(Some(&tag), start_s, length_s, &to_hdr(buckets)));
        }
    }
    out
}

/// Error in a line of a log.
#[derive(Debug, thiserror::Error)]
pub enum LogLineError {
    /// A tag that nothing follows.
    #[error("no comma after the tag")]
    NoComma,
    /// A begin that is no number.
    #[error("no begin of the interval")]
    NoBegin,
    /// The line is no text.
    #[error(transparent)]
    Utf8(#[from] Utf8Error),
    /// The histogram is not encoded.
    #[error(transparent)]
    Base64(#[from] base64::DecodeError),
    /// The histogram is not compressed.
    #[error(transparent)]
    Inflate(#[from] std::io::Error),
    /// The histogram has not as many bytes of counts as it says.
    #[error("a histogram of {0} bytes of counts, which are not there")]
    Counts(u32),
    /// The histogram is damaged.
    #[error(transparent)]
    Histogram(#[from] DeserializeError),
    /// More than [`SAMPLES`] of one tag.
    #[error("more than {SAMPLES} samples")]
    TooMany,
}

/// A line that could not be read: its number and why.
#[derive(Debug)]
pub struct UnreadableLine {
    /// Number of the line, from 1.
    pub line: usize,
    /// Error.
    pub why: LogLineError,
}

/// Everything a log holds, merged by tag. An unfinished last line (of a killed run) is left out.
pub fn read(text: &str, scale: Scale) -> Result<BTreeMap<String, Buckets>, UnreadableLine> {
    read_part(text, scale, |_, _| true)
}

/// Reads the wanted intervals of a log, by their tag and their begin in seconds.
pub fn read_part(
    text: &str,
    scale: Scale,
    wanted: impl Fn(&str, f64) -> bool,
) -> Result<BTreeMap<String, Buckets>, UnreadableLine> {
    let mut log = ParsedLog { scale, merged: BTreeMap::new() };
    for (number, line) in crate::files::whole_lines(text).enumerate() {
        log.take(line, &wanted).map_err(|why| UnreadableLine { line: number + 1, why })?;
    }
    Ok(log.merged)
}

/// Everything that a file holds up to the first line that cannot be read, and that line; the file is never held as a whole. An
/// unfinished last line is left out.
pub(crate) fn read_file(
    mut file: impl BufRead,
    scale: Scale,
) -> std::io::Result<(BTreeMap<String, Buckets>, Option<UnreadableLine>)> {
    let mut log = ParsedLog { scale, merged: BTreeMap::new() };
    let mut line = Vec::new();
    for number in 1.. {
        next_line(&mut file, &mut line, RESULT_LINE_BYTES)?;
        let Some(whole) = line.strip_suffix(b"\n") else { break };
        let read = std::str::from_utf8(whole).map_err(LogLineError::from);
        if let Err(why) = read.and_then(|line| log.take(line, &|_, _| true)) {
            return Ok((log.merged, Some(UnreadableLine { line: number, why })));
        }
    }
    Ok((log.merged, None))
}

/// Most samples that all lines of a tag may have together: what is above was not measured.
const SAMPLES: u64 = 1 << 53;

/// First bytes of a histogram in HdrHistogram's encodings, without the four bits that tell the size of its counts: compressed and
/// plain, of V0, V1 and V2.
const COMPRESSED: [u32; 3] = [0x1c84_9309, 0x1c84_9302, 0x1c84_9304];
const PLAIN_V0: u32 = 0x1c84_9308;
const PLAIN_V1: u32 = 0x1c84_9301;
/// The same of plain V2, with the four bits.
const PLAIN_V2: u32 = 0x1c84_9313;
/// Bytes before the counts: cookie, length of the counts, offset, digits, bounds, ratio.
const HEAD: usize = 40;
/// The same of V0: cookie, digits, bounds, number of samples.
const HEAD_V0: usize = 32;
/// Most bytes of counts: those of five digits over all of 64 bits.
const COUNTS: u64 = 64 << 20;

/// Four bytes at a place, big-endian.
fn word_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The kind of an encoding, and the size of its counts in bytes.
fn cookie(bytes: &[u8]) -> Option<(u32, usize)> {
    let word = word_at(bytes, 0)?;
    Some((word & !0xf0, (word >> 4 & 0xe) as usize))
}

/// A histogram that is not compressed any more, and has the counts that it says: the library makes room for what it is told.
fn inflated(bytes: Vec<u8>) -> Result<Vec<u8>, LogLineError> {
    let plain = match cookie(&bytes) {
        // The length of what follows comes first.
        Some((kind, _)) if COMPRESSED.contains(&kind) => {
            let (mut plain, stream) = (Vec::new(), bytes.get(8..).unwrap_or_default());
            ZlibDecoder::new(stream).take(HEAD as u64 + COUNTS).read_to_end(&mut plain)?;
            plain
        }
        _ => bytes,
    };
    let plain = upgraded(plain)?;
    let declared = word_at(&plain, 4).unwrap_or(0);
    match declared as usize <= plain.len().saturating_sub(HEAD) {
        true => Ok(plain),
        false => Err(LogLineError::Counts(declared)),
    }
}

/// A histogram of V0 or V1, whose counts have a fixed size, as one of V2, whose counts are ZigZag LEB128; the library knows V2
/// alone. The layouts are those of HdrHistogram's `AbstractHistogram.decodeFromByteBuffer` (Java, 2.1).
fn upgraded(plain: Vec<u8>) -> Result<Vec<u8>, LogLineError> {
    let (kind, size) = cookie(&plain).unwrap_or_default();
    let (head, digits_and_bounds, offset, ratio) = match kind {
        // Bounds are two words of eight bytes.
        PLAIN_V0 if plain.len() >= HEAD_V0 => {
            (HEAD_V0, &plain[4..24], &[0; 4][..], &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0][..])
        }
        PLAIN_V1 if plain.len() >= HEAD => (HEAD, &plain[12..32], &plain[8..12], &plain[32..40]),
        _ => return Ok(plain),
    };
    let declared =
        if kind == PLAIN_V1 { word_at(&plain, 4).unwrap_or(0) as usize } else { plain.len() - head };
    let counts = plain.get(head..head + declared).ok_or(LogLineError::Counts(declared as u32))?;
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let mut encoded = Vec::new();
    let mut zeros = 0u64;
    for count in counts.chunks_exact(size.max(1)).map(number) {
        if count == 0 {
            zeros += 1;
            continue;
        }
        if count > SAMPLES {
            return Err(LogLineError::TooMany);
        }
        // A row of zeros is its negative length.
        if zeros > 0 {
            put_leb128(&mut encoded, 2 * zeros - 1);
            zeros = 0;
        }
        put_leb128(&mut encoded, 2 * count);
    }
    let length = (encoded.len() as u32).to_be_bytes();
    Ok([&PLAIN_V2.to_be_bytes()[..], &length, offset, digits_and_bounds, ratio, &encoded].concat())
}

/// Appends a number in groups of seven bits, the least first, each but the last marked.
fn put_leb128(into: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// Calls `each` with tag, begin in seconds and counts of every wanted line of a file, up to the first that cannot be read: the
/// file is never held as a whole.
pub(crate) fn each_interval(
    mut file: impl BufRead,
    scale: Scale,
    wanted: impl Fn(&str, f64) -> bool,
    mut each: impl FnMut(&str, f64, &SparseBuckets),
) -> std::io::Result<()> {
    let mut line = Vec::new();
    loop {
        next_line(&mut file, &mut line, RESULT_LINE_BYTES)?;
        let Some(Ok(whole)) = line.strip_suffix(b"\n").map(std::str::from_utf8) else { return Ok(()) };
        match parsed_line(whole, scale, &wanted) {
            Ok(Some((tag, begin_s, counts))) => each(tag, begin_s, &counts),
            Ok(None) => {}
            Err(_) => return Ok(()),
        }
    }
}

/// A wanted line of a log: its tag, its begin in seconds, and its counts.
fn parsed_line<'a>(
    line: &'a str,
    scale: Scale,
    wanted: &dyn Fn(&str, f64) -> bool,
) -> Result<Option<(&'a str, f64, SparseBuckets)>, LogLineError> {
    if line.starts_with('#') || line.starts_with('"') || line.is_empty() {
        return Ok(None);
    }
    let (tag, rest) = match line.strip_prefix("Tag=") {
        Some(rest) => rest.split_once(',').ok_or(LogLineError::NoComma)?,
        None => ("", line),
    };
    let begin = rest.split(',').next().and_then(|begin| begin.parse::<f64>().ok());
    let begin = begin.ok_or(LogLineError::NoBegin)?;
    if !wanted(tag, begin) {
        return Ok(None);
    }
    let encoded = rest.rsplit(',').next().unwrap_or_default();
    let plain = inflated(STANDARD.decode(encoded)?)?;
    // Values of all operations together are always in the engine's own unit.
    let scale = if tag.contains(".client.") { Scale::Ns64 } else { scale };
    let counts = match own_counts(&plain, factor(scale)) {
        Some(counts) => counts,
        None => counts_of(&Deserializer::new().deserialize(&mut plain.as_slice())?, factor(scale)),
    };
    let sum = counts.iter().map(|(_, count)| *count).try_fold(0, u64::checked_add);
    sum.filter(|all| *all <= SAMPLES).ok_or(LogLineError::TooMany)?;
    Ok(Some((tag, begin, SparseBuckets::from_counts(scale, counts))))
}

/// Counts of a histogram of any precision, by bucket.
fn counts_of(histogram: &Histogram<u64>, factor: u64) -> Vec<(u32, u64)> {
    let mut counts: Vec<(u32, u64)> = Vec::new();
    for value in histogram.iter_recorded() {
        let low = histogram.lowest_equivalent(value.value_iterated_to());
        let (bucket, count) = (bucket_of(low / factor) as u32, value.count_at_value());
        match counts.last_mut().filter(|last| last.0 == bucket) {
            // Too great a sum is refused by who adds all of them up.
            Some(last) => last.1 = last.1.saturating_add(count),
            None => counts.push((bucket, count)),
        }
    }
    counts
}

/// Counts by bucket of a plain histogram as dyno writes it: with three digits its places are the buckets, and the few that hold
/// something are found without a walk through all of them, of which a day has hundreds of thousands. `None` of any other, and of
/// one that is damaged: the library reads it, or says what is wrong.
fn own_counts(plain: &[u8], factor: u64) -> Option<Vec<(u32, u64)>> {
    let long = |at: usize| Some(u64::from(word_at(plain, at)?) << 32 | u64::from(word_at(plain, at + 4)?));
    let (kind, offset, digits) = (word_at(plain, 0)?, word_at(plain, 8)?, word_at(plain, 12)?);
    let (lowest, highest, ratio) = (long(16)?, long(24)?, f64::from_bits(long(32)?));
    if (kind, offset, digits, lowest) != (PLAIN_V2, 0, 3, factor) || ratio != 1.0 || highest < 2 * factor {
        return None;
    }
    // Room ends with the doubling in which the highest value lies.
    let doublings = (highest / factor).checked_ilog2()?.saturating_sub(10);
    let room = (i64::from(doublings) + 2) << 10;
    let length = word_at(plain, 4)? as usize;
    let mut rest = plain.get(HEAD..HEAD.checked_add(length)?)?;
    let (mut counts, mut place) = (Vec::new(), 0_i64);
    while !rest.is_empty() {
        match take_zig_zag(&mut rest)? {
            // A row of zeros is its negative length.
            zeros if zeros < 0 => place = place.checked_add(zeros.checked_neg()?)?,
            0 => place += 1,
            count if place < room => {
                counts.push((place as u32, count as u64));
                place += 1;
            }
            _ => return None,
        }
        if place > room {
            return None;
        }
    }
    Some(counts)
}

/// Takes a number in groups of seven bits, the least first, each but the last marked, and of a ninth all eight bits; the sign is
/// its last bit.
fn take_zig_zag(from: &mut &[u8]) -> Option<i64> {
    let mut number = 0_u64;
    for at in 0..9 {
        let (first, rest) = from.split_first()?;
        *from = rest;
        let bits = if at == 8 { *first } else { first & 0x7f };
        number |= u64::from(bits) << (7 * at);
        if at == 8 || first & 0x80 == 0 {
            break;
        }
    }
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

/// A log as far as it has been read.
struct ParsedLog {
    scale: Scale,
    merged: BTreeMap<String, Buckets>,
}

impl ParsedLog {
    /// Adds a line.
    fn take(&mut self, line: &str, wanted: &dyn Fn(&str, f64) -> bool) -> Result<(), LogLineError> {
        let Some((tag, _, found)) = parsed_line(line, self.scale, wanted)? else { return Ok(()) };
        let before = self.merged.get(tag).map_or(0, Buckets::count);
        if before + found.count() > SAMPLES {
            return Err(LogLineError::TooMany);
        }
        let scale = if tag.contains(".client.") { Scale::Ns64 } else { self.scale };
        match self.merged.get_mut(tag) {
            Some(all) => found.add_to(all),
            None => found.add_to(self.merged.entry(tag.to_owned()).or_insert(Buckets::new(scale))),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn intervals_are_read_one_by_one_up_to_the_first_that_cannot_be_read() {
        let mut totals = Totals::new(1, Scale::Ns64);
        let mut interval = dyno_record::ThreadInterval::new(1, Scale::Ns64);
        (1..=2_000_u64).for_each(|n| interval.record_server(0, n * 1_000));
        interval.record_ended(0, dyno_types::Outcome::Ok, 1_000, 2_000);
        totals.add_interval(&interval);
        let lines = |at: f64| interval_lines("measure", &["READ".into()], at, 1.0, &totals);
        let text = format!("{}{}broken\n{}", lines(0.0), lines(1.5), lines(2.0));
        let mut found = Vec::new();
        let is_share = |tag: &str, _: f64| tag.ends_with(".ok.server");
        each_interval(text.as_bytes(), Scale::Ns64, is_share, |tag, begin_s, counts| {
            found.push((tag.to_owned(), begin_s, counts.count(), counts.percentile_ns(99.0)));
        })
        .unwrap();
        let tag = "measure.READ.ok.server".to_owned();
        let [(first, 0.0, 2_000, p99), second] = &found[..] else { panic!("{found:?}") };
        assert_eq!((first, second), (&tag, &(tag.clone(), 1.5, 2_000, *p99)));
        // 1,980 of 2,000, within a bucket of three digits.
        assert!((1_978_000..1_984_000).contains(p99), "{p99}");
    }

    fn plain(histogram: &Histogram<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        hdrhistogram::serialization::V2Serializer::new().serialize(histogram, &mut bytes).unwrap();
        bytes
    }

    proptest! {
        /// HdrHistogram's library reads the same of what it has written.
        #[test]
        fn places_of_dynos_own_histograms_are_its_buckets(
            values in prop::collection::vec((0_u64..1 << 40, 1_u64..1 << 30), 0..50),
            micros: bool,
        ) {
            let scale = if micros { Scale::Micros } else { Scale::Ns64 };
            let mut buckets = Buckets::new(scale);
            values.iter().for_each(|(ns, count)| buckets.add_bucket(bucket_of(scale.to_units(*ns)), *count));
            let histogram = to_hdr(&buckets);
            let bytes = plain(&histogram);
            prop_assert_eq!(own_counts(&bytes, factor(scale)), Some(counts_of(&histogram, factor(scale))));
            // What is cut off is left to the library, which says what is wrong.
            prop_assert_eq!(own_counts(&bytes[..bytes.len() - 1], factor(scale)), None);
        }
    }

    #[test]
    fn other_histograms_than_dynos_own_are_read_by_the_library() {
        let mut other = Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 2).unwrap();
        (1..=100).for_each(|n| other.record(n * 1_000).unwrap());
        assert_eq!(own_counts(&plain(&other), 1), None, "of two digits");
        assert_eq!(own_counts(&plain(&to_hdr(&Buckets::new(Scale::Ns64))), 1), None, "of another unit");
        let line = log_line(None, 0.0, 1.0, &other);
        assert_eq!(read(&line, Scale::Micros).unwrap()[""].count(), 100);
        // A count behind the last place: the library makes room up to the highest value.
        let mut buckets = Buckets::new(Scale::Micros);
        buckets.record(1_000);
        let mut bytes = plain(&to_hdr(&buckets));
        let length = word_at(&bytes, 4).unwrap();
        put_leb128(&mut bytes, 2 * (1 << 20) - 1);
        put_leb128(&mut bytes, 2);
        let added = bytes.len() - HEAD - length as usize;
        bytes[4..8].copy_from_slice(&(length + added as u32).to_be_bytes());
        assert_eq!(own_counts(&bytes, 1), None);
        assert!(Deserializer::new().deserialize::<u64, _>(&mut bytes.as_slice()).is_err());
    }

    proptest! {
        #[test]
        fn counts_survive_the_log(values in prop::collection::vec(0u64..600_000_000_000, 1..200), micros: bool) {
            let scale = if micros { Scale::Micros } else { Scale::Ns64 };
            let mut buckets = Buckets::new(scale);
            for &ns in &values {
                buckets.record(ns);
            }
            let text = log_line(Some("measure.READ.ok.service"), 0.0, 1.0, &to_hdr(&buckets));
            let back = read(&text, scale).unwrap().remove("measure.READ.ok.service").unwrap();
            prop_assert!(back.iter().eq(buckets.iter()));
            prop_assert_eq!(back.count(), values.len() as u64);
        }
    }

    #[test]
    fn counts_that_are_not_there_are_given_no_room() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        histogram.record(7).unwrap();
        let mut plain = Vec::new();
        hdrhistogram::serialization::V2Serializer::new().serialize(&histogram, &mut plain).unwrap();
        let log = |bytes: &[u8]| read(&format!("0.0,1.0,0.0,{}\n", STANDARD.encode(bytes)), Scale::Micros);
        assert_eq!(log(&plain).unwrap()[""].count(), 1);
        plain[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(log(&plain).unwrap_err().why.to_string().contains("4294967295 bytes of counts"));
        let mut deflated = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut deflated, &plain).unwrap();
        let head = (COMPRESSED[2] | 0x10).to_be_bytes();
        let compressed = [&head[..], &[0; 4], &deflated.finish().unwrap()].concat();
        assert!(log(&compressed).unwrap_err().why.to_string().contains("4294967295 bytes of counts"));
        assert!(log(b"nothing").is_err() && log(&head).is_err());
    }

    /// Lines of HdrHistogram's own test data: what its Java library of the time has written.
    #[test]
    fn histograms_of_earlier_encodings_are_read() {
        // V0, jHiccup 2.0.3: 4,683 samples, the greatest 0.115 ms (`Interval_Max`), in units of 16,384 ns.
        let v0 = "0.042,5.004,0.115,HISTiQAAAEV42pNpmdzBwMDAxAAGfgoMDMxuBjsWQLgMQt4QmrkKQvNugkq8g9KKUJoHSjMz\
                  oAJGhlEwCkbBKBgFo2AUDDkAANEpBrU=\n";
        let found = read(v0, Scale::Micros).unwrap().remove("").unwrap();
        let counts: Vec<u64> = found.iter().map(|(_, count)| count).collect();
        assert_eq!((found.count(), counts), (4_683, vec![890, 3_506, 238, 33, 12, 3, 1]));
        assert_eq!(bucket_low(found.iter().last().unwrap().0) / 16_384, 7, "114,688 ns are 0.115 ms");
        // V1: 724 samples, counts of two bytes.
        let v1 = "0.0,1.0,0.0,HISTIgAAAFd42pNpmazIwMAYxgABTBDKT4GBgdnNYMcCBvsPUBkeBkYGZqA8MwMbAzsDC5DFBCTZgJCDQY1BjkGLQZRBlUEP\
                  CB8zWDCYMxgDZZkZhgJgHDibAY8JB/A=\n";
        let found = read(v1, Scale::Micros).unwrap().remove("").unwrap();
        assert_eq!(found.count(), 724);
        let first: Vec<u64> = found.iter().map(|(_, count)| count).take(5).collect();
        assert_eq!(first, [12, 1, 3, 2, 3]);
        // Counts that are not there.
        assert!(upgraded([&PLAIN_V1.to_be_bytes()[..], &[0xff; 36]].concat()).is_err());
        assert!(upgraded(PLAIN_V0.to_be_bytes().to_vec()).is_ok_and(|bytes| bytes.len() == 4));
    }

    #[test]
    fn a_log_is_in_the_unit_of_its_head() {
        for (scale, unit, value) in [(Scale::Ns64, "nanoseconds", 1_536), (Scale::Micros, "microseconds", 1)]
        {
            let at = UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_042);
            let head = format!(
                "#[Values in {unit}; Interval_Max in the same unit divided by 1000000]\n\
                 #[Histogram log format version 1.3]\n#[StartTime: 1700000000.042 (seconds since epoch)]\n"
            );
            assert!(log_header(at, scale).starts_with(&head), "{}", log_header(at, scale));
            let mut buckets = Buckets::new(scale);
            buckets.record(1_599);
            let histogram = to_hdr(&buckets);
            assert_eq!(histogram.lowest_equivalent(histogram.max()), value, "the begin of its bucket");
            let counts = buckets.iter().map(|(bucket, count)| (bucket as u32, count));
            assert_eq!(counts_of(&histogram, factor(scale)), counts.collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_histogram_has_a_line_with_its_tag_and_its_greatest_value() {
        let metrics = ["READ".to_owned(), "a.b".to_owned()];
        let buckets = |ns: u64| {
            let mut buckets = Buckets::new(Scale::Ns64);
            buckets.record(ns);
            buckets
        };
        let mut totals = Totals::new(2, Scale::Ns64);
        for (slot, times) in totals.slots.iter_mut().enumerate() {
            let (service, response) = (buckets(1_000_000 * (slot as u64 + 1)), buckets(10_000_000));
            *times = Some(dyno_record::MergedSlot { service, response });
        }
        (totals.receive_lag, totals.turnaround) = (buckets(2_000), buckets(3_000));
        let text = interval_lines("measure", &metrics, 1.5, 0.25, &totals);
        // The end of the bucket of the greatest: of 3 ms 46,879 units of 64 ns.
        let heads: Vec<&str> = text.lines().map(|line| line.rsplit_once(',').unwrap().0).collect();
        let expected = [
            "Tag=measure.READ.ok.service,1.500,0.250,1.000",
            "Tag=measure.READ.ok.response,1.500,0.250,10.002",
            "Tag=measure.READ.failed.service,1.500,0.250,2.001",
            "Tag=measure.READ.failed.response,1.500,0.250,10.002",
            "Tag=measure.a.b.ok.service,1.500,0.250,3.000",
            "Tag=measure.a.b.ok.response,1.500,0.250,10.002",
            "Tag=measure.a.b.failed.service,1.500,0.250,4.002",
            "Tag=measure.a.b.failed.response,1.500,0.250,10.002",
            "Tag=measure.client.lag.receive,1.500,0.250,0.002",
            "Tag=measure.client.lag.turnaround,1.500,0.250,0.003",
        ];
        assert_eq!(heads, expected);
        let empty = log_line(None, 0.0, 1.0, &to_hdr(&Buckets::new(Scale::Ns64)));
        assert!(empty.starts_with("0.000,1.000,0.000,"), "{empty}");
    }

    #[test]
    fn intervals_of_a_tag_add_up_and_a_torn_line_is_left_out() {
        let mut buckets = Buckets::new(Scale::Ns64);
        buckets.record(1_000_000);
        let one = log_line(Some("a"), 0.0, 1.0, &to_hdr(&buckets));
        let text =
            format!("{}{one}{one}{}", log_header(SystemTime::now(), Scale::Ns64), &one[..one.len() / 2]);
        assert_eq!(read(&text, Scale::Ns64).unwrap()["a"].count(), 2);
        assert_eq!(read("Tag=a,0,1,0,@@@\n", Scale::Ns64).unwrap_err().line, 1);
    }
}
