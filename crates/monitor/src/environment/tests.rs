use super::*;
use crate::Roots;
use std::fs;
use std::path::Path;

/// A Sapphire Rapids host as its kernel would show it.
fn spr(folder: &Path) -> Places {
    let roots = Roots::recorded_tree(folder);
    crate::topology::trees::SNC4.write(&roots.sys).unwrap();
    let put = |path: &str, text: &str| {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put(
        "proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) Platinum 8480+\n\
         stepping\t: 8\nmicrocode\t: 0x2b000190\ncpu MHz\t\t: 2000.0\nflags\t\t: fpu hwp avx2\n",
    );
    put("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 10 kB\nSwapTotal: 8 kB\n");
    put("proc/sys/vm/swappiness", "60\n");
    put("proc/sys/vm/zone_reclaim_mode", "0\n");
    put("proc/sys/kernel/osrelease", "5.15.0-spr.bkc.pc.2.10.0.x86_64\n");
    put("proc/loadavg", "0.10 0.2 0.3 1/2 3\n");
    put("proc/77/stat", "77 (mongod) S 1 1 1 0 -1 0 0 0 0 0 500 500 0 0 20 0 1 0 100 0\n");
    put("proc/self/limits", "Max open files            1024                 4096                 files\n");
    put("proc/self/mountinfo", "36 35 98:0 / /nowhere/data rw,relatime - xfs /dev/sdb1 rw\n");
    put("proc/self/cgroup", "0::/a\n");
    put("cgroup/a/cpu.max", "50000 100000\n");
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n");
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    put("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
    put("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    put("sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1\n");
    put("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "0\n");
    put("sys/devices/system/cpu/cpu0/cpuidle/state2/name", "C6\n");
    put("sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "1\n");
    put("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    put("sys/block/nvme0n1/size", "100\n");
    put("sys/block/nvme0n1/queue/read_ahead_kb", "128\n");
    put("sys/block/nvme0n1/queue/scheduler", "[none] mq-deadline\n");
    put("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n");
    put("sys/class/net/eth0/speed", "-1\n");
    put("etc/os-release", "NAME=x\nPRETTY_NAME=\"CentOS Stream 8\"\n");
    let mut table = Vec::new();
    for size in [32_768u16, 0] {
        let mut module = vec![0u8; 0x22];
        module[..2].copy_from_slice(&[17, 0x22]);
        module[0x0c..0x0e].copy_from_slice(&size.min(0x7fff).to_le_bytes());
        module[0x1c..0x20].copy_from_slice(&u32::from(size).to_le_bytes());
        module[0x20..0x22].copy_from_slice(&4_400u16.to_le_bytes());
        table.extend(module);
        table.extend(b"DIMM_A1\0\0");
    }
    fs::create_dir_all(folder.join("sys/firmware/dmi/tables")).unwrap();
    fs::write(folder.join("sys/firmware/dmi/tables/DMI"), table).unwrap();
    Places { roots, etc: folder.join("etc"), run: folder.join("run"), dev: folder.join("dev"), path: None }
}

#[test]
fn facts_of_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let all = EnvironmentFacts::read(&spr(folder.path()));
    for (group, name, value) in [
        ("cpu", "microcode", "0x2b000190"),
        ("cpu", "cores", "112"),
        ("numa", "numa_nodes", "8"),
        ("frequency", "governor", "performance x 1, powersave x 1"),
        ("frequency", "turbo", "on"),
        ("idle", "states", "C1, C6 off"),
        ("memory", "modules", "32768 MiB 4400 MT/s"),
        ("memory", "module_slots", "2"),
        ("memory", "thp_enabled", "always"),
        ("disks", "nvme0n1.scheduler", "none"),
        ("disks", "nvme0n1.size", "51200 bytes"),
        ("filesystems", "/nowhere/data", "xfs on /dev/sdb1, relatime,rw"),
        ("network", "eth0.rps_cpus", "0"),
        ("kernel", "distribution", "CentOS Stream 8"),
        ("limits", "open_files", "1024 of 4096"),
        ("limits", "cgroup.cpu.max", "50000 100000"),
    ] {
        assert_eq!(all.get(group, name), Some(value), "{group}.{name}");
    }
    assert_eq!(all.get("network", "eth0.speed"), None, "an unknown speed is absent");
    assert_eq!(all.get("vm", "dirty_ratio"), None);
    assert_eq!(all.get("memory", "available"), None, "what changes by itself is no fact");
    assert_eq!(all.volatile["memory"]["available"], "10 kB");
    assert_eq!(all.volatile["neighbours"]["databases"], "mongod (77)");
}

/// Other crates read these by their names.
#[test]
fn facts_with_fixed_names_are_read_on_this_host() {
    use dyno_types::host_facts::{CPUS, CPUS_ALLOWED, KERNEL_RELEASE, ROOT_USED};
    let all = EnvironmentFacts::read(&Places::default());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(all.get(KERNEL_RELEASE.0, KERNEL_RELEASE.1), Some(release.trim()));
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    assert_eq!(all.get(CPUS_ALLOWED.0, CPUS_ALLOWED.1), Some(allowed.trim()));
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap();
    let processors = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    assert_eq!(all.get(CPUS.0, CPUS.1), Some(processors.to_string().as_str()));
    let used = all.volatile[ROOT_USED.0][ROOT_USED.1].strip_suffix(" bytes").unwrap();
    let done = std::process::Command::new("df").args(["-B1", "--output=used", "/"]).output().unwrap();
    let df: f64 = String::from_utf8(done.stdout).unwrap().lines().nth(1).unwrap().trim().parse().unwrap();
    // Other programs write meanwhile.
    assert!((used.parse::<f64>().unwrap() / df - 1.0).abs() < 0.1, "{used} {df}");
}

/// Memory that is plugged in, or that a balloon takes, is no other host.
#[test]
fn memory_that_comes_and_goes_changes_no_fact() {
    let folder = tempfile::tempdir().unwrap();
    let places = spr(folder.path());
    let put = |path: &str, text: &str| fs::write(folder.path().join(path), text).unwrap();
    put("proc/sys/vm/min_free_kbytes", "100\n");
    let before = EnvironmentFacts::read(&places);
    put("proc/meminfo", "MemTotal: 500 kB\nMemAvailable: 5 kB\nSwapTotal: 8 kB\n");
    put("proc/sys/vm/min_free_kbytes", "70\n");
    let nodes = folder.path().join("sys/devices/system/node");
    for node in fs::read_dir(nodes).unwrap().flatten() {
        let path = node.path().join("meminfo");
        if let Ok(text) = fs::read_to_string(&path) {
            fs::write(path, text.replace("MemTotal:", "MemTotal: 1")).unwrap();
        }
    }
    let after = EnvironmentFacts::read(&places);
    assert_eq!(before.facts, after.facts);
    assert_ne!(before.volatile["memory"]["total"], after.volatile["memory"]["total"], "it is recorded");
    put("proc/sys/vm/swappiness", "1\n");
    assert_ne!(after.facts, EnvironmentFacts::read(&places).facts, "a setting is a fact");
}

#[test]
fn findings_are_ranked_and_name_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    let all = EnvironmentFacts::read(&spr(folder.path()));
    let found = list_findings(&all);
    let checks: Vec<&str> = found.iter().map(|finding| finding.check).collect();
    for check in [
        "CPU quota",
        "transparent huge pages",
        "swappiness",
        "memory nodes",
        "frequency governor",
        "client beside the server",
        "read-ahead",
        "access times",
        "open files",
        "turbo",
    ] {
        assert!(checks.contains(&check), "{check} in {checks:?}");
    }
    assert!(!checks.contains(&"zone reclaim") && !checks.contains(&"busy host"), "{checks:?}");
    assert!(found.is_sorted_by_key(|finding| finding.severity));
    assert!(found.iter().all(|f| !f.reason.is_empty() && !f.source.is_empty() && !f.command.is_empty()));
    assert!(list_findings(&EnvironmentFacts::default()).is_empty(), "what is not known is no finding");
}

#[test]
fn a_recipe_against_a_host() {
    let folder = tempfile::tempdir().unwrap();
    let all = EnvironmentFacts::read(&spr(folder.path()));
    let checked = find_profile("bkm-spr").unwrap().check(&all);
    let result = |item: &str| checked.iter().find(|c| c.item == item).map(|c| c.result);
    for (item, expected) in [
        ("CPU", Match::Same),
        ("cores per socket", Match::Same),
        ("memory", Match::Different),
        ("kernel", Match::Same),
        ("SNC", Match::Different),
        ("Processor C6", Match::Same),
        ("Hardware P-States", Match::Different),
        ("Enable LP", Match::Same),
        ("DCU IP Prefetcher", Match::Unknown),
        ("version", Match::Unknown),
    ] {
        assert_eq!(result(item), Some(expected), "{item}");
    }
    let mut guest = all.clone();
    guest.fact("virtualisation", "hypervisor", Some("yes".into()));
    let of_guest = find_profile("wsf/bkm-spr").unwrap().check(&guest);
    assert!(of_guest.iter().filter(|c| c.part == "BIOS").all(|c| c.result == Match::Unknown));
    let nothing = EnvironmentFacts::default();
    for profile in PROFILES {
        let checked = profile.check(&nothing);
        assert!(
            !checked.is_empty() && checked.iter().all(|c| c.result == Match::Unknown && c.found.is_none())
        );
    }
}

#[test]
fn this_host_can_be_read() {
    let all = EnvironmentFacts::read(&Places::default());
    assert!(all.get("kernel", "release").is_some());
    assert!(all.get("cpu", "cpus").is_some());
    assert_eq!(
        EnvironmentFacts::read(&Places::default()).facts,
        all.facts,
        "facts do not change by themselves"
    );
}
