//! Confidence intervals of means over repetitions.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean and its 95 % confidence interval, for independent samples that are about normal (Student, 1908).
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct MeanInterval {
    /// Samples.
    pub count: usize,
    /// Mean of the values.
    pub mean: f64,
    /// Standard deviation of the values (n - 1).
    pub deviation: f64,
    /// Half the interval's width.
    pub half_width: f64,
}

/// Mean and standard deviation (n - 1) of `samples`; `None` for fewer than two.
pub(crate) fn mean_and_deviation(samples: &[f64]) -> Option<(f64, f64)> {
    let count = samples.len();
    if count < 2 {
        return None;
    }
    let mean = samples.iter().sum::<f64>() / count as f64;
    let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
    Some((mean, (squares / (count - 1) as f64).sqrt()))
}

/// The interval of `samples`; `None` for fewer than two.
pub fn mean_interval(samples: &[f64]) -> Option<MeanInterval> {
    let count = samples.len();
    let (mean, deviation) = mean_and_deviation(samples)?;
    let student = StudentsT::new(0.0, 1.0, (count - 1) as f64).ok()?;
    let half_width = student.inverse_cdf(0.975) * deviation / (count as f64).sqrt();
    Some(MeanInterval { count, mean, deviation, half_width })
}

/// The difference of two means (first less second) and its 95 % interval, for independent samples of unequal variance
/// (Welch, 1947); `count` is that of all samples.
pub fn mean_difference(one: &[f64], other: &[f64]) -> Option<MeanInterval> {
    let (a, b) = (mean_interval(one)?, mean_interval(other)?);
    let (va, vb) = (a.deviation.powi(2) / a.count as f64, b.deviation.powi(2) / b.count as f64);
    let mean = a.mean - b.mean;
    let count = a.count + b.count;
    if va + vb == 0.0 {
        return Some(MeanInterval { count, mean, deviation: 0.0, half_width: 0.0 });
    }
    let freedom = (va + vb).powi(2) / (va.powi(2) / (a.count - 1) as f64 + vb.powi(2) / (b.count - 1) as f64);
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let deviation = (va + vb).sqrt();
    Some(MeanInterval { count, mean, deviation, half_width: student.inverse_cdf(0.975) * deviation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_textbook_interval() {
        // t(0.975, 4) = 2.776445, s = 1.581139, n = 5.
        let i = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((i.mean - 3.0).abs() < 1e-12 && (i.deviation - 1.581_139).abs() < 1e-6);
        assert!((i.half_width - 1.963_243).abs() < 1e-5, "{i:?}");
        assert!(mean_interval(&[1.0]).is_none());
        assert_eq!(mean_interval(&[7.0, 7.0]).unwrap().half_width, 0.0);
    }

    #[test]
    fn a_difference_of_means() {
        // Welch: t(0.975, 7.7) = 2.3221, standard error 0.8944 (computed apart).
        let one = [3.0, 4.0, 5.0, 6.0, 7.0];
        let other = [1.0, 2.0, 3.0, 4.0, 4.5];
        let d = mean_difference(&one, &other).unwrap();
        assert!((d.mean - 2.1).abs() < 1e-12, "{d:?}");
        assert!((d.deviation - 0.953_939).abs() < 1e-5, "{d:?}");
        assert!((d.half_width - 2.201_9).abs() < 2e-3, "{d:?}");
        assert!(mean_difference(&one, &[1.0]).is_none());
    }

    #[test]
    fn differences_of_equal_variances_and_of_one_that_is_none() {
        // Variances of the means 1 and 1: two degrees of freedom, t(0.975, 2) = 4.302653.
        let d = mean_difference(&[1.0, 3.0], &[5.0, 7.0]).unwrap();
        assert_eq!((d.count, d.mean), (4, -4.0));
        assert!((d.half_width - 4.302_653 * 2.0_f64.sqrt()).abs() < 1e-4, "{d:?}");
        // 1 and 0: one degree, t(0.975, 1) = 12.706205.
        let d = mean_difference(&[1.0, 3.0], &[5.0, 5.0, 5.0]).unwrap();
        assert_eq!((d.count, d.mean, d.deviation), (5, -3.0, 1.0));
        assert!((d.half_width - 12.706_205).abs() < 1e-4, "{d:?}");
        let d = mean_difference(&[3.0, 3.0], &[5.0, 5.0, 5.0]).unwrap();
        assert_eq!((d.count, d.mean, d.half_width), (5, -2.0, 0.0));
    }
}
