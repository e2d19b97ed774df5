//! Examples of each command; YCSB and bexhoma have a help of their own.

/// A command, and what may be typed behind it.
pub(super) const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "run",
        &[
            "redis://127.0.0.1:6379 --workload b --records 1M --users 64 --duration 1m",
            "mongodb://127.0.0.1:27017 --rate 20k --connections 64 --require 'p99(read) < 5ms'",
            "experiment.yaml --out sweep",
        ],
    ),
    (
        "record",
        &[
            "monitor.txt -o traffic.dyno",
            "appendonly.aof.1.incr.aof -o writes.dyno",
            "traffic.pcap -o traffic.dyno",
            "--listen 127.0.0.1:6380 --to redis://127.0.0.1:6379 --duration 10m",
            "- -o traffic.dyno < monitor.txt",
        ],
    ),
    (
        "replay",
        &[
            "traffic.dyno redis://127.0.0.1:6379",
            "traffic.dyno redis://127.0.0.1:6379 --speed 3 --require 'p99 < 5ms'",
            "traffic.dyno redis://127.0.0.1:6379 --only reads --from 10m --to 20m",
        ],
    ),
    ("learn", &["traffic.dyno", "traffic.dyno -o work.yaml", "traffic.dyno -o work.yaml --seed 7"]),
    (
        "top",
        &[
            "redis://127.0.0.1:6379",
            "mongodb://127.0.0.1:27017 --interval 5s",
            "redis://127.0.0.1:6379 --count 10 --json",
        ],
    ),
    (
        "clean",
        &[
            "redis://127.0.0.1:6379",
            "redis://127.0.0.1:6379 --yes",
            "mongodb://db/shop /srv/results --password-from env:MONGO_PASSWORD",
        ],
    ),
    ("selftest", &["", "--json", "-v"]),
    ("init", &["", "--example first", "quick/engines --out engines.yaml"]),
    ("presets", &["", "quick/users", "percona/storage-engines --scale 200"]),
    ("plan", &["experiment.yaml", "quick/users", "experiment.yaml --set repetitions=5"]),
    ("status", &["sweep", "sweep --json", "night --wait"]),
    ("logs", &["night", "night --follow", "dyno-runs/20261121-101500-sweep -f"]),
    ("fetch", &["night", "night --remove", "dyno-runs/20261121-101500-sweep"]),
    ("resume", &["sweep", "sweep --quiet", "sweep --json"]),
    ("stop", &["sweep", "dyno-runs/20261121-101500-users", "sweep --password-from env:PASSWORD"]),
    ("sample", &["shop.yaml", "shop.yaml --documents 3", "docs/examples/users.yaml -n 1"]),
    ("list", &["", "/srv/results", "--json"]),
    (
        "report",
        &[
            "dyno-runs/20261121-101500-workloada",
            "dyno-runs/20261121-101500-workloada --format md --out summary.md",
            "sweep --price server=0.34,client=0.17",
        ],
    ),
    ("explain", &["sweep", "run-1 run-2 run-3", "sweep --json"]),
    ("compare", &["before after", "before after --fail-on worse --html compared.html", "sweep --by engine"]),
    ("history", &["dyno-runs", "dyno-runs --figure 'p99(read)'", "dyno-runs --fail-on-worse"]),
    (
        "prove",
        &[
            "ingest 'mongodb://127.0.0.1:27017/proof?replicaSet=rs' --size small",
            "failover redis --rounds 3",
            "failover mongod --by cut",
        ],
    ),
    ("serve", &["", "dyno-runs", "dyno-runs --listen 127.0.0.1:8080"]),
    (
        "export",
        &[
            "dyno-runs/20261121-101500-workloada --format csv --out intervals.csv",
            "sweep --format xlsx --out sweep.xlsx",
            "sweep --format parquet --table runs --out runs.parquet",
        ],
    ),
    (
        "import",
        &[
            "ycsb ycsb.out --out old",
            "sysbench-mongodb run.txt.tsv --out old",
            "csv results.csv --out old --throughput tps --duration 60s",
        ],
    ),
    ("merge", &["run-1 run-2", "run-1 run-2 --json", "run-1 run-2 --sequential"]),
    ("requests", &["calibration", "calibration --options", "dyno-runs/20261121-101500-sweep"]),
    ("grafana", &["", "--out dashboards", "--out /var/lib/grafana/dashboards"]),
    (
        "sysbench-mongodb",
        &[
            "",
            "config.bash",
            "URI=mongodb://127.0.0.1:27017 NUM_DOCUMENTS_PER_COLLECTION=200 RUN_TIME_SECONDS=10",
        ],
    ),
    ("pocdriver", &["-p", "-c mongodb://127.0.0.1:27017 -t 4 -d 60", "-k 20 -q 500 -d 60"]),
    (
        "memtier",
        &[
            "-s 127.0.0.1 -t 2 -c 10 --test-time 30",
            "-n allkeys --key-pattern P:P --ratio 1:0",
            "--command 'ZADD board 1 __key__' --json-out-file out.json",
        ],
    ),
    ("redis-benchmark", &["-q", "-t set,get -n 100000 -r 100000", "--csv -P 16 -t get"]),
    (
        "valkey-benchmark",
        &[
            "-q",
            "-t set,get -n 100000 -r 100000",
            "-r 1000 -- set k:__rand_1st__ __data__ ';' get k:__rand_1st__",
        ],
    ),
    (
        "wsf",
        &["gated", "90read10update --bkm spr --run 3", "90read10update --set THREADS=16/32/64 --out sweep"],
    ),
    ("doctor", &["", "--json", "--profile wsf/bkm-icx"]),
    ("schema", &["", "summary", "experiment"]),
    ("completions", &["bash", "zsh", "fish"]),
];
