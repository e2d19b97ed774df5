//! One row for each command of the documents, in the order in which a document shows them: how it is typed here, which test types
//! its like, or why none can.

use super::recordings;

/// How a command is tried.
pub enum Trial {
    /// It is typed here, in a folder of its document's own.
    Here(Typed),
    /// A test types it, or its like at small scale, on servers that this test does not have: its file below `tests`, and its
    /// function.
    There(&'static str, &'static str),
    /// It cannot be typed where tests run: why.
    NotHere(&'static str),
}

/// What is typed instead of the command, so that it ends soon and on the test's own servers.
#[derive(Default)]
pub struct Typed {
    /// Words of the document and what stands for them.
    pub instead: Vec<(&'static str, &'static str)>,
    /// Words behind the command.
    pub more: &'static str,
    /// Whether it applies load, whose verdict (exit code 5) is of this machine and not of the command.
    pub load: bool,
    /// The next command begins while this one runs.
    pub beside: bool,
}

/// A command of a document, or one that stands in none and prepares those that follow.
pub struct Row {
    pub command: &'static str,
    pub way: Trial,
    /// Whether the document has it.
    pub shown: bool,
}

impl Row {
    fn typed(&mut self) -> &mut Typed {
        match &mut self.way {
            Trial::Here(typed) => typed,
            _ => unreachable!("{}: not typed here", self.command),
        }
    }

    /// Another word for one of the document's.
    fn instead(mut self, of: &'static str, word: &'static str) -> Row {
        self.typed().instead.push((of, word));
        self
    }

    fn more(mut self, message: &'static str) -> Row {
        self.typed().more = message;
        self
    }

    fn load(mut self) -> Row {
        self.typed().load = true;
        self
    }

    fn beside(mut self) -> Row {
        self.typed().beside = true;
        self
    }

    fn prepares(mut self) -> Row {
        self.shown = false;
        self
    }
}

fn here(command: &'static str) -> Row {
    Row { command, way: Trial::Here(Typed::default()), shown: true }
}

pub(super) fn there(command: &'static str, file: &'static str, function: &'static str) -> Row {
    Row { command, way: Trial::There(file, function), shown: true }
}

fn not_here(command: &'static str, why: &'static str) -> Row {
    Row { command, way: Trial::NotHere(why), shown: true }
}

/// A load of a second on two thousand records.
fn short(command: &'static str) -> Row {
    here(command).more("--records 2000 --duration 1s").load()
}

const SEEDED: &str = "run redis://127.0.0.1:6379 -n 2000 --users 2 --duration 1s --warmup 0s --quiet";
const EXPERIMENT: &str = "run docs/examples/users.yaml --set users=[1,2] --set duration=1s --set records=1000 \
                          --set warmup=0s --quiet";

/// The documents, each with its commands.
pub fn documents() -> Vec<(&'static str, Vec<Row>)> {
    vec![
        ("README.md", readme()),
        (
            "docs/README.md",
            vec![
                short("run"),
                here("run --rate 5k --require 'p99(read) < 5ms'")
                    .instead("p99(read) < 5ms", "p99(read) < 5s")
                    .more("--records 2000 --duration 1s")
                    .load(),
                there("serve", "serve.rs", "runs_are_listed_opened_and_compared_and_nothing_else_is_given_away"),
            ],
        ),
        ("docs/bexhoma.md", bexhoma()),
        ("docs/ci.md", ci()),
        ("docs/clusters.md", clusters()),
        ("docs/documents.md", own_documents()),
        ("docs/commands.md", own_commands()),
        ("docs/rates.md", changing_rates()),
        (
            "docs/replay.md",
            vec![
                there("record monitor.txt -o traffic.dyno", "replay.rs", "what_monitor_saw_is_sent_once_more"),
                there(
                    "replay traffic.dyno redis://127.0.0.1:6379",
                    "replay.rs",
                    "what_monitor_saw_is_sent_once_more",
                ),
                there(
                    "replay traffic.dyno redis://127.0.0.1:6379 --speed 3",
                    "replay.rs",
                    "commands_are_due_when_they_were",
                ),
                there(
                    "replay traffic.dyno redis://127.0.0.1:6379 --rate 5k",
                    "replay.rs",
                    "commands_are_due_at_a_rate_in_place_of_their_times",
                ),
                there(
                    "replay traffic.dyno 'redis://127.0.0.1:7001?cluster=true' --split",
                    "replay_cluster.rs",
                    "commands_are_split_over_slots_and_their_replies_joined",
                ),
            ],
        ),
        (
            "docs/data-sets.md",
            vec![
                there("record dump.rdb -o data.dyno", "data_set.rs", "a_snapshot_comes_back_as_it_was"),
                there(
                    "run redis://127.0.0.1:6379 --load-from data.dyno --command 'GET user:%{int:1-1000}'",
                    "data_set.rs",
                    "a_snapshot_comes_back_as_it_was",
                ),
                there(
                    "replay traffic.dyno redis://127.0.0.1:6379 --load-from data.dyno",
                    "data_set.rs",
                    "replay_begins_with_the_data_of_then",
                ),
                there("record shop.archive -o shop.dyno", "data_set.rs", "a_dump_comes_back_as_it_was"),
                there(
                    "run mongodb://127.0.0.1:27017/shop --load-from shop.dyno --workload work.yaml",
                    "data_set.rs",
                    "a_dump_comes_back_as_it_was",
                ),
                there("record items.json --into shop.items -o items.dyno", "data_set.rs", "a_dump_comes_back_as_it_was"),
            ],
        ),
        ("docs/own-traffic.md", own_traffic()),
        (
            "docs/learn.md",
            vec![
                there("learn traffic.dyno -o work.yaml", "replay.rs", "what_is_learned_behaves_like_the_recording"),
                there(
                    "run redis://127.0.0.1:6379 --workload work.yaml --rate 500 --connections 8",
                    "replay.rs",
                    "what_is_learned_behaves_like_the_recording",
                ),
                there(
                    "learn mongodb.dyno -o work.yaml",
                    "learn_mongodb.rs",
                    "a_learned_workload_sends_the_mix_that_was_recorded",
                ),
                there(
                    "run mongodb://127.0.0.1/shop --workload work.yaml --rate 500 --users 8",
                    "learn_mongodb.rs",
                    "a_learned_workload_sends_the_mix_that_was_recorded",
                ),
            ],
        ),
        ("docs/experiments.md", vec![here("plan docs/examples/users.yaml")]),
        ("docs/explain.md", explain()),
        ("docs/export.md", export()),
        ("docs/first-run.md", first_run()),
        ("docs/guide.md", guide()),
        ("docs/install.md", vec![here("--version"), here("run sim: --duration 1s").load()]),
        ("docs/lab.md", lab()),
        (
            "docs/logging.md",
            vec![
                here("run redis://127.0.0.1:6379 --records 1000 --duration 5s -v").instead("5s", "1s").load(),
            ],
        ),
        ("docs/memcached.md", memcached()),
        (
            "docs/memtier.md",
            vec![
                here("memtier -u redis://127.0.0.1:6379 -t 2 -c 10 --test-time 10 --key-maximum 1000 --hide-histogram")
                    .instead("10", "1")
                    .load(),
                here("memtier -u redis://127.0.0.1:6379 -n allkeys --key-pattern P:P --ratio 1:0 --key-maximum 100000")
                    .instead("100000", "1000")
                    .load(),
                here(
                    "memtier -u redis://127.0.0.1:6379 -n 1000 --command 'ZADD board 1 __key__' --command-ratio 1 --command \
                     'ZCARD board' --command-ratio 3",
                )
                .instead("1000", "50")
                .load(),
                here(
                    "run 'redis://127.0.0.1:6379?layout=string' --records 100k --fields 1 --field-length 32 --users 200 \
                     --duration 1m -p readproportion=0.90909091 -p updateproportion=0.09090909 --distribution uniform",
                )
                .instead("100k", "2k")
                .instead("1m", "1s")
                .load(),
            ],
        ),
        ("docs/redis-benchmark.md", redis_benchmark()),
        ("docs/mongodb.md", mongodb()),
        (
            "docs/monitoring.md",
            vec![there("top redis://127.0.0.1:6379", "monitor.rs", "top_shows_a_redis_server")],
        ),
        ("docs/pocdriver.md", pocdriver()),
        ("docs/prove.md", prove()),
        (
            "docs/reading-results.md",
            vec![here(SEEDED).more("--out one").load().prepares(), here("report one -v")],
        ),
        (
            "docs/recording.md",
            recordings::recording()
                .into_iter()
                .chain(recordings::recording_memcached())
                .chain(recordings::recording_mongodb())
                .collect(),
        ),
        ("docs/redis.md", redis()),
        ("docs/report.md", report()),
        ("docs/sysbench-mongodb.md", sysbench()),
        ("docs/wsf.md", wsf()),
        ("docs/ycsb.md", ycsb()),
    ]
}

/// The walk with the web shop: one test does all of it.
fn own_traffic() -> Vec<Row> {
    let of_shop = |line| there(line, "web_shop.rs", "the_traffic_of_a_shop_is_replayed");
    vec![
        of_shop("record shop.rdb -o shop.dyno"),
        there(
            "record traffic.pcap --point server -o traffic.dyno",
            "record_capture.rs",
            "counts_of_a_capture_are_those_of_the_server",
        ),
        of_shop("replay traffic.dyno redis://127.0.0.1:6379 --load-from shop.dyno --out as-it-was"),
        of_shop(
            "replay traffic.dyno redis://127.0.0.1:6379 --load-from shop.dyno --speed 3 --out three-times",
        ),
        of_shop("run docs/examples/web-shop/versions.yaml"),
        of_shop("learn traffic.dyno -o work.yaml"),
        there(
            "run redis://127.0.0.1:6379 --load-from shop.dyno --workload work.yaml --rate 10k --connections 200 --duration 60s",
            "data_set.rs",
            "a_snapshot_comes_back_as_it_was",
        ),
    ]
}

fn readme() -> Vec<Row> {
    vec![
        here("--version"),
        short("run"),
        here("ycsb load redis -P workloads/workloada -p redis.host=127.0.0.1 -p recordcount=100000 -threads 16")
            .instead("recordcount=100000", "recordcount=1000")
            .more("-p redis.port=REDIS"),
        here("ycsb run redis -P workloads/workloada -p redis.host=127.0.0.1 -p operationcount=1000000 -threads 16 -s")
            .instead("operationcount=1000000", "operationcount=2000")
            .more("-p redis.port=REDIS")
            .load(),
        here(
            "sysbench-mongodb URI=mongodb://127.0.0.1:27017 NUM_DOCUMENTS_PER_COLLECTION=200 \
             NUM_DOCUMENTS_PER_INSERT=50 RUN_TIME_SECONDS=10",
        )
        .instead("RUN_TIME_SECONDS=10", "RUN_TIME_SECONDS=2")
        .load(),
        here("pocdriver -c mongodb://127.0.0.1:27017 -e -b 20 -t 2 -d 10 -k 20 -q 50").instead("10", "2").load(),
        here("wsf -R test_mongodb_ycsb_90read10update -VV --dry-run"),
        here(
            "bexhoma ycsb -dbms Redis -sf 1 -xwl a -xtb 16384 -xnlf 12 -xnbf 4 -nlp 8 -nlt 64 -nbp 1 -nbt 128 run \
             --dry-run",
        ),
    ]
}

fn first_run() -> Vec<Row> {
    let shorter = "--set repetitions=2 --set duration=1s --set records=1000";
    vec![
        here("doctor"),
        here("run --records 10k --duration 10s").instead("10s", "1s").load(),
        here("run --records 10k --rate 5k --duration 10s --require 'p99(read) < 50ms' --out one")
            .instead("10s", "1s")
            .instead("p99(read) < 50ms", "p99(read) < 60s")
            .load(),
        here("init --example first"),
        here("run first.yaml --quiet --out A").more(shorter).load(),
        here(
            "run first.yaml --quiet --out B --set server.options.appendonly=yes --set \
             server.options.appendfsync=always",
        )
        .more(shorter)
        .load(),
        here("compare A B"),
        here("report one --format html -o one.html"),
        here("compare A B --html comparison.html"),
    ]
}

fn ci() -> Vec<Row> {
    let gate = |command: &'static str| {
        here(command).instead("10s", "2s").instead("p99(read) < 50ms", "p99(read) < 60s").load()
    };
    vec![
        gate(
            "run --records 10k --rate 2k --duration 10s --require 'p99(read) < 50ms' --require 'errors < 0.1%'",
        ),
        here("doctor"),
        gate(
            "run --records 10k --rate 2k --duration 10s --require 'p99(read) < 50ms' --require 'errors < 0.1%' --quiet \
             --out run",
        ),
        here("run docs/examples/first.yaml --quiet --out B")
            .more("--set repetitions=1 --set duration=1s --set records=1000")
            .load(),
        // Whether B is worse is the host's doing here.
        there(
            "compare A B --fail-on worse",
            "compare.rs",
            "a_slower_server_is_found_and_the_same_is_the_same",
        ),
        gate(
            "run --records 10k --rate 2k --duration 10s --require 'p99(read) < 50ms' --quiet --junit dyno.xml",
        ),
    ]
}

fn redis() -> Vec<Row> {
    vec![
        here("run redis://127.0.0.1:6379 --workload b --records 100k --users 64 --duration 1m")
            .instead("100k", "2k")
            .instead("1m", "1s")
            .load(),
        here("run 'redis://127.0.0.1:6379/1?layout=string' --records 100k --fields 1 --rate 20k")
            .instead("100k", "2k")
            .instead("20k", "5k")
            .more("--duration 1s")
            .load(),
        here("run spawn:redis --records 10k --users 16").more("--duration 1s").load(),
        here("top redis://127.0.0.1:6379").more("--count 1"),
    ]
}

fn bexhoma() -> Vec<Row> {
    let pods = "summary_of_a_run_and_servers_that_others_reach";
    vec![
        there(
            "bexhoma ycsb -dbms Redis -sf 1 -xwl a -xtb 16384 -xnlf 12 -xnbf 4 -nlp 8 -nlt 64 -nbp 1 -nbt 128 -xop 10 \
             -m -mc -ma run",
            "kubernetes/bexhoma.rs",
            pods,
        ),
        here("bexhoma ycsb -dbms Redis -xwl a --local --scale 1000 run").load(),
        here("bexhoma status"),
        there(
            "bexhoma ycsb -dbms Redis -sf 1 --scale 100 -xwl a -xtb 16384 -xnbf 1 -xnlf 1 -ne 1 -nlp 8 -nlt 64 -nbp 1 \
             -nbt 128 -nc 1 -xop 4 -m -mc -ms 1 ... run",
            "kubernetes/bexhoma.rs",
            pods,
        ),
    ]
}

fn clusters() -> Vec<Row> {
    let inside = |command| there(command, "kubernetes/in_cluster.rs", "a_pod_conducts");
    let measured = |command| {
        let test = "pods_that_load_others_that_measure_and_a_server_that_is_watched";
        there(command, "kubernetes/roles.rs", test)
    };
    vec![
        measured("run cluster.yaml --set phases.measure.duration=60s --out calibration"),
        measured("requests calibration"),
        there(
            "run bexhoma/dragonfly-3 --set server.kind=redis --set workload.ycsb.records=10000 --set phases.load.rate=10000 \
         --set phases.measure.operations=40000 --set phases.measure.rate=8000 --set \
         kubernetes.servers='{requests: {cpu: 100m}}' --set kubernetes.workers='{requests: {cpu: 50m}}' --set \
         kubernetes.namespace=bench --set kubernetes.image=localhost/dyno:test ...",
            "kubernetes/presets.rs",
            "all_five",
        ),
        inside("run sweep.yaml --in-cluster --out night"),
        inside("status night --wait"),
        inside("fetch night --remove"),
    ]
}

fn memcached() -> Vec<Row> {
    let file = "memcached.rs";
    vec![
        there(
            "run spawn:memcached --records 20k --duration 5s",
            file,
            "a_temporary_server_and_a_look_at_one",
        ),
        there(
            "run memcached://127.0.0.1:11211 --workload b --records 1M --users 64 --duration 1m",
            file,
            "what_goes_wrong_is_said",
        ),
        there(
            "run memcached://cache1,cache2,cache3 --rate 20k --connections 64",
            file,
            "keys_are_spread_over_several_servers",
        ),
        there("top memcached://127.0.0.1:11211", file, "a_temporary_server_and_a_look_at_one"),
        there(
            "ycsb load memcached -P workloads/workloada -p memcached.hosts=127.0.0.1 -threads 16",
            file,
            "records_are_those_of_ycsbs_binding",
        ),
        there(
            "ycsb run memcached -P workloads/workloada -p memcached.hosts=127.0.0.1 -threads 16 -s",
            file,
            "records_are_those_of_ycsbs_binding",
        ),
    ]
}

fn own_commands() -> Vec<Row> {
    let short = |row: Row| row.more("--ops 2048 --warmup 0s --no-out -q").load();
    vec![
        here("sample docs/examples/leaderboard.yaml -n 2"),
        short(here("run redis://db:6379 --workload docs/examples/leaderboard.yaml --users 16")),
        short(here(
            "run redis://db:6379 --command 'ZADD board %{int:1-1000} user:%{key}' --command 'ZREVRANGE board 0 9' \
             --command-ratio 3",
        )),
        short(here("run redis://db:6379 --workload docs/examples/messages.yaml --users 8")),
        short(here("run redis://db:6379 --command-file docs/examples/commands.txt --command-keys 10k")),
    ]
}

fn changing_rates() -> Vec<Row> {
    let short = |command: &'static str, long: &'static str| {
        here(command).instead(long, "1s").more("--records 2000 --no-out -q").load()
    };
    vec![
        here("run redis://db:6379 --rate ramp:1k-20k:60s --duration 60s")
            .instead("60s", "1s")
            .more("--records 2000 --no-out -q")
            .load(),
        short("run redis://db:6379 --rate file:docs/examples/rates.csv --duration 15m --warmup 0s", "15m"),
        short("run redis://db:6379 --rate day:200:5k:10m --duration 30m --warmup 0s", "30m"),
        short("run redis://db:6379 --rate bursty:500:5k:10s --duration 1m", "1m"),
        short("run redis://db:6379 --rate mmpp:200:30s,5k:2s --duration 10m --seed 7", "10m"),
    ]
}

fn own_documents() -> Vec<Row> {
    vec![
        here("sample docs/examples/shop.yaml -n 2"),
        here("run mongodb://127.0.0.1/shop --workload docs/examples/shop.yaml --rate 500")
            .more("--duration 1s")
            .load(),
    ]
}

fn explain() -> Vec<Row> {
    vec![
        here("run redis://127.0.0.1:6379 -n 10000 --warmup 2s --users 64 --quiet --duration 30s")
            .instead("30s", "1s")
            .load(),
    ]
}

fn export() -> Vec<Row> {
    let files = "exchange.rs";
    vec![
        there(
            "export DIR --format csv|parquet|xlsx|ycsb|sysbench|pocdriver|wsf|bexhoma [--out FILE]",
            files,
            "a_run_is_told_in_the_words_of_others",
        ),
        there(
            "import ycsb run.out run.err READ.hdr UPDATE.hdr --out DIR",
            files,
            "ycsb_s_histograms_are_exact_and_comparable",
        ),
        there(
            "import sysbench-mongodb table.tsv --users 64 --out DIR",
            files,
            "sysbench_and_pocdriver_runs_give_their_tables",
        ),
        there("import pocdriver log.csv --out DIR", files, "sysbench_and_pocdriver_runs_give_their_tables"),
        there(
            "import csv long.csv --time t_s --throughput x_ops_s --users 20 --out DIR",
            files,
            "the_lab_s_sheet_comes_in_and_goes_out_again",
        ),
        there(
            "import csv lab.csv --users n --throughput x --response-us r --target rate --factor test --duration 60s \
             --out DIR",
            files,
            "the_lab_s_sheet_comes_in_and_goes_out_again",
        ),
        there(
            "import csv percona.csv --factor size --throughput mmap --throughput wiredTiger --throughput RocksDB \
             --across engine --users 64 --duration 1h --out DIR",
            files,
            "a_published_table_of_engines_and_memory_is_imported_and_reported",
        ),
    ]
}

fn guide() -> Vec<Row> {
    let failover = "a_failover_loses_nothing_with_two_copies_and_something_with_one";
    let cut = "a_primary_that_is_cut_off_takes_nothing_with_it_that_two_copies_have";
    vec![
        here("doctor"),
        here("run redis://127.0.0.1:6379 --workload b --records 1M --users 64 --duration 1m")
            .instead("1M", "2k")
            .instead("1m", "1s")
            .load(),
        here(
            "run redis://127.0.0.1:6379 --workload b --records 1M --rate 20k --duration 1m --require 'p99(read) < 5ms'",
        )
        .instead("1M", "2k")
        .instead("20k", "5k")
        .instead("1m", "1s")
        .instead("p99(read) < 5ms", "p99(read) < 60s")
        .load(),
        here("init --example users"),
        here("plan users.yaml"),
        here("run users.yaml --out users")
            .more("--set users=[1,2] --set duration=1s --set records=1000")
            .load(),
        here("explain users"),
        here(EXPERIMENT).more("--out A").load().prepares(),
        here(EXPERIMENT).more("--out B").load().prepares(),
        there("run A --versus B", "versus.rs", "two_targets_are_run_by_turns_and_compared"),
        here("compare A B"),
        // Whether B is worse is the host's doing here.
        there("compare A B --fail-on worse", "compare.rs", "a_slower_server_is_found_and_the_same_is_the_same"),
        there(
            "prove ingest redis://127.0.0.1:6379 --size small --copies 2 --duration 10m",
            "prove.rs",
            "an_ingest_rate_with_two_copies",
        ),
        there("prove failover --rounds 3", "prove_failover.rs", failover),
        there("prove failover --by cut", "prove_failover.rs", cut),
    ]
}

fn lab() -> Vec<Row> {
    let whole = "the_lab_as_written";
    vec![
        here("presets lab/operational-laws > lab.yaml"),
        here("plan lab.yaml"),
        there("run lab.yaml --out lab", "presets.rs", whole),
        there("explain lab", "presets.rs", whole),
        here("run lab/operational-laws --set server.kind=redis --set duration=5s --set records=30k --out short")
            .instead("duration=5s", "duration=1s")
            .instead("records=30k", "records=2k")
            .load(),
        there(
            "run lab/operational-laws --set ssh.inventory=hosts.ini --set 'ssh.servers=[db]' --set 'ssh.clients=[load]' \
             --set server_lifetime=run --out lab",
            "ansible.rs",
            "hosts_are_deployed_and_the_lab_s_tests_run",
        ),
        there(
            "run lab/operational-laws --set server_lifetime=run --set target=redis://db:6379 --set \
             ssh.inventory=hosts.ini --set 'ssh.clients=[load]' --set 'ssh.watched=[db]' --out lab",
            "ssh.rs",
            "the_host_of_a_target_is_watched_where_it_is_named",
        ),
    ]
}

fn mongodb() -> Vec<Row> {
    vec![
        there(
            "run mongodb://host/db --client official",
            "official.rs",
            "ycsb_a_stores_the_same_records_and_counts_exactly",
        ),
        there(
            "ycsb run mongodb -P workloads/workloada -p mongodb.url=mongodb://host/db -p dyno.client=official",
            "official.rs",
            "ycsb_a_stores_the_same_records_and_counts_exactly",
        ),
        not_here(
            "run 'mongodb://KEY:SECRET@host/db?authMechanism=MONGODB-AWS' --client official",
            "it needs an account at AWS and MongoDB Atlas or Enterprise",
        ),
        not_here(
            "run 'mongodb://user%40REALM@host/db?authMechanism=GSSAPI' --client official",
            "it needs a Kerberos realm and MongoDB Enterprise",
        ),
        there(
            "run 'mongodb+srv://user:password@cluster.example.com/db'",
            "mongodb_srv.rs",
            "the_load_goes_to_the_hosts_of_the_records",
        ),
        there(
            "run 'mongodb://127.0.0.1:27017,127.0.0.1:27018,127.0.0.1:27019/t?replicaSet=r1' -n 100 -d 25s --warmup 0 --users 4",
            "mongod_failover.rs",
            "a_primary_that_freezes_is_followed",
        ),
    ]
}

fn redis_benchmark() -> Vec<Row> {
    let many = |command: &'static str| here(command).instead("100000", "1000").load();
    let few = |command: &'static str| here(command).instead("20000", "1000").load();
    vec![
        many("redis-benchmark -u redis://127.0.0.1:6379 -t set,get -n 100000 -r 100000"),
        few("redis-benchmark -u redis://127.0.0.1:6379 -q -n 20000 -P 16"),
        few("redis-benchmark -u redis://127.0.0.1:6379 --csv -t lpush,lrange_100 -n 20000"),
        few(
            "redis-benchmark -u redis://127.0.0.1:6379 -n 20000 -r 1000 zadd board:__rand_int__ 1 user:__rand_int__",
        ),
        few(
            "valkey-benchmark -u redis://127.0.0.1:6379 -n 20000 -r 1000 -- set key:__rand_1st__ __data__ ';' get \
             key:__rand_1st__",
        ),
    ]
}

fn pocdriver() -> Vec<Row> {
    vec![
        here("pocdriver -c mongodb://host -e -t 4 -d 10 -f 25 -a 5:5 --depth 2 -x 3")
            .instead("10", "2")
            .load(),
    ]
}

fn prove() -> Vec<Row> {
    let failover = "a_failover_loses_nothing_with_two_copies_and_something_with_one";
    vec![
        there(
            "prove ingest redis://127.0.0.1:6379 --size small --copies 2 --duration 10m",
            "prove.rs",
            "an_ingest_rate_with_two_copies",
        ),
        there(
            "prove ingest mongodb://127.0.0.1/proof --document pocdriver --size medium",
            "mongod_replica_set.rs",
            "documents_of_pocdriver_are_proven",
        ),
        there(
            "prove ingest sqlite:bench.db -n 1M --kills 5",
            "prove_embedded.rs",
            "nothing_is_lost_when_the_writer_is_killed",
        ),
        there(
            "prove ingest 'redb:bench.redb?durability=none' -n 100k",
            "prove_embedded.rs",
            "what_is_not_durable_is_lost",
        ),
        there("prove failover --rounds 3", "prove_failover.rs", failover),
        there("prove failover --copies 1", "prove_failover.rs", failover),
        there(
            "prove failover --by cut",
            "prove_failover.rs",
            "a_primary_that_is_cut_off_takes_nothing_with_it_that_two_copies_have",
        ),
        there(
            "prove failover --by freeze",
            "prove_failover.rs",
            "a_primary_that_freezes_takes_nothing_with_it_that_two_copies_have",
        ),
        there("prove failover mongod", "prove_mongod.rs", "a_real_replica_set_keeps_what_a_majority_has"),
    ]
}

fn report() -> Vec<Row> {
    let side_by_side = |row: Row| {
        row.instead("20k", "500").instead("60s", "2s").more("-n 2000 --no-load --warmup 0s").load()
    };
    let pages = "runs_are_listed_opened_and_compared_and_nothing_else_is_given_away";
    vec![
        here(SEEDED).more("--out DIR").load().prepares(),
        here("report DIR"),
        here("report DIR --format html -o report.html"),
        here("report DIR --format md"),
        here("report DIR --format json"),
        here("report DIR --format csv"),
        here("report DIR --price server=0.34,client=0.17"),
        there("serve dyno-runs", "serve.rs", pages),
        there("serve dyno-runs --listen 127.0.0.1:8080 --allow-write", "serve.rs", pages),
        there(
            "serve dyno-runs --listen 10.0.0.5:8080 --token-file token",
            "serve.rs",
            "addresses_that_others_reach_want_a_token_and_everything_wants_it_then",
        ),
        side_by_side(here("run redis://db:6379 --rate 20k --duration 60s --seed 1 --out one")).beside(),
        side_by_side(here("run redis://db:6379 --rate 20k --duration 60s --seed 2 --out two")),
        here("merge one two").load(),
    ]
}

fn sysbench() -> Vec<Row> {
    vec![there(
        "sysbench-mongodb config.bash NUM_COLLECTIONS=4 RUN_TIME_SECONDS=60",
        "sysbench.rs",
        "data_and_transactions_are_those_of_the_original",
    )]
}

fn ycsb() -> Vec<Row> {
    vec![
        here("ycsb load redis -P workloads/workloada -p redis.host=127.0.0.1 -p recordcount=100000 -threads 16")
            .instead("recordcount=100000", "recordcount=1000")
            .more("-p redis.port=REDIS"),
        here("ycsb run redis -P workloads/workloada -p redis.host=127.0.0.1 -p operationcount=1000000 -threads 16 -s")
            .instead("operationcount=1000000", "operationcount=2000")
            .more("-p redis.port=REDIS")
            .load(),
    ]
}

fn wsf() -> Vec<Row> {
    let cases = "every_case_is_accepted_with_its_own_defaults";
    let pods = "two_pairs_of_wsf";
    vec![
        there("wsf gated", "wsf.rs", "gated_and_its_logs"),
        there("wsf 90read10update --bkm spr --run 3", "presets.rs", "best_known_configurations"),
        there("wsf -R test_mongodb_ycsb_90read10update -VV", "wsf_answers.rs", cases),
        there("wsf list-kpi --params logs-mongodb_ycsb_90read10update", "wsf.rs", "gated_and_its_logs"),
        here("wsf 90read10update --set 'TARGET=1000 2000 3000 ...8000'").more("--dry-run"),
        there(
            "wsf 90read10update --backend ssh --inventory hosts.ini --set CLIENT_COUNT=3",
            "ssh.rs",
            "two_pairs_of_wsf_on_hosts",
        ),
        there(
            "wsf 90read10update --backend kubernetes --kubernetes namespace=bench --kubernetes image=registry.example/dyno:0.1.0",
            "kubernetes/main.rs",
            pods,
        ),
        there(
            "wsf 90read10update --backend kubernetes --privileged --set NUMACTL_OPTION=1 --kubernetes namespace=bench",
            "kubernetes/nodes.rs",
            "wsf_with_privileges",
        ),
        here("wsf 90read10update --backend kubernetes --manifests manifests"),
    ]
}
