//! What a person reads after a slip: each mistake with its message, as a file that reads well.

use dyno_testkit::{Dyno, stderr};
use std::fmt::Write as _;
use std::path::Path;

/// What is typed behind `dyno`.
const MISTAKES: [&str; 42] = [
    "rnu",
    "run redis.hots",
    "run localhost:6379",
    "run redsi://127.0.0.1",
    "run quick/redis",
    "run null: extra",
    "run null: --users abc",
    "run null: --users 0",
    "run null: --users 8 --rate 100",
    "run null: --rate -5",
    "run null: --rate fast",
    "run null: --records -1",
    "run null: --duration 5parsecs",
    "run null: --durtion 5s",
    "run null: --dry-run",
    "run null: --threshold p99<5ms",
    "run null: --connections 5 --users 3",
    "run null: --duration 0s",
    "run --threads 0",
    "run --out full",
    "run null: --require p99<5ms",
    "run null: --require p99(raed)<5ms",
    "run null: --workload z",
    "run null: -w experiment.yaml",
    "run -w missing.yaml",
    "run experiment.yaml --set usrs=[1]",
    "run experiment.yaml --set phases.measure.usrs=1",
    "run wrong.yaml",
    "run both.yaml",
    "run redis://127.0.0.1:1 --records 10",
    "report nowhere",
    "report experiment.yaml --format pdf",
    "presets quick/user",
    "top localhost:6379",
    "run redis:/h:6379",
    "run redis//h",
    "run null: --clients 5",
    "run null: -t 4 -c 50",
    "run null: --ratio 1:10",
    "plan range.yaml",
    "run missing.yaml",
    "explain",
];

/// `DYNO_BLESS=1` writes the file anew.
#[test]
fn mistakes_are_answered_in_words() {
    let dyno = Dyno::new();
    let experiment = "target: 'null:'\nworkload: {ycsb: {records: 100}}\nphases: {measure: {duration: 1s}}\n";
    std::fs::write(dyno.path("experiment.yaml"), experiment).unwrap();
    std::fs::write(dyno.path("wrong.yaml"), "target: 'null:'\nphases:\n  mesure: {duration: 1s}\n").unwrap();
    std::fs::write(dyno.path("both.yaml"), "target: 'null:'\nphases:\n  measure: {users: 8, rate: 100}\n")
        .unwrap();
    std::fs::write(
        dyno.path("range.yaml"),
        "target: 'null:'\nfactors: {users: {from: 2k, to: 8x, times: 2}}\n",
    )
    .unwrap();
    std::fs::create_dir(dyno.path("full")).unwrap();
    std::fs::write(dyno.path("full/report.html"), "").unwrap();
    let mut told = String::new();
    for line in MISTAKES {
        let words: Vec<&str> = line.split(' ').collect();
        let output = dyno.run(&words);
        let code = output.status.code().unwrap();
        assert!([2, 3].contains(&code), "dyno {line}: {code}");
        write!(told, "$ dyno {line}\n{}(exit code {code})\n\n", stderr(&output)).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/mistakes.txt");
    if std::env::var_os("DYNO_BLESS").is_some() {
        std::fs::write(&path, &told).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(told, golden, "messages differ from {}; DYNO_BLESS=1 writes it anew", path.display());
}
