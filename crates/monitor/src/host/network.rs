//! /proc/net/dev and /proc/net/snmp: interfaces that have been used, and TCP's segments.

use crate::roots::Roots;
use crate::sample::Sample;

/// Columns of an interface and our names.
const COLUMNS: [(usize, &str); 8] = [
    (0, "received_bytes"),
    (1, "received_packets"),
    (2, "receive_errors"),
    (3, "receive_drops"),
    (8, "sent_bytes"),
    (9, "sent_packets"),
    (10, "send_errors"),
    (11, "send_drops"),
];

/// Columns of TCP and our names.
const TCP: [(&str, &str); 4] = [
    ("InSegs", "tcp.received_segments"),
    ("OutSegs", "tcp.sent_segments"),
    ("RetransSegs", "tcp.retransmitted_segments"),
    ("AttemptFails", "tcp.failed_attempts"),
];

pub(super) fn network(roots: &Roots, into: &mut Sample) {
    for line in roots.proc("net/dev").unwrap_or_default().lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let values: Vec<f64> = rest.split_ascii_whitespace().map_while(|w| w.parse().ok()).collect();
        if values.iter().all(|v| *v == 0.0) {
            continue;
        }
        for (column, what) in COLUMNS {
            if let Some(value) = values.get(column) {
                into.add_counter(format!("network.{}.{what}", name.trim()), *value);
            }
        }
    }
    let snmp = roots.proc("net/snmp").unwrap_or_default();
    let mut lines = snmp.lines().filter(|l| l.starts_with("Tcp:"));
    if let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        for (name, value) in names.split_ascii_whitespace().zip(values.split_ascii_whitespace()) {
            if let (Some((_, ours)), Ok(value)) = (TCP.iter().find(|(n, _)| *n == name), value.parse()) {
                into.add_counter(*ours, value);
            }
        }
    }
}
