//! `--remote-write` and `--otlp`: live metrics that are sent, what is said where no receiver takes them, and what is refused.

use dyno_testkit::{Dyno, assert_exit, stderr, stdout};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyValue;
use opentelemetry_proto::tonic::metrics::v1::NumberDataPoint;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as NumberValue;
use prost::Message;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};

/// Heads and bodies.
type Requests = mpsc::Receiver<(String, Vec<u8>)>;

/// Answers every request with `answer`.
fn receiver(answer: &'static str) -> (String, Requests) {
    let (address, requests) = serve(answer, |stream| stream);
    (format!("http://{address}"), requests)
}

fn serve<S: Read + Write + Send + 'static>(
    answer: &'static str,
    wrap: impl Fn(TcpStream) -> S + Send + 'static,
) -> (SocketAddr, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (told, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let told = told.clone();
            let mut reader = BufReader::new(wrap(stream.unwrap()));
            std::thread::spawn(move || {
                loop {
                    let (mut head, mut line) = (String::new(), String::new());
                    while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                        head.push_str(&std::mem::take(&mut line));
                    }
                    let length = head.lines().find_map(|line| {
                        line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok()
                    });
                    let Some(length) = length else { return };
                    let mut body = vec![0; length];
                    reader.read_exact(&mut body).unwrap();
                    reader.get_mut().write_all(answer.as_bytes()).unwrap();
                    let _ = told.send((head, body));
                }
            });
        }
    });
    (address, requests)
}

/// Operations of an OTLP request by phase, metric and outcome, decoded by OpenTelemetry's own definitions.
fn operations(body: &[u8]) -> BTreeMap<Vec<String>, f64> {
    let request = ExportMetricsServiceRequest::decode(body).unwrap();
    let metrics = request.resource_metrics.iter().flat_map(|resource| &resource.scope_metrics);
    let mut metrics = metrics.flat_map(|scope| &scope.metrics);
    let metric = metrics.find(|metric| metric.name == "dyno_operations_total").unwrap();
    let Some(Data::Sum(sum)) = &metric.data else { panic!("{metric:?}") };
    let labels = |point: &NumberDataPoint| -> Vec<String> {
        let value = |pair: &KeyValue| match pair.value.as_ref().and_then(|any| any.value.clone()) {
            Some(AnyValue::StringValue(text)) => text,
            other => panic!("{other:?}"),
        };
        point.attributes.iter().map(value).collect()
    };
    let point = |point: &NumberDataPoint| match point.value {
        Some(NumberValue::AsDouble(value)) => {
            assert!(0 < point.start_time_unix_nano && point.start_time_unix_nano <= point.time_unix_nano);
            (labels(point), value)
        }
        other => panic!("{other:?}"),
    };
    sum.data_points.iter().map(point).filter(|(_, value)| *value > 0.0).collect()
}

/// The same of a summary.
fn of_summary(summary: &Value) -> BTreeMap<Vec<String>, f64> {
    let mut all = BTreeMap::new();
    for phase in summary["phases"].as_array().unwrap() {
        for metric in phase["metrics"].as_array().unwrap() {
            for (outcome, count) in metric["outcomes"].as_object().unwrap() {
                let word = |value: &Value| value.as_str().unwrap().to_owned();
                let key = vec![word(&phase["name"]), word(&metric["name"]), outcome.clone()];
                all.insert(key, count.as_f64().unwrap());
            }
        }
    }
    all
}

const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const UNKNOWN: &str = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 7\r\n\r\nno user";
const NULL: [&str; 7] = ["run", "null:", "--records", "100", "--ops", "20000", "-q"];

#[test]
fn a_token_is_sent_and_never_shown() {
    let dyno = Dyno::new();
    let (url, requests) = receiver(UNKNOWN);
    std::fs::write(dyno.path("token"), "Authorization: Bearer hidden-word-of-this-test\n").unwrap();
    let args = ["--out", "r", "--remote-write", &url, "--remote-write-headers", "file:token", "-v"];
    let null = ["run", "null:", "--records", "100", "--rate", "1000", "--duration", "3s", "-q"];
    let run = dyno.run(&[&null[..], &args].concat());
    dyno.assert_ran(&run);
    let (head, _) = requests.recv().unwrap();
    assert!(head.starts_with("POST /api/v1/write HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains("authorization: bearer hidden-word-of-this-test\r\n"), "{head}");
    let said = stderr(&run);
    let message = format!("--remote-write {url}/api/v1/write: answered 401 Unauthorized: no user");
    assert_eq!(said.matches(&format!("{message}; the run goes on")).count(), 1, "told once: {said}");
    let lost = said.lines().find(|line| line.contains("pushes were lost; first: answered 401")).unwrap();
    let words: Vec<&str> = lost.split(' ').collect();
    let of = words.iter().position(|word| *word == "of").unwrap();
    assert!(words[of - 1] == words[of + 1] && words[of - 1] != "0", "{lost}");
    let mut texts = vec![said.clone(), stdout(&run)];
    for entry in std::fs::read_dir(dyno.path("r")).unwrap() {
        let path = entry.unwrap().path();
        texts.push(String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).into_owned());
    }
    assert!(texts.iter().all(|text| !text.contains("hidden-word-of-this-test")));
}

#[test]
fn both_receivers_get_every_phase_and_the_run_is_the_same() {
    let dyno = Dyno::new();
    let (remote, writes) = receiver(FINE);
    let (otlp, pushes) = receiver(FINE);
    let run =
        dyno.run(&[&NULL[..], &["--no-out", "--json", "--remote-write", &remote, "--otlp", &otlp]].concat());
    dyno.assert_ran(&run);
    assert!(!stderr(&run).contains("push"), "{}", stderr(&run));
    let has = |body: &[u8], word: &str| body.windows(word.len()).any(|part| part == word.as_bytes());
    let pushes: Vec<_> = pushes.try_iter().collect();
    assert!(pushes.iter().all(|(head, _)| head.starts_with("POST /v1/metrics HTTP/1.1\r\n")));
    let last = &pushes.last().unwrap().1;
    let summary: Value = serde_json::from_str(&stdout(&run)).unwrap();
    assert_eq!(operations(last), of_summary(&summary), "counts are those of the summary");
    for word in ["dyno_operations_total", "dyno_response_seconds", "measure", "service.name", "null:"] {
        assert!(has(last, word), "{word}");
    }
    assert!(writes.try_iter().count() > pushes.len(), "and one that ends all series");
}

#[test]
fn an_absent_receiver_changes_neither_figures_nor_the_exit_code() {
    let dyno = Dyno::new();
    let sim = ["run", "sim:?service=100us", "-u", "2", "--ops", "20000", "--json", "-q"];
    let plain = dyno.run(&[&sim[..], &["--no-out"]].concat());
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{closed}/write");
    let pushed = dyno.run(&[&sim[..], &["--no-out", "--remote-write", &url]].concat());
    assert_exit(&plain, &[0]);
    assert_exit(&pushed, &[0]);
    let said = stderr(&pushed);
    assert!(said.contains(&format!("--remote-write {url}: no answer: ")), "{said}");
    assert!(said.contains("pushes were lost"), "{said}");
    let figures = |output: &std::process::Output| {
        let summary: serde_json::Value = serde_json::from_str(&stdout(output)).unwrap();
        let phase = &summary["phases"][0];
        (phase["outcomes"].clone(), phase["metrics"].clone(), summary["verdict"]["trust"].clone())
    };
    assert_eq!(figures(&plain), figures(&pushed));
}

#[test]
fn an_experiment_says_which_run_it_is() {
    let dyno = Dyno::new();
    let text = "target: 'null:'\nworkload: {ycsb: {records: 100}}\nfactors: {users: [1, 2]}\norder: file\n\
                phases: {measure: {operations: 20000}}\n";
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    let (url, pushes) = receiver(FINE);
    let run = dyno.run(&["run", "x.yaml", "--out", "e", "-q", "--otlp", &url]);
    assert_exit(&run, &[0, 5]);
    let bodies: Vec<Vec<u8>> = pushes.try_iter().map(|(_, body)| body).collect();
    for cell in ["1", "2"] {
        // KeyValue { key: "cell", value: { string_value: "1" } }
        let label = [&b"\x0a\x04cell\x12\x03\x0a\x01"[..], cell.as_bytes()].concat();
        assert!(bodies.iter().any(|body| body.windows(label.len()).any(|part| part == label)), "{cell}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused_before_the_run() {
    let dyno = Dyno::new();
    std::fs::write(dyno.path("bad"), "a: b\nword-without-a-name\n").unwrap();
    for (args, message) in [
        (&["--otlp", "127.0.0.1:4318"][..], "--otlp 127.0.0.1:4318: expected http://HOST:PORT/PATH"),
        (&["--remote-write", "http://me:pw@h"], "--remote-write http://me:***@h: has a login"),
        (&["--push-interval", "2s"], "--push-interval 2s: goes with --remote-write or --otlp"),
        (&["--otlp", "http://h", "--push-interval", "0.1s"], "--push-interval 0.1s: expected 1s to 1h"),
        (&["--otlp", "http://h", "--otlp-headers", "env:NO_SUCH_NAME"], "--otlp-headers: env:NO_SUCH_NAME: "),
        (
            &["--otlp", "http://h", "--otlp-headers", "file:bad"],
            "--otlp-headers: file:bad: line 2: expected `Name: value`",
        ),
        (&["--otlp", "http://h", "--otlp-headers", "word"], "expected env:NAME or file:PATH"),
        (&["--otlp-headers", "env:X"], "--otlp <URL>"),
    ] {
        let run = dyno.run(&[&NULL[..], &["--out", "r"], args].concat());
        assert_exit(&run, &[2]);
        assert!(stderr(&run).contains(message), "{message}: {}", stderr(&run));
        assert!(!stderr(&run).contains("word-without-a-name") && !dyno.path("r").exists());
    }
}

#[test]
fn tls_trusts_whom_the_host_trusts() {
    let dyno = Dyno::new();
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(dyno.path("ca.pem"), own.cert.pem()).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.unwrap().with_no_client_auth().with_single_cert(vec![own.cert.der().clone()], key);
    let config = Arc::new(config.unwrap());
    let (address, requests) = serve(FINE, move |stream| {
        rustls::StreamOwned::new(rustls::ServerConnection::new(config.clone()).unwrap(), stream)
    });
    let url = format!("https://localhost:{}", address.port());
    let args = [&NULL[..], &["--no-out", "--otlp", &url]].concat();
    let run = |certificates: &str| {
        dyno.command(&args).env("SSL_CERT_FILE", dyno.path(certificates)).output().unwrap()
    };
    let trusted = run("ca.pem");
    dyno.assert_ran(&trusted);
    assert!(!stderr(&trusted).contains("--otlp"), "{}", stderr(&trusted));
    assert!(requests.try_iter().count() > 0);
    std::fs::write(dyno.path("other.pem"), "").unwrap();
    let refused = run("other.pem");
    dyno.assert_ran(&refused);
    assert!(
        stderr(&refused).contains(&format!("--otlp {url}/v1/metrics: no answer: ")),
        "{}",
        stderr(&refused)
    );
    assert_eq!(requests.try_iter().count(), 0);
}
