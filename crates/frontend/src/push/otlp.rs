//! OTLP metrics as protobuf: <https://opentelemetry.io/docs/specs/otlp/>. Counters are cumulative sums, histograms have explicit
//! buckets: the bounds of the scrape endpoint.

use super::snapshot::{SERVICE, Sender, Snapshot, unix_ns};
use dyno_monitor::prometheus::{Family, FamilyKind, MetricHistogram, MetricSeries, SeriesValue};
use prost::{Message, Oneof};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct ExportMetricsServiceRequest {
    #[prost(message, repeated, tag = "1")]
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "AnyValueKind", tags = "1")]
    value: Option<AnyValueKind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum AnyValueKind {
    #[prost(string, tag = "1")]
    Text(String),
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    scope: Option<OtlpScope>,
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<OtlpMetric>,
}

#[derive(Clone, PartialEq, Message)]
struct OtlpScope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct OtlpMetric {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    unit: String,
    #[prost(oneof = "OtlpData", tags = "5, 7, 9")]
    data: Option<OtlpData>,
}

#[derive(Clone, PartialEq, Oneof)]
enum OtlpData {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
    #[prost(message, tag = "9")]
    Histogram(HistogramData),
}

#[derive(Clone, PartialEq, Message)]
struct Gauge {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<NumberPoint>,
}

#[derive(Clone, PartialEq, Message)]
struct Sum {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<NumberPoint>,
    #[prost(int32, tag = "2")]
    aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
struct HistogramData {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<HistogramPoint>,
    #[prost(int32, tag = "2")]
    aggregation_temporality: i32,
}

#[derive(Clone, PartialEq, Message)]
struct NumberPoint {
    #[prost(fixed64, tag = "2")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    #[prost(oneof = "Number", tags = "4")]
    value: Option<Number>,
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Number {
    #[prost(double, tag = "4")]
    Double(f64),
}

#[derive(Clone, PartialEq, Message)]
struct HistogramPoint {
    #[prost(fixed64, tag = "2")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    count: u64,
    #[prost(double, optional, tag = "5")]
    sum: Option<f64>,
    #[prost(fixed64, repeated, tag = "6")]
    bucket_counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")]
    explicit_bounds: Vec<f64>,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ExportMetricsServiceResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_data_points: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// The body of a request.
pub(crate) fn encode(sender: &Sender, snapshot: &Snapshot) -> Vec<u8> {
    let time = unix_ns(snapshot.at);
    let attributes = [
        ("service.name", SERVICE.to_owned()),
        ("service.version", sender.version.clone()),
        ("service.instance.id", sender.instance()),
        ("host.name", sender.host.clone()),
        ("run", sender.run.clone()),
        ("target", sender.target.clone()),
    ];
    let attributes = attributes.into_iter().map(|(key, value)| attribute(key, value)).collect();
    let families = snapshot.families.iter().filter(|family| !family.series.is_empty());
    let scope = OtlpScope { name: SERVICE.into(), version: sender.version.clone() };
    let scope_metrics =
        ScopeMetrics { scope: Some(scope), metrics: families.map(|family| metric(family, time)).collect() };
    let resource_metrics =
        ResourceMetrics { resource: Some(Resource { attributes }), scope_metrics: vec![scope_metrics] };
    ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] }.encode_to_vec()
}

/// Data points that a receiver says it has not taken, and why.
pub(crate) fn rejected(answer: &[u8]) -> Option<(i64, String)> {
    let partial = ExportMetricsServiceResponse::decode(answer).ok()?.partial_success?;
    (partial.rejected_data_points > 0).then_some((partial.rejected_data_points, partial.error_message))
}

fn attribute(key: &str, value: String) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(AnyValueKind::Text(value)) }) }
}

fn metric(family: &Family, time: u64) -> OtlpMetric {
    let numbers = || family.series.iter().filter_map(|series| number(series, time)).collect();
    let data = match family.kind {
        FamilyKind::Gauge => OtlpData::Gauge(Gauge { data_points: numbers() }),
        FamilyKind::Counter => OtlpData::Sum(Sum {
            data_points: numbers(),
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
        }),
        FamilyKind::Histogram => OtlpData::Histogram(HistogramData {
            data_points: family.series.iter().filter_map(|series| histogram(series, time)).collect(),
            aggregation_temporality: CUMULATIVE,
        }),
    };
    OtlpMetric {
        name: family.name.into(),
        description: family.help.into(),
        unit: family.unit.into(),
        data: Some(data),
    }
}

/// Attributes of a series, and the moment since which it counts; 0 if unknown.
fn of(series: &MetricSeries) -> (Vec<KeyValue>, u64) {
    let labels = series.labels.iter().map(|(name, value)| attribute(name, value.clone()));
    (labels.collect(), series.since.map_or(0, unix_ns))
}

fn number(series: &MetricSeries, time_unix_nano: u64) -> Option<NumberPoint> {
    let SeriesValue::Number(value) = series.value else { return None };
    let (attributes, start_time_unix_nano) = of(series);
    Some(NumberPoint { attributes, start_time_unix_nano, time_unix_nano, value: Some(Number::Double(value)) })
}

fn histogram(series: &MetricSeries, time_unix_nano: u64) -> Option<HistogramPoint> {
    let SeriesValue::Histogram(MetricHistogram { up_to, count, sum }) = &series.value else { return None };
    let (attributes, start_time_unix_nano) = of(series);
    // Cumulative ones become each bucket's own; what is above the last bound has a bucket, too.
    let ends = up_to.iter().map(|(_, samples)| *samples).chain([*count]);
    let begins = std::iter::once(0).chain(up_to.iter().map(|(_, samples)| *samples));
    let bucket_counts = ends.zip(begins).map(|(end, begin)| end.saturating_sub(begin)).collect();
    Some(HistogramPoint {
        attributes,
        start_time_unix_nano,
        time_unix_nano,
        count: *count,
        sum: Some(*sum),
        bucket_counts,
        explicit_bounds: up_to.iter().map(|(bound, _)| *bound).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::tests::{sender, snapshot};
    use opentelemetry_proto::tonic::collector::metrics::v1 as official;
    use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyOfficial;
    use opentelemetry_proto::tonic::metrics::v1::metric::Data as DataOfficial;
    use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as NumberOfficial;

    /// Decoded by OpenTelemetry's own definitions.
    #[test]
    fn a_request_is_what_opentelemetry_defines() {
        let body = encode(&sender(), &snapshot(1_500, 7));
        let request = official::ExportMetricsServiceRequest::decode(body.as_slice()).unwrap();
        let [resource] = &request.resource_metrics[..] else { panic!("{request:?}") };
        let text = |value: &Option<opentelemetry_proto::tonic::common::v1::AnyValue>| match value {
            Some(any) => match &any.value {
                Some(AnyOfficial::StringValue(text)) => text.clone(),
                other => panic!("{other:?}"),
            },
            None => panic!("no value"),
        };
        let attributes: Vec<(String, String)> = resource
            .resource
            .as_ref()
            .unwrap()
            .attributes
            .iter()
            .map(|pair| (pair.key.clone(), text(&pair.value)))
            .collect();
        let expected = [
            ("service.name", "dyno"),
            ("service.version", "1.2"),
            ("service.instance.id", "h:r"),
            ("host.name", "h"),
            ("run", "r"),
            ("target", "redis://h"),
        ];
        assert_eq!(attributes, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        let [scope] = &resource.scope_metrics[..] else { panic!("{resource:?}") };
        assert_eq!(scope.scope.as_ref().unwrap().name, "dyno");
        let metric = |name: &str| scope.metrics.iter().find(|metric| metric.name == name).unwrap();
        let Some(DataOfficial::Sum(sum)) = &metric("dyno_operations_total").data else { panic!("no sum") };
        assert!(sum.is_monotonic);
        assert_eq!(sum.aggregation_temporality, 2);
        let [point] = &sum.data_points[..] else { panic!("{sum:?}") };
        assert_eq!(point.value, Some(NumberOfficial::AsDouble(7.0)));
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (1_000_000_000, 1_500_000_000));
        assert_eq!(
            (point.attributes[0].key.as_str(), text(&point.attributes[0].value)),
            ("phase", "load".into())
        );
        let Some(DataOfficial::Histogram(latency)) = &metric("dyno_service_seconds").data else {
            panic!("no histogram")
        };
        assert_eq!((metric("dyno_service_seconds").unit.as_str(), latency.aggregation_temporality), ("s", 2));
        let [point] = &latency.data_points[..] else { panic!("{latency:?}") };
        assert_eq!((point.count, point.sum), (7, Some(0.5)));
        assert_eq!(
            (&point.explicit_bounds[..], &point.bucket_counts[..]),
            (&[0.001, 0.1][..], &[5, 1, 1][..])
        );
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count, "as the specification asks");
        let Some(DataOfficial::Gauge(gauge)) = &metric("dyno_users").data else { panic!("no gauge") };
        assert_eq!(gauge.data_points[0].start_time_unix_nano, 0);
    }

    #[test]
    fn a_part_that_is_rejected_is_read() {
        let partial =
            official::ExportMetricsPartialSuccess { rejected_data_points: 3, error_message: "old".into() };
        let answer =
            official::ExportMetricsServiceResponse { partial_success: Some(partial) }.encode_to_vec();
        assert_eq!(rejected(&answer), Some((3, "old".into())));
        for fine in [&b""[..], b"\x0a\x00", b"<html>"] {
            assert_eq!(rejected(fine), None);
        }
    }
}
