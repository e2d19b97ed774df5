//! Facts that the kernel shows to programs alone: firmware and offloads of network cards (`ethtool`), the clock's offset
//! (`chronyc`). A program that is not there leaves its facts unknown.

use super::facts::{EnvironmentFacts, Places};
use super::values::names;
use dyno_types::child;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Offloads that change what a packet costs.
const OFFLOADS: [&str; 9] = [
    "rx-checksumming",
    "tx-checksumming",
    "scatter-gather",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
    "receive-hashing",
    "ntuple-filters",
];

pub(super) fn read(places: &Places, all: &mut EnvironmentFacts) {
    if let Some(ethtool) = find(places, "ethtool") {
        let cards = names(&places.roots.sys.join("class/net"));
        for card in cards.iter().filter(|name| *name != "lo") {
            if let Some(text) = answer(&ethtool, &["-i", card]) {
                driver(card, &text, all);
            }
            if let Some(text) = answer(&ethtool, &["-k", card]) {
                offloads(card, &text, all);
            }
        }
    }
    match find(places, "chronyc").and_then(|chronyc| answer(&chronyc, &["-n", "tracking"])) {
        Some(text) => chrony(&text, all),
        None => {
            // systemd-timesyncd keeps this file since its first answer; it does not tell how far off the clock is.
            let there = places.run.join("systemd/timesync/synchronized").exists();
            all.fact("clock", "synchronised_by", there.then(|| "systemd-timesyncd".to_owned()));
        }
    }
}

/// Returns where a program is, if it is there and may be asked.
fn find(places: &Places, program: &str) -> Option<PathBuf> {
    let more = ["/usr/sbin", "/sbin"].map(Into::into);
    let folders = std::env::split_paths(places.path.as_ref()?).chain(more);
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Returns the output of a program, if it ends well.
fn answer(program: &Path, arguments: &[&str]) -> Option<String> {
    let output =
        child::clean_command(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `name: value` of a line.
fn pair(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    Some((name.trim(), value.trim())).filter(|(_, value)| !value.is_empty())
}

fn driver(card: &str, text: &str, all: &mut EnvironmentFacts) {
    for (name, value) in text.lines().filter_map(pair) {
        let fact = match name {
            "firmware-version" => "firmware",
            "version" => "driver_version",
            _ => continue,
        };
        // A driver calls N/A what it does not know.
        let value = Some(value.to_owned()).filter(|value| value != "N/A");
        all.fact("network", &format!("{card}.{fact}"), value);
    }
}

fn offloads(card: &str, text: &str, all: &mut EnvironmentFacts) {
    for (name, value) in text.lines().filter_map(pair).filter(|(name, _)| OFFLOADS.contains(name)) {
        let value = value.trim_end_matches("[fixed]").trim_end();
        all.fact("network", &format!("{card}.{}", name.replace('-', "_")), Some(value.to_owned()));
    }
}

/// Offset, source and stratum as chrony tells them.
fn chrony(text: &str, all: &mut EnvironmentFacts) {
    for (name, value) in text.lines().filter_map(pair) {
        match name {
            "System time" => all.volatile("clock", "offset", Some(value.to_owned())),
            "RMS offset" => all.volatile("clock", "rms_offset", Some(value.to_owned())),
            "Stratum" => all.volatile("clock", "stratum", Some(value.to_owned())),
            "Reference ID" => all.volatile("clock", "source", Some(value.to_owned())),
            "Leap status" => all.volatile("clock", "status", Some(value.to_owned())),
            _ => {}
        }
    }
    all.fact("clock", "synchronised_by", Some("chrony".into()));
}

/// Facts that matter and are not known here: which, and what would tell them.
pub(super) fn unknown(all: &EnvironmentFacts) -> Vec<(String, &'static str)> {
    let own: [(&str, &str, &'static str); 8] = [
        ("cpu", "microcode", "the processor does not tell it"),
        ("cpu", "prefetchers", "/dev/cpu/0/msr of an Intel processor (modprobe msr, as root)"),
        ("frequency", "governor", "the kernel has no cpufreq here, as in most guests"),
        ("frequency", "turbo", "the kernel has no intel_pstate and no cpufreq/boost here"),
        ("idle", "states", "the kernel has no cpuidle here, as in most guests"),
        ("memory", "modules", "the SMBIOS table (/sys/firmware/dmi/tables/DMI, as root)"),
        ("firmware", "bios_version", "the firmware (/sys/class/dmi/id)"),
        ("clock", "synchronised_by", "chrony or systemd-timesyncd, which are not there or not in step"),
    ];
    let missing = own.into_iter().filter(|(group, name, _)| all.get(group, name).is_none());
    let mut found: Vec<(String, &'static str)> =
        missing.map(|(group, name, why)| (format!("{group}.{name}"), why)).collect();
    if all.volatile.get("clock").is_none_or(|clock| !clock.contains_key("offset")) {
        found.push(("clock.offset".into(), "`chronyc tracking`"));
    }
    let network = all.facts.get("network");
    let mut cards: Vec<&str> = network
        .into_iter()
        .flatten()
        .filter_map(|(name, _)| name.strip_suffix(".mtu").filter(|card| !card.is_empty()))
        .collect();
    cards.sort_unstable();
    for card in cards {
        for (fact, why) in [("firmware", "`ethtool -i`"), ("generic_receive_offload", "`ethtool -k`")] {
            if all.get("network", &format!("{card}.{fact}")).is_none() {
                found.push((format!("network.{card}.{fact}"), why));
            }
        }
    }
    found.push((
        "volumes of a cloud: provisioned IOPS, throughput, credits".into(),
        "the cloud's own interface",
    ));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as ethtool 6.1 and chrony 4.3 print them.
    const DRIVER: &str = "driver: ena\nversion: 6.1.0-13\nfirmware-version: \nexpansion-rom-version: \n";
    const MELLANOX: &str =
        "driver: mlx5_core\nversion: 6.5.0\nfirmware-version: 22.35.1012 (MT_0000000359)\n";
    const FEATURES: &str = "Features for eth0:\nrx-checksumming: on [fixed]\ntx-checksumming: on\n\ttx-checksum-ipv4: on\n\
                            tcp-segmentation-offload: off\nlarge-receive-offload: off [fixed]\n";
    const TRACKING: &str = "Reference ID    : A9FEA97B (169.254.169.123)\nStratum         : 4\n\
                            System time     : 0.000003105 seconds slow of NTP time\n\
                            RMS offset      : 0.000004871 seconds\nLeap status     : Normal\n";

    #[test]
    fn answers_of_programs_become_facts() {
        let mut all = EnvironmentFacts::default();
        driver("eth0", DRIVER, &mut all);
        driver("eth1", MELLANOX, &mut all);
        offloads("eth0", FEATURES, &mut all);
        chrony(TRACKING, &mut all);
        assert_eq!(all.get("network", "eth0.firmware"), None, "an empty answer is none");
        assert_eq!(all.get("network", "eth1.firmware"), Some("22.35.1012 (MT_0000000359)"));
        assert_eq!(all.get("network", "eth0.rx_checksumming"), Some("on"));
        assert_eq!(all.get("network", "eth0.tcp_segmentation_offload"), Some("off"));
        assert_eq!(all.get("network", "eth0.tx_checksum_ipv4"), None, "a part of another line");
        assert_eq!(all.volatile["clock"]["offset"], "0.000003105 seconds slow of NTP time");
        assert_eq!(all.volatile["clock"]["source"], "A9FEA97B (169.254.169.123)");
    }

    #[test]
    fn programs_are_asked_where_they_are() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        put("bin/ethtool", "#!/bin/sh\n[ $1 = -i ] && echo firmware-version: 1.2 of $2 && exit 0\nexit 1\n");
        put("bin/chronyc", "#!/bin/sh\nexit 1\n");
        put("sys/class/net/eth0/mtu", "1500\n");
        put("run/systemd/timesync/synchronized", "");
        let mut register = vec![0; 0x1a4];
        register.extend(0b0110u64.to_le_bytes());
        std::fs::create_dir_all(folder.path().join("dev/cpu/0")).unwrap();
        std::fs::write(folder.path().join("dev/cpu/0/msr"), register).unwrap();
        put("proc/cpuinfo", "vendor_id : GenuineIntel\n");
        let places = Places {
            roots: crate::Roots::recorded_tree(folder.path()),
            etc: folder.path().join("etc"),
            run: folder.path().join("run"),
            dev: folder.path().join("dev"),
            path: Some(folder.path().join("bin").into_os_string()),
        };
        let all = EnvironmentFacts::read(&places);
        assert_eq!(all.get("network", "eth0.firmware"), Some("1.2 of eth0"));
        assert_eq!(all.get("clock", "synchronised_by"), Some("systemd-timesyncd"));
        assert_eq!(all.get("cpu", "prefetchers"), Some("L2 on, L2 adjacent line off, DCU off, DCU IP on"));
        let unknown: Vec<String> = all.unknown().into_iter().map(|(name, _)| name).collect();
        for name in ["clock.offset", "network.eth0.generic_receive_offload", "memory.modules"] {
            assert!(unknown.contains(&name.to_owned()), "{name} in {unknown:?}");
        }
        assert!(!unknown.iter().any(|name| name == "network.eth0.firmware"), "{unknown:?}");
    }
}
