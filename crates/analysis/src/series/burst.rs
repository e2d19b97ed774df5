//! Burst credits: volumes of clouds that are fast until a bucket is empty.
//!
//! The signature has four parts: throughput falls by a known ratio, the disk's operations a second stand at the burst limit
//! before and at the baseline after, operations of the disk for each of the database's stay what they were (forced flow), and
//! the bucket lasted as long as it should. Three of four that could be looked at make a claim.

/// A volume with a bucket of credits, one a disk operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CreditBucket {
    /// Disk operations a second for ever.
    pub baseline: f64,
    /// Disk operations a second while credits last.
    pub burst: f64,
    /// Credits of a full bucket.
    pub credits: f64,
}

impl CreditBucket {
    /// Amazon's gp2 volume of `gib` GiB: 3 operations a second for each GiB, at least 100 and at most 16,000; 3,000 in bursts;
    /// 5.4 million credits.
    pub fn from_gp2_size(gib: f64) -> Self {
        let baseline = (3.0 * gib).clamp(100.0, 16_000.0);
        CreditBucket { baseline, burst: baseline.max(3_000.0), credits: 5.4e6 }
    }

    /// Computes how long a full bucket lasts at `rate` disk operations a second; infinite at the baseline or below.
    pub fn lasts_s(&self, rate: f64) -> f64 {
        match rate.min(self.burst) - self.baseline {
            over if over > 0.0 => self.credits / over,
            _ => f64::INFINITY,
        }
    }
}

/// Observations around a fall of throughput.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fall {
    /// Operations a second before and after.
    pub throughput: (f64, f64),
    /// Disk operations a second before and after, where the disk was watched.
    pub disk: Option<(f64, f64)>,
    /// Seconds of load before it.
    pub after_s: f64,
}

/// Result of each part of the signature; `None` for what could not be looked at.
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
    /// True if three of four hold.
    pub claimed: bool,
    /// Time that a full bucket lasts at the rate before, seconds.
    pub expected_s: f64,
}

/// Judges a fall against a bucket.
pub fn match_signature(fall: &Fall, bucket: &CreditBucket) -> Signature {
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
        let volume = CreditBucket::from_gp2_size(15.0);
        assert_eq!((volume.baseline, volume.burst), (100.0, 3000.0));
        assert!((volume.lasts_s(3_000.0) - 1862.07).abs() < 0.01);
        assert!(volume.lasts_s(100.0).is_infinite() && volume.lasts_s(50.0).is_infinite());
        assert_eq!(CreditBucket::from_gp2_size(2_000.0).baseline, 6_000.0);
    }

    #[test]
    fn without_the_disk_two_parts_are_no_claim() {
        let lab = Fall { throughput: (5178.0, 168.0), disk: None, after_s: 1635.0 };
        let found = match_signature(&lab, &CreditBucket::from_gp2_size(15.0));
        assert!(found.by_ratio && found.in_time && !found.claimed, "{found:?}");
        let seen = Fall { disk: Some((3_000.0, 100.0)), ..lab };
        let found = match_signature(&seen, &CreditBucket::from_gp2_size(15.0));
        assert!(found.claimed && found.same_work == Some(true), "{found:?}");
        // The disk has less to do for each operation: something else is slow.
        let other = Fall { disk: Some((3_000.0, 20.0)), ..lab };
        assert!(!match_signature(&other, &CreditBucket::from_gp2_size(15.0)).claimed);
    }

    #[test]
    fn each_sign_of_an_empty_bucket_has_its_limits() {
        // Burst to baseline 30, within a quarter 22.5 to 37.5; a full bucket lasts 5.4e6 / 2,900 = 1,862 s.
        let bucket = CreditBucket::from_gp2_size(15.0);
        let of = |throughput, disk, after_s| {
            let found = match_signature(&Fall { throughput, disk, after_s }, &bucket);
            (found.by_ratio, found.at_levels, found.same_work, found.in_time)
        };
        let by_ratio = [22.0, 23.0, 30.0, 37.0, 38.0].map(|ratio| of((ratio, 1.0), None, 0.0).0);
        assert_eq!(by_ratio, [false, true, true, true, false]);
        let in_time = [930.0, 932.0, 2_048.0, 2_049.0].map(|after_s| of((30.0, 1.0), None, after_s).3);
        assert_eq!(in_time, [false, true, true, false]);
        let levels =
            [(2_690.0, 100.0), (2_710.0, 100.0), (3_000.0, 89.0), (3_000.0, 109.0), (3_310.0, 100.0)];
        let levels = levels.map(|disk| of((30.0, 1.0), Some(disk), 0.0).1);
        assert_eq!(levels, [Some(false), Some(true), Some(false), Some(true), Some(false)]);
        // 3,000 by 3,000 before; after it as many for each within a tenth.
        let work =
            [109.0, 112.0, 92.0, 90.0].map(|after| of((3_000.0, after), Some((3_000.0, 100.0)), 0.0).2);
        assert_eq!(work, [Some(true), Some(false), Some(true), Some(false)]);
        // A large volume has a ratio of 1: what does not fall by half is no fall.
        let large = CreditBucket::from_gp2_size(2_000.0);
        let even = match_signature(&Fall { throughput: (1.1, 1.0), disk: None, after_s: 1.0 }, &large);
        assert!(!even.by_ratio && even.expected_s.is_infinite() && !even.in_time, "{even:?}");
        // Bursts of 500 GiB are twice the baseline, and a fall by half is one.
        let half = |ratio: f64| {
            match_signature(
                &Fall { throughput: (ratio, 1.0), disk: None, after_s: 1.0 },
                &CreditBucket::from_gp2_size(500.0),
            )
        };
        assert_eq!((half(2.0).by_ratio, half(1.99).by_ratio, half(2.0).ratio), (true, false, 2.0));
        let limits = [10.0, 40.0, 6_000.0]
            .map(|gib| (CreditBucket::from_gp2_size(gib).baseline, CreditBucket::from_gp2_size(gib).burst));
        assert_eq!(limits, [(100.0, 3_000.0), (120.0, 3_000.0), (16_000.0, 16_000.0)]);
        assert_eq!((bucket.lasts_s(5_100.0), bucket.lasts_s(640.0)), (bucket.lasts_s(3_000.0), 10_000.0));
    }
}
