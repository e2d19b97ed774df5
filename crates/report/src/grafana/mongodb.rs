//! MongoDB's panels, on what dyno itself reads of `serverStatus` and exports with `--metrics`: no exporter is needed.

use crate::grafana::panel::{Panel, lines_panel, number_panel, panel_query};

/// Headings and their panels.
pub(super) const ROWS: [(&str, &[Panel]); 4] =
    [("MongoDB", &NOW), ("Work", &WORK), ("Storage engine", &ENGINE), ("Resources", &RESOURCES)];

const NOW: [Panel; 4] = [
    number_panel(
        "Operations per second",
        "ops",
        "Operations that the servers count, commands among them.",
        &[panel_query(
            r#"sum(rate(dyno_server_total{@, source=~"database.*", series="operations"}[@]))"#,
            "operations",
        )],
    ),
    number_panel(
        "Connections",
        "none",
        "",
        &[panel_query(r#"sum(dyno_server{@, source=~"database.*", series="connections"})"#, "connections")],
    ),
    number_panel(
        "Resident memory",
        "bytes",
        "As the servers tell it.",
        &[panel_query(r#"sum(dyno_server{@, source=~"database.*", series="memory_bytes"})"#, "resident")],
    ),
    number_panel(
        "Time since the start",
        "s",
        "The youngest server's.",
        &[panel_query(r#"min(dyno_server{@, source=~"database.*", series="uptime_s"})"#, "since the start")],
    ),
];

const WORK: [Panel; 6] = [
    lines_panel(
        "Operations by kind",
        "ops",
        "",
        &[panel_query(
            r#"sum by (series) (rate(dyno_server_total{@, source=~"database.*", series=~"opcounters[.].*"}[@]))"#,
            "{{series}}",
        )],
    ),
    lines_panel(
        "Commands by name",
        "ops",
        "",
        &[panel_query(
            r#"sum by (series) (rate(dyno_server_total{@, source=~"database.*", series=~"command[.].*[.]calls"}[@]))"#,
            "{{series}}",
        )],
    ),
    lines_panel(
        "Time in the server",
        "\u{b5}s",
        "Mean time of a read, write or command inside the server.",
        &[
            panel_query(
                "sum(rate(dyno_server_total{@, series=\"latency.reads.latency\"}[@])) \
                 / sum(rate(dyno_server_total{@, series=\"latency.reads.ops\"}[@]))",
                "reads",
            ),
            panel_query(
                "sum(rate(dyno_server_total{@, series=\"latency.writes.latency\"}[@])) \
                 / sum(rate(dyno_server_total{@, series=\"latency.writes.ops\"}[@]))",
                "writes",
            ),
        ],
    ),
    lines_panel(
        "Documents",
        "ops",
        "Documents returned, inserted, updated, deleted.",
        &[panel_query(
            r#"sum by (series) (rate(dyno_server_total{@, series=~"documents[.].*"}[@]))"#,
            "{{series}}",
        )],
    ),
    lines_panel(
        "Looked at",
        "ops",
        "Index keys and documents that queries have looked at.",
        &[
            panel_query(r#"sum(rate(dyno_server_total{@, series="scanned_keys"}[@]))"#, "keys"),
            panel_query(r#"sum(rate(dyno_server_total{@, series="scanned_documents"}[@]))"#, "documents"),
        ],
    ),
    lines_panel(
        "Waiting and at work",
        "none",
        "",
        &[panel_query(r#"sum by (series) (dyno_server{@, series=~"(queue|active)[.].*"})"#, "{{series}}")],
    ),
];

const ENGINE: [Panel; 4] = [
    lines_panel(
        "Cache",
        "bytes",
        "",
        &[panel_query(
            r#"sum by (series) (dyno_server{@, series=~"cache[.](limit_bytes|bytes|dirty_bytes|update_bytes)"})"#,
            "{{series}}",
        )],
    ),
    lines_panel(
        "Into and out of the cache",
        "Bps",
        "",
        &[
            panel_query(r#"sum(rate(dyno_server_total{@, series="cache.read_bytes"}[@]))"#, "read"),
            panel_query(r#"sum(rate(dyno_server_total{@, series="cache.written_bytes"}[@]))"#, "written"),
        ],
    ),
    lines_panel(
        "Tickets",
        "none",
        "Operations that the engine lets in at once.",
        &[panel_query(r#"sum by (series) (dyno_server{@, series=~"tickets[.].*"})"#, "{{series}}")],
    ),
    lines_panel(
        "Journal",
        "none",
        "",
        &[
            panel_query(
                r#"sum(rate(dyno_server_total{@, series="journal.written_bytes"}[@]))"#,
                "bytes per second",
            ),
            panel_query(r#"sum(rate(dyno_server_total{@, series="journal.syncs"}[@]))"#, "syncs per second"),
        ],
    ),
];

const RESOURCES: [Panel; 4] = [
    lines_panel(
        "CPU",
        "none",
        "Cores that a server on this host keeps busy.",
        &[panel_query(
            r#"sum by (source) (rate(dyno_server_total{@, source=~"server.*", series=~"cpu[.](user|system)_s"}[@]))"#,
            "{{source}}",
        )],
    ),
    lines_panel(
        "Memory of the process",
        "bytes",
        "As the kernel tells it, of a server on this host.",
        &[panel_query(r#"dyno_server{@, source=~"server.*", series="resident_bytes"}"#, "{{source}}")],
    ),
    lines_panel(
        "Network",
        "Bps",
        "",
        &[
            panel_query(r#"sum(rate(dyno_server_total{@, series="network.received_bytes"}[@]))"#, "received"),
            panel_query(r#"sum(rate(dyno_server_total{@, series="network.sent_bytes"}[@]))"#, "sent"),
        ],
    ),
    lines_panel(
        "Connections accepted",
        "ops",
        "",
        &[panel_query(
            r#"sum(rate(dyno_server_total{@, source=~"database.*", series="connections_accepted"}[@]))"#,
            "accepted",
        )],
    ),
];
