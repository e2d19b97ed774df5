//! Prometheus remote write 1.0: the classic series of each family, as protobuf compressed by Snappy's block format.
//!
//! Messages: <https://prometheus.io/docs/specs/prw/remote_write_spec/>. A series that is not continued gets a stale marker.

use super::snapshot::{SERVICE, Sender, Snapshot, unix_ns};
use prost::Message;
use std::collections::BTreeSet;

/// Prometheus' number for "no longer there".
const STALE: u64 = 0x7ff0_0000_0000_0002;

#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<WriteLabel>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<WriteSample>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Message)]
struct WriteLabel {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct WriteSample {
    #[prost(double, tag = "1")]
    value: f64,
    /// Milliseconds since 1970.
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

/// Labels of one series, sorted by name.
type Labels = Vec<WriteLabel>;

/// Turns snapshots into requests.
#[derive(Default)]
pub(crate) struct RemoteWrite {
    /// Series of the last snapshot that was taken.
    there: BTreeSet<Labels>,
    /// Those of the one that is offered.
    offered: BTreeSet<Labels>,
}

impl RemoteWrite {
    /// The body of a request.
    pub(crate) fn encode(&mut self, sender: &Sender, snapshot: &Snapshot) -> Result<Vec<u8>, snap::Error> {
        let timestamp = (unix_ns(snapshot.at) / 1_000_000) as i64;
        let mut timeseries = Vec::new();
        self.offered.clear();
        for family in &snapshot.families {
            family.each_classic(|name, own, value| {
                let labels = labels(sender, name, own);
                // The same labels twice would make the whole request invalid.
                if self.offered.insert(labels.clone()) {
                    timeseries.push(TimeSeries { labels, samples: vec![WriteSample { value, timestamp }] });
                }
            });
        }
        let gone = self.there.difference(&self.offered).cloned();
        let value = f64::from_bits(STALE);
        timeseries.extend(
            gone.map(|labels| TimeSeries { labels, samples: vec![WriteSample { value, timestamp }] }),
        );
        snap::raw::Encoder::new().compress_vec(&WriteRequest { timeseries }.encode_to_vec())
    }

    /// The snapshot that was encoded last has been taken.
    pub(crate) fn taken(&mut self) {
        self.there = std::mem::take(&mut self.offered);
    }
}

/// All labels of a series: its own, and those that a scraper adds.
fn labels(sender: &Sender, name: &str, own: &[(&str, &str)]) -> Labels {
    let label = |name: &str, value: &str| WriteLabel { name: name.to_owned(), value: value.to_owned() };
    let mut labels = vec![label("__name__", name)];
    // A label without a value is none.
    labels.extend(own.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| label(name, value)));
    for (name, value) in [("job", SERVICE.to_owned()), ("instance", sender.instance())] {
        if labels.iter().all(|other| other.name != name) {
            labels.push(WriteLabel { name: name.to_owned(), value });
        }
    }
    labels.sort();
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::tests::{sender, snapshot};

    fn decoded(body: &[u8]) -> Vec<(String, u64, i64)> {
        let raw = snap::raw::Decoder::new().decompress_vec(body).unwrap();
        let request = WriteRequest::decode(raw.as_slice()).unwrap();
        let one = |series: &TimeSeries| {
            let names: Vec<&str> = series.labels.iter().map(|label| label.name.as_str()).collect();
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(names, sorted, "sorted, and none twice");
            let [sample] = series.samples[..] else { panic!("{series:?}") };
            let labels: Vec<String> =
                series.labels.iter().map(|label| format!("{}={}", label.name, label.value)).collect();
            (labels.join(","), sample.value.to_bits(), sample.timestamp)
        };
        request.timeseries.iter().map(one).collect()
    }

    #[test]
    fn series_are_those_of_the_scrape_and_end_with_a_stale_marker() {
        let mut encoder = RemoteWrite::default();
        let first = snapshot(1_500, 7);
        let made = decoded(&encoder.encode(&sender(), &first).unwrap());
        encoder.taken();
        let text = dyno_monitor::prometheus::render_families(&first.families);
        let scraped = text.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(made.len(), scraped, "{text}");
        let series = "__name__=dyno_operations_total,instance=h:r,job=dyno,phase=load".to_owned();
        assert!(made.contains(&(series.clone(), 7f64.to_bits(), 1_500)), "{made:?}");
        let bucket = "__name__=dyno_service_seconds_bucket,instance=h:r,job=dyno,le=0.001,phase=load";
        assert!(made.contains(&(bucket.to_owned(), 5f64.to_bits(), 1_500)), "{made:?}");
        // One that was not taken changes nothing.
        encoder.encode(&sender(), &Snapshot { families: Vec::new(), ..snapshot(1_600, 0) }).unwrap();
        let end = Snapshot { families: Vec::new(), ..snapshot(1_700, 0) };
        let stale = decoded(&encoder.encode(&sender(), &end).unwrap());
        encoder.taken();
        assert_eq!(stale.len(), made.len());
        assert!(stale.iter().all(|(_, bits, at)| *bits == STALE && *at == 1_700), "{stale:?}");
        assert!(decoded(&encoder.encode(&sender(), &end).unwrap()).is_empty());
    }
}
