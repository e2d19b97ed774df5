//! Figures that monitors saw, in three to five lines of the summary.

use dyno_rundir::schema::{DatabaseUse, HostRole, HostUse, Monitored, PhaseHost, ProcessUse};
use dyno_types::units::{BinaryBytes, ShownLatency, Thousands};
use std::fmt::Write as _;

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Single events per second: whole numbers where there are many.
fn events(value: f64, what: &str) -> String {
    if value < 10.0 {
        format!("{value:.1} {what}/s")
    } else {
        format!("{} {what}/s", Thousands(value.round() as u64))
    }
}

fn us(value: f64) -> String {
    ShownLatency((value * 1e3).round() as u64).to_string()
}

fn row(out: &mut String, name: &str, parts: Vec<Option<String>>) {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{name:9}{}", parts.join(", "));
    }
}

fn database(out: &mut String, seen: &DatabaseUse) {
    let nodes = (seen.nodes > 1).then(|| format!("{} nodes", seen.nodes));
    let operations = seen.operations_per_s.map(|n| format!("{} commands/s", Thousands(n.round() as u64)));
    let connections = seen.connections.map(|n| format!("{} connections", Thousands(n as u64)));
    row(
        out,
        "database",
        vec![nodes, operations, connections, seen.memory_bytes.map(|b| BinaryBytes(b).to_string())],
    );
}

fn server(out: &mut String, seen: &ProcessUse) {
    let faults = seen.major_faults_per_s.filter(|n| *n > 0.0).map(|n| events(n, "major faults"));
    let throttled = seen.throttled_share.filter(|s| *s > 0.0).map(|s| format!("throttled {}", percent(s)));
    let cpu = Some(format!("CPU {:.2} cores", seen.cpu_cores));
    row(
        out,
        "server",
        vec![cpu, seen.resident_bytes.map(|b| format!("{} resident", BinaryBytes(b))), faults, throttled],
    );
}

fn host(out: &mut String, seen: &HostUse) {
    let cpu = format!(
        "CPU {} busy, {} iowait, {} steal",
        percent(seen.cpu_busy_share),
        percent(seen.cpu_iowait_share),
        percent(seen.cpu_steal_share)
    );
    let (received, sent) = (seen.network_received_bytes_per_s, seen.network_sent_bytes_per_s);
    let network = (received + sent > 0.0)
        .then(|| format!("network {}/s in, {}/s out", BinaryBytes(received), BinaryBytes(sent)));
    let name = seen.elsewhere.as_ref().map(|name| format!("on {name}"));
    row(out, "host", vec![name, Some(cpu), network]);
    if let Some(disk) = &seen.disk {
        let each = |name: &str, count: f64, volume: f64, time: Option<f64>| {
            let time = time.map_or(String::new(), |t| format!(" of {}", us(t)));
            (count > 0.0).then(|| format!("{}{time}, {}/s", events(count, name), BinaryBytes(volume)))
        };
        let reads = each("reads", disk.reads_per_s, disk.read_bytes_per_s, disk.read_us);
        let writes = each("writes", disk.writes_per_s, disk.written_bytes_per_s, disk.write_us);
        row(
            out,
            "disk",
            vec![Some(format!("{} busy {}", disk.name, percent(disk.busy_share))), reads, writes],
        );
    }
}

/// Each host that takes part, where there are several.
fn hosts(out: &mut String, hosts: &[PhaseHost]) {
    for host in hosts {
        let role = match host.role {
            HostRole::Client => "load",
            HostRole::Server => "servers",
            HostRole::Both => "load and servers",
        };
        let busy = host.cpu_busy_share.map(|share| format!("CPU {} busy", percent(share)));
        let steal = host.cpu_steal_share.map(|share| format!("{} steal", percent(share)));
        let others = host.others.as_ref().map(|others| match others.describe_programs() {
            programs if programs.is_empty() => format!("others {:.2} cores", others.cpu_cores),
            programs => format!("others {:.2} cores ({programs})", others.cpu_cores),
        });
        row(out, "takes part", vec![Some(format!(" {} ({role})", host.name)), busy, steal, others]);
    }
}

/// The block, under its title.
pub(crate) fn append_monitored(out: &mut String, seen: &Monitored, taking_part: &[PhaseHost], title: &str) {
    // Of one host on which this process runs, `host` and `others` tell.
    let several = taking_part.iter().any(|host| taking_part.len() > 1 || !host.local);
    if !several && seen.database.is_none() && seen.server.is_none() && seen.host.is_none() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    if let Some(seen) = &seen.database {
        database(out, seen);
    }
    if let Some(seen) = &seen.server {
        server(out, seen);
    }
    if let Some(seen) = &seen.host {
        host(out, seen);
    }
    // Use of less than a hundredth of a core is not worth a line.
    if several {
        hosts(out, taking_part);
    } else if let Some(others) = seen.others.as_ref().filter(|others| others.cpu_cores >= 0.01) {
        row(
            out,
            "others",
            vec![Some(format!("CPU {:.2} cores: {}", others.cpu_cores, others.describe_programs()))],
        );
    }
    if let Some(share) = seen.cost_share {
        let _ = writeln!(out, "monitors {:.2} % of one core", share * 100.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_rundir::schema::{DiskUse, OthersUse};

    #[test]
    fn six_lines_of_less_than_80_columns() {
        let seen = Monitored {
            host: Some(HostUse {
                cpu_busy_share: 0.713,
                cpu_iowait_share: 0.02,
                network_received_bytes_per_s: 5_000_000.0,
                disk: Some(DiskUse {
                    name: "vda".into(),
                    writes_per_s: 1_234.0,
                    written_bytes_per_s: 8.5e6,
                    busy_share: 0.25,
                    write_us: Some(120.0),
                    ..DiskUse::default()
                }),
                ..HostUse::default()
            }),
            server: Some(ProcessUse { cpu_cores: 0.98, resident_bytes: Some(5e7), ..ProcessUse::default() }),
            workers: None,
            database: Some(DatabaseUse {
                nodes: 1,
                operations_per_s: Some(101_234.4),
                connections: Some(17.0),
                memory_bytes: Some(1_500.0),
            }),
            others: Some(OthersUse { cpu_cores: 0.25, programs: [("cc1".to_owned(), 0.2)].into() }),
            cost_share: Some(0.0031),
        };
        let mut out = String::new();
        append_monitored(&mut out, &seen, &[], "server and host");
        let expected = "\nserver and host\n\
            database 101,234 commands/s, 17 connections, 1.5 KiB\n\
            server   CPU 0.98 cores, 47.7 MiB resident\n\
            host     CPU 71.3 % busy, 2.0 % iowait, 0.0 % steal, network 4.8 MiB/s in, 0 B/s out\n\
            disk     vda busy 25.0 %, 1,234 writes/s of 120 µs, 8.1 MiB/s\n\
            others   CPU 0.25 cores: cc1 0.20 cores\n\
            monitors 0.31 % of one core\n";
        assert_eq!(out, expected);
        out.clear();
        append_monitored(&mut out, &Monitored::default(), &[], "server and host");
        assert_eq!(out, "");
        // Of several hosts each has a line of its own, with its own programs.
        let host = |name: &str, role| PhaseHost {
            name: name.into(),
            role,
            cpu_busy_share: Some(0.5),
            cpu_steal_share: Some(0.0),
            others: seen.others.clone(),
            ..PhaseHost::default()
        };
        append_monitored(
            &mut out,
            &seen,
            &[host("load1", HostRole::Client), host("db", HostRole::Server)],
            "server and host",
        );
        let line =
            "takes part db (servers), CPU 50.0 % busy, 0.0 % steal, others 0.25 cores (cc1 0.20 cores)\n";
        assert!(out.contains(line) && !out.contains("\nothers"), "{out}");
    }
}
