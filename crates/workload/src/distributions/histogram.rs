//! Field lengths drawn from a histogram in YCSB's text format: a line `BlockSize<TAB>n`, then one line
//! `index<TAB>count` per bucket, indexes 0, 1, 2, ... in order; bucket i stands for lengths of (i + 1) * n.
//!
//! Compatibility: YCSB compares with `<=` where `<` is meant, so it draws the first bucket with non-zero count once
//! too often in each round of the total, and may hand out a length one block too short for the last bucket. Here
//! every bucket has exactly its share and its own length.

use dyno_types::rng::below;

/// Longest text accepted, in buckets: 16 Mi buckets are more than any field length needs.
const BUCKETS: usize = 1 << 24;

/// A line of a histogram that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text:?}: expected {expected}")]
pub struct BadHistogram {
    /// Number of the line, from 1.
    pub line: usize,
    /// The line.
    pub text: String,
    /// Form that was expected.
    pub expected: String,
}

/// A distribution of lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LengthHistogram {
    block_bytes: u64,
    /// Number of draws up to and including bucket i.
    cumulative: Vec<u64>,
}

impl LengthHistogram {
    /// Reads YCSB's text format.
    pub fn parse(text: &str) -> Result<Self, BadHistogram> {
        let mut lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
        let bad =
            |line: usize, text: &str, expected: String| BadHistogram { line, text: text.into(), expected };
        let head = "\"BlockSize\", a tab and the width of a bucket in bytes".to_owned();
        let (n, first) = lines.next().ok_or_else(|| bad(1, "", head.clone()))?;
        let block_bytes = match first.split_whitespace().collect::<Vec<_>>()[..] {
            ["BlockSize", size] => size.parse().ok().filter(|&s: &u64| s > 0 && s <= 1 << 40),
            _ => None,
        };
        let block_bytes = block_bytes.ok_or_else(|| bad(n + 1, first, head))?;
        let mut cumulative = Vec::new();
        let mut total = 0u64;
        let mut end = n + 1;
        for (n, line) in lines {
            let index = cumulative.len();
            let count = match line.split_whitespace().collect::<Vec<_>>()[..] {
                [i, count] if i.parse() == Ok(index) && index < BUCKETS => count.parse::<u64>().ok(),
                _ => None,
            };
            total = count
                .and_then(|c| total.checked_add(c))
                .ok_or_else(|| bad(n + 1, line, format!("\"{index}\", a tab and a count")))?;
            cumulative.push(total);
            end = n + 1;
        }
        if total == 0 {
            return Err(bad(end + 1, "", "at least one bucket with a count above 0".into()));
        }
        Ok(LengthHistogram { block_bytes, cumulative })
    }

    /// The length in bytes for 64 random bits.
    #[inline]
    pub fn length(&self, bits: u64) -> u64 {
        let number = below(bits, self.total());
        let bucket = self.cumulative.partition_point(|&c| c <= number);
        (bucket as u64 + 1) * self.block_bytes
    }

    /// The greatest length in bytes it can yield.
    pub fn max(&self) -> u64 {
        let used = self.cumulative.partition_point(|&c| c < self.total());
        (used as u64 + 1) * self.block_bytes
    }

    /// The mean as YCSB's constant-occupancy workload reckons it, in bytes: bucket i counts as i blocks, one less
    /// than is drawn.
    pub fn ycsb_mean(&self) -> f64 {
        let mut before = 0;
        let mut sum = 0.0;
        for (i, &c) in self.cumulative.iter().enumerate() {
            sum += i as f64 * (c - before) as f64;
            before = c;
        }
        self.block_bytes as f64 * sum / self.total() as f64
    }

    fn total(&self) -> u64 {
        self.cumulative.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::rng::Stream;

    #[test]
    fn shares_are_exact() {
        let h = LengthHistogram::parse("BlockSize\t10\n0\t1\n1\t0\n2\t3\n").unwrap();
        assert_eq!(h.length(0), 10);
        assert_eq!(h.length(u64::MAX / 4 - 1), 10);
        assert_eq!(h.length(u64::MAX / 4 + 2), 30);
        assert_eq!(h.length(u64::MAX), 30);
        assert_eq!(h.max(), 30);
        assert_eq!(h.ycsb_mean(), 15.0);
        let mut stream = Stream::from_bits(1);
        let short = (0..10_000).filter(|_| h.length(stream.next_u64()) == 10).count();
        assert!((2_300..2_700).contains(&short), "{short}");
    }

    #[test]
    fn faults_name_the_line() {
        let line = |text: &str| LengthHistogram::parse(text).unwrap_err().line;
        assert_eq!(line(""), 1);
        assert_eq!(line("Block 10\n0 1"), 1);
        assert_eq!(line("BlockSize\t0\n0\t1"), 1);
        assert_eq!(line("BlockSize\t10\n0\t1\n2\t5"), 3);
        assert_eq!(line("BlockSize\t10\n0\t-1"), 2);
        assert_eq!(line("BlockSize\t10\n0\t0"), 3);
        let text = LengthHistogram::parse("BlockSize\t10\n1\t1").unwrap_err().to_string();
        assert_eq!(text, "line 2: \"1\\t1\": expected \"0\", a tab and a count");
    }
}
