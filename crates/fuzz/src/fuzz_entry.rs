//! What comes from servers, name servers and pods beside the load, and short texts that users write.

use dyno_analysis::Condition;
use dyno_compat_bexhoma::promql;
use dyno_config::template::{CommandLines, read_file_lines};
use dyno_databases::registry;
use dyno_db_mongodb::dns;
use dyno_engine::arrivals::Profile;
use dyno_engine::rates::text::ProfileSource;
use dyno_frontend::object_store::{read_refusal, relative_name};
use dyno_hosts::kubernetes::manifest_overrides::{read_objects as objects_of_a_file, unknown_keys};
use dyno_hosts::remote::relay;
use dyno_monitor::prometheus;
use dyno_rundir::monitor::{Kind, PhaseSpan, Recording};
use dyno_types::secret::mask_text;
use std::path::{Component, Path};

/// Frames of the relay of pods.
pub fn relay_frames(data: &[u8]) {
    let whole = relay::frames::reread(data).concat();
    assert_eq!(whole.as_slice(), &data[..whole.len()], "read as it is written");
}

/// Answers of name servers.
pub fn dns_answer(data: &[u8]) {
    let _ = (dns::read_services(data), dns::read_texts(data));
}

/// What an object store answers: a refusal, or a key (after a first line with the folder), which leads nowhere but into it.
pub fn store_answer(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let (code, message) = read_refusal(text);
    assert!(!(code + &message).chars().any(char::is_control));
    let Some((folder, key)) = text.split_once('\n') else { return };
    let Some(name) = relative_name(key, folder) else { return };
    assert_eq!(format!("{folder}/{name}"), key);
    assert!(Path::new(name).components().all(|part| matches!(part, Component::Normal(_))), "{name:?}");
}

/// An exporter's answer by HTTP: what is whole stays so, whatever follows.
pub fn http_answer(data: &[u8]) {
    let Ok(Some(body)) = prometheus::answer_body(data) else { return };
    assert!(body.len() <= data.len());
    let more = [data, b"x"].concat();
    assert_eq!(prometheus::answer_body(&more).expect("it was whole"), Some(body));
}

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// Sums of many roundings are not exact.
const NEARLY: f64 = 1.0 - 1e-9;

/// A rate over time: the first line is what is typed, the rest the file that it may name. What is read has an integral that never
/// falls, and an inverse of it.
pub fn rates(data: &[u8]) {
    let Some((typed, file)) = text(data).and_then(|text| text.split_once('\n')) else { return };
    let source = ProfileSource { seed: 1, file: &|_| Ok(file.to_owned()) };
    let Ok(profile) = Profile::parse(typed, &source) else { return };
    let mut before = 0.0;
    for ns in (0..40).map(|power| 1u64 << power) {
        let count = profile.count_at(ns);
        assert!(
            count >= before * NEARLY - 1e-6 && profile.rate_at(ns) > -1e-6,
            "{count} after {before} at {ns}"
        );
        before = count;
    }
    let mut at = 0.0;
    for count in (0..20).map(|power| f64::from(1 << power)) {
        let due = profile.time_of(count);
        assert!(due >= at * NEARLY, "{due} after {at} for {count}");
        at = due;
    }
}

/// Commands one a line.
pub fn command_lines(data: &[u8]) {
    let Some(all) = text(data).and_then(|text| read_file_lines(text).ok()) else { return };
    let ratio: Vec<f64> = all.iter().map(|one| one.weight).collect();
    let numbers: Vec<usize> = all.iter().map(|one| one.number).collect();
    let lines: Vec<String> = all.into_iter().map(|one| one.line).collect();
    let lines =
        CommandLines { lines: &lines, ratio: &ratio, numbers: Some(&numbers), keys: 10, data: None, seed: 1 };
    if let Ok(mix) = lines.parse() {
        assert!(mix.check().is_ok(), "what is read can be run");
    }
}

/// Objects of Kubernetes that a user brings.
pub fn manifests(data: &[u8]) {
    if let Some(text) = text(data) {
        for object in objects_of_a_file(text).unwrap_or_default() {
            let _ = unknown_keys(&object);
        }
    }
}

/// URIs of targets: a password of those that are masked is not shown.
pub fn uri(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = registry::parse(text);
    let once = mask_text(text);
    assert_eq!(mask_text(&once), once, "masked twice is masked once");
    // Whatever stands around a login, its password goes.
    let Some((before, after)) = text.split_once('\n').filter(|_| !text.contains(MARK)) else { return };
    let whole = format!("{before} redis://me:{MARK}@h:1/{after}");
    assert!(!mask_text(&whole).contains(MARK), "{whole}");
}

/// A password that nothing else holds.
const MARK: &str = "pLanTed7";

/// A condition on a run.
pub fn threshold(data: &[u8]) {
    let _ = text(data).map(Condition::parse);
}

/// A query of a catalogue of metrics.
pub fn promql(data: &[u8]) {
    let Some(query) = text(data) else { return };
    let mut recording = Recording::new();
    for second in 0..5 {
        let at = f64::from(second) * 1_000.0;
        recording.push(
            "database",
            at,
            [("operations", Kind::Counter, at), ("memory_bytes", Kind::Gauge, 1.0)],
        );
    }
    let _ = promql::is_rate(query);
    let found =
        promql::evaluate(query, promql::Reduction::Increase, &recording, PhaseSpan::only(0.0, 4_000.0));
    assert!(found.is_err() || found.is_ok_and(|value| value.is_finite()), "a figure, or none");
}
