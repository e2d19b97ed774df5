//! Tests of what a summary says of itself.

use super::*;

#[test]
fn a_caller_waits_for_failures_too_where_there_are_some() {
    let latency = |mean_us: f64| Latency {
        count: 1,
        mean_us,
        min_us: None,
        max_us: None,
        percentiles_us: BTreeMap::new(),
        intervals_us: BTreeMap::new(),
    };
    let metric: Metric = serde_json::from_str(r#"{"name": "READ", "outcomes": {}}"#).unwrap();
    assert_eq!((metric.arrival_service(), metric.arrival_response()), (None, None));
    let well = Metric { service: Some(latency(1.0)), response: Some(latency(2.0)), ..metric };
    assert_eq!(
        (well.arrival_service(), well.arrival_response()),
        (well.service.as_ref(), well.response.as_ref())
    );
    let some = Metric { all_service: Some(latency(3.0)), all_response: Some(latency(4.0)), ..well };
    assert_eq!(
        (some.arrival_service(), some.arrival_response()),
        (some.all_service.as_ref(), some.all_response.as_ref())
    );
}

#[test]
fn the_measured_phase_is_that_of_its_name_or_else_the_last_one() {
    let of = |names: &[&str]| {
        let phases: Vec<_> = names.iter().map(|name| crate::fixtures::empty_phase(name, 1.0)).collect();
        crate::fixtures::empty_summary(&phases).measured_phase().map(|phase| phase.name.clone())
    };
    assert_eq!(of(&["load", "measure", "warmup"]).as_deref(), Some("measure"));
    assert_eq!((of(&["load", "warmup"]).as_deref(), of(&[])), (Some("warmup"), None));
    // What was cut off in its load has measured nothing.
    for status in [Status::Interrupted, Status::Running, Status::Failed] {
        let of = |names: &[&str]| {
            let phases: Vec<_> = names.iter().map(|name| crate::fixtures::empty_phase(name, 1.0)).collect();
            let summary = Summary { status, ..crate::fixtures::empty_summary(&phases) };
            summary.measured_phase().map(|phase| phase.name.clone())
        };
        assert_eq!(
            (of(&["load"]), of(&["load", "measure"]).as_deref()),
            (None, Some("measure")),
            "{status:?}"
        );
    }
}

#[test]
fn the_schema_is_a_document_that_ends_its_last_line() {
    let text = summary_schema();
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&schema["title"], &schema["properties"]["phases"]["type"]),
        (&"Summary".into(), &"array".into())
    );
    assert!(text.ends_with("}\n"));
}

#[test]
fn what_is_not_known_of_a_machine_is_not_written() {
    let text = serde_json::to_string(&Environment::default()).unwrap();
    assert!(!text.contains("memory_bytes") && !text.contains("clock_ns"), "{text}");
    let known = Environment { memory_bytes: 8, clock_ns: 20, ..Environment::default() };
    let text = serde_json::to_string(&known).unwrap();
    assert!(text.contains("\"memory_bytes\":8") && text.contains("\"clock_ns\":20"), "{text}");
    let used = OthersUse {
        cpu_cores: 1.2,
        programs: [("rustc", 0.2), ("stress-ng", 0.964), ("cc1", 0.05)]
            .map(|(name, cores)| (name.to_owned(), cores))
            .into(),
    };
    assert_eq!(used.describe_programs(), "stress-ng 0.96 cores, rustc 0.20, cc1 0.05");
}

#[test]
fn documents_a_second_where_operations_write_several() {
    let load = |seconds: f64, documents: Option<u64>| -> Phase {
        serde_json::from_value(serde_json::json!({
            "name": "load", "seconds": seconds, "arrivals": 10, "outcomes": {"ok": 10}, "throughput": 2.5, "metrics": [],
            "documents": documents, "late_replies": 0, "reconnects": 0, "redirects": 0, "backlog": 0, "drops": {},
            "errors": {}, "client": {"pipeline": 1, "busy_share": null, "pinned": true, "steal_share": 0.0},
        }))
        .unwrap()
    };
    // 1000 documents in 4 seconds; without documents, or without a time, operations.
    assert_eq!(load(4.0, Some(1_000)).written_per_s(), 250.0);
    assert_eq!(load(4.0, None).written_per_s(), 2.5);
    assert_eq!(load(0.0, Some(1_000)).written_per_s(), 2.5);
    // Figures that are not known are not written, and what says nothing of batches had none.
    let client = load(4.0, None).client;
    let text = serde_json::to_string(&client).unwrap();
    assert_eq!(client.batch, 1);
    assert!(!text.contains("threads") && !text.contains("user_cpu_s") && !text.contains("peak"), "{text}");
    let known = Client { threads: 3, user_cpu_s: 1.5, peak_resident_bytes: 7, ..client };
    let text = serde_json::to_string(&known).unwrap();
    assert!(text.contains("\"threads\":3") && text.contains("\"user_cpu_s\":1.5"), "{text}");
    assert!(text.contains("\"peak_resident_bytes\":7"), "{text}");
}
