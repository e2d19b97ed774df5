//! Burst credits: volumes of clouds that are fast until a bucket is empty.
//!
//! The signature has four parts: throughput falls by a known ratio, the disk's operations a second stand at the burst limit
//! before and at the baseline after, operations of the disk for each of the database's stay what they were (forced flow), and
//! the bucket lasted as long as it should. Three of four that could be looked at make a claim.

/// A volume with a bucket of credits, one a disk operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Disk operations a second for ever.
    pub baseline: f64,
    /// Disk operations a second while credits last.
    pub burst: f64,
    /// Credits of a full bucket.
    pub credits: f64,
}

impl Bucket {
    /// Amazon's gp2 volume of `gib` GiB: 3 operations a second for each GiB, at least 100 and at most 16,000; 3,000 in bursts;
    /// 5.4 million credits.
    pub fn gp2(gib: f64) -> Self {
        let baseline = (3.0 * gib).clamp(100.0, 16_000.0);
        Bucket { baseline, burst: baseline.max(3_000.0), credits: 5.4e6 }
    }

    /// How long a full bucket lasts at `rate` disk operations a second; infinite at the baseline or below.
    pub fn lasts_s(&self, rate: f64) -> f64 {
        match rate.min(self.burst) - self.baseline {
            over if over > 0.0 => self.credits / over,
            _ => f64::INFINITY,
        }
    }
}

/// What was seen around a fall of throughput.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fall {
    /// Operations a second before and after.
    pub throughput: (f64, f64),
    /// Disk operations a second before and after, where the disk was watched.
    pub disk: Option<(f64, f64)>,
    /// Seconds of load before it.
    pub after_s: f64,
}

/// How the parts of the signature turned out; `None` for what could not be looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signature {
    /// Throughput before by throughput after.
    pub ratio: f64,
    /// The fall is by at least a factor of two, and about that of burst to baseline.
    pub by_ratio: bool,
    /// Disk operations a second are at the burst limit before and at the baseline after, within a tenth.
    pub at_levels: Option<bool>,
    /// Disk operations for each operation are what they were, within a tenth.
    pub same_work: Option<bool>,
    /// A full bucket lasts about so long: credits of an earlier load may have gone, so shorter counts, down to half.
    pub in_time: bool,
    /// Whether three of four hold.
    pub claimed: bool,
    /// How long a full bucket lasts at the rate before, seconds.
    pub expected_s: f64,
}

/// Judges a fall against a bucket.
pub fn signature(fall: &Fall, bucket: &Bucket) -> Signature {
    let near = |value: f64, wanted: f64, share: f64| (value / wanted - 1.0).abs() <= share;
    let ratio = fall.throughput.0 / fall.throughput.1.max(f64::MIN_POSITIVE);
    let by_ratio = ratio >= 2.0 && near(ratio, bucket.burst / bucket.baseline, 0.25);
    let at_levels =
        fall.disk.map(|(before, after)| near(before, bucket.burst, 0.1) && near(after, bucket.baseline, 0.1));
    let same_work = fall
        .disk
        .map(|(before, after)| near(before / fall.throughput.0, after / fall.throughput.1.max(1e-9), 0.1));
    let rate = fall.disk.map_or(bucket.burst, |(before, _)| before);
    let expected_s = bucket.lasts_s(rate);
    let in_time = (0.5 * expected_s..=1.1 * expected_s).contains(&fall.after_s);
    let held = [Some(by_ratio), at_levels, same_work, Some(in_time)];
    let claimed = held.iter().filter(|part| **part == Some(true)).count() >= 3;
    Signature { ratio, by_ratio, at_levels, same_work, in_time, claimed, expected_s }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_of_a_small_volume() {
        let volume = Bucket::gp2(15.0);
        assert_eq!((volume.baseline, volume.burst), (100.0, 3000.0));
        assert!((volume.lasts_s(3_000.0) - 1862.07).abs() < 0.01);
        assert!(volume.lasts_s(100.0).is_infinite());
        assert_eq!(Bucket::gp2(2_000.0).baseline, 6_000.0);
    }

    #[test]
    fn without_the_disk_two_parts_are_no_claim() {
        let lab = Fall { throughput: (5178.0, 168.0), disk: None, after_s: 1635.0 };
        let found = signature(&lab, &Bucket::gp2(15.0));
        assert!(found.by_ratio && found.in_time && !found.claimed, "{found:?}");
        let seen = Fall { disk: Some((3_000.0, 100.0)), ..lab };
        let found = signature(&seen, &Bucket::gp2(15.0));
        assert!(found.claimed && found.same_work == Some(true), "{found:?}");
        // The disk has less to do for each operation: something else is slow.
        let other = Fall { disk: Some((3_000.0, 20.0)), ..lab };
        assert!(!signature(&other, &Bucket::gp2(15.0)).claimed);
    }
}
