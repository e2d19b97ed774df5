use crate::servers::placement::*;
use dyno_monitor::topology::trees::{self, EPYC, GUEST, SNC4, TWO_SOCKETS};

fn machine(tree: &trees::MachineTree) -> Topology {
    let sys = tempfile::tempdir().unwrap();
    tree.write(sys.path()).unwrap();
    Topology::read(sys.path()).unwrap()
}

fn placement(text: &str) -> Placement {
    serde_json::from_str(text).unwrap()
}

fn cpus(plans: &[Plan]) -> Vec<String> {
    plans.iter().map(|plan| plan.cpus.as_ref().map_or("any".into(), |cpus| list(cpus))).collect()
}

#[test]
fn interleaving_uses_all_nodes() {
    let plans = plan_placement(&placement(r#"{"policy": 0}"#), &machine(&SNC4), &[1, 2]).unwrap();
    assert_eq!(plans[1].memory, Memory::Interleave((0..8).collect()));
    assert_eq!(cpus(&plans), ["any", "any"]);
}

#[test]
fn ports_choose_nodes_by_their_number() {
    let wanted = placement(r#"{"policy": "bind_by_port"}"#);
    let plans = plan_placement(&wanted, &machine(&TWO_SOCKETS), &[27017, 27018]).unwrap();
    // 27017 is odd: with two nodes the first instance is on node 1.
    assert_eq!(cpus(&plans), ["28-55,84-111", "0-27,56-83"]);
    assert_eq!(plans[0].memory, Memory::Bind(vec![1]));
    // The number of nodes is the machine's, not two.
    let plans = plan_placement(&wanted, &machine(&EPYC), &[27017, 27018, 27019]).unwrap();
    assert_eq!(plans.iter().map(|p| p.memory.clone()).collect::<Vec<_>>()[2], Memory::Bind(vec![3]));
}

#[test]
fn one_node_for_all_with_cores_or_without() {
    let topology = machine(&TWO_SOCKETS);
    let plans = plan_placement(&placement(r#"{"policy": 2, "node": 1}"#), &topology, &[1]).unwrap();
    assert_eq!(cpus(&plans), ["28-55,84-111"]);
    let plans =
        plan_placement(&placement(r#"{"policy": 2, "node": 1, "cores": "28,27"}"#), &topology, &[1, 2]);
    let plans = plans.unwrap();
    assert_eq!(cpus(&plans), ["27-28", "27-28"]);
    assert_eq!(plans[0].memory, Memory::Bind(vec![1]));
    let message = plans[0].describe_plan();
    assert!(
        message.contains("cores 27 are not of node 1") && message.contains("all 2 processes share"),
        "{message}"
    );
}

#[test]
fn cores_are_dealt_out_with_and_without_their_other_threads() {
    let topology = machine(&TWO_SOCKETS);
    let plans = plan_placement(&placement(r#"{"policy": 3, "cores_each": 4}"#), &topology, &[1, 2]).unwrap();
    assert_eq!(cpus(&plans), ["0-3", "4-7"]);
    let plans = plan_placement(&placement(r#"{"policy": 4, "cores_each": 4}"#), &topology, &[1, 2]).unwrap();
    assert_eq!(cpus(&plans), ["0-3,56-59", "4-7,60-63"]);
    // Threads side by side: physical cores all the same.
    let plans =
        plan_placement(&placement(r#"{"policy": 3, "cores_each": 2}"#), &machine(&GUEST), &[1, 2]).unwrap();
    assert_eq!(cpus(&plans), ["0,2", "4,6"]);
    let plans =
        plan_placement(&placement(r#"{"policy": 4, "cores_each": 2}"#), &machine(&GUEST), &[1, 2]).unwrap();
    assert_eq!(cpus(&plans), ["0-3", "4-7"]);
    let plans = plan_placement(
        &placement(r#"{"policy": 4, "cores_each": 1, "cores": "4-7"}"#),
        &machine(&GUEST),
        &[1],
    )
    .unwrap();
    assert_eq!(cpus(&plans), ["4-5"]);
}

#[test]
fn a_process_whose_cores_are_of_two_nodes_is_told_of() {
    let topology = machine(&SNC4);
    let plans = plan_placement(&placement(r#"{"policy": 3, "cores_each": 4}"#), &topology, &[0; 4]).unwrap();
    assert_eq!(cpus(&plans)[3], "12-15");
    assert!(plans[2].notes.is_empty());
    assert_eq!(plans[3].notes, ["its cores are of the nodes 0-1"]);
    let plans =
        plan_placement(&placement(r#"{"policy": 3, "cores_each": 7, "node": 5}"#), &topology, &[0; 2])
            .unwrap();
    assert_eq!(cpus(&plans), ["70-76", "77-83"]);
}

#[test]
fn what_the_machine_has_not_is_refused() {
    let topology = machine(&GUEST);
    let wrong = [
        (r#"{"cores": "6-9"}"#, "core 8 is not there; this machine has 0-7"),
        (r#"{"policy": "node", "node": 1}"#, "node 1 is not there; this machine has 0"),
        (r#"{"policy": 3, "cores_each": 3}"#, "2 processes of 3 physical cores each need 6, there are 4"),
        (r#"{"numactl": "--membind=1"}"#, "--membind: 1 is not there"),
        (r#"{"numactl": "-C 0-x"}"#, "expected a list"),
        (r#"{"numactl": "numactl --cpubind=0"}"#, "\"--cpubind=0\" is not understood"),
        (r#"{"numactl": "-N"}"#, "-N needs a list"),
    ];
    for (text, expected) in wrong {
        let found = plan_placement(&placement(text), &topology, &[1, 2]).unwrap_err().to_string();
        assert!(found.contains(expected), "{text}: {found}");
    }
}

#[test]
fn numactl_is_read_and_passed_on() {
    let topology = machine(&TWO_SOCKETS);
    for text in ["numactl --cpunodebind=1 -m 0-1", "--cpunodebind=1 -m 0-1"] {
        let wanted = Placement { numactl: Some(text.into()), ..Placement::default() };
        let plans = plan_placement(&wanted, &topology, &[1]).unwrap();
        assert_eq!(cpus(&plans), ["28-55,84-111"]);
        assert_eq!(plans[0].memory, Memory::Bind(vec![0, 1]));
        assert_eq!(plans[0].numactl.as_ref().unwrap(), &["--cpunodebind=1", "-m", "0-1"]);
    }
}

/// A machine whose path is a folder with these programs.
fn with_programs(folder: &std::path::Path, programs: &[&str]) -> Machine {
    use std::os::unix::fs::PermissionsExt;
    for name in programs {
        std::fs::write(folder.join(name), "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    Machine { path: folder.as_os_str().to_owned(), ..Machine::default() }
}

#[test]
fn command_lines_name_cores_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    let machine_with = with_programs(folder.path(), &["numactl", "taskset"]);
    let at = folder.path().display();
    let bound = Plan { cpus: Some(vec![0, 1]), memory: Memory::Bind(vec![1]), ..Plan::default() };
    let two = machine(&TWO_SOCKETS);
    let message = bound.prefix(&two, &machine_with).unwrap().join(" ");
    assert_eq!(message, format!("{at}/numactl --physcpubind=0-1 --membind=1"));
    // One node leaves nothing to choose.
    let message = bound.prefix(&machine(&GUEST), &machine_with).unwrap().join(" ");
    assert_eq!(message, format!("{at}/taskset --cpu-list 0-1"));
    let spread = Plan { memory: Memory::Interleave(vec![0, 1]), ..Plan::default() };
    assert_eq!(
        spread.prefix(&two, &machine_with).unwrap().join(" "),
        format!("{at}/numactl --interleave=0-1")
    );
    let own = Plan { numactl: Some(vec!["-l".into()]), ..Plan::default() };
    assert_eq!(own.prefix(&two, &machine_with).unwrap().join(" "), format!("{at}/numactl -l"));
    assert!(Plan::default().prefix(&two, &machine_with).unwrap().is_empty());
}

#[test]
fn the_kernel_has_the_last_word() {
    let plan = Plan { cpus: Some(vec![0, 1, 2]), ..Plan::default() };
    let said = |text: &str| [("cpus_allowed".to_owned(), text.to_owned())].into();
    plan.confirm(&said("0-2")).unwrap();
    assert!(plan.confirm(&said("0-1")).unwrap_err().to_string().contains("asked for the cores 0-2"));
    assert!(plan.confirm(&BTreeMap::new()).is_err());
}

#[test]
fn cores_and_memory_are_not_given_twice() {
    let parties = [("redis-1".to_owned(), vec![0, 1]), ("clients".to_owned(), vec![1, 2])];
    let found = check_apart(&parties).unwrap_err().to_string();
    assert!(found.contains("redis-1 and clients share the cores 1"), "{found}");
    check_apart(&parties[..1]).unwrap();
    let topology = machine(&TWO_SOCKETS);
    let node0 = Plan { memory: Memory::Bind(vec![0]), ..Plan::default() };
    let spec = |text: &str| serde_json::from_str::<ServerSpec>(text).unwrap();
    let two = |memory: &str| spec(&format!(r#"{{"kind": "redis", "instances": 2, {memory}}}"#));
    // A node has 128,000 MiB. Limits cannot hold beyond that; caches are ceilings.
    assert_eq!(
        beyond_memory(
            &two(r#""limits": {"memory": "64000MiB"}"#),
            &[node0.clone(), node0.clone()],
            &topology
        ),
        None
    );
    let limits = two(r#""limits": {"memory": "64001MiB"}"#);
    let found = beyond_memory(&limits, &[node0.clone(), node0.clone()], &topology).unwrap();
    assert!(
        found.limits && found.text == "the limits of the servers add up to 125.0 GiB, node 0 has 125.0 GiB",
        "{found:?}"
    );
    let caches = spec(r#"{"kind": "mongod", "instances": 3, "cache": "125GiB"}"#);
    let found = beyond_memory(&caches, &vec![Plan::default(); 3], &topology).unwrap();
    assert!(
        !found.limits && found.text.ends_with("375.0 GiB together, this host has 250.0 GiB"),
        "{found:?}"
    );
    let own = spec(r#"{"kind": "mongod", "instances": 3}"#);
    let found = beyond_memory(&own, &vec![Plan::default(); 3], &topology).unwrap();
    assert!(!found.limits && found.text.contains("each mongod may take half of the memory"), "{found:?}");
    assert_eq!(
        beyond_memory(&spec(r#"{"kind": "mongod", "instances": 2}"#), &vec![Plan::default(); 2], &topology),
        None
    );
}
