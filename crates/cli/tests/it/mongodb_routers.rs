//! Several routers (mongos) in one URI, played by scripts: one that is down when a run begins, comes back, or goes away.

use dyno_testkit::fake_mongo::{Script, cursor, error, hang_up, serve, serve_on};
use dyno_testkit::{Dyno, arrivals, assert_exit, free_port, outcome, phase, stderr};
use dyno_types::bson;
use serde_json::Value;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A router that counts finds, and hangs up on everything while it is away.
#[derive(Clone, Default)]
struct Router {
    finds: Arc<AtomicU64>,
    hung_up: Arc<AtomicU64>,
    away: Arc<AtomicBool>,
}

impl Router {
    fn script(&self) -> Script {
        let Router { finds, hung_up, away } = self.clone();
        Arc::new(move |command, out| match command.name().as_str() {
            _ if away.load(Ordering::Relaxed) => {
                hung_up.fetch_add(1, Ordering::Relaxed);
                hang_up(out);
            }
            "hello" | "isMaster" => {
                bson::put_boolean(out, "ismaster", true);
                bson::put_string(out, "msg", "isdbgrid");
                bson::put_int32(out, "maxWireVersion", 21);
                bson::put_double(out, "ok", 1.0);
            }
            "find" => {
                finds.fetch_add(1, Ordering::Relaxed);
                cursor(0, "firstBatch", 1, out);
            }
            name => error(59, &format!("no such command: {name}"), out),
        })
    }

    fn serve(&self) -> String {
        serve(|_| self.script())
    }

    fn found(&self) -> u64 {
        self.finds.load(Ordering::Relaxed)
    }
}

fn run(dyno: &Dyno, uri: &str, more: &[&str]) -> Output {
    let reads = ["--no-load", "--records", "100", "--workload", "c", "--out", "d"];
    dyno.run(&[&["run", uri][..], &reads, more].concat())
}

fn json(dyno: &Dyno, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(dyno.path("d").join(name)).unwrap()).unwrap()
}

#[test]
fn a_router_that_is_down_is_left_out_and_named() {
    let router = Router::default();
    let (up, down) = (router.serve(), format!("127.0.0.1:{}", free_port()));
    // Whichever comes first.
    for uri in [format!("mongodb://{up},{down}/t"), format!("mongodb://{down},{up}/t")] {
        let dyno = Dyno::new();
        let output = run(&dyno, &uri, &["--ops", "300"]);
        dyno.assert_ran(&output);
        let summary = dyno.summary("d");
        assert_eq!(outcome(phase(&summary, "measure"), "ok"), 300, "{summary}");
        let message = format!("{down}: connection refused");
        let reasons = summary["verdict"]["reasons"].as_array().unwrap();
        let reason = reasons.iter().find(|reason| reason["check"] == "target").expect("a reason");
        assert!(reason["text"].as_str().unwrap().contains(&message), "{reason}");
        assert!(json(&dyno, "run.json")["facts"]["routers_down"].as_str().unwrap().contains(&message));
        let events = std::fs::read_to_string(dyno.path("d/events.jsonl")).unwrap();
        assert!(events.contains(&format!("routers that do not answer: {message}")), "{events}");
        assert!(stderr(&output).contains(&message), "{}", stderr(&output));
    }
    assert_eq!(router.found(), 600);
    // A name that leads nowhere is a router that is down, too.
    let dyno = Dyno::new();
    dyno.assert_ran(&run(&dyno, &format!("mongodb://nowhere.invalid,{up}/t"), &["--ops", "100"]));
    assert_eq!(outcome(phase(&dyno.summary("d"), "measure"), "ok"), 100);
    let dyno = Dyno::new();
    let none = run(&dyno, &format!("mongodb://{down},127.0.0.1:1/t"), &["--ops", "100"]);
    assert_exit(&none, &[3]);
    assert!(stderr(&none).contains(&down) && stderr(&none).contains("127.0.0.1:1"), "{}", stderr(&none));
}

#[test]
fn a_router_that_comes_back_is_used() {
    let (there, later) = (Router::default(), Router::default());
    let port = free_port();
    let uri = format!(
        "mongodb://{},127.0.0.1:{port}/t?heartbeatFrequencyMS=500&localThresholdMS=1000",
        there.serve()
    );
    let back = later.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1_500));
        serve_on(port, |_| back.script());
    });
    let dyno = Dyno::new();
    dyno.assert_ran(&run(&dyno, &uri, &["--rate", "200", "--connections", "4", "--duration", "5s"]));
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    assert_eq!(outcome(measured, "ok"), arrivals(measured), "{measured}");
    // Half of the load of some two seconds or more.
    assert!(later.found() > 100 && there.found() > 500, "{} {}", later.found(), there.found());
}

#[test]
fn a_router_that_goes_away_is_passed_over_until_it_answers() {
    let (stays, goes) = (Router::default(), Router::default());
    let uri = format!(
        "mongodb://{},{}/t?heartbeatFrequencyMS=500&localThresholdMS=1000",
        stays.serve(),
        goes.serve()
    );
    let away = goes.clone();
    std::thread::spawn(move || {
        while away.found() == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(1_000));
        away.away.store(true, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(1_500));
        away.finds.store(0, Ordering::Relaxed);
        away.away.store(false, Ordering::Relaxed);
    });
    let dyno = Dyno::new();
    dyno.assert_ran_but(
        &run(&dyno, &uri, &["--rate", "400", "--connections", "4", "--duration", "6s"]),
        dyno_testkit::OF_A_LOST_SERVER,
    );
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    let all = arrivals(measured);
    let lost = all - outcome(measured, "ok");
    // What was under way there is lost, and a few that came upon a connection that was tried again; not every second one, and
    // none where its check notices first.
    let hung_up = goes.hung_up.load(Ordering::Relaxed);
    assert!(lost <= 60 && hung_up > 0, "{lost} of {all}, {hung_up} hung up: {measured}");
    assert!(goes.found() > 100, "{} after it has come back", goes.found());
}

#[test]
fn what_is_no_router_is_refused_beside_one() {
    let router = Router::default().serve();
    let single = serve(|me| -> Script {
        Arc::new(move |command, out| match command.name().as_str() {
            "hello" | "isMaster" => dyno_testkit::fake_mongo::hello(&me, &[], &me, out),
            name => error(59, &format!("no such command: {name}"), out),
        })
    });
    let output = run(&Dyno::new(), &format!("mongodb://{router},{single}/t"), &["--ops", "100"]);
    assert_exit(&output, &[3]);
    assert!(stderr(&output).contains(&format!("{single} is no router")), "{}", stderr(&output));
}
