//! Runs whose truth a generator has drawn: what the commands say of them is held against it. Parameters are random, so that
//! nothing can be tuned to them; the seed is fixed, so that a failure can be repeated (`DYNO_KNOWN_ANSWERS=SEED` draws others).

use dyno_testkit::{Dyno, assert_exit, stdout};
use dyno_types::rng::{Purpose, Stream};
use serde_json::Value;

/// A false sentence, or a true one that is missing.
type Wrong = Option<String>;

struct Drawn {
    random: Stream,
    dyno: Dyno,
    number: usize,
}

impl Drawn {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.random.next_unit()
    }

    fn whole(&mut self, low: u64, high: u64) -> u64 {
        low + self.random.next_below(high - low + 1)
    }

    /// A server of one place, exponential service times of this mean, and what else is given.
    fn target(&mut self, service_us: f64, more: &str) -> String {
        let seed = self.whole(1, 1_000_000);
        format!("sim:?service={service_us:.0}us&distribution=exponential&seed={seed}{more}")
    }

    fn out(&mut self) -> String {
        self.number += 1;
        format!("r{}", self.number)
    }

    /// A run; its directory, summary and the reasons against it, by check.
    fn run(&mut self, target: &str, load: &str, length_s: u64) -> (String, Value, Vec<(String, String)>) {
        let (out, length) = (self.out(), format!("{length_s}s"));
        let common = ["run", target, "--duration", &length, "--warmup", "0s", "--quiet", "--out", &out];
        let load: Vec<&str> = load.split(' ').collect();
        assert_exit(&self.dyno.run(&[&common[..], &load].concat()), &[0, 5]);
        let summary = self.dyno.summary(&out);
        let reasons = summary["verdict"]["reasons"].as_array().unwrap().iter();
        let against = reasons.filter(|reason| reason["trust"] != "valid");
        let word = |reason: &Value, key: &str| reason[key].as_str().unwrap().to_owned();
        let reasons = against.map(|reason| (word(reason, "check"), word(reason, "text"))).collect();
        (out, summary, reasons)
    }
}

fn throughput(summary: &Value) -> f64 {
    summary["phases"].as_array().unwrap().last().unwrap()["throughput"].as_f64().unwrap()
}

fn told(reasons: &[(String, String)], check: &str, message: &str) -> Wrong {
    let found = reasons.iter().any(|(name, text)| name == check && text.contains(message));
    (!found).then(|| format!("{check} with {message:?} is missing: {reasons:?}"))
}

/// Users who always wait: one a service time is done, and nothing is wrong.
fn steady(drawn: &mut Drawn) -> Wrong {
    let (service_us, users, length_s) =
        (drawn.between(500.0, 3_000.0), drawn.whole(1, 16), drawn.whole(40, 120));
    let target = drawn.target(service_us, "");
    let (out, summary, reasons) = drawn.run(&target, &format!("--users {users}"), length_s);
    let (found, true_rate) = (throughput(&summary), 1e6 / service_us.round());
    let sure = 4.0 / (true_rate * length_s as f64).sqrt();
    let explained = stdout(&drawn.dyno.run(&["explain", &out]));
    if (found / true_rate - 1.0).abs() > sure {
        return Some(format!("{found} for {true_rate}"));
    }
    if !reasons.is_empty() {
        return Some(format!("{target}, {users} users, {length_s} s: {reasons:?}"));
    }
    (!explained.contains("throughput: steady")).then_some(explained)
}

/// A server that stands still once.
fn silence(drawn: &mut Drawn) -> Wrong {
    let length_s = drawn.whole(30, 90);
    let (from_ms, still_ms) = (drawn.whole(3_000, length_s * 1_000 - 8_000), drawn.whole(1_000, 5_000));
    let service_us = drawn.between(500.0, 3_000.0);
    let target = drawn.target(service_us, &format!("&stall={still_ms}ms@{from_ms}ms"));
    let load = if drawn.random.next_unit() < 0.5 { "--users 8" } else { "--rate 200" };
    let (_, summary, reasons) = drawn.run(&target, load, length_s);
    let silences =
        summary["phases"].as_array().unwrap().last().unwrap()["silences"].as_array().unwrap().clone();
    let [one] = &silences[..] else { return Some(format!("{target}, {load}: {silences:?}")) };
    let of = |key: &str| one[key].as_f64().unwrap() * 1e3;
    // From when a user waits: within a few service times, or gaps between arrivals at 200/s.
    let near = |found: f64, truth: u64| (found - truth as f64).abs() < 60.0;
    if !near(of("from_s"), from_ms) || !near(of("length_s"), still_ms) {
        return Some(format!("{one} for {still_ms} ms at {from_ms} ms"));
    }
    told(&reasons, "gone", "nothing succeeded for")
}

/// One to three parts at 60 % of the level.
fn dips(drawn: &mut Drawn) -> Wrong {
    let count = drawn.whole(1, 3);
    let mut at = drawn.whole(8, 16);
    let mut parts = Vec::new();
    for _ in 0..count {
        let length = drawn.whole(8, 15);
        parts.push((at, at + length));
        at += length + drawn.whole(12, 20);
    }
    let stalls: String = parts
        .iter()
        .flat_map(|(from, to)| *from..*to)
        .map(|second| format!("&stall=400ms@{second}s"))
        .collect();
    let target = drawn.target(1_000.0, &stalls);
    let (_, _, reasons) = drawn.run(&target, "--users 8", at + 10);
    let words = parts.iter().map(|(from, to)| format!("from {from} to {to} s"));
    words.filter_map(|message| told(&reasons, "level", &message)).next()
}

/// Service times that grow, at a rate that is kept all the same.
fn growth(drawn: &mut Drawn) -> Wrong {
    let share = drawn.between(0.02, 0.08);
    let target = drawn.target(1_000.0, &format!("&capacity=64&growth={share:.3}"));
    let length_s = drawn.whole(50, 90);
    let (_, _, reasons) = drawn.run(&target, "--rate 500", length_s);
    let quiet =
        reasons.iter().find(|(check, _)| ["level", "drift", "gone", "stalls"].contains(&check.as_str()));
    quiet.map(|reason| format!("{reason:?}")).or(told(&reasons, "response_level", "drifts by +"))
}

/// Two servers, six runs of each: as far apart as they were made.
fn pair(drawn: &mut Drawn) -> Wrong {
    let factors = [1.0, 0.8, 0.9, 1.12, 1.25];
    let factor = factors[drawn.whole(0, 4) as usize];
    let service_us = drawn.between(500.0, 2_000.0);
    let sides = [drawn.out(), drawn.out()];
    for (side, service_us) in sides.iter().zip([service_us, service_us * factor]) {
        for number in 0..6 {
            let target = drawn.target(service_us, "");
            let (run, ..) = drawn.run(&target, "--users 4", 20);
            std::fs::create_dir_all(drawn.dyno.path(side)).unwrap();
            std::fs::rename(drawn.dyno.path(&run), drawn.dyno.path(&format!("{side}/{number}"))).unwrap();
        }
    }
    let output = drawn.dyno.run(&["compare", &sides[0], &sides[1], "--json"]);
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let throughput = &found[0]["figures"][0];
    let ratio = &throughput["ratio"];
    let (low, high) = (ratio["low"].as_f64().unwrap(), ratio["high"].as_f64().unwrap());
    let wanted = match factor {
        1.0 => "same",
        slower if slower > 1.0 => "worse",
        _ => "better",
    };
    let holds = (low..=high).contains(&(1.0 / factor));
    (throughput["conclusion"] != wanted).then(|| format!("{factor}: {throughput}, holds: {holds}"))
}

/// A ladder of users on several places: the best level is what they can do, and is reached with as many users.
fn ladder(drawn: &mut Drawn) -> Wrong {
    let (places, service_us) = (drawn.whole(2, 8), drawn.between(2_000.0, 6_000.0));
    let out = drawn.out();
    let target = drawn.target(service_us, &format!("&capacity={places}"));
    let text = format!(
        "target: '{target}'\nfactors: {{phases.measure.users: [1, 2, 4, 8, 16, 32]}}\nrepetitions: 2\n\
         phases: {{measure: {{duration: 30s, warmup: 0s}}}}\n"
    );
    std::fs::write(drawn.dyno.path("ladder.yaml"), text).unwrap();
    assert_exit(&drawn.dyno.run(&["run", "ladder.yaml", "--out", &out, "--quiet"]), &[0]);
    let told = drawn.dyno.run(&["explain", &out, "--json"]);
    let found: Value = serde_json::from_str(&stdout(&told)).unwrap();
    let levels = found["sweeps"][0]["sweep"]["levels"].as_array().unwrap().clone();
    let best = levels.iter().filter_map(|level| level["throughput"].as_f64()).fold(0.0, f64::max);
    let truth = places as f64 * 1e6 / service_us.round();
    ((best / truth - 1.0).abs() > 0.03).then(|| format!("{best} for {truth} on {target}: {levels:?}"))
}

/// The seed of what is drawn.
pub fn seed() -> u64 {
    std::env::var("DYNO_KNOWN_ANSWERS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[test]
fn what_is_said_of_drawn_runs_is_true() {
    let mut drawn = Drawn { random: Stream::new(seed(), 0, Purpose::Choice), dyno: Dyno::new(), number: 0 };
    let kinds: [(fn(&mut Drawn) -> Wrong, usize); 6] =
        [(steady, 6), (silence, 6), (dips, 5), (growth, 3), (pair, 3), (ladder, 2)];
    let (mut all, mut wrong) = (0, Vec::new());
    for (kind, count) in kinds {
        for _ in 0..count {
            all += 1;
            wrong.extend(kind(&mut drawn));
        }
    }
    // Tests of hypotheses may be wrong once in twenty times.
    assert!(wrong.len() <= 1, "{} of {all} false: {wrong:#?}", wrong.len());
}
