//! Network interfaces, their queues and interrupts, and the settings of the network stack.

use super::facts::EnvironmentFacts;
use super::values::{names, tally, text};
use crate::roots::Roots;
use std::path::Path;

const SETTINGS: [&str; 14] = [
    "core/somaxconn",
    "core/rmem_max",
    "core/wmem_max",
    "core/netdev_max_backlog",
    "core/default_qdisc",
    "core/busy_poll",
    "core/busy_read",
    "core/rps_sock_flow_entries",
    "ipv4/tcp_congestion_control",
    "ipv4/tcp_max_syn_backlog",
    "ipv4/ip_local_port_range",
    "ipv4/tcp_tw_reuse",
    "ipv4/tcp_rmem",
    "ipv4/tcp_wmem",
];

pub(super) fn read(roots: &Roots, all: &mut EnvironmentFacts) {
    let folder = roots.sys.join("class/net");
    for name in names(&folder).iter().filter(|name| *name != "lo") {
        interface(&folder.join(name), name, all);
    }
    for name in SETTINGS {
        all.fact("network", &name.replace('/', "."), text(roots.proc.join("sys/net").join(name)));
    }
    let irq = roots.proc.join("irq");
    let lists = names(&irq).into_iter().filter_map(|n| text(irq.join(n).join("smp_affinity_list")));
    all.fact("interrupts", "affinity", tally(lists));
    all.fact("interrupts", "default_affinity", text(irq.join("default_smp_affinity")));
}

fn interface(folder: &Path, name: &str, all: &mut EnvironmentFacts) {
    let mut put = |what: &str, value| all.fact("network", &format!("{name}.{what}"), value);
    let driver = std::fs::read_link(folder.join("device/driver")).ok();
    put("driver", driver.and_then(|path| Some(path.file_name()?.to_str()?.to_owned())));
    // -1 is how the kernel says that it does not know.
    let speed = text(folder.join("speed")).filter(|mbit| !mbit.starts_with('-'));
    put("speed", speed.map(|mbit| format!("{mbit} Mbit/s")));
    put("mtu", text(folder.join("mtu")));
    put("state", text(folder.join("operstate")));
    put("numa_node", text(folder.join("device/numa_node")).filter(|node| !node.starts_with('-')));
    let queues = folder.join("queues");
    let all_queues = names(&queues);
    for (kind, file, what) in [("rx-", "rps_cpus", "rps_cpus"), ("tx-", "xps_cpus", "xps_cpus")] {
        let of_kind: Vec<&String> = all_queues.iter().filter(|queue| queue.starts_with(kind)).collect();
        if !of_kind.is_empty() {
            put(&format!("{kind}queues"), Some(of_kind.len().to_string()));
        }
        put(what, tally(of_kind.iter().filter_map(|queue| text(queues.join(queue).join(file)))));
    }
    let flows = all_queues.iter().filter_map(|queue| text(queues.join(queue).join("rps_flow_cnt")));
    put("rfs_flows", tally(flows));
}
