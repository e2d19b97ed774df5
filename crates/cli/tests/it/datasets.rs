//! Datasets that are written down here, each with what is true of it: what `explain`, `compare` and `history` say of them is held
//! against that. Values differ by chance, with the seed of `known_answers.rs`, whose runs are drawn altogether.

use dyno_testkit::{Dyno, assert_exit, stdout};
use dyno_types::rng::{Purpose, Stream};

/// Operations a second, at a second.
type Level = fn(f64) -> f64;

/// Levels over so many seconds, with parts of what must be said of it, and what must not.
struct OverTime {
    name: &'static str,
    seconds: u32,
    level: Level,
    /// Response time in microseconds, where it is known.
    response: Option<Level>,
    says: &'static [&'static str],
    never: &'static [&'static str],
}

/// A deviation of this share, about normal.
fn chance(random: &mut Stream, share: f64) -> f64 {
    1.0 + share * ((0..12).map(|_| random.next_unit()).sum::<f64>() - 6.0)
}

fn within(t: f64, parts: &[(f64, f64)]) -> bool {
    parts.iter().any(|(from, to)| (*from..*to).contains(&t))
}

const OVER_TIME: [OverTime; 14] = [
    OverTime {
        name: "steady",
        seconds: 120,
        level: |_| 1_000.0,
        response: None,
        says: &["throughput: steady"],
        never: &["not steady", "collapse", "drift"],
    },
    OverTime {
        name: "two dips of ten seconds",
        seconds: 60,
        level: |t| if within(t, &[(10.0, 20.0), (35.0, 45.0)]) { 600.0 } else { 1_000.0 },
        response: None,
        says: &["not steady", "10 to     20 s", "35 to     45 s"],
        never: &[],
    },
    OverTime {
        name: "three dips of six seconds",
        seconds: 120,
        level: |t| if within(t, &[(20.0, 26.0), (50.0, 56.0), (80.0, 86.0)]) { 600.0 } else { 1_000.0 },
        response: None,
        says: &["not steady", "20 to     26 s", "50 to     56 s", "80 to     86 s"],
        never: &[],
    },
    OverTime {
        name: "nine seconds at 65 %",
        seconds: 75,
        level: |t| if within(t, &[(33.0, 42.0)]) { 650.0 } else { 1_000.0 },
        response: None,
        says: &["not steady", "33 to     42 s"],
        never: &[],
    },
    OverTime {
        name: "every seventh second at half",
        seconds: 84,
        level: |t| if t % 7.0 == 0.0 { 500.0 } else { 1_000.0 },
        response: None,
        says: &["every 7 s"],
        never: &["warm-up", "collapse", "recovery"],
    },
    OverTime {
        name: "twenty seconds on, twenty off",
        seconds: 160,
        level: |t| if (t as u32 / 20).is_multiple_of(2) { 1_000.0 } else { 500.0 },
        response: None,
        says: &["not steady"],
        never: &["one level"],
    },
    OverTime {
        name: "a fifth less in the end",
        seconds: 300,
        level: |t| 1_000.0 * (1.0 - 0.2 * t / 300.0),
        response: None,
        says: &["drift"],
        never: &["throughput: steady"],
    },
    OverTime {
        name: "eight seconds to warm up",
        seconds: 120,
        level: |t| if t < 8.0 { 300.0 } else { 1_000.0 },
        response: None,
        says: &["0 to      8 s", "warm-up"],
        never: &[],
    },
    OverTime {
        name: "less from half of the time on",
        seconds: 120,
        level: |t| if t < 60.0 { 1_000.0 } else { 400.0 },
        response: None,
        says: &["not steady", "0 to     60 s", "60 to    120 s"],
        never: &["warm-up"],
    },
    OverTime {
        name: "two seconds of nothing",
        seconds: 60,
        level: |t| if within(t, &[(30.0, 32.0)]) { 0.0 } else { 1_000.0 },
        response: None,
        says: &["30 to 32 s"],
        never: &["throughput: steady, "],
    },
    OverTime {
        name: "three seconds at the end",
        seconds: 60,
        level: |t| if t >= 57.0 { 300.0 } else { 1_000.0 },
        response: None,
        says: &["57 to"],
        never: &["57 to 59 s"],
    },
    OverTime {
        name: "times that grow at a rate that is kept",
        seconds: 120,
        level: |_| 500.0,
        response: Some(|t| 1_500.0 * (1.0 + 1.5 * t / 120.0)),
        says: &["response time", "drifts by +"],
        never: &["response time: steady"],
    },
    OverTime {
        name: "times that are more from one second on",
        seconds: 120,
        level: |_| 500.0,
        response: Some(|t| if t < 70.0 { 1_500.0 } else { 4_000.0 }),
        says: &["response time", "70"],
        never: &["response time: steady"],
    },
    OverTime {
        name: "times that stay",
        seconds: 120,
        level: |_| 500.0,
        response: Some(|_| 1_500.0),
        says: &["throughput: steady"],
        never: &["changes its level", "drifts"],
    },
];

/// Levels of users, each with a throughput; runs differ by a hundredth.
struct Ladder {
    name: &'static str,
    levels: &'static [(f64, f64)],
    says: &'static [&'static str],
    never: &'static [&'static str],
}

const LADDERS: [Ladder; 5] = [
    Ladder {
        name: "a fall",
        levels: &[(1.0, 100.0), (4.0, 380.0), (16.0, 892.0), (64.0, 601.0), (128.0, 302.0)],
        says: &["16 users", "throughput falls"],
        never: &[],
    },
    Ladder {
        name: "a plateau",
        levels: &[(1.0, 250.0), (2.0, 500.0), (4.0, 990.0), (8.0, 1_000.0), (16.0, 1_003.0), (32.0, 1_000.0)],
        says: &["maximum"],
        never: &["throughput falls", "still growing"],
    },
    Ladder {
        name: "still growing",
        levels: &[(1.0, 100.0), (2.0, 199.0), (4.0, 397.0), (8.0, 790.0), (16.0, 1_570.0), (32.0, 3_100.0)],
        says: &["the maximum is not reached", "still growing"],
        never: &["the maximum is about", "throughput falls"],
    },
    Ladder {
        name: "a cliff",
        levels: &[
            (1.0, 100.0),
            (2.0, 200.0),
            (4.0, 400.0),
            (8.0, 800.0),
            (16.0, 1_447.0),
            (32.0, 150.0),
            (64.0, 140.0),
        ],
        says: &["16 users", "throughput falls"],
        never: &[],
    },
    Ladder {
        name: "a law with a peak",
        levels: &[
            (1.0, 1_000.0),
            (2.0, 1_960.0),
            (4.0, 3_750.0),
            (8.0, 6_852.0),
            (16.0, 11_268.0),
            (32.0, 15_108.0),
            (64.0, 14_973.0),
            (128.0, 10_984.0),
        ],
        says: &["peak"],
        never: &["still growing"],
    },
];

/// Two sides of runs: the factor between their rates, how many of each, the chance of a run, the drift from run to run, and
/// what is concluded of throughput.
const PAIRS: [(&str, f64, u32, f64, f64, &str); 4] = [
    ("a tenth less", 0.9, 6, 0.01, 0.0, "worse"),
    ("a tenth more", 1.1, 6, 0.01, 0.0, "better"),
    ("the same", 1.0, 6, 0.004, 0.0, "same"),
    // All of the first before all of the second, on a host that loses a hundredth from run to run.
    ("a host that drifts", 1.0, 6, 0.002, -0.01, "unclear"),
];

/// Runs in their order: rate of a number, and whether a step is found.
const HISTORIES: [(&str, Level, bool); 2] =
    [("a step", |n| if n < 12.0 { 1_000.0 } else { 900.0 }, true), ("no step", |_| 1_000.0, false)];

struct Told {
    dyno: Dyno,
    random: Stream,
    wrong: Vec<String>,
    count: usize,
}

impl Told {
    fn judge(&mut self, name: &str, text: &str, says: &[&str], never: &[&str]) {
        self.count += 1;
        let missing =
            says.iter().filter(|message| !text.contains(**message)).map(|message| format!("no {message:?}"));
        let false_ones =
            never.iter().filter(|message| text.contains(**message)).map(|message| format!("{message:?}"));
        let all: Vec<String> = missing.chain(false_ones).collect();
        if !all.is_empty() {
            self.wrong.push(format!("{name}: {}\n{text}", all.join(", ")));
        }
    }

    fn run(&self, line: &str) -> String {
        let output = self.dyno.run(&line.split(' ').collect::<Vec<_>>());
        assert_exit(&output, &[0]);
        stdout(&output)
    }

    fn over_time(&mut self, number: usize, one: &OverTime) {
        let mut table = "t,x,r\n".to_owned();
        for second in 0..one.seconds {
            let t = f64::from(second);
            let x = (one.level)(t) * chance(&mut self.random, 0.02);
            let r = one.response.map(|of| of(t) * chance(&mut self.random, 0.02));
            let r = r.map_or(String::new(), |r| format!("{r:.1}"));
            table += &format!("{},{:.1},{r}\n", second + 1, x.max(0.0));
        }
        let out = format!("t{number}");
        std::fs::write(self.dyno.path(&format!("{out}.csv")), table).unwrap();
        let response = if one.response.is_some() { " --response-us r" } else { "" };
        self.run(&format!("import csv {out}.csv --time t --throughput x{response} --out {out}"));
        let said = self.run(&format!("explain {out}"));
        self.judge(one.name, &said, one.says, one.never);
    }

    fn ladder(&mut self, number: usize, one: &Ladder) {
        let mut table = "n,x\n".to_owned();
        for (users, x) in one.levels {
            for _ in 0..3 {
                table += &format!("{users},{:.1}\n", x * chance(&mut self.random, 0.01));
            }
        }
        let out = format!("l{number}");
        std::fs::write(self.dyno.path(&format!("{out}.csv")), table).unwrap();
        self.run(&format!("import csv {out}.csv --users n --throughput x --duration 60s --out {out}"));
        let said = self.run(&format!("explain {out}"));
        self.judge(one.name, &said, one.says, one.never);
    }

    /// Runs of a rate each, one folder a run, begun a minute after each other.
    fn runs(&mut self, folder: &str, first: u32, rates: &[f64]) {
        std::fs::create_dir_all(self.dyno.path(folder)).unwrap();
        for (at, rate) in (first..).zip(rates) {
            let mut table = "t,x\n".to_owned();
            for second in 1..=20 {
                table += &format!("{second},{:.1}\n", rate * chance(&mut self.random, 0.01));
            }
            std::fs::write(self.dyno.path("run.csv"), table).unwrap();
            let (hour, minute) = (at / 60, at % 60);
            self.run(&format!(
                "import csv run.csv --time t --throughput x --started 2026-01-01T{hour:02}:{minute:02}:00Z --out {folder}/{at:03}"
            ));
        }
    }
}

#[test]
fn what_is_said_of_written_datasets_is_true() {
    let random = Stream::new(crate::known_answers::seed(), 1, Purpose::Choice);
    let mut told = Told { dyno: Dyno::new(), random, wrong: Vec::new(), count: 0 };
    OVER_TIME.iter().enumerate().for_each(|(number, one)| told.over_time(number, one));
    LADDERS.iter().enumerate().for_each(|(number, one)| told.ladder(number, one));
    for (number, (name, factor, runs, deviation, drift, conclusion)) in PAIRS.iter().enumerate() {
        let mut rates = |factor: f64, first: u32| -> Vec<f64> {
            let one = |at: u32| {
                1_000.0 * factor * (1.0 + drift * f64::from(at)) * chance(&mut told.random, *deviation)
            };
            (first..first + runs).map(one).collect()
        };
        let (one, other) = (rates(1.0, 0), rates(*factor, *runs));
        told.runs(&format!("a{number}"), 0, &one);
        told.runs(&format!("b{number}"), *runs, &other);
        let output = told.dyno.run(&["compare", &format!("a{number}"), &format!("b{number}"), "--json"]);
        let found: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        let conclusion = format!("\"{conclusion}\"");
        told.judge(name, &found[0]["figures"][0]["conclusion"].to_string(), &[&conclusion], &[]);
    }
    for (number, (name, level, step)) in HISTORIES.iter().enumerate() {
        let rates: Vec<f64> =
            (0..24).map(|at| level(f64::from(at)) * chance(&mut told.random, 0.01)).collect();
        told.runs(&format!("h{number}"), 0, &rates);
        let said = told.run(&format!("history h{number}"));
        let words = ["worse from here on"];
        told.judge(
            name,
            &said,
            if *step { &words } else { &["no change"] },
            if *step { &[] } else { &words },
        );
    }
    assert_eq!(told.count, 25);
    assert!(told.wrong.is_empty(), "{} of 25 false:\n{}", told.wrong.len(), told.wrong.join("\n"));
}
