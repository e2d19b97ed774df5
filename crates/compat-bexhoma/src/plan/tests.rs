use crate::plan::expand::PodShare;
use crate::plan::flags::parse;
use crate::plan::lower::LoweredExperiment;
use crate::plan::lower::lower;
use crate::plan::options::Options;
use dyno_config::experiment::{ExperimentPlan, read_plan};
use dyno_config::server::data::Reuse;
use dyno_config::server::{ServerKind, Topology};
use dyno_presets as presets;

const COMMON: &str = "-dbms Dragonfly -sf 1 -xwl a -xtb 16384 -xnbf 4 -xnlf 12 -ne 1 -nlp 8 -nlt 64 -nbp 1 -nbt 128 \
                      -xop 10 -m -ma -mc -tr -rnn cl-worker11 -rnl cl-worker19 -rnb cl-worker19";
/// What the seed's five commands have beside that.
const OWN: [&str; 5] = [
    "-nc 1 -lr 64Gi -rr 64Gi run",
    "-nc 1 -nw 3 -ms 1 -lr 64Gi -rr 64Gi run",
    "-nc 1 -nw 3 -nwr 1 run",
    "-nc 2 -lr 64Gi -rr 64Gi -rsr -rss 50Gi -rst shared run",
    "-nc 2 -nw 3 -lr 64Gi -rr 64Gi -rsr -rss 50Gi -rst shared run",
];

fn split_words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn made(text: &str) -> Result<LoweredExperiment, String> {
    let typed = parse(&split_words(text)).map_err(|error| error.to_string())?;
    Options::read(typed).and_then(|options| lower(&options)).map_err(|refused| refused.to_string())
}

fn seed(number: usize) -> LoweredExperiment {
    made(&format!("{COMMON} {}", OWN[number - 1])).unwrap()
}

fn planned(text: &str) -> ExperimentPlan {
    read_plan(text, "x.yaml", &[]).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn small(more: &str) -> Result<LoweredExperiment, String> {
    made(&format!("-dbms Redis -xwl a {more} run"))
}

#[test]
fn presets_are_the_seeds_five_commands() {
    for number in 1..=5 {
        let lowered = planned(&seed(number).text);
        let name = format!("bexhoma/dragonfly-{number}");
        let text = presets::find(&name).unwrap().text(None).unwrap();
        let preset = planned(&text);
        assert_eq!(preset.runs, lowered.runs, "{name}");
        let bare = |plan: &ExperimentPlan| {
            let mut spec = plan.cells[0].spec.clone();
            (spec.name, spec.description) = (None, None);
            spec
        };
        assert_eq!((preset.cells.len(), lowered.cells.len()), (1, 1), "{name}");
        assert_eq!(bare(&preset), bare(&lowered), "{name}");
        for (word, kind) in [("redis", ServerKind::Redis), ("valkey", ServerKind::Valkey)] {
            let other = read_plan(&text, &name, &[format!("server.kind={word}")]).unwrap();
            assert_eq!(other.base.server.unwrap().kind, kind);
        }
    }
}

#[test]
fn the_seeds_servers_volumes_and_nodes() {
    let spec = |number: usize| planned(&seed(number).text).base;
    let server = |number: usize| spec(number).server.unwrap();
    assert_eq!((server(1).topology, server(1).processes()), (Topology::Single, 1));
    assert_eq!((server(2).topology, server(2).processes()), (Topology::Cluster, 3));
    // Three servers of which two copy the first, and that is what is told.
    assert_eq!(
        (server(3).topology, server(3).replicas, server(3).processes()),
        (Topology::Replication, 2, 3)
    );
    let pods = |number: usize| spec(number).kubernetes.unwrap();
    let memory = |number: usize| {
        let servers = pods(number).servers;
        (servers.requests["memory"].text(), servers.limits.get("memory").map(|limit| limit.text()))
    };
    assert_eq!(memory(1), ("64Gi".into(), Some("64Gi".into())));
    assert_eq!(memory(3), ("16Gi".into(), None), "the defaults: a request, no limit");
    assert_eq!(pods(1).servers.requests["cpu"].text(), "4");
    assert_eq!(pods(1).servers.node_selector["kubernetes.io/hostname"], "cl-worker11");
    assert_eq!(pods(1).workers.node_selector["kubernetes.io/hostname"], "cl-worker19");
    // Members of a cluster are spread over nodes, as in the example.
    assert!([2, 3, 5].iter().all(|number| pods(*number).servers.node_selector.is_empty()));
    assert!(pods(1).storage.is_none());
    let storage = pods(5).storage.unwrap();
    assert_eq!((storage.class.as_deref(), storage.size.0, storage.keep), (Some("shared"), 50 << 30, false));
    // -rst names a volume, another one for a cluster than for a single server; -rsr begins with an empty one.
    let volume = |number: usize| server(number).data.volume;
    assert!(volume(1).is_none());
    for (number, name) in [(4, "dragonfly-ycsb-1"), (5, "dragonflycluster-ycsb-1")] {
        let volume = volume(number).unwrap();
        assert_eq!((volume.name.as_str(), volume.reuse), (name, Reuse::Own));
    }
    assert_eq!([1, 2, 3, 4, 5].map(|number| planned(&seed(number).text).runs.len()), [1, 1, 1, 2, 2]);
}

#[test]
fn the_seeds_pods_and_names() {
    for number in 1..=5 {
        let lowered = seed(number);
        let [one] = lowered.configurations.as_slice() else { panic!("{number}: one configuration") };
        let loaders = one.loading.each();
        assert_eq!(loaders.len(), 8);
        assert!(
            loaders.iter().all(|pod| (pod.threads, pod.target, pod.operations) == (8, 24_576.0, 125_000))
        );
        let [round] = one.rounds.as_slice() else { panic!("{number}: one round") };
        let drivers = round.job.each();
        assert_eq!(drivers, [PodShare { child: 1, threads: 128, target: 65_536.0, operations: 10_000_000 }]);
        let kind = if [1, 4].contains(&number) { "Dragonfly" } else { "DragonflyCluster" };
        assert_eq!(one.name, format!("{kind}-1"));
        assert_eq!(one.run(1), format!("{kind}-1-1"));
        assert_eq!(one.phase(2, 1), format!("{kind}-1-2-1"));
        assert_eq!(one.job(1, 1), format!("{kind}-1-1-1-1"));
        assert_eq!(one.connection(1, 1, 1), format!("{kind}-1-1-1-1-1"));
        assert_eq!(one.connection(1, 0, 3), format!("{kind}-1-1-0-1-3"));
        let spec = planned(&lowered.text).base;
        let (load, measure) = (&spec.phases.load, &spec.phases.measure);
        assert_eq!((load.workers, load.users, load.rate.as_deref()), (Some(8), 64, Some("196608")));
        assert_eq!(
            (measure.workers, measure.connections, measure.rate.as_deref()),
            (Some(1), Some(128), Some("65536"))
        );
        assert_eq!(spec.kubernetes.unwrap().worker_pods, 8);
        assert!(spec.monitors.enabled);
    }
}

#[test]
fn lists_nest_as_in_the_original() {
    let lists = "-dbms Redis,Dragonfly -xwl b -nlt 4,8 -nlp 2,4 -xnlf 1,3 -xnbf 1,2 -nbt 6,12 -nbp 1,3 -ne 1,2 -nc 2 run";
    let lowered = made(lists).unwrap();
    let names: Vec<&str> = lowered.configurations.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names[..4], ["Redis-1", "Dragonfly-1", "Redis-2", "Dragonfly-2"]);
    let loads: Vec<(u64, u64, u64)> = lowered
        .configurations
        .iter()
        .step_by(2)
        .map(|one| (one.loading.threads, one.loading.pods, one.loading.target / 16_384))
        .collect();
    let expected = [(4, 2, 1), (4, 2, 3), (4, 4, 1), (4, 4, 3), (8, 2, 1), (8, 2, 3), (8, 4, 1), (8, 4, 3)];
    assert_eq!(loads, expected);
    let rounds = &lowered.configurations[0].rounds;
    assert_eq!(rounds.len(), 16);
    // -ne multiplies pods, threads and target, and leaves the operations as they are.
    let [one, two, three] = [rounds[0].job, rounds[1].job, rounds[2].job];
    assert_eq!((one.pods, one.threads, one.target, one.operations), (1, 6, 16_384, 1_000_000));
    assert_eq!((two.pods, two.threads, two.target, two.operations), (2, 12, 32_768, 1_000_000));
    assert_eq!((three.pods, three.threads), (3, 6));
    let plan = planned(&lowered.text);
    assert_eq!((plan.cells.len(), plan.runs.len()), (16 * 16, 16 * 16 * 2));
    let cell = &plan.cells[16 + 2];
    assert_eq!(cell.levels_label(), "configuration=Dragonfly-1 client=3");
    assert_eq!(cell.spec.server.as_ref().unwrap().kind, ServerKind::Dragonfly);
    assert_eq!((cell.spec.phases.load.workers, cell.spec.phases.measure.workers), (Some(2), Some(3)));
}

#[test]
fn remainders_are_spread_and_none_is_dropped() {
    let lowered = small("--scale 1000000 -xop 7 -nlp 3 -nlt 10 -xtb 100 -nbp 4 -nbt 9 --local").unwrap();
    let one = &lowered.configurations[0];
    let threads: Vec<u64> = one.loading.each().iter().map(|pod| pod.threads).collect();
    assert_eq!(threads, [4, 3, 3]);
    let job = one.rounds[0].job;
    let drivers: Vec<(u64, u64)> = job.each().iter().map(|pod| (pod.threads, pod.operations)).collect();
    assert_eq!(drivers, [(3, 2), (2, 2), (2, 2), (2, 1)]);
    let target: f64 = one.loading.each().iter().map(|pod| pod.target).sum();
    assert!((target - 100.0).abs() < 1e-9);
    for message in [
        "client 0: 10 threads over 3 pods: bexhoma's floor makes 9",
        "client 0: 100 operations/s",
        "client 1: 9 threads",
    ] {
        assert!(lowered.notes.iter().any(|note| note.contains(message)), "{message}: {:?}", lowered.notes);
    }
    assert!(seed(1).notes.iter().all(|note| !note.contains("floor")), "the seed's divisions come out even");
}

#[test]
fn what_does_not_apply_is_refused_or_noted_by_name() {
    let refused = [
        ("-aws", "-aws: is not offered"),
        ("-sl", "-sl: a server of its own begins with nothing: expected -e CODE, or -rst"),
        ("-sl -rst shared -rss 1Gi -rsr", "-sl: the volume is to be empty (-rsr)"),
        ("-nws 2", "-nws: is not offered: shards are Citus'"),
        ("-xnpp 1,2", "PgBouncer"),
        ("-xsbs 100", "JDBC"),
        ("-xnsr 2", "TiDB"),
        ("-mtn 2", "tenants"),
        ("-rgt a100", "GPU"),
        ("-rst shared", "-rst shared: expected -rss"),
        ("-rst ramdisk -rss 1Gi", "-rst ramdisk"),
        ("-nw 2", "-nw 2: a cluster has 3"),
        ("-nwr 1", "-nwr: replicas are of a cluster"),
        ("-nlp 8", "-nlt 1: fewer threads than the 8 pods of -nlp"),
        ("-nc 0", "-nc 0: expected a whole number from 1"),
        ("-nbt 1,x", "-nbt x: expected a whole number"),
        ("-sf 0.5", "-sf 0.5: expected a whole number"),
        ("-lr lots", "-lr lots: expected a quantity"),
        ("-xio random", "-xio random: expected hashed or ordered"),
        ("-xwl g", "-xwl g: expected a workload"),
        ("--scale 3", "--scale 3: expected a divisor"),
        ("-dbms PostgreSQL", "-dbms PostgreSQL: is no key-value store"),
        ("-dbms Mongo", "expected Redis, Valkey, KeyDB, Dragonfly"),
        ("-xopp 3", "-xopp: is no flag of bexhoma ycsb"),
        ("-nc -m", "-nc: expected a value"),
        ("-m=1", "-m: takes no value"),
        ("load", "a mode was given before"),
    ];
    for (given, why) in refused {
        let found = small(given).map(|lowered| lowered.text).expect_err(given);
        assert!(found.contains(why), "{given}: {found}");
    }
    assert!(made("-xwl a run").unwrap_err().contains("-dbms: expected Redis"));
    assert!(parse(&split_words("empty")).unwrap_err().to_string().contains("TPC"));
    let noted = [
        ("-t 60", "-t: without effect"),
        ("-xli 1", "-xli: without effect: every second"),
        ("-rg 2", "-rg: without effect"),
        ("-db", "-db: without effect"),
        (
            "-ms 4",
            "-ms: runs of this experiment follow each other, one server at a time; servers of other experiments are not counted",
        ),
        ("-xio ordered", "-xio: holds for every workload"),
        ("-nw 3 -nwr 1", "6 processes in all"),
        ("--local -rnn a -rss 1Gi", "-rnn, -rss: without effect on this host"),
        ("-xnbf 1,2", "each has a server and loaded data of its own"),
    ];
    for (given, why) in noted {
        let notes = small(given).unwrap().notes;
        assert!(notes.iter().any(|note| note.contains(why)), "{given}: {notes:?}");
    }
    // Dragonfly is one primary with copies beside a cluster of Redis.
    let both = planned(&small("-dbms Dragonfly -nw 3 -nwr 1").unwrap().text);
    let shapes = both.cells.iter().map(|cell| {
        let server = cell.spec.server.clone().unwrap();
        (server.kind, server.topology, server.primaries(), server.replicas)
    });
    assert_eq!(
        shapes.collect::<Vec<_>>(),
        [(ServerKind::Redis, Topology::Cluster, 3, 1), (ServerKind::Dragonfly, Topology::Replication, 1, 2)]
    );
    // What is not offered may be given with its default, as scripts do.
    assert!(small("-xnsr 1 -mtn 0 -nws 0").is_ok());
}

#[test]
fn on_this_host_volumes_are_folders() {
    let lowered = small("--local -rst shared --scale 1000 --resultfolder there").unwrap();
    let data = planned(&lowered.text).base.server.unwrap().data;
    assert_eq!(data.path.unwrap().of_process(0).to_str(), Some("there/volumes"));
    let volume = data.volume.unwrap();
    assert_eq!((volume.name.as_str(), volume.reuse), ("redis-ycsb-1-of-1000", Reuse::Matching));
    let several = small("--local -rst shared -dbms Valkey").unwrap();
    let plan = planned(&several.text);
    let names = plan.cells.iter().map(|cell| cell.spec.server.clone().unwrap().data.volume.unwrap().name);
    assert_eq!(names.collect::<Vec<_>>(), ["redis-ycsb-1", "valkey-ycsb-1"]);
}

#[test]
fn on_this_host_limits_are_the_servers() {
    let spec =
        planned(&small("--local -lr 2Gi -lc 1500m -xmet 30 -xtb 0 -nlp 2 -nlt 2 --scale 1000").unwrap().text)
            .base;
    assert!(spec.kubernetes.is_none() && !spec.monitors.enabled);
    let limits = spec.server.unwrap().limits;
    assert_eq!((limits.memory.unwrap().0, limits.cpus), (2 << 30, Some(1.5)));
    assert_eq!(spec.client.workers, 2);
    assert_eq!(spec.workload.ycsb.unwrap().records.unwrap().0, 1000);
    // A base of nothing is no target.
    assert_eq!((spec.phases.load.rate, spec.phases.measure.rate), (None, None));
    assert_eq!(spec.phases.measure.duration.unwrap().0, 30_000_000_000);
}

#[test]
fn loading_and_benchmarking_on_nodes_of_their_own() {
    let made = |flags: &str| planned(&small(flags).unwrap().text).base;
    let pods = |flags: &str| made(flags).kubernetes.unwrap();
    let node = |pods: &dyno_config::experiment::kubernetes::Pods| {
        pods.node_selector.get("kubernetes.io/hostname").cloned()
    };
    let both = pods("-rnl a -rnb a -nlp 8 -nlt 8");
    assert_eq!((both.worker_pods, both.load_pods, node(&both.workers)), (8, 0, Some("a".into())));
    let own = pods("-rnl a -rnb b -nlp 8 -nlt 8 -nbp 2 -nbt 2 -ne 1,2");
    assert_eq!((own.worker_pods, own.load_pods), (4, 8));
    assert_eq!((node(&own.workers), node(&own.loaders)), (Some("b".into()), Some("a".into())));
    let one = pods("-rnl a");
    assert_eq!((one.load_pods, node(&one.workers), node(&one.loaders)), (1, None, Some("a".into())));
    // Ten workers: eight load, the two others measure.
    let spec = made("-rnl a -rnb b -nlp 8 -nlt 8 -nbp 2 -nbt 2");
    assert_eq!((spec.taking_part(true, 10), spec.taking_part(false, 10)), (0..8, 8..10));
    let shared = made("-nlp 8 -nlt 8 -nbp 2 -nbt 2");
    assert_eq!((shared.taking_part(true, 8), shared.taking_part(false, 8)), (0..8, 0..2));
}
