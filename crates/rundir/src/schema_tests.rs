//! What a summary says of itself.

use super::*;

fn reason(check: &str, trust: Trust) -> Reason {
    Reason { check: check.into(), trust, text: String::new() }
}

#[test]
fn a_verdict_names_what_takes_trust_away() {
    let reasons =
        vec![reason("note", Trust::Valid), reason("lag", Trust::Suspect), reason("errors", Trust::Invalid)];
    let verdict = Verdict { trust: Trust::Invalid, reasons, checks: Vec::new() };
    assert!(verdict.says("lag") && verdict.says("errors"));
    assert!(!verdict.says("note") && !verdict.says("drops"));
    assert_eq!(verdict.worst().map(|reason| reason.check.as_str()), Some("errors"));
    let noted = vec![reason("note", Trust::Valid)];
    assert_eq!(Verdict { trust: Trust::Valid, reasons: noted, checks: Vec::new() }.worst(), None);
    assert_eq!(
        [Trust::Valid, Trust::Suspect, Trust::Invalid].map(Trust::word),
        ["note", "suspect", "invalid"]
    );
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
