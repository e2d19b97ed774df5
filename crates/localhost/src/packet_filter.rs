//! Packets that are lost on purpose: a table of dyno's own in the kernel's packet filter, by `nft`.
//!
//! Each command of `nft` is one transaction, so that a table is there with all its rules or not at all.

use crate::error::LocalError;
use crate::machine::Machine;
use crate::process;
use crate::programs::run;
use std::sync::atomic::{AtomicU64, Ordering};

/// Draws are out of so many: a thousandth of a percent is one of them.
const DRAWS: u32 = 100_000;

/// Packets that a table has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilteredPackets {
    /// Packets that its rules were about.
    pub seen: u64,
    /// Number of them that were dropped.
    pub dropped: u64,
}

/// A name that no other table has had since the host was started.
pub fn name(machine: &Machine) -> String {
    static TABLES: AtomicU64 = AtomicU64::new(1);
    let pid = std::process::id();
    let started = process::start_ticks(machine, pid).unwrap_or(0);
    format!("dyno-{pid}-{started}-{}", TABLES.fetch_add(1, Ordering::Relaxed))
}

/// Ports of a table: TCP, on the loopback alone or on all devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The ports of servers.
    pub ports: Vec<u16>,
    /// True if they are reached from other hosts, too.
    pub everywhere: bool,
}

impl Ports {
    /// The beginnings of rules, with the hook that they are of: each packet meets one of them once. On the loopback every
    /// packet comes in, whichever way it goes; on other devices what goes to the ports comes in, and what comes from them goes
    /// out.
    fn matches(&self) -> Vec<(&'static str, String)> {
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        let ports = ports.join(", ");
        let one = |device: &str, side: &str| format!("{device} tcp {side} {{ {ports} }}");
        let mut all =
            vec![("input", one("iifname \"lo\"", "dport")), ("input", one("iifname \"lo\"", "sport"))];
        if self.everywhere {
            all.push(("input", one("iifname != \"lo\"", "dport")));
            all.push(("output", one("oifname != \"lo\"", "sport")));
        }
        all
    }

    /// Returns the input of nft for a table of a rule for each beginning.
    fn making(&self, table: &str, rules: &[(&'static str, String)]) -> String {
        let mut text = format!("create table inet {table}");
        for hook in ["input", "output"] {
            if rules.iter().any(|(own, _)| *own == hook) {
                let head = format!("{{ type filter hook {hook} priority 0; policy accept; }}");
                text += &format!("; add chain inet {table} {hook} {head}");
            }
        }
        for (hook, rule) in rules {
            text += &format!("; add rule inet {table} {hook} {rule}");
        }
        text
    }
}

/// Returns the input of nft for a table that drops `percent` of the packets to and from these ports.
fn losing(table: &str, ports: &Ports, percent: f64) -> String {
    let share = (percent / 100.0 * f64::from(DRAWS)).round() as u32;
    let dropped = match share {
        // Below all numbers that are drawn is no condition.
        DRAWS.. => "counter counter drop".to_owned(),
        share => format!("counter numgen random mod {DRAWS} < {share} counter drop"),
    };
    let rules: Vec<_> =
        ports.matches().into_iter().map(|(hook, rule)| (hook, format!("{rule} {dropped}"))).collect();
    ports.making(table, &rules)
}

/// Returns the input of nft for a table that drops what comes to these ports from other hosts and is more than so
/// many bytes per second.
fn limiting(table: &str, ports: &Ports, bytes_per_s: u64, bucket: u64) -> String {
    let dropped =
        format!("counter limit rate over {bytes_per_s} bytes/second burst {bucket} bytes counter drop");
    let incoming = ports.matches().into_iter().filter(|(hook, rule)| *hook == "input" && rule.contains("!="));
    let rules: Vec<_> = incoming.map(|(hook, rule)| (hook, format!("{rule} {dropped}"))).collect();
    ports.making(table, &rules)
}

/// Returns whether the kernel takes such a table: it is made and removed in one transaction, and never seen by a packet.
pub fn try_out(machine: &Machine) -> Result<(), LocalError> {
    let table = name(machine);
    let ports = Ports { ports: vec![1], everywhere: true };
    let commands = format!("{}; delete table inet {table}", losing(&table, &ports, 50.0));
    run(machine, "nft", &[&commands]).map(drop).map_err(|why| LocalError::NotPermitted {
        what: "nftables".into(),
        why: why.into(),
        lost: "no packets are dropped: faults of the way to the servers do not come".into(),
    })
}

/// Makes a table that drops `percent` of the packets to and from these ports.
pub fn drop_packets(machine: &Machine, table: &str, ports: &Ports, percent: f64) -> Result<(), LocalError> {
    let made = run(machine, "nft", &[&losing(table, ports, percent)]);
    Ok(made.map(drop)?)
}

/// Makes a table that limits what comes to these ports from other hosts, by a token bucket of so many bytes.
pub fn limit_rate(
    machine: &Machine,
    table: &str,
    ports: &Ports,
    (bytes_per_s, bucket): (u64, u64),
) -> Result<(), LocalError> {
    let made = run(machine, "nft", &[&limiting(table, ports, bytes_per_s, bucket)]);
    Ok(made.map(drop)?)
}

/// Returns what it has counted so far.
pub fn count_packets(machine: &Machine, table: &str) -> Result<FilteredPackets, LocalError> {
    let listed = run(machine, "nft", &["list", "table", "inet", table]);
    Ok(read(&listed?))
}

/// Each rule has two counters: of all packets it is about, and of those it drops.
fn read(listed: &str) -> FilteredPackets {
    let mut counted = FilteredPackets::default();
    for line in listed.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = words.windows(3).filter(|part| part[..2] == ["counter", "packets"]);
        let mut counts = after.filter_map(|part| part[2].parse::<u64>().ok());
        counted.seen += counts.next().unwrap_or(0);
        counted.dropped += counts.next().unwrap_or(0);
    }
    counted
}

/// Removes a table, if it is there.
pub(crate) fn remove(machine: &Machine, table: &str) -> Result<(), LocalError> {
    let Err(error) = run(machine, "nft", &["delete", "table", "inet", table]) else { return Ok(()) };
    let there = run(machine, "nft", &["list", "tables"])?;
    match there.lines().any(|line| line.split_whitespace().last() == Some(table)) {
        true => Err(error.into()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_about_the_ports_and_drop_the_share() {
        let ports = |everywhere: bool| Ports { ports: vec![7001, 7002], everywhere };
        let text = losing("dyno-1-2-3", &ports(false), 2.5);
        assert!(
            text.starts_with("create table inet dyno-1-2-3; add chain inet dyno-1-2-3 input {"),
            "{text}"
        );
        for side in ["dport", "sport"] {
            let rule = format!(
                "input iifname \"lo\" tcp {side} {{ 7001, 7002 }} counter numgen random mod 100000 < 2500 counter drop"
            );
            assert!(text.contains(&rule), "{text}");
        }
        assert!(!text.contains("output"), "{text}");
        assert!(losing("t", &ports(false), 0.001).contains("< 1 "));
        assert!(losing("t", &ports(false), 100.0).contains("7002 } counter counter drop"));
        // Of other hosts each packet meets one rule: what comes in goes to a server, what goes out comes from one.
        let text = losing("t", &ports(true), 1.0);
        assert!(
            text.contains("output oifname != \"lo\" tcp sport")
                && text.contains("input iifname != \"lo\" tcp dport")
        );
        assert_eq!(
            (text.matches("counter drop").count(), text.matches("add chain").count()),
            (4, 2),
            "{text}"
        );
        let text = limiting("t", &ports(true), 1_000_000, 160_000);
        assert!(text.ends_with(
            "add rule inet t input iifname != \"lo\" tcp dport { 7001, 7002 } counter limit rate over 1000000 \
             bytes/second burst 160000 bytes counter drop"
        ), "{text}");
        let machine = Machine::default();
        assert_ne!(name(&machine), name(&machine));
    }

    #[test]
    fn counters_are_read_from_the_list() {
        let rule = |side: &str, seen: u64, dropped: u64| {
            format!(
                "\t\tiifname \"lo\" tcp {side} counter packets {seen} bytes 99 numgen random mod 100000 < 5000 \
                 counter packets {dropped} bytes 9 drop\n"
            )
        };
        let listed = format!(
            "table inet dyno-2-3-1 {{\n\tchain loss {{\n\t\ttype filter hook input priority filter; policy accept;\n{}{}\t}}\n}}",
            rule("dport 1", 10, 2),
            rule("sport { 1, 2 }", 7, 1)
        );
        assert_eq!(read(&listed), FilteredPackets { seen: 17, dropped: 3 });
        assert_eq!(read(""), FilteredPackets::default());
    }

    #[test]
    fn without_nft_it_is_said_what_is_lost() {
        let machine = Machine { path: "/nonexistent".into(), ..Machine::default() };
        // Folders of administrators' programs are looked in, too: where nft is there, it says itself what is not permitted.
        if machine.find_program("nft").is_none() {
            let told = try_out(&machine).unwrap_err().to_string();
            assert!(told.contains("nft is not installed") && told.contains("if_not_permitted"), "{told}");
        }
    }
}
