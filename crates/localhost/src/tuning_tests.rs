use crate::tuning::*;
use dyno_monitor::topology::trees::{GUEST, put_line};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A host in a folder: settings as a kernel shows them, though a written file shows what was written.
fn host(folder: &Path) -> Machine {
    let machine = Machine { sys: folder.join("sys"), proc: folder.join("proc"), ..Machine::default() };
    GUEST.write(&machine.sys).unwrap();
    for cpu in 0..8 {
        let governor = if cpu < 2 { "performance" } else { "powersave" };
        put_line(
            &machine.sys.join(format!("devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")),
            governor,
        )
        .unwrap();
    }
    let files = [
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never"),
        ("sys/block/nvme0n1/queue/read_ahead_kb", "128"),
        ("sys/block/loop0/queue/read_ahead_kb", "128"),
        ("sys/class/net/eth0/queues/rx-0/rps_cpus", "00000000,00000000"),
        ("sys/class/net/eth0/queues/rx-1/rps_cpus", "00000000,00000000"),
        ("sys/class/net/eth0/queues/tx-0/xps_cpus", "0"),
        ("sys/class/net/eth0/device/local_cpulist", "0-3,33"),
        ("proc/sys/vm/swappiness", "60"),
        ("proc/sys/kernel/numa_balancing", "1"),
        ("proc/self/stat", "1 (x) S"),
    ];
    files.iter().for_each(|(path, text)| put_line(&folder.join(path), text).unwrap());
    machine
}

fn all_files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.join("sys"), folder.join("proc")];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let text = fs::read_to_string(entry.path()).unwrap();
                    found.insert(entry.path(), chosen(text.trim()).to_owned());
                }
            }
        }
    }
    found
}

const WANTED: &str = r#"{"governor": "performance", "transparent_huge_pages": "never", "defrag": "never",
    "read_ahead_kib": {"nvme0n1": 16}, "rps": {"eth0": "local"}, "swappiness": 1, "numa_balancing": false}"#;

#[test]
fn settings_are_applied_and_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let machine = host(folder.path());
    let before = all_files(folder.path());
    let work_dir = folder.path().join("home");
    let tuned = apply_settings(&serde_json::from_str(WANTED).unwrap(), &machine, &work_dir, false).unwrap();
    let now = all_files(folder.path());
    let governors = now.iter().filter(|(file, _)| file.ends_with("scaling_governor"));
    assert!(governors.map(|(_, text)| text).all(|text| text == "performance"));
    for (file, text) in [
        ("sys/kernel/mm/transparent_hugepage/enabled", "never"),
        ("sys/kernel/mm/transparent_hugepage/defrag", "never"),
        ("sys/block/nvme0n1/queue/read_ahead_kb", "16"),
        ("sys/class/net/eth0/queues/rx-0/rps_cpus", "2,0000000f"),
        ("proc/sys/vm/swappiness", "1"),
        ("proc/sys/kernel/numa_balancing", "0"),
    ] {
        assert_eq!(now[&folder.path().join(file)], text, "{file}");
    }
    tuned.revert_settings().unwrap();
    assert_eq!(all_files(folder.path()), before);
}

#[test]
fn what_a_killed_dyno_has_set_is_put_back_from_its_journal() {
    let folder = tempfile::tempdir().unwrap();
    let machine = host(folder.path());
    let before = all_files(folder.path());
    let work_dir = folder.path().join("home");
    let tuned = apply_settings(&serde_json::from_str(WANTED).unwrap(), &machine, &work_dir, false).unwrap();
    // As if the process had ended without dropping it.
    std::mem::forget(tuned);
    assert_ne!(all_files(folder.path()), before);
    assert!(Journal::open(&work_dir, &machine).is_err(), "a journal with something in it is not written on");
    // Six cores, two words, a device, two queues, two numbers.
    assert_eq!(crate::undo::revert_journal(&work_dir.join("undo.jsonl"), &machine).unwrap(), 13);
    assert_eq!(all_files(folder.path()), before);
    assert_eq!(crate::undo::revert_journal(&work_dir.join("undo.jsonl"), &machine).unwrap(), 0);
    Journal::open(&work_dir, &machine).unwrap();
}

#[test]
fn what_the_host_has_not_is_an_error_or_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let machine = host(folder.path());
    let before = all_files(folder.path());
    let wanted: HostTuning = serde_json::from_str(r#"{"swappiness": 1, "zone_reclaim_mode": 0}"#).unwrap();
    let work_dir = folder.path().join("home");
    let error = apply_settings(&wanted, &machine, &work_dir, false).unwrap_err().to_string();
    assert!(error.contains("zone_reclaim_mode: this host has no such setting"), "{error}");
    assert_eq!(all_files(folder.path()), before, "nothing is left behind");
    let tuned = apply_settings(&wanted, &machine, &work_dir, true).unwrap();
    assert!(
        tuned.lost[0].contains("zone_reclaim_mode")
            && all_files(folder.path())[&machine.proc.join("sys/vm/swappiness")] == "1"
    );
}

#[test]
fn masks_are_those_of_the_kernel() {
    assert_eq!(mask(&[0, 1, 2, 3]), "f");
    assert_eq!(mask(&[0, 33, 70]), "40,00000002,00000001");
    assert!(
        same("00000000,0000000f", "f") && same("00", "0") && !same("f", "e") && !same("performance", "e")
    );
}

#[test]
fn all_devices_of_the_hardware_are_steered_to_all_cores() {
    let folder = tempfile::tempdir().unwrap();
    let machine = host(folder.path());
    for device in ["lo", "veth1", "eth1"] {
        put_line(&folder.path().join(format!("sys/class/net/{device}/queues/rx-0/rps_cpus")), "0").unwrap();
    }
    put_line(&folder.path().join("sys/class/net/eth1/device/vendor"), "0x1af4").unwrap();
    let tuning: HostTuning = serde_json::from_str(r#"{"rps": {"*": "all"}}"#).unwrap();
    let work_dir = folder.path().join("home");
    fs::create_dir(&work_dir).unwrap();
    let tuned = apply_settings(&tuning, &machine, &work_dir, false).unwrap();
    let read = |device: &str| {
        fs::read_to_string(machine.sys.join("class/net").join(device).join("queues/rx-0/rps_cpus")).unwrap()
    };
    let cores = machine.machine_topology().unwrap().cpus.len();
    assert_eq!(cores, 8, "the mask below is of so many");
    assert_eq!((read("eth0"), read("eth1")), ("ff".into(), "ff".into()));
    assert_eq!((read("veth1").trim(), read("lo").trim()), ("0", "0"), "a container's, and the loopback");
    // One that is gone needs nothing to be put back.
    fs::remove_dir_all(machine.sys.join("class/net/eth1")).unwrap();
    tuned.revert_settings().unwrap();
    assert_eq!(read("eth0").trim(), "00000000,00000000");
}
