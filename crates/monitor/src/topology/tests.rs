use super::trees::{EPYC, GUEST, MachineTree, SNC4, TWO_SOCKETS, put_line};
use super::*;
use std::path::Path;

fn read(machine: &MachineTree) -> Topology {
    let sys = tempfile::tempdir().unwrap();
    machine.write(sys.path()).unwrap();
    Topology::read(sys.path()).unwrap()
}

#[test]
fn two_sockets() {
    let topology = read(&TWO_SOCKETS);
    assert_eq!((topology.packages(), topology.nodes.len(), topology.cpus.len()), (vec![0, 1], 2, 112));
    assert_eq!(topology.cores().len(), 56);
    assert_eq!(topology.cpus[&30].siblings, [30, 86]);
    assert_eq!(
        topology.cpus[&86],
        Cpu { number: 86, package: 1, node: 1, siblings: vec![30, 86], cache: Some(1) }
    );
    assert_eq!(list(&topology.nodes[&1].cpus), "28-55,84-111");
    assert_eq!(topology.nodes[&1].distances, [21, 10]);
    assert_eq!(topology.nodes[&0].memory_bytes, Some(131_072_000 << 10));
    assert_eq!(topology.caches[1].size_bytes, Some(32 << 20));
    assert_eq!(topology.nodes_of(&[86, 0, 1]), [0, 1]);
}

#[test]
fn sub_numa_clusters_share_the_cache_of_their_socket() {
    let topology = read(&SNC4);
    assert_eq!((topology.packages().len(), topology.nodes.len(), topology.caches.len()), (2, 8, 2));
    assert_eq!(list(&topology.nodes[&5].cpus), "70-83,182-195");
    assert_eq!(topology.nodes[&5].distances, [21, 21, 21, 21, 12, 10, 12, 12]);
    assert_eq!(topology.cpus[&70].cache, topology.cpus[&56].cache);
    assert_ne!(topology.cpus[&70].cache, topology.cpus[&55].cache);
}

#[test]
fn an_epyc_has_several_caches_in_a_node() {
    let topology = read(&EPYC);
    assert_eq!((topology.packages().len(), topology.nodes.len(), topology.caches.len()), (1, 4, 8));
    assert_eq!(list(&topology.caches[1].cpus), "8-15,72-79");
    assert_eq!(topology.nodes_of(&topology.caches[1].cpus), [0]);
    let facts = topology.facts();
    assert_eq!(facts["last_level_caches"], "8");
    assert_eq!(facts["node1"], "cpus 16-31,80-95, distances 12 10 12 12");
    assert_eq!(facts["node1_memory"], "64000 MiB");
}

#[test]
fn threads_side_by_side_and_processors_that_are_off() {
    let sys = tempfile::tempdir().unwrap();
    GUEST.write(sys.path()).unwrap();
    put_line(&sys.path().join("devices/system/cpu/online"), "0-4,6-7").unwrap();
    let topology = Topology::read(sys.path()).unwrap();
    assert_eq!(topology.cores(), [&[0, 1][..], &[2, 3], &[4], &[6, 7]]);
    assert_eq!(list(&topology.nodes[&0].cpus), "0-4,6-7");
    assert_eq!(topology.threads_per_core(), 2);
}

#[test]
fn a_kernel_without_nodes_has_one() {
    let sys = tempfile::tempdir().unwrap();
    GUEST.write(sys.path()).unwrap();
    std::fs::remove_dir_all(sys.path().join("devices/system/node")).unwrap();
    let topology = Topology::read(sys.path()).unwrap();
    assert_eq!((topology.nodes.len(), topology.nodes[&0].memory_bytes), (1, None));
    assert_eq!(topology.nodes[&0].cpus.len(), 8);
}

#[test]
fn what_is_no_machine_is_named() {
    let sys = tempfile::tempdir().unwrap();
    assert!(Topology::read(sys.path()).unwrap_err().to_string().contains("no processor is online"));
    GUEST.write(sys.path()).unwrap();
    put_line(&sys.path().join("devices/system/node/node0/cpulist"), "0-x").unwrap();
    let wrong = Topology::read(sys.path()).unwrap_err().to_string();
    assert!(wrong.contains("node0/cpulist") && wrong.contains("0-x"), "{wrong}");
    put_line(&sys.path().join("devices/system/node/node0/cpulist"), "0-6").unwrap();
    assert!(Topology::read(sys.path()).unwrap_err().to_string().contains("processor 7 belongs to no node"));
}

#[test]
fn this_machine_has_a_topology() {
    let topology = Topology::read(Path::new("/sys")).unwrap();
    assert!(!topology.cpus.is_empty() && !topology.nodes.is_empty());
    assert!(topology.cpus.values().all(|cpu| cpu.siblings.contains(&cpu.number)));
}

#[test]
fn lists_are_read_as_they_are_written() {
    for text in ["0-3,8", "5", "", "1,3,5-7"] {
        assert_eq!(list(&parse_list(text).unwrap()), text);
    }
    for wrong in ["3-1", "a", "1-", "0-99999999999"] {
        assert_eq!(parse_list(wrong), None, "{wrong}");
    }
}

#[test]
fn memory_that_no_node_knows_of_may_be_any_nodes() {
    let mut topology = read(&TWO_SOCKETS);
    let own = |topology: &Topology, node| topology.nodes[&node].memory_bytes.unwrap();
    let (first, second) = (own(&topology, 0), own(&topology, 1));
    assert_eq!((topology.memory_of(&[0]), topology.memory()), (Some(first), Some(first + second)));
    // The kernel has a little less than the nodes are said to have.
    topology.total_bytes = Some(first + second - 1_000);
    assert_eq!((topology.memory_of(&[0]), topology.memory()), (Some(first), Some(first + second)));
    // It has more.
    topology.total_bytes = Some(first + second + 5_000);
    assert_eq!(
        (topology.memory_of(&[1]), topology.memory()),
        (Some(second + 5_000), Some(first + second + 5_000))
    );
    // Nodes that do not tell: no more than there is.
    topology.nodes.get_mut(&1).unwrap().memory_bytes = None;
    assert_eq!((topology.memory_of(&[0]), topology.memory_of(&[1])), (Some(first), topology.total_bytes));
    topology.total_bytes = None;
    assert_eq!((topology.memory_of(&[1]), topology.memory()), (None, None));
}
