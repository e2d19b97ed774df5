//! Hosts of an inventory and pods instead of this host.

use crate::plan::cases::choose;
use crate::plan::lower::LoweredCase;
use crate::plan::lower::lower;
use crate::plan::lower::options::Deployment;
use crate::plan::lower::options::LowerOptions;
use crate::plan::lower::options::SshDeployment;
use crate::plan::*;
use dyno_config::experiment::{Experiment, read_plan};
use dyno_config::server::placement::Policy;
use dyno_config::server::tuning::{Rps, RpsWord};
use serde_json::json;

fn lowered(sets: &[&str], deployment: Deployment) -> Result<LoweredCase, String> {
    lowered_case("gated", sets, deployment)
}

fn lowered_case(typed: &str, sets: &[&str], deployment: Deployment) -> Result<LoweredCase, String> {
    let sets: Vec<SetOption> = sets.iter().map(|text| SetOption::parse(text).unwrap()).collect();
    let case = choose(typed).unwrap().case;
    let nothing: &dyn Fn(&str) -> Option<String> = &|_| None;
    let typed = typed.into();
    let reading = Reading::V25;
    let asked = CaseRequest {
        case,
        reading,
        typed,
        environment: nothing,
        configs: &[],
        sets: &sets,
        faithful: false,
    };
    lower(&resolve(&asked, 0).unwrap(), &LowerOptions { deployment, ..LowerOptions::default() })
        .map_err(|error| error.to_string())
}

fn experiment(sets: &[&str], deployment: Deployment) -> Experiment {
    let lowered = lowered(sets, deployment).unwrap();
    read_plan(&lowered.text, "wsf", &[]).unwrap_or_else(|e| panic!("{e}\n{}", lowered.text)).base
}

fn two_groups() -> Deployment {
    let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
    Deployment::Ssh(SshDeployment {
        inventory: "hosts.ini".into(),
        more: vec![("config".into(), json!("conf"))],
        servers: names(&["db1", "db2"]),
        clients: names(&["c1", "c2", "c3"]),
    })
}

#[test]
fn pairs_on_hosts() {
    let made = experiment(&["CLIENT_SERVER_PAIR=4", "CLIENT_COUNT=2"], two_groups());
    assert_eq!(made.ssh.servers, ["db1"], "all servers are on one host");
    assert_eq!(made.ssh.clients, ["c1", "c2"]);
    assert_eq!(made.server.as_ref().unwrap().instances, 4);
    assert_eq!(
        (made.ssh.inventory.as_deref(), made.ssh.config.as_deref()),
        (Some("hosts.ini"), Some("conf"))
    );
    // More machines than pairs would be idle.
    let made = experiment(&["CLIENT_SERVER_PAIR=2", "CLIENT_COUNT=3"], two_groups());
    assert_eq!(made.ssh.clients, ["c1", "c2"]);
    for single in ["RUN_SINGLE_NODE=true", "CLIENT_COUNT=0"] {
        assert_eq!(experiment(&["CLIENT_SERVER_PAIR=2", single], two_groups()).ssh.clients, ["db1"]);
    }
    let few = lowered(&["CLIENT_COUNT=9"], two_groups()).unwrap_err();
    assert!(few.contains("CLIENT_COUNT=9") && few.contains("3 hosts"), "{few}");
    let same =
        SshDeployment { servers: vec!["a".into()], clients: vec!["a".into()], ..SshDeployment::default() };
    let both = lowered(&["CLIENT_COUNT=1"], Deployment::Ssh(same)).unwrap_err();
    assert!(both.contains("RUN_SINGLE_NODE"), "{both}");
}

#[test]
fn pairs_in_pods() {
    let keys = || {
        Deployment::Kubernetes(vec![("namespace".into(), json!("bench")), ("pull".into(), json!("Never"))])
    };
    let sets = ["CLIENT_SERVER_PAIR=5", "CLIENT_COUNT=2", "KUBERNETES_RESOURCE_LIMITS=true"];
    let made = experiment(&[&sets[..], &["KUBERNETES_RESOURCE_LIMITS_MEMORY=4Gi"]].concat(), keys());
    let kubernetes = made.kubernetes.as_ref().unwrap();
    assert_eq!((kubernetes.worker_pods, made.server.as_ref().unwrap().instances), (5, 5));
    assert_eq!(kubernetes.namespace.as_deref(), Some("bench"));
    assert_eq!(kubernetes.workers.max_skew, Some(3), "five pods on two nodes");
    assert_eq!(kubernetes.servers.requests["cpu"].text(), "1");
    assert_eq!(kubernetes.servers.limits["memory"].text(), "4Gi");
    let (servers, workers) = (&kubernetes.servers.affinity, &kubernetes.workers.affinity);
    let text = |affinity: &Option<serde_json::Value>| affinity.as_ref().unwrap().to_string();
    assert!(!text(servers).contains("required"), "servers only prefer: {}", text(servers));
    assert!(text(servers).contains("\"worker\"") && text(servers).contains("podAffinity"));
    let must =
        &workers.as_ref().unwrap()["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(must["labelSelector"]["matchLabels"]["app.kubernetes.io/component"], "server");
    assert_eq!(must["labelSelector"]["matchLabels"]["dyno.run"], "{run}");
    let own = experiment(&["MAX_SKEW=7"], keys()).kubernetes.unwrap();
    assert_eq!(own.workers.max_skew, Some(7));
    for single in ["RUN_SINGLE_NODE=true", "CLIENT_COUNT=0"] {
        let kubernetes = experiment(&[single], keys()).kubernetes.unwrap();
        // All are drawn to the servers' node, and none must be there.
        for pods in [&kubernetes.servers, &kubernetes.workers] {
            let text = text(&pods.affinity);
            assert!(text.contains("podAffinity") && !text.contains("required"), "{single}: {text}");
        }
        assert_eq!(kubernetes.workers.max_skew, None);
    }
    let keys_that_win = Deployment::Kubernetes(vec![("workers.max_skew".into(), json!(9))]);
    assert_eq!(experiment(&[], keys_that_win).kubernetes.unwrap().workers.max_skew, Some(9));
}

#[test]
fn what_pods_cannot_have_is_refused() {
    let pods = || Deployment::Kubernetes(Vec::new());
    for (set, word) in [
        ("NUMACTL_OPTION=2", "NUMACTL_OPTION"),
        ("CUSTOMER_NUMAOPT_SERVER=-N%200", "CUSTOMER_NUMAOPT_SERVER"),
        ("YCSB_CORES=0-3", "YCSB_CORES"),
        ("DB_HOSTPATH=/mnt/data", "DB_HOSTPATH"),
        ("TLS_FLAG=1", "TLS_FLAG"),
    ] {
        let error = lowered(&[set], pods()).unwrap_err();
        assert!(error.contains(word), "{set}: {error}");
    }
    assert!(lowered(&["NUMACTL_OPTION=5"], pods()).is_ok());
    // One client machine is one node.
    let one = experiment(&["CLIENT_COUNT=1"], pods()).kubernetes.unwrap().workers.affinity.unwrap();
    let must = &one["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(must["labelSelector"]["matchLabels"]["app.kubernetes.io/component"], "worker");
    // What pods are told is not noted as idle.
    let notes = |deployment: Deployment| lowered(&["MAX_SKEW=2"], deployment).unwrap().notes.join("\n");
    assert!(notes(Deployment::Local).contains("MAX_SKEW: recorded"));
    assert!(!notes(pods()).contains("MAX_SKEW"));
}

/// As the original's pods, which are privileged and on the network of their node.
#[test]
fn pods_with_privileges_choose_cores_and_folders_of_their_node() {
    let pods = || Deployment::Kubernetes(vec![("servers.privileged".into(), json!(true))]);
    let of = |sets: &[&str]| experiment(sets, pods());
    let made = of(&["CLIENT_SERVER_PAIR=16", "CLIENT_COUNT=3", "NUMACTL_OPTION=1"]);
    assert_eq!(made.server.as_ref().unwrap().placement.policy, Policy::BindByPort);
    assert_eq!(made.server.as_ref().unwrap().port, Some(27_017));
    let kubernetes = made.kubernetes.unwrap();
    assert!(kubernetes.servers.privileged && !kubernetes.workers.privileged, "clients need none");
    let two = of(&["NUMACTL_OPTION=2", "CORES=0-3", "YCSB_CORES=4-7", "DB_HOSTPATH=/mnt/a%20/mnt/b"]);
    let server = two.server.as_ref().unwrap();
    assert_eq!((server.placement.policy, server.placement.cores.is_some()), (Policy::Node, true));
    assert_eq!(server.data.path.as_ref().unwrap().all_paths().len(), 2);
    assert_eq!(two.client.placement.cores.as_ref().unwrap().0, [4, 5, 6, 7]);
    assert!(two.kubernetes.unwrap().workers.privileged);
    let own = of(&["CUSTOMER_NUMAOPT_SERVER=numactl%20-N%200", "NUMACTL_OPTION=5"]);
    assert_eq!(own.server.unwrap().placement.numactl.as_deref(), Some("-N 0"));
    // Without them it is refused, with the option that allows it.
    let refused = lowered(&["NUMACTL_OPTION=1"], Deployment::Kubernetes(Vec::new())).unwrap_err();
    assert!(refused.contains("--privileged"), "{refused}");
}

#[test]
fn packets_are_steered_on_the_hosts_of_servers() {
    let of = |deployment: Deployment| {
        let sets = [SetOption::parse("NETWORK_RPS_TUNE_ENABLE=true").unwrap()];
        let asked = CaseRequest {
            case: choose("gated").unwrap().case,
            reading: Reading::V23,
            typed: "gated".into(),
            environment: &|_| None,
            configs: &[],
            sets: &sets,
            faithful: false,
        };
        let means = LowerOptions { deployment, ..LowerOptions::default() };
        let lowered = lower(&resolve(&asked, 0).unwrap(), &means).unwrap();
        (read_plan(&lowered.text, "wsf", &[]).unwrap().base.host.rps, lowered.notes.join("\n"))
    };
    let privileged = Deployment::Kubernetes(vec![("servers.privileged".into(), json!(true))]);
    for deployment in [two_groups(), privileged] {
        let (rps, notes) = of(deployment);
        assert_eq!(rps["*"], Rps::Word(RpsWord::All));
        assert!(!notes.contains("NETWORK_RPS_TUNE_ENABLE"), "{notes}");
    }
    for (deployment, message) in [
        (Deployment::Local, "a local run uses no network device"),
        (Deployment::Kubernetes(Vec::new()), "--privileged"),
    ] {
        let (rps, notes) = of(deployment);
        assert!(rps.is_empty() && notes.contains(message), "{notes}");
    }
}

/// Files of 25: records of 1 and 4 KB, and operations as they say them.
#[test]
fn files_of_25_are_known() {
    let of = |name: &str| {
        let sets = [format!("WORKLOAD_FILE={name}")];
        let lowered = lowered_case("90read10update", &[&sets[0]], Deployment::Local).unwrap();
        read_plan(&lowered.text, "wsf", &[]).unwrap_or_else(|e| panic!("{e}\n{}", lowered.text)).base
    };
    for (name, records, length) in [
        ("workloada_query", 16_000_000, "100"),
        ("workloada_combined", 16_000_000, "100"),
        ("load_4k", 4_000_000, "200"),
        ("mix73_1k", 16_000_000, "100"),
    ] {
        let made = of(name);
        let ycsb = made.workload.ycsb.as_ref().unwrap();
        assert_eq!(ycsb.records.as_ref().map(|count| count.0), Some(records), "{name}");
        assert_eq!(ycsb.properties["fieldlength"], length, "{name}");
        assert_eq!(
            ycsb.properties["maxscanlength"], "100",
            "{name}: the case says the shares, the file the rest"
        );
        assert_eq!(
            made.phases.measure.operations.as_ref().map(|count| count.0),
            Some(4_000_000),
            "{name}: blank means the file's"
        );
    }
}
