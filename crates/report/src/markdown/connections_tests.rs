//! Connections as bexhoma prints them: expected blocks are those of its Dragonfly examples.

use crate::markdown::of_experiment;
use crate::markdown::tests::experiment;
use dyno_rundir::ExperimentDir;
use dyno_rundir::monitor::Kind::Counter;
use dyno_rundir::monitor::MonitorWriter;
use dyno_types::host_facts::{CPUS, CPUS_ALLOWED, KERNEL_RELEASE, ROOT_USED};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// Levels of a cell: names and values.
type Levels<'a> = &'a [(&'a str, &'a str)];

const IMAGE: &str = "docker.dragonflydb.io/dragonflydb/dragonfly:v1.37.0";
const KERNEL: &str = "6.8.0-111-generic";

/// Nodes of the examples: name, memory (KiB), processor, cores.
const NODES: [(&str, u64, &str, u64); 4] = [
    ("cl-worker38", 527_825_076, "Intel(R) Xeon(R) Gold 6430", 128),
    ("cl-worker27", 1_052_130_148, "AMD EPYC 7742 64-Core Processor", 256),
    ("cl-worker34", 1_056_298_636, "AMD EPYC 7453 28-Core Processor", 56),
    ("cl-worker36", 2_113_450_436, "INTEL(R) XEON(R) PLATINUM 8570", 224),
];

/// Changes a file of JSON.
fn edit(file: &Path, change: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    change(&mut value);
    std::fs::write(file, value.to_string()).unwrap();
}

/// Gives a run facts, settings, and what it ran on.
fn describe_run(run: &Path, facts: &[(String, String)], settings: &[(&str, &str)]) {
    edit(&run.join("run.json"), |value| {
        value["facts"] = facts.iter().cloned().collect();
        let settings =
            settings.iter().map(|(key, value)| json!({"key": key, "value": value, "source": "-nw"}));
        value["settings"] = settings.collect();
    });
    edit(&run.join("summary.json"), |value| {
        value["database"] = "Dragonfly 1.37.0".into();
        value["target"] = "redis://10.0.0.1".into();
    });
}

/// Adds a loading phase to a run, and `workers` that took part in both.
fn add_load(run: &Path, workers: usize) {
    edit(&run.join("summary.json"), |value| {
        let mut load = value["phases"][0].clone();
        load["name"] = "load".into();
        value["phases"].as_array_mut().unwrap().insert(0, load);
        let phases = value["phases"].clone();
        let worker = |number: usize| json!({"number": number, "target": "redis://h", "phases": phases});
        let each: Vec<Value> = (1..=workers).map(worker).collect();
        std::fs::write(run.join("workers.json"), json!(each).to_string()).unwrap();
    });
}

/// Records a server, a worker and a database while the run measured.
fn watch_run(run: &Path) {
    let mut monitor = MonitorWriter::create_in(run, 1_000.0).unwrap();
    for second in 0..=12_u32 {
        let at = (1_700_000_000 + u64::from(second)) * 1_000_000_000;
        for source in ["server-redis", "worker-1"] {
            let row = [("cpu.user_s", 0.5), ("cpu.system_s", 0.25)];
            monitor.write_row(source, at, row.map(|(name, rate)| (name, Counter, rate * f64::from(second))));
        }
        monitor.write_row("database", at, [("operations", Counter, f64::from(second))]);
    }
}

/// What an agent says of its host.
fn environment(host: &str, cpu: &str, cores: u64, memory_kib: u64, disk_mib: u64) -> Value {
    let mut system = json!({"hash": "", "facts": {}, "volatile": {}});
    let facts = [
        (KERNEL_RELEASE, KERNEL.to_owned()),
        (CPUS, cores.to_string()),
        (CPUS_ALLOWED, format!("0-{}", cores - 1)),
    ];
    for ((group, name), value) in facts {
        system["facts"][group][name] = value.into();
    }
    // Less than a whole one more, which `df` counts.
    system["volatile"][ROOT_USED.0][ROOT_USED.1] = format!("{} bytes", (disk_mib << 20) - 4096).into();
    json!({"host": host, "kernel": format!("Linux {KERNEL} x86_64"), "cpu": cpu, "cores": [0], "memory_bytes": memory_kib << 10,
        "tuning": {}, "system": system})
}

/// Facts of a pod on a node, and of the node.
fn pod(name: &str, component: &str, node: usize, given: &[(&str, &str)]) -> Vec<(String, String)> {
    let (node, memory, _, cores) = NODES[node];
    let image = if component == "server" { IMAGE } else { "dyno:test" };
    let own =
        [("component", component), ("node", node), ("image", image), ("quality_of_service", "Burstable")];
    let mut facts: Vec<(String, String)> = own
        .iter()
        .chain(given)
        .map(|(key, value)| (format!("pod.{name}.{key}"), (*value).to_owned()))
        .collect();
    for (key, value) in
        [("memory", format!("{memory}Ki")), ("cores", cores.to_string()), ("kernel", KERNEL.to_owned())]
    {
        facts.push((format!("node.{node}.{key}"), value));
    }
    facts
}

/// Writes the description of the agent of a worker's pod.
fn write_agent(run: &Path, pod: &str, node: usize, disk_mib: u64) {
    let (_, memory, cpu, cores) = NODES[node];
    let text = environment(pod, cpu, cores, memory, disk_mib).to_string();
    std::fs::write(run.join(format!("environment-{pod}.json")), text).unwrap();
}

/// An experiment of a code, whose runs are given what they ran on.
fn summary_of(
    folder: &Path,
    code: &str,
    cells: &[(&str, Levels)],
    runs: u64,
    change: impl Fn(&Path),
) -> String {
    let home = folder.join(code);
    std::fs::create_dir(&home).unwrap();
    experiment(&home, cells, runs, 12);
    for run in std::fs::read_dir(home.join("runs")).unwrap() {
        change(&run.unwrap().path());
    }
    of_experiment(&ExperimentDir::open(&home).unwrap())
}

fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let begin = text.find(&format!("{heading}\n")).unwrap_or_else(|| panic!("{heading}: {text}"));
    let rest = &text[begin + heading.len()..];
    &rest[..rest.find("\n#").unwrap_or(rest.len())]
}

/// First columns of all tables, with the heading above each.
fn first_columns(text: &str) -> Vec<(String, Vec<String>)> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    let (mut heading, mut inside) = ("", false);
    for line in text.lines() {
        if line.starts_with('#') {
            heading = line;
        }
        if line.starts_with('|') && !inside {
            all.push((heading.to_owned(), Vec::new()));
        } else if line.starts_with('|') && !line.starts_with("|:") {
            let cell = line.split('|').nth(1).unwrap().trim().to_owned();
            all.last_mut().unwrap().1.push(cell);
        }
        inside = line.starts_with('|');
    }
    all
}

fn assert_unique(text: &str) {
    for (heading, names) in first_columns(text) {
        let distinct: BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{heading}: {names:?}");
    }
}

#[test]
fn each_repetition_is_a_connection_with_bexhomas_lines() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        summary_of(folder.path(), "1781948791", &[("x", &[("configuration", "Dragonfly-1")])], 2, |run| {
            let given = [("requests_cpu", "4"), ("requests_memory", "64Gi"), ("limits_memory", "64Gi")];
            let mut facts = pod("d-s0-0", "server", 0, &given);
            facts.extend(pod("d-w-0-abcde", "worker", 0, &[]));
            describe_run(run, &facts, &[("server.topology", "single"), ("server.replicas", "0")]);
            write_agent(run, "d-w-0-abcde", 0, 214_909);
        });
    let lines = |repetition: u32| {
        format!(
            "* Dragonfly-1-{repetition}-1-1 uses docker image {IMAGE}
  * RAM:540492877824
  * CPU:Intel(R) Xeon(R) Gold 6430
  * Cores:128
  * host:6.8.0-111-generic
  * node:cl-worker38
  * disk:214909
  * cpu_list:0-127
  * requests_cpu:4
  * requests_memory:64Gi
  * limits_memory:64Gi
  * eval_parameters
    * code:1781948791
  * client pod 1
    * RAM:540492877824
    * CPU:Intel(R) Xeon(R) Gold 6430
    * Cores:128
    * host:6.8.0-111-generic
    * node:cl-worker38
    * disk:214909
    * cpu_list:0-127
    * image:dyno:test
  * database:Dragonfly 1.37.0
  * target:redis://10.0.0.1
  * cell:x
"
        )
    };
    let connections = section(&text, "### Connections");
    assert_eq!(connections, format!("\n{}{}", lines(1), lines(2)));
    assert_unique(&text);
}

#[test]
fn each_member_of_a_cluster_has_facts_of_its_own_node() {
    let folder = tempfile::tempdir().unwrap();
    let cell: (&str, Levels) = ("x", &[("configuration", "DragonflyCluster-1")]);
    let text = summary_of(folder.path(), "1781948251", &[cell], 1, |run| {
        let mut facts = pod("d-s10-0", "server", 2, &[("cpus_allowed", "0-7,16")]);
        facts.extend(pod("d-s0-0", "server", 3, &[]));
        facts.extend(pod("d-s2-0", "server", 1, &[("requests_cpu", "4")]));
        facts.extend(pod("d-w-0-abcde", "worker", 3, &[]));
        facts.push(("node.cl-worker27.disk_used_bytes".into(), (1_416_155_u64 << 20).to_string()));
        // A kubelet may have given it cores of its own.
        facts.retain(|(key, _)| key != "pod.d-s2-0.quality_of_service");
        facts.push(("pod.d-s2-0.quality_of_service".into(), "Guaranteed".into()));
        let settings = [("server.topology", "cluster"), ("server.members", "3"), ("server.replicas", "1")];
        describe_run(run, &facts, &settings);
        write_agent(run, "d-w-0-abcde", 3, 1_324_192);
    });
    let expected = format!(
        "
* DragonflyCluster-1-1-1-1 uses docker image {IMAGE}
  * worker 0
    * RAM:2164173246464
    * CPU:INTEL(R) XEON(R) PLATINUM 8570
    * Cores:224
    * host:6.8.0-111-generic
    * node:cl-worker36
    * disk:1324192
    * cpu_list:0-223
  * worker 1
    * RAM:1077381271552
    * Cores:256
    * host:6.8.0-111-generic
    * node:cl-worker27
    * disk:1416155
    * requests_cpu:4
  * worker 2
    * RAM:1081649803264
    * Cores:56
    * host:6.8.0-111-generic
    * node:cl-worker34
    * cpu_list:0-7,16
  * eval_parameters
    * code:1781948251
    * BEXHOMA_REPLICAS:1
    * BEXHOMA_WORKERS:3
  * client pod 1
"
    );
    let connections = section(&text, "### Connections");
    assert!(connections.starts_with(&expected), "{connections}");
}

/// Servers on two hosts of ssh, load from a third and from this host.
#[test]
fn servers_and_clients_on_hosts_of_ssh_have_facts_of_their_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let text = summary_of(folder.path(), "1", &[("x", &[("configuration", "Redis-1")])], 1, |run| {
        let fact = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let facts = [
            fact("server-a.example.redis-7000.command", "redis-server"),
            fact("server-a.example.redis-7000.cpus_allowed", "0-3"),
            fact("server-b.redis-7001.command", "redis-server"),
        ];
        describe_run(run, &facts, &[("server.topology", "replication"), ("server.replicas", "1")]);
        write_agent(run, "a.example", 0, 5);
        write_agent(run, "load", 1, 6);
        edit(&run.join("summary.json"), |value| {
            value["phases"][0]["hosts"] = json!([
                {"name": "this", "local": true, "role": "client"},
                {"name": "a.example", "role": "server"},
                {"name": "b", "role": "server"},
                {"name": "load", "role": "client"},
            ]);
        });
        edit(&run.join("environment.json"), |value| value["host"] = "this".into());
    });
    let expected = "
* Redis-1-1-1-1 uses Dragonfly 1.37.0 at redis://10.0.0.1
  * worker 0
    * RAM:540492877824
    * CPU:Intel(R) Xeon(R) Gold 6430
    * Cores:128
    * host:6.8.0-111-generic
    * node:a.example
    * disk:5
    * cpu_list:0-3
  * worker 1
    * node:b
  * eval_parameters
    * code:1
    * BEXHOMA_REPLICAS:1
    * BEXHOMA_WORKERS:2
  * client host 1
    * RAM:1077381271552
    * CPU:AMD EPYC 7742 64-Core Processor
    * Cores:256
    * host:6.8.0-111-generic
    * node:load
    * disk:6
    * cpu_list:0-255
  * client host 2
    * node:this
";
    let connections = section(&text, "### Connections");
    assert!(connections.starts_with(expected), "{connections}");
}

#[test]
fn the_only_server_of_this_host_has_its_cores_and_several_have_a_section_each() {
    let folder = tempfile::tempdir().unwrap();
    let of = |code: &str, names: &[&str]| {
        let text = summary_of(folder.path(), code, &[("x", &[("configuration", "Redis-1")])], 1, |run| {
            let facts = names.iter().enumerate().flat_map(|(at, name)| {
                let fact = |key: &str, value: &str| (format!("server.{name}.{key}"), value.to_owned());
                [fact("command", "redis-server"), fact("cpus_allowed", &at.to_string())]
            });
            describe_run(run, &facts.collect::<Vec<_>>(), &[]);
            let text = environment("here", "a processor", 4, 1024, 7).to_string();
            std::fs::write(run.join("environment.json"), text).unwrap();
        });
        section(&text, "### Connections").to_owned()
    };
    let facts = |indent: &str, core: usize| {
        let all =
            ["RAM:1048576", "CPU:a processor", "Cores:4", "host:6.8.0-111-generic", "node:here", "disk:7"];
        let lines: String = all.iter().map(|fact| format!("{indent}* {fact}\n")).collect();
        format!("{lines}{indent}* cpu_list:{core}\n")
    };
    let alone = of("1", &["redis-7000"]);
    assert!(alone.contains(&format!("redis://10.0.0.1\n{}  * eval_parameters\n", facts("  ", 0))), "{alone}");
    assert!(!alone.contains("client"), "load from the same host: {alone}");
    let pair = of("2", &["redis-9999", "redis-10000"]);
    let expected = format!("  * worker 0\n{}  * worker 1\n{}  * eval", facts("    ", 0), facts("    ", 1));
    assert!(pair.contains(&expected), "{pair}");
}

#[test]
fn rounds_that_load_again_have_names_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let cells: [(&str, Levels); 2] = [
        ("one", &[("configuration", "Redis-1"), ("client", "1")]),
        ("two", &[("configuration", "Redis-1"), ("client", "2")]),
    ];
    let text = summary_of(folder.path(), "1", &cells, 2, |run| {
        describe_run(run, &[], &[]);
        add_load(run, 2);
        watch_run(run);
    });
    let connections = section(&text, "### Connections");
    let names: Vec<&str> =
        connections.lines().filter_map(|line| line.strip_prefix("* ")?.split(' ').next()).collect();
    assert_eq!(names, ["Redis-1-1-1-1", "Redis-1-1-2-1", "Redis-1-2-1-1", "Redis-1-2-2-1"]);
    let columns = first_columns(&text);
    let column =
        |heading: &str, at: usize| &columns.iter().filter(|(known, _)| known == heading).nth(at).unwrap().1;
    assert_eq!(
        column("#### Per Connection", 0)[..3],
        ["Redis-1-1-0-1-1 Client 1", "Redis-1-1-0-1-2 Client 1", "Redis-1-2-0-1-1 Client 1"]
    );
    assert_eq!(
        *column("#### Per Run", 0),
        [
            "Redis-1-1 Client 1",
            "Redis-1-2 Client 1",
            "Redis-1 Client 1",
            "Redis-1-1 Client 2",
            "Redis-1-2 Client 2",
            "Redis-1 Client 2"
        ]
    );
    assert_eq!(column("#### Per Phase", 0)[..2], ["Redis-1-1-1", "Redis-1-2-1"]);
    let jobs = ["Redis-1-1-1-1", "Redis-1-2-1-1", "Redis-1-1-2-1", "Redis-1-2-2-1"];
    for heading in ["SUT deployment", "component benchmarker"] {
        assert_eq!(*column(&format!("### Execution phase: {heading}"), 0), jobs);
    }
    assert_eq!(*column("#### Execution phase: SUT deployment", 0), jobs);
    assert_unique(&text);
    // Data that are loaded once a run have bexhoma's names.
    let folder = tempfile::tempdir().unwrap();
    let text = summary_of(folder.path(), "1", &cells, 1, |run| {
        if run.ends_with("1-1") {
            add_load(run, 2);
        }
    });
    let columns = first_columns(&text);
    assert_eq!(columns[0].1, ["Redis-1-1-0-1-1", "Redis-1-1-0-1-2"]);
    assert_eq!(columns[1].1, ["Redis-1-1"]);
}

#[test]
fn cells_of_one_configuration_that_differ_elsewhere_have_names_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let cells: [(&str, Levels); 2] = [
        ("one", &[("configuration", "a"), ("size", "1")]),
        ("two", &[("configuration", "a"), ("size", "2")]),
    ];
    let text = summary_of(folder.path(), "1", &cells, 2, |run| add_load(run, 1));
    assert_unique(&text);
    assert!(text.contains("* a-1-1-1-1 uses ") && text.contains("* a-2-2-1-1 uses "), "{text}");
}
