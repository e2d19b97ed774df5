//! Application metrics of a catalogue: PromQL, asked of a Prometheus where there is one, and else evaluated on what dyno's own
//! monitors have recorded. The figures of each phase lie in the run's directory, in `application.json`.

use crate::catalogue::{Catalogue, FILE};
use crate::plan::config::{CatalogueMetric, MetricKind};
use crate::promql::{QueryError, Reduction, evaluate, has_window, is_rate};
use dyno_frontend::exit::Failure;
use dyno_frontend::{pages, terminal};
use dyno_monitor::prometheus::{Url, UrlError};
use dyno_rundir::monitor::{PhaseSpan, Recording};
use dyno_rundir::{ExperimentDir, RunDir};
use dyno_types::percent;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// Reasons for which a metric has no figure.
#[derive(Debug, thiserror::Error)]
enum NoFigure {
    /// The query cannot be answered by what was recorded.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Nothing was recorded, and there is no Prometheus.
    #[error("nothing was watched (-m, -mc, -ma)")]
    Unwatched,
    /// The query is about pods of another program.
    #[error("names bexhoma's pods, which are not there")]
    Pods,
    /// A Prometheus has no answer.
    #[error("{api}: {source}")]
    Prometheus {
        /// URL of its API.
        api: String,
        source: PrometheusFailure,
    },
}

/// Reasons for which a Prometheus has no answer.
#[derive(Debug, thiserror::Error)]
enum PrometheusFailure {
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It refuses the query, in its words.
    #[error("{0}")]
    Refused(String),
    #[error("{0} series: expected one, as sum makes it")]
    Series(usize),
    #[error("no sample lies in the phase")]
    Empty,
}

/// Keeps the metrics of a catalogue, and figures them out.
pub trait ApplicationMetrics {
    /// Says which windows of queries dyno does not keep to.
    fn of_the_whole_phase(&self) -> Option<String>;

    /// Keeps it with an experiment, if there is anything in it.
    fn keep(&self, experiment: &Path) -> Result<(), Failure>;

    /// Figures out everything for every run that has ended. What cannot be said, and why, is said once.
    fn figure(&self, experiment: &Path) -> Result<(), Failure>;
}

impl ApplicationMetrics for Catalogue {
    fn keep(&self, experiment: &Path) -> Result<(), Failure> {
        if self.price_per_hour.is_none() && self.metrics.is_empty() {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(self)?;
        pages::write(&experiment.join(FILE), &text)
    }

    fn of_the_whole_phase(&self) -> Option<String> {
        let has_window =
            |metric: &&CatalogueMetric| filled(&metric.query).is_ok_and(|query| has_window(&query));
        let count = self.metrics.iter().filter(has_window).count();
        (self.prometheus.is_none() && count > 0).then(|| {
            format!(
                "{count} of {} queries have a window, such as [5m]: without a Prometheus their rates and increases are those of \
                 the whole phase",
                self.metrics.len()
            )
        })
    }

    fn figure(&self, experiment: &Path) -> Result<(), Failure> {
        if self.metrics.is_empty() {
            return Ok(());
        }
        let dir = ExperimentDir::open(experiment)?;
        let mut reasons = BTreeSet::new();
        for ended in dir.runs.iter().filter(|run| run.status == "complete") {
            let path = experiment.join(&ended.dir);
            let run = RunDir::open(&path)?;
            let recording = Recording::open(&path)?;
            let mut phases = serde_json::Map::new();
            for phase in &run.phases {
                let Some(span) = run.phase_span(phase)? else { continue };
                let of = |metric: &CatalogueMetric| {
                    let value = value(self, metric, recording.as_ref(), span);
                    let why = value.as_ref().err().map(ToString::to_string);
                    reasons.extend(why.iter().map(|why| format!("{}: {why}", metric.title)));
                    json!({"title": metric.title, "value": value.ok(), "why": why})
                };
                phases.insert(phase.name.clone(), self.metrics.iter().map(of).collect());
            }
            let source = self.prometheus.clone().unwrap_or_else(|| "dyno".into());
            let text = json!({"source": source, "phases": phases}).to_string();
            pages::write(&path.join("application.json"), &text)?;
        }
        reasons.extend(self.of_the_whole_phase());
        for reason in reasons {
            terminal::note(&format!("note: {reason}"));
        }
        Ok(())
    }
}

fn value(
    catalogue: &Catalogue,
    metric: &CatalogueMetric,
    recording: Option<&Recording>,
    span: PhaseSpan,
) -> Result<f64, NoFigure> {
    let query = filled(&metric.query)?;
    match (&catalogue.prometheus, recording) {
        (Some(api), _) => asked(api, &query, metric.kind, span.boundaries())
            .map_err(|source| NoFigure::Prometheus { api: api.clone(), source }),
        (None, Some(recording)) => Ok(evaluate(&query, reduction(metric.kind), recording, span)?),
        (None, None) => Err(NoFigure::Unwatched),
    }
}

/// A query with its doubled braces made single; what would be filled in is not known here.
fn filled(query: &str) -> Result<String, NoFigure> {
    if !query.contains("{{") {
        return Ok(query.to_owned());
    }
    let bare = query.replace("{{", "\u{1}").replace("}}", "\u{2}");
    match bare.contains(['{', '}']) {
        true => Err(NoFigure::Pods),
        false => Ok(bare.replace('\u{1}', "{").replace('\u{2}', "}")),
    }
}

/// A query whose windows reach back over so many seconds; what stands in quotes stays.
fn over(query: &str, seconds: f64) -> String {
    let (mut out, mut quote, mut within) = (String::new(), None, false);
    for c in query.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => out.push_str(&format!("[{:.0}s", seconds.max(1.0))),
            _ => {}
        }
        within = quote.is_none() && c == '[' || within && c != ']';
        if !within {
            out.push(c);
        }
    }
    out
}

/// Returns what reduces a metric's values to a figure of a phase.
fn reduction(kind: MetricKind) -> Reduction {
    match kind {
        MetricKind::Counter => Reduction::Increase,
        MetricKind::Gauge => Reduction::Greatest,
        MetricKind::Ratio => Reduction::Mean,
    }
}

/// The figure of a phase by a Prometheus: of a rate or a ratio its mean, of other counters their increase, of gauges the
/// greatest value.
/// An increase is that over the phase, whatever its window.
fn asked(api: &str, query: &str, kind: MetricKind, (from, to): (f64, f64)) -> Result<f64, PrometheusFailure> {
    let grows = query.contains("increase(");
    let (query, start) = match grows {
        true => (&*over(query, (to - from) / 1e3), to),
        false => (query, from),
    };
    let escaped = percent::percent_encode(query, percent::RESERVED);
    let step = ((to - from) / 1e3 / 10_000.0).ceil().max(1.0);
    let url = format!(
        "{}/query_range?query={escaped}&start={:.3}&end={:.3}&step={step}",
        api.trim_end_matches('/'),
        start / 1e3,
        to / 1e3
    );
    let answer: Value = serde_json::from_slice(&Url::parse(&url)?.get()?)?;
    if answer["status"] != "success" {
        let message = answer["error"].as_str().unwrap_or("it does not answer the query");
        return Err(PrometheusFailure::Refused(message.to_owned()));
    }
    let series = answer["data"]["result"].as_array().map_or(&[][..], Vec::as_slice);
    let [series] = series else {
        return Err(PrometheusFailure::Series(series.len()));
    };
    let value = |point: &Value| point[1].as_str()?.parse::<f64>().ok().filter(|value| value.is_finite());
    let values: Vec<f64> = series["values"].as_array().into_iter().flatten().filter_map(value).collect();
    let step = |pair: &[f64]| if pair[1] >= pair[0] { pair[1] - pair[0] } else { pair[1] };
    let rate = is_rate(query);
    match (values.is_empty(), rate, kind) {
        (true, ..) => Err(PrometheusFailure::Empty),
        (false, ..) if grows => Ok(values[values.len() - 1]),
        (_, true, _) | (_, _, MetricKind::Ratio) => Ok(values.iter().sum::<f64>() / values.len() as f64),
        (_, _, MetricKind::Counter) => Ok(values.windows(2).map(step).sum()),
        _ => Ok(values.into_iter().fold(f64::NEG_INFINITY, f64::max)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    /// A Prometheus that answers one question; the question, once it has been asked.
    fn prometheus(answer: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let api = format!("http://{}/api/v1/", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).unwrap();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len());
            stream.write_all((head + answer).as_bytes()).unwrap();
            String::from_utf8_lossy(&request[..read]).into_owned()
        });
        (api, served)
    }

    #[test]
    fn windows_that_are_not_kept_to_are_told() {
        let metric = |query: &str| CatalogueMetric {
            name: query.into(),
            title: query.into(),
            query: query.into(),
            kind: MetricKind::Counter,
        };
        let mut catalogue = Catalogue {
            metrics: ["sum(x)", "sum(rate(x[5m]))"].map(metric).to_vec(),
            ..Catalogue::default()
        };
        let told = catalogue.of_the_whole_phase().unwrap();
        assert!(told.starts_with("1 of 2 queries have a window"), "{told}");
        // A Prometheus keeps to them.
        catalogue.prometheus = Some("http://127.0.0.1:9090/api/v1/".into());
        assert_eq!(catalogue.of_the_whole_phase(), None);
    }

    #[test]
    fn a_prometheus_is_asked_and_its_answer_reduced() {
        const FALLS: &str = r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},
            "values":[[1,"10"],[2,"40"],[3,"5"]]}]}}"#;
        let boundaries = (1_000.0, 3_000.0);
        for (query, kind, figure) in [
            ("sum(x)", MetricKind::Counter, 35.0),
            ("sum(x)", MetricKind::Gauge, 40.0),
            ("sum(x)", MetricKind::Ratio, 55.0 / 3.0),
            ("sum(rate(x[5m]))", MetricKind::Counter, 55.0 / 3.0),
        ] {
            let (api, served) = prometheus(FALLS);
            assert_eq!(asked(&api, query, kind, boundaries).unwrap(), figure, "{query}");
            let request = served.join().unwrap();
            assert!(request.starts_with("GET /api/v1/query_range?query=sum%28"), "{request}");
            assert!(request.contains("&start=1.000&end=3.000&step=1 "), "{request}");
        }
        // An increase is that of the whole phase, asked for at its end.
        let (api, served) = prometheus(
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[3,"70"]]}]}}"#,
        );
        let query = "sum(increase(x{pod=~\"a[0]\"}[5m]))";
        assert_eq!(asked(&api, query, MetricKind::Counter, boundaries).unwrap(), 70.0);
        let request = served.join().unwrap();
        assert!(request.contains("%22a%5B0%5D%22%7D%5B2s%5D%29%29&start=3.000&end=3.000&"), "{request}");
        for (answer, why) in [
            (r#"{"status":"error","error":"parse error"}"#, "parse error"),
            (r#"{"status":"success","data":{"result":[]}}"#, "0 series: expected one"),
            ("nonsense", "expected ident"),
        ] {
            let (api, served) = prometheus(answer);
            let error = asked(&api, "x", MetricKind::Gauge, boundaries).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
            served.join().unwrap();
        }
        assert!(asked("http://127.0.0.1:1/api/v1/", "x", MetricKind::Gauge, boundaries).is_err());
    }

    #[test]
    fn braces_of_templates() {
        assert_eq!(filled("sum(x{{a=\"b\"}})").unwrap(), "sum(x{a=\"b\"})");
        assert_eq!(filled("sum(x)").unwrap(), "sum(x)");
        assert!(
            filled("sum(x{{pod=~\"{configuration}\"}})").unwrap_err().to_string().contains("bexhoma's pods")
        );
    }
}
