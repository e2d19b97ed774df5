//! MongoDB's panels, on what dyno itself reads of `serverStatus` and exports with `--metrics`: no exporter is needed.

use crate::grafana::panel::{Panel, lines, number, q};

/// Headings and their panels.
pub(super) const ROWS: [(&str, &[Panel]); 4] =
    [("MongoDB", &NOW), ("Work", &WORK), ("Storage engine", &ENGINE), ("Resources", &RESOURCES)];

const NOW: [Panel; 4] = [
    number(
        "Operations per second",
        "ops",
        "Operations that the servers count, commands among them.",
        &[q(
            r#"sum(rate(dyno_server_total{@, source=~"database.*", series="operations"}[@]))"#,
            "operations",
        )],
    ),
    number(
        "Connections",
        "none",
        "",
        &[q(r#"sum(dyno_server{@, source=~"database.*", series="connections"})"#, "connections")],
    ),
    number(
        "Resident memory",
        "bytes",
        "As the servers tell it.",
        &[q(r#"sum(dyno_server{@, source=~"database.*", series="memory_bytes"})"#, "resident")],
    ),
    number(
        "Time since the start",
        "s",
        "The youngest server's.",
        &[q(r#"min(dyno_server{@, source=~"database.*", series="uptime_s"})"#, "since the start")],
    ),
];

const WORK: [Panel; 6] = [
    lines(
        "Operations by kind",
        "ops",
        "",
        &[q(
            r#"sum by (series) (rate(dyno_server_total{@, source=~"database.*", series=~"opcounters[.].*"}[@]))"#,
            "{{series}}",
        )],
    ),
    lines(
        "Commands by name",
        "ops",
        "",
        &[q(
            r#"sum by (series) (rate(dyno_server_total{@, source=~"database.*", series=~"command[.].*[.]calls"}[@]))"#,
            "{{series}}",
        )],
    ),
    lines(
        "Time in the server",
        "\u{b5}s",
        "Mean time of a read, write or command inside the server.",
        &[
            q(
                "sum(rate(dyno_server_total{@, series=\"latency.reads.latency\"}[@])) \
                 / sum(rate(dyno_server_total{@, series=\"latency.reads.ops\"}[@]))",
                "reads",
            ),
            q(
                "sum(rate(dyno_server_total{@, series=\"latency.writes.latency\"}[@])) \
                 / sum(rate(dyno_server_total{@, series=\"latency.writes.ops\"}[@]))",
                "writes",
            ),
        ],
    ),
    lines(
        "Documents",
        "ops",
        "Documents returned, inserted, updated, deleted.",
        &[q(r#"sum by (series) (rate(dyno_server_total{@, series=~"documents[.].*"}[@]))"#, "{{series}}")],
    ),
    lines(
        "Looked at",
        "ops",
        "Index keys and documents that queries have looked at.",
        &[
            q(r#"sum(rate(dyno_server_total{@, series="scanned_keys"}[@]))"#, "keys"),
            q(r#"sum(rate(dyno_server_total{@, series="scanned_documents"}[@]))"#, "documents"),
        ],
    ),
    lines(
        "Waiting and at work",
        "none",
        "",
        &[q(r#"sum by (series) (dyno_server{@, series=~"(queue|active)[.].*"})"#, "{{series}}")],
    ),
];

const ENGINE: [Panel; 4] = [
    lines(
        "Cache",
        "bytes",
        "",
        &[q(
            r#"sum by (series) (dyno_server{@, series=~"cache[.](limit_bytes|bytes|dirty_bytes|update_bytes)"})"#,
            "{{series}}",
        )],
    ),
    lines(
        "Into and out of the cache",
        "Bps",
        "",
        &[
            q(r#"sum(rate(dyno_server_total{@, series="cache.read_bytes"}[@]))"#, "read"),
            q(r#"sum(rate(dyno_server_total{@, series="cache.written_bytes"}[@]))"#, "written"),
        ],
    ),
    lines(
        "Tickets",
        "none",
        "Operations that the engine lets in at once.",
        &[q(r#"sum by (series) (dyno_server{@, series=~"tickets[.].*"})"#, "{{series}}")],
    ),
    lines(
        "Journal",
        "none",
        "",
        &[
            q(r#"sum(rate(dyno_server_total{@, series="journal.written_bytes"}[@]))"#, "bytes per second"),
            q(r#"sum(rate(dyno_server_total{@, series="journal.syncs"}[@]))"#, "syncs per second"),
        ],
    ),
];

const RESOURCES: [Panel; 4] = [
    lines(
        "CPU",
        "none",
        "Cores that a server on this host keeps busy.",
        &[q(
            r#"sum by (source) (rate(dyno_server_total{@, source=~"server.*", series=~"cpu[.](user|system)_s"}[@]))"#,
            "{{source}}",
        )],
    ),
    lines(
        "Memory of the process",
        "bytes",
        "As the kernel tells it, of a server on this host.",
        &[q(r#"dyno_server{@, source=~"server.*", series="resident_bytes"}"#, "{{source}}")],
    ),
    lines(
        "Network",
        "Bps",
        "",
        &[
            q(r#"sum(rate(dyno_server_total{@, series="network.received_bytes"}[@]))"#, "received"),
            q(r#"sum(rate(dyno_server_total{@, series="network.sent_bytes"}[@]))"#, "sent"),
        ],
    ),
    lines(
        "Connections accepted",
        "ops",
        "",
        &[q(
            r#"sum(rate(dyno_server_total{@, source=~"database.*", series="connections_accepted"}[@]))"#,
            "accepted",
        )],
    ),
];
