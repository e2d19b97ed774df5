//! The way to and from a server's ports made narrow or slow by the kernel's queueing disciplines, with `tc`.
//!
//! ```text
//! root of the device: HTB 7xxx:, which passes on what no filter names, and is there only while a fault is under way
//!   7xxx:1  what goes to the ports (on the loopback)   token bucket filter, or netem
//!   7xxx:2  what comes from the ports                  token bucket filter
//! ```
//!
//! A device has one root: where another program has put a discipline of its own there, nothing is done. What comes in from
//! another host has left that host's queue already: a limit of the packet filter (a token bucket, too) drops what is too much
//! of it.

use crate::error::{Cause, LocalError, ProgramError};
use crate::machine::Machine;
use crate::programs::run;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Shape of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// So many bytes per second pass in each direction.
    Narrow(u64),
    /// Packets to the ports are delayed by so many nanoseconds.
    Slow(u64),
}

/// Disciplines that the kernel chooses by itself.
const USUAL: [&str; 6] = ["noqueue", "mq", "pfifo_fast", "fq_codel", "fq", "pfifo"];
/// The kernel's list of devices.
const DEVICES: &str = "/sys/class/net";
/// The least bucket, bytes: two of the greatest packets of the loopback.
const BUCKET: u64 = 160_000;
/// The device on which everything between processes of one host goes.
pub(crate) const LOOPBACK: &str = "lo";

/// The size of the bucket for a rate: 10 ms of it, and never less than packets need.
pub fn bucket_size(bytes_per_s: u64) -> u64 {
    (bytes_per_s / 100).max(BUCKET)
}

/// A handle for a root of ours, which another dyno is unlikely to have at the same time.
pub fn root_handle() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = std::process::id().wrapping_mul(37).wrapping_add(MADE.fetch_add(1, Ordering::Relaxed));
    format!("7{:03x}:", number & 0xfff)
}

fn split_words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// The commands of `tc` that shape a device. The first fails where another program has set a root.
fn making((device, handle): (&str, &str), ports: &[u16], v6: bool, shape: Shape) -> Vec<Vec<String>> {
    let mut all = vec![split_words(&format!("qdisc add dev {device} root handle {handle} htb"))];
    let mut class = |number: u32, side: &str, leaf: &str| {
        let id = format!("{handle}{number}");
        all.push(split_words(&format!(
            "class add dev {device} parent {handle} classid {id} htb rate 100gbit quantum 60000"
        )));
        all.push(split_words(&format!("qdisc add dev {device} parent {id} {leaf}")));
        let (protocol, header) = if v6 { ("ipv6", "ip6") } else { ("ip", "ip") };
        for port in ports {
            all.push(split_words(&format!(
                "filter add dev {device} parent {handle} protocol {protocol} prio 1 u32 match {header} protocol 6 0xff \
                 match {header} {side} {port} 0xffff flowid {id}"
            )));
        }
    };
    match shape {
        Shape::Narrow(bytes_per_s) => {
            let leaf = format!("tbf rate {bytes_per_s}bps burst {} latency 200ms", bucket_size(bytes_per_s));
            if device == LOOPBACK {
                class(1, "dport", &leaf);
            }
            class(2, "sport", &leaf);
        }
        Shape::Slow(ns) => {
            let leaf = format!("netem delay {}us limit 100000", ns.div_ceil(1_000));
            match device == LOOPBACK {
                true => class(1, "dport", &leaf),
                false => class(2, "sport", &leaf),
            }
        }
    }
    all
}

/// Returns whether the kernel can do it: tried in a network namespace of its own, which is gone with the shell.
pub(crate) fn try_out(machine: &Machine, shape: Shape) -> Result<(), LocalError> {
    let commands = making((LOOPBACK, &root_handle()), &[1], false, shape);
    let script: Vec<String> = commands.iter().map(|words| format!("tc {}", words.join(" "))).collect();
    let tried = match machine.find_program("tc") {
        // dyno makes every word of the script.
        Some(_) => run(machine, "unshare", &["--net", "sh", "-c", &script.join(" && ")]).map(drop),
        None => {
            Err(ProgramError::Missing { program: "tc".into(), hint: " (Debian: apt-get install iproute2)" })
        }
    };
    let what = match shape {
        Shape::Narrow(_) => "token bucket filter",
        Shape::Slow(_) => "netem",
    };
    tried.map_err(|why| not_permitted(what, why))
}

fn not_permitted(what: &str, why: impl Into<Cause>) -> LocalError {
    let lost = "the way to the server stays as it is: such faults do not come".into();
    LocalError::NotPermitted { what: what.into(), why: why.into(), lost }
}

/// Returns whether the kernel can do it to all devices that packets to and from an address take, and no other program has put
/// something there.
pub fn try_at(machine: &Machine, address: IpAddr, shape: Shape) -> Result<(), LocalError> {
    try_out(machine, shape)?;
    let free = devices_to(machine, address)
        .and_then(|all| all.iter().try_for_each(|device| is_free(machine, device)));
    free.map_err(|error| not_permitted("queueing disciplines", error))
}

/// Returns whether the kernel has token buckets for the loopback, and no other program has put something there.
pub fn can_narrow(machine: &Machine) -> bool {
    try_at(machine, Ipv4Addr::LOCALHOST.into(), Shape::Narrow(BUCKET)).is_ok()
}

/// The same of delays.
pub fn can_slow(machine: &Machine) -> bool {
    try_at(machine, Ipv4Addr::LOCALHOST.into(), Shape::Slow(1_000_000)).is_ok()
}

/// The disciplines of a device, as `tc` lists them.
fn listed(machine: &Machine, device: &str) -> Result<String, ProgramError> {
    run(machine, "tc", &["qdisc", "show", "dev", device])
}

/// Kind and handle in a line such as `qdisc htb 7d10: root refcnt 2`.
fn kind(line: &str) -> (&str, &str) {
    let mut words = line.split_whitespace().skip(1);
    (words.next().unwrap_or("noqueue"), words.next().unwrap_or_default())
}

/// The first discipline of a list that is not the kernel's own choice: those have no number. What is done to packets that
/// come in stays whatever the root is.
fn set_from_outside(listed: &str) -> Option<(&str, &str)> {
    let all = listed.lines().map(kind).filter(|(kind, _)| !["ingress", "clsact"].contains(kind));
    all.into_iter().find(|(kind, handle)| !(USUAL.contains(kind) && *handle == "0:"))
}

/// An error if the root of a device, or what is below it, is not the kernel's own choice.
pub fn is_free(machine: &Machine, device: &str) -> Result<(), LocalError> {
    let found = listed(machine, device)?;
    match set_from_outside(&found) {
        None => Ok(()),
        Some((kind, handle)) => Err(LocalError::Failed(format!(
            "{device} has a queueing discipline of its own ({kind} {handle}), which is not taken away"
        ))),
    }
}

/// Shapes a device that is free.
pub fn shape_device(
    machine: &Machine,
    place: (&str, &str),
    ports: &[u16],
    v6: bool,
    shape: Shape,
) -> Result<(), LocalError> {
    for command in making(place, ports, v6, shape) {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        run(machine, "tc", &words)?;
    }
    Ok(())
}

/// Gives a device its usual discipline back, if its root is the one of this handle.
pub(crate) fn remove(machine: &Machine, device: &str, handle: &str) -> Result<(), LocalError> {
    let found = match listed(machine, device) {
        Ok(found) => found,
        // A device that is gone has nothing that could be removed.
        Err(_) if !Path::new(DEVICES).join(device).exists() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if found.lines().map(kind).any(|one| one == ("htb", handle)) {
        run(machine, "tc", &["qdisc", "del", "dev", device, "root"])?;
    }
    Ok(())
}

/// Devices that packets to and from an address take: the loopback, for an address of another device that one, too.
pub fn devices_to(machine: &Machine, address: IpAddr) -> Result<Vec<String>, LocalError> {
    if address.is_unspecified() {
        let why = "no one device: expected server.address to name the address that workers use";
        return Err(LocalError::Failed(format!("{address} is of {why}")));
    }
    let mut all = vec![LOOPBACK.to_owned()];
    if !address.is_loopback() {
        let text = address.to_string();
        let listed = run(machine, "ip", &["-o", "addr", "show", "to", &text])?;
        let device = listed.split_whitespace().nth(1).map(|name| name.split('@').next().unwrap_or(name));
        let device = device.ok_or_else(|| LocalError::Failed(format!("{address} is of no device here")))?;
        all.push(device.to_owned());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_about_the_ports_and_each_direction() {
        let lines = |device: &str, shape: Shape| -> Vec<String> {
            making((device, "7abc:"), &[7001, 7002], false, shape)
                .iter()
                .map(|words| words.join(" "))
                .collect()
        };
        let lo = lines("lo", Shape::Narrow(20_000_000));
        assert_eq!(lo[0], "qdisc add dev lo root handle 7abc: htb");
        assert_eq!(lo[2], "qdisc add dev lo parent 7abc:1 tbf rate 20000000bps burst 200000 latency 200ms");
        assert!(
            lo[3].ends_with("match ip protocol 6 0xff match ip dport 7001 0xffff flowid 7abc:1"),
            "{}",
            lo[3]
        );
        assert!(lo[8].ends_with("match ip sport 7002 0xffff flowid 7abc:2"), "{}", lo[8]);
        assert_eq!(lo.len(), 9);
        // Incoming packets are no affair of a device's own queue.
        assert!(lines("eth0", Shape::Narrow(1_000)).iter().all(|line| !line.contains("dport")));
        let slow = lines("lo", Shape::Slow(20_000_000));
        assert_eq!(slow[2], "qdisc add dev lo parent 7abc:1 netem delay 20000us limit 100000");
        assert!(slow.iter().all(|line| !line.contains("sport")));
        assert!(making(("lo", "7abc:"), &[1], true, Shape::Slow(1))[3].contains(&"ip6".to_owned()));
    }

    #[test]
    fn a_root_set_from_outside_is_told_from_the_kernels() {
        assert_eq!(kind("qdisc htb 7d10: root refcnt 2 r2q 10 default 0"), ("htb", "7d10:"));
        let queues = "qdisc mq 0: root \nqdisc fq_codel 0: parent :1 limit 10240p\n";
        for free in
            ["", "qdisc noqueue 0: root refcnt 2 \n", queues, "qdisc clsact ffff: parent ffff:fff1 \n"]
        {
            assert_eq!(set_from_outside(free), None, "{free}");
        }
        for set in [
            "qdisc pfifo 8014: root refcnt 2 limit 7p\n",
            "qdisc htb 7d10: root refcnt 2\n",
            "qdisc mq 0: root \nqdisc fq 8015: parent :1 maxrate 1Gbit\n",
            "qdisc netem 0: root\n",
        ] {
            assert!(set_from_outside(set).is_some(), "{set}");
        }
        assert_ne!(root_handle(), root_handle());
        assert!(devices_to(&Machine::default(), Ipv4Addr::UNSPECIFIED.into()).is_err());
        assert_eq!((bucket_size(1), bucket_size(1 << 30)), (BUCKET, (1 << 30) / 100));
    }
}
