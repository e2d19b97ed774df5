//! Packets that are lost on purpose: a table of dyno's own in the kernel's packet filter, by `nft`.
//!
//! On the loopback every packet is received once, whichever way it goes: one hook, where packets come in, sees them all.
//! Each command of `nft` is one transaction, so that a table is there with all its rules or not at all.

use super::error::LocalError;
use super::machine::Machine;
use super::process;
use super::storage::run;
use std::sync::atomic::{AtomicU64, Ordering};

/// Draws are out of so many: a thousandth of a percent is one of them.
const DRAWS: u32 = 100_000;

/// What a table has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Packets that its rules were about.
    pub seen: u64,
    /// Those of them that were dropped.
    pub dropped: u64,
}

/// A name that no other table has had since the host was started.
pub(crate) fn name(machine: &Machine) -> String {
    static TABLES: AtomicU64 = AtomicU64::new(1);
    let pid = std::process::id();
    let started = process::started(machine, pid).unwrap_or(0);
    format!("dyno-{pid}-{started}-{}", TABLES.fetch_add(1, Ordering::Relaxed))
}

/// What makes a table that drops `percent` of the packets to and from these ports on the loopback.
fn making(table: &str, ports: &[u16], percent: f64) -> String {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let (ports, share) = (ports.join(", "), (percent / 100.0 * f64::from(DRAWS)).round() as u32);
    let rule = |side: &str| {
        let what = format!("iifname \"lo\" tcp {side} {{ {ports} }} counter");
        format!("add rule inet {table} loss {what} numgen random mod {DRAWS} < {share} counter drop")
    };
    let hook = "{ type filter hook input priority 0; policy accept; }";
    format!(
        "create table inet {table}; add chain inet {table} loss {hook}; {}; {}",
        rule("dport"),
        rule("sport")
    )
}

/// Whether the kernel takes such a table: it is made and removed in one transaction, and never seen by a packet.
pub(crate) fn try_out(machine: &Machine) -> Result<(), LocalError> {
    let table = name(machine);
    let commands = format!("{}; delete table inet {table}", making(&table, &[1], 50.0));
    run(machine, "nft", &[&commands]).map(drop).map_err(|why| LocalError::NotPermitted {
        what: "nftables".into(),
        why,
        lost: "no packets are lost: faults of kind loss do not come".into(),
    })
}

/// Makes the table.
pub(crate) fn lose(machine: &Machine, table: &str, ports: &[u16], percent: f64) -> Result<(), LocalError> {
    let made = run(machine, "nft", &[&making(table, ports, percent)]);
    made.map(drop).map_err(LocalError::Failed)
}

/// What it has counted so far.
pub(crate) fn counted(machine: &Machine, table: &str) -> Result<Counted, LocalError> {
    let listed = run(machine, "nft", &["list", "table", "inet", table]);
    listed.map(|text| read(&text)).map_err(LocalError::Failed)
}

/// Each rule has two counters: of all packets it is about, and of those it drops.
fn read(listed: &str) -> Counted {
    let mut counted = Counted::default();
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
    let Err(why) = run(machine, "nft", &["delete", "table", "inet", table]) else { return Ok(()) };
    let there = run(machine, "nft", &["list", "tables"]).map_err(LocalError::Failed)?;
    match there.lines().any(|line| line.split_whitespace().last() == Some(table)) {
        true => Err(LocalError::Failed(why)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_about_the_ports_on_the_loopback_and_drop_the_share() {
        let text = making("dyno-1-2-3", &[7001, 7002], 2.5);
        assert!(text.starts_with("create table inet dyno-1-2-3; add chain inet dyno-1-2-3 loss {"), "{text}");
        for side in ["dport", "sport"] {
            let rule = format!(
                "iifname \"lo\" tcp {side} {{ 7001, 7002 }} counter numgen random mod 100000 < 2500 counter drop"
            );
            assert!(text.contains(&rule), "{text}");
        }
        assert!(making("t", &[1], 0.001).contains("< 1 "));
        assert!(making("t", &[1], 100.0).contains("< 100000 "));
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
        assert_eq!(read(&listed), Counted { seen: 17, dropped: 3 });
        assert_eq!(read(""), Counted::default());
    }

    #[test]
    fn without_nft_it_is_said_what_is_lost() {
        let machine = Machine { path: "/nonexistent".into(), ..Machine::default() };
        // Folders of administrators' programs are looked in, too: where nft is there, it says itself what is not permitted.
        if machine.find("nft").is_none() {
            let told = try_out(&machine).unwrap_err().to_string();
            assert!(told.contains("nft is not installed") && told.contains("if_not_permitted"), "{told}");
        }
    }
}
