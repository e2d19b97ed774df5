//! What a person reads after a slip: each mistake with its message, as a file that reads well.

use dyno_testkit::{Dyno, stderr};
use std::fmt::Write as _;
use std::path::Path;

/// What is typed behind `dyno`.
const MISTAKES: [&str; 166] = [
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
    "run null: --rate ramp:5",
    "run null: --rate steps:0:1s",
    "run null: --rate file:missing.csv",
    "run null: --rate file:empty.csv",
    "run null: --rate file:unordered.csv",
    "run null: --rate file:zero.csv",
    "run null: --rate file:rates.csv:steps --ops 100000",
    "run null: --rate day:2k:1k",
    "run null: --rate day:1:2:1h:2h",
    "run null: --rate bursty:10:5:1s",
    "run null: --rate bursty:10:50",
    "run null: --rate mmpp:1:1s",
    "run null: --rate mmpp:5:1s,5:2s",
    "run null: --rate wave:1k",
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
    "run null: --users",
    "run null: --warmup -1s",
    "run null: --rate 1000 --think 1ms",
    "run null: --pipeline 0",
    "run null: --batch 0",
    "run null: --threads -1",
    "run null: --set users",
    "run null: --format json",
    "run null: --out",
    "run null: --repeat 0",
    "run null: --repeat many",
    "run null: -p recordcount",
    "run null: -p nosuch=1",
    "run null: --arrivals uniform",
    "run null: --seed abc",
    "run null: --interval 3s",
    "run null: --timeout",
    "run null: --cores 0-",
    "run null: --stamps gps",
    "run null: --require throughput",
    "run null: --require throughput>fast",
    "run null: --require p99(read)<5",
    "run null: --require p200(read)<5ms",
    "run null: --quite",
    "run null: --port 6379",
    "run redis://127.0.0.1:99999",
    "run redis://127.0.0.1/abc",
    "run redis://127.0.0.1?nosuch=1",
    "run mongodb://",
    "run memcached://127.0.0.1:1",
    "run http://127.0.0.1:80",
    "run postgresql://127.0.0.1/db",
    "run cassandra://127.0.0.1",
    "run sqlite:",
    "run sqlite:/nosuch/dir/x.db",
    "run sim:?service=fast",
    "run sim:?nosuch=1",
    "run spawn:nosuch",
    "run unix:///nosuch.sock",
    "run broken.yaml",
    "run empty.yaml",
    "run norep.yaml",
    "plan",
    "plan nowhere.yaml",
    "plan ladder.yaml",
    "plan nolevels.yaml",
    "plan exclude.yaml",
    "plan experiment.yaml --set target",
    "plan experiment.yaml --scale 3",
    "plan percona/engines-embedded --scale 3",
    "init experiment.yaml",
    "status",
    "status nowhere",
    "logs nowhere",
    "resume nowhere",
    "list nowhere",
    "report",
    "report full",
    "report full --format",
    "compare",
    "compare nowhere elsewhere",
    "history nowhere",
    "serve nowhere",
    "serve --port 8000",
    "serve --listen 0.0.0.0:80",
    "export",
    "export full --format nosuch",
    "import csv nowhere",
    "merge full",
    "grafana nosuch",
    "schema nosuch",
    "completions tcsh",
    "top redis://127.0.0.1:1",
    "top null:",
    "clean",
    "clean redis://127.0.0.1:1",
    "clean redis://127.0.0.1:1 full",
    "prove ingest",
    "prove ingest redis://127.0.0.1:1",
    "ycsb run nosuch",
    "ycsb load redis -P missing",
    "memtier -s 127.0.0.1 -p 1",
    "redis-benchmark --nosuch",
    "wsf nosuch",
    "bexhoma nosuch",
    "help nosuch",
    // What users of other load generators type.
    "run null: --vus 10",
    "run null: --rps 100",
    "run null: --iterations 100",
    "run null: --stages 10s:5",
    "run script.js",
    "run null: --summary-export x.json",
    "run null: -P 16",
    "run null: --test-time 30",
    "run null: --data-size 100",
    "run null: --key-maximum 100",
    "run null: -threads 4",
    "run null: --operationcount 1000",
    "run null: --tls",
    "run redis://127.0.0.1:1 --password x",
    "run redis://127.0.0.1:1 -a secret",
    "run null: --uri redis://h",
    "run null: -w set,get",
    "run null: --rate 1,000",
    "run null: --users 10,20",
    "run null: --verbose=2",
    "redis://:secret@127.0.0.1",
    "load redis",
    "bench",
    "version",
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
    for (name, text) in [
        ("broken.yaml", "a: [\n"),
        ("empty.yaml", ""),
        ("script.js", "import http from 'k6/http'\n"),
        ("empty.csv", "time,rate\n"),
        ("unordered.csv", "0,5\n9,4\n8,5\n"),
        ("zero.csv", "time;rate\n0;0\n60;0\n"),
        ("rates.csv", "0,5\n9,0\n"),
        ("norep.yaml", "target: 'null:'\nrepetitions: 0\n"),
        ("ladder.yaml", "target: 'null:'\nstrategy: {ladder: {from: 0}}\n"),
        ("nolevels.yaml", "target: 'null:'\nfactors: {users: []}\n"),
        ("exclude.yaml", "target: 'null:'\nexclude: [{users: 3}]\n"),
    ] {
        std::fs::write(dyno.path(name), text).unwrap();
    }
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
