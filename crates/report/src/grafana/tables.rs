//! The tables of panels: what is shown, in which unit, and the query behind it.

use crate::grafana::mongodb;
use crate::grafana::panel::{Dashboard, Panel, lines_panel, number_panel, panel_query};

const RUN_0: [Panel; 4] = [
    number_panel(
        "Operations per second",
        "ops",
        "Successful operations of all phases.",
        &[panel_query(r#"sum(rate(dyno_operations_total{@, outcome="ok"}[@]))"#, "ok")],
    ),
    number_panel(
        "p99 response time",
        "s",
        "Completion less intended start.",
        &[panel_query(
            r#"histogram_quantile(0.99, sum by (le) (rate(dyno_response_seconds_bucket{@, result="ok"}[@])))"#,
            "p99",
        )],
    ),
    number_panel(
        "Users",
        "none",
        "Users or connections of the phase under way.",
        &[panel_query("sum(dyno_users{@})", "users")],
    ),
    number_panel(
        "Failed share",
        "percentunit",
        "Operations that ended otherwise than ok.",
        &[panel_query(
            r#"1 - sum(rate(dyno_operations_total{@, outcome="ok"}[@])) / sum(rate(dyno_operations_total{@}[@]))"#,
            "failed",
        )],
    ),
];

const RUN_1: [Panel; 4] = [
    lines_panel(
        "Operations by kind",
        "ops",
        "Successful operations.",
        &[panel_query(r#"sum by (metric) (rate(dyno_operations_total{@, outcome="ok"}[@]))"#, "{{metric}}")],
    ),
    lines_panel(
        "Operations by outcome",
        "ops",
        "All operations that ended.",
        &[panel_query("sum by (outcome) (rate(dyno_operations_total{@}[@]))", "{{outcome}}")],
    ),
    lines_panel(
        "Arrivals and target rate",
        "ops",
        "Open loop: what the schedule asks for, and what it was given.",
        &[
            panel_query("sum(rate(dyno_arrivals_total{@}[@]))", "arrivals"),
            panel_query("sum(dyno_target_rate{@})", "target"),
        ],
    ),
    lines_panel(
        "Phase",
        "none",
        "The phase under way is 1.",
        &[panel_query("dyno_phase_info{@}", "{{phase}}")],
    ),
];

const RUN_2: [Panel; 4] = [
    lines_panel(
        "Response time, median",
        "s",
        "Completion less intended start: waiting is part of it.",
        &[panel_query(
            r#"histogram_quantile(0.5, sum by (le, metric) (rate(dyno_response_seconds_bucket{@, result="ok"}[@])))"#,
            "{{metric}}",
        )],
    ),
    lines_panel(
        "Response time, p99",
        "s",
        "Completion less intended start: waiting is part of it.",
        &[panel_query(
            r#"histogram_quantile(0.99, sum by (le, metric) (rate(dyno_response_seconds_bucket{@, result="ok"}[@])))"#,
            "{{metric}}",
        )],
    ),
    lines_panel(
        "Response time, p99.9",
        "s",
        "Completion less intended start: waiting is part of it.",
        &[panel_query(
            r#"histogram_quantile(0.999, sum by (le, metric) (rate(dyno_response_seconds_bucket{@, result="ok"}[@])))"#,
            "{{metric}}",
        )],
    ),
    lines_panel(
        "Service time, p99",
        "s",
        "Completion less sending.",
        &[panel_query(
            r#"histogram_quantile(0.99, sum by (le, metric) (rate(dyno_service_seconds_bucket{@, result="ok"}[@])))"#,
            "{{metric}}",
        )],
    ),
];

const RUN_3: [Panel; 6] = [
    lines_panel(
        "Ideal client, p99",
        "s",
        "Open loop: response times of a client that is never late. Below the response time: the client adds waits.",
        &[panel_query(
            "histogram_quantile(0.99, sum by (le) (rate(dyno_ideal_response_seconds_bucket{@}[@])))",
            "p99",
        )],
    ),
    lines_panel(
        "Schedule lag, p99",
        "s",
        "Open loop: sending less intended start, of arrivals that found a free connection. High: the load generator is too slow.",
        &[panel_query(
            "histogram_quantile(0.99, sum by (le) (rate(dyno_schedule_lag_seconds_bucket{@}[@])))",
            "p99",
        )],
    ),
    lines_panel(
        "Backlog",
        "none",
        "Longest queue of due arrivals so far.",
        &[panel_query("max by (phase) (dyno_backlog{@})", "{{phase}}")],
    ),
    lines_panel(
        "CPU",
        "none",
        "Cores that dyno keeps busy.",
        &[panel_query(
            "sum by (instance) (rate(process_cpu_seconds_total{@}[@])) and on (instance) dyno_build_info{@}",
            "{{instance}}",
        )],
    ),
    lines_panel(
        "Memory",
        "bytes",
        "Largest resident memory so far.",
        &[panel_query("dyno_peak_resident_bytes{@}", "{{instance}}")],
    ),
    lines_panel(
        "Connections made anew, late replies, redirects",
        "ops",
        "",
        &[
            panel_query("sum(rate(dyno_reconnects_total{@}[@]))", "reconnects"),
            panel_query("sum(rate(dyno_late_replies_total{@}[@]))", "late replies"),
            panel_query("sum(rate(dyno_redirects_total{@}[@]))", "redirects"),
        ],
    ),
];

const HOST_0: [Panel; 4] = [
    lines_panel(
        "CPU by mode",
        "percentunit",
        "Share of all cores' time.",
        &[panel_query(
            r#"avg by (instance, mode) (rate(node_cpu_seconds_total{@, mode!="idle"}[@]))"#,
            "{{mode}}",
        )],
    ),
    lines_panel(
        "Load",
        "none",
        "Average of the runnable and waiting tasks over one minute.",
        &[panel_query("node_load1{@}", "{{instance}}")],
    ),
    lines_panel(
        "Memory",
        "bytes",
        "",
        &[
            panel_query("node_memory_MemAvailable_bytes{@}", "available"),
            panel_query("node_memory_Cached_bytes{@}", "page cache"),
            panel_query("node_memory_Dirty_bytes{@}", "dirty"),
        ],
    ),
    lines_panel(
        "Context switches and interrupts",
        "ops",
        "",
        &[
            panel_query("rate(node_context_switches_total{@}[@])", "context switches"),
            panel_query("rate(node_intr_total{@}[@])", "interrupts"),
        ],
    ),
];

const HOST_1: [Panel; 4] = [
    lines_panel(
        "Bytes",
        "Bps",
        "",
        &[
            panel_query("rate(node_disk_read_bytes_total{@}[@])", "{{device}} read"),
            panel_query("rate(node_disk_written_bytes_total{@}[@])", "{{device}} written"),
        ],
    ),
    lines_panel(
        "Operations",
        "iops",
        "",
        &[
            panel_query("rate(node_disk_reads_completed_total{@}[@])", "{{device}} read"),
            panel_query("rate(node_disk_writes_completed_total{@}[@])", "{{device}} written"),
        ],
    ),
    lines_panel(
        "Busy",
        "percentunit",
        "Share of the time with an operation under way.",
        &[panel_query("rate(node_disk_io_time_seconds_total{@}[@])", "{{device}}")],
    ),
    lines_panel(
        "Queue",
        "none",
        "Operations under way, on average.",
        &[panel_query("rate(node_disk_io_time_weighted_seconds_total{@}[@])", "{{device}}")],
    ),
];

const HOST_2: [Panel; 4] = [
    lines_panel(
        "Network",
        "Bps",
        "",
        &[
            panel_query("rate(node_network_receive_bytes_total{@}[@])", "{{device}} received"),
            panel_query("rate(node_network_transmit_bytes_total{@}[@])", "{{device}} sent"),
        ],
    ),
    lines_panel(
        "Dropped packets and errors",
        "pps",
        "",
        &[
            panel_query("sum(rate(node_network_receive_drop_total{@}[@]))", "dropped at receipt"),
            panel_query("sum(rate(node_network_receive_errs_total{@}[@]))", "errors at receipt"),
            panel_query("sum(rate(node_netstat_Tcp_RetransSegs{@}[@]))", "TCP segments sent again"),
        ],
    ),
    lines_panel(
        "Space available",
        "bytes",
        "",
        &[panel_query(r#"node_filesystem_avail_bytes{@, fstype!~"tmpfs|ramfs"}"#, "{{mountpoint}}")],
    ),
    lines_panel(
        "TCP connections",
        "none",
        "",
        &[panel_query("node_netstat_Tcp_CurrEstab{@}", "established")],
    ),
];

const DATABASE_0: [Panel; 4] = [
    number_panel(
        "Commands per second",
        "ops",
        "",
        &[panel_query("sum(rate(redis_commands_processed_total{@}[@]))", "commands")],
    ),
    number_panel("Clients", "none", "", &[panel_query("sum(redis_connected_clients{@})", "clients")]),
    number_panel("Memory", "bytes", "", &[panel_query("sum(redis_memory_used_bytes{@})", "used")]),
    number_panel("Keys", "none", "", &[panel_query("sum(redis_db_keys{@})", "keys")]),
];

const DATABASE_1: [Panel; 4] = [
    lines_panel(
        "Commands by name",
        "ops",
        "",
        &[panel_query("sum by (cmd) (rate(redis_commands_total{@}[@]))", "{{cmd}}")],
    ),
    lines_panel(
        "Time in the server by command",
        "s",
        "Mean time of a command inside the server.",
        &[panel_query(
            "sum by (cmd) (rate(redis_commands_duration_seconds_total{@}[@])) / sum by (cmd) (rate(redis_commands_total{@}[@]))",
            "{{cmd}}",
        )],
    ),
    lines_panel(
        "Keyspace",
        "ops",
        "",
        &[
            panel_query("sum(rate(redis_keyspace_hits_total{@}[@]))", "hits"),
            panel_query("sum(rate(redis_keyspace_misses_total{@}[@]))", "misses"),
            panel_query("sum(rate(redis_evicted_keys_total{@}[@]))", "evicted"),
            panel_query("sum(rate(redis_expired_keys_total{@}[@]))", "expired"),
        ],
    ),
    lines_panel(
        "Network",
        "Bps",
        "",
        &[
            panel_query("sum(rate(redis_net_input_bytes_total{@}[@]))", "received"),
            panel_query("sum(rate(redis_net_output_bytes_total{@}[@]))", "sent"),
        ],
    ),
];

const DATABASE_2: [Panel; 4] = [
    lines_panel(
        "CPU",
        "none",
        "Cores that the server keeps busy.",
        &[
            panel_query("rate(redis_cpu_user_seconds_total{@}[@])", "user"),
            panel_query("rate(redis_cpu_sys_seconds_total{@}[@])", "system"),
        ],
    ),
    lines_panel(
        "Memory",
        "bytes",
        "",
        &[
            panel_query("redis_memory_used_bytes{@}", "used"),
            panel_query("redis_memory_used_rss_bytes{@}", "resident"),
        ],
    ),
    lines_panel(
        "Clients",
        "none",
        "",
        &[
            panel_query("redis_connected_clients{@}", "connected"),
            panel_query("redis_blocked_clients{@}", "blocked"),
        ],
    ),
    lines_panel(
        "Persistence",
        "none",
        "",
        &[panel_query("redis_rdb_changes_since_last_save{@}", "changes since the last save")],
    ),
];

/// Every dashboard.
pub(super) const DASHBOARDS: [Dashboard; 4] = [
    Dashboard {
        uid: "dyno-run",
        title: "dyno: run",
        present: "dyno_build_info",
        rows: &[("Run", &RUN_0), ("Throughput", &RUN_1), ("Latency", &RUN_2), ("Load generator", &RUN_3)],
    },
    Dashboard {
        uid: "dyno-host",
        title: "dyno: host",
        present: "node_load1",
        rows: &[("Processor and memory", &HOST_0), ("Disks", &HOST_1), ("Network and filesystems", &HOST_2)],
    },
    Dashboard {
        uid: "dyno-database",
        title: "dyno: database",
        present: "redis_up",
        rows: &[("Redis", &DATABASE_0), ("Work", &DATABASE_1), ("Resources", &DATABASE_2)],
    },
    Dashboard {
        uid: "dyno-mongodb",
        title: "dyno: MongoDB",
        present: "dyno_server{series=\"uptime_s\"}",
        rows: &mongodb::ROWS,
    },
];
