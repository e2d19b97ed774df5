//! Metrics as data: families of series, of which every form that leaves dyno is made.

use std::time::SystemTime;

/// Kind of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyKind {
    /// Never falls while its series lasts.
    Counter,
    /// Any level.
    Gauge,
    /// Counts by buckets.
    Histogram,
}

impl FamilyKind {
    /// As Prometheus' text format has it.
    pub fn name(self) -> &'static str {
        match self {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
            FamilyKind::Histogram => "histogram",
        }
    }
}

/// A name with its series.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Name, such as `dyno_operations_total`.
    pub name: &'static str,
    /// Kind.
    pub kind: FamilyKind,
    /// Unit by UCUM: `s`, `By`, `1`.
    pub unit: &'static str,
    /// Description.
    pub help: &'static str,
    /// Series.
    pub series: Vec<MetricSeries>,
}

/// One series at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSeries {
    /// Labels, in the order in which they are shown.
    pub labels: Vec<(String, String)>,
    /// Moment since which it has counted; `None`: it does not count, or the moment is unknown.
    pub since: Option<SystemTime>,
    /// Value.
    pub value: SeriesValue,
}

/// Value of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum SeriesValue {
    /// Of a counter or gauge.
    Number(f64),
    /// Of a histogram.
    Histogram(MetricHistogram),
}

/// Samples by buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricHistogram {
    /// Each bound, and how many samples are not above it; ascending.
    pub up_to: Vec<(f64, u64)>,
    /// All samples.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

impl Family {
    /// Calls with each of the classic series that this family is in Prometheus: name, labels, value. A histogram has one for
    /// each bucket, cumulative, then all samples, their sum and their count.
    pub fn each_classic(&self, mut with: impl FnMut(&str, &[(&str, &str)], f64)) {
        for series in &self.series {
            let labels: Vec<(&str, &str)> =
                series.labels.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            let histogram = match &series.value {
                SeriesValue::Number(value) => {
                    with(self.name, &labels, *value);
                    continue;
                }
                SeriesValue::Histogram(histogram) => histogram,
            };
            let bucket = format!("{}_bucket", self.name);
            let bounds = histogram.up_to.iter().map(|(bound, samples)| (bound.to_string(), *samples));
            for (bound, samples) in bounds.chain([("+Inf".to_owned(), histogram.count)]) {
                let labels: Vec<_> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
                with(&bucket, &labels, samples as f64);
            }
            with(&format!("{}_sum", self.name), &labels, histogram.sum);
            with(&format!("{}_count", self.name), &labels, histogram.count as f64);
        }
    }
}

/// Families under construction.
#[derive(Clone, Debug, Default)]
pub struct Families {
    common: Vec<(String, String)>,
    all: Vec<Family>,
}

impl Families {
    /// None yet; every series will have these labels, before its own.
    pub fn with_labels(common: &[(String, String)]) -> Self {
        Families { common: common.to_vec(), all: Vec::new() }
    }

    /// Begins a family.
    pub fn begin(&mut self, name: &'static str, kind: FamilyKind, unit: &'static str, help: &'static str) {
        self.all.push(Family { name, kind, unit, help, series: Vec::new() });
    }

    /// Adds a series to the family that was begun last.
    pub fn add_series(&mut self, labels: &[(&str, &str)], since: Option<SystemTime>, value: SeriesValue) {
        let own = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let labels = self.common.iter().cloned().chain(own).collect();
        if let Some(family) = self.all.last_mut() {
            family.series.push(MetricSeries { labels, since, value });
        }
    }

    /// A family of one number without labels of its own.
    pub fn add_number(
        &mut self,
        (name, kind, unit): (&'static str, FamilyKind, &'static str),
        help: &'static str,
        since: Option<SystemTime>,
        value: f64,
    ) {
        self.begin(name, kind, unit, help);
        self.add_series(&[], since, SeriesValue::Number(value));
    }

    /// All of them.
    pub fn into_vec(self) -> Vec<Family> {
        self.all
    }
}
