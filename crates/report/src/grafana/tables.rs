//! The tables of panels: what is shown, in which unit, and the query behind it.

use crate::grafana::mongodb;
use crate::grafana::panel::{Dashboard, Panel, lines, number, q};

const RUN_0: [Panel; 4] = [
    number(
        "Operations per second",
        "ops",
        "Successful operations of all phases.",
        &[q(r#"sum(rate(dyno_operations_total{@, outcome="ok"}[@]))"#, "ok")],
    ),
    number(
        "p99 response time",
        "s",
        "Completion less intended start.",
        &[q(
            r#"histogram_quantile(0.99, sum by (le) (rate(dyno_response_seconds_bucket{@, result="ok"}[@])))"#,
            "p99",
        )],
    ),
    number(
        "Users",
        "none",
        "Users or connections of the phase under way.",
        &[q("sum(dyno_users{@})", "users")],
    ),
    number(
        "Failed share",
        "percentunit",
        "Operations that ended otherwise than ok.",
        &[q(
            r#"1 - sum(rate(dyno_operations_total{@, outcome="ok"}[@])) / sum(rate(dyno_operations_total{@}[@]))"#,
            "failed",
        )],
    ),
];

const RUN_1: [Panel; 4] = [
    lines(
        "Operations by kind",
        "ops",
        "Successful operations.",
        &[q(r#"sum by (metric) (rate(dyno_operations_total{@, outcome="ok"}[@]))"#, "{{metric}}")],
    ),
    lines(
        "Operations by outcome",
        "ops",
        "All operations that ended.",
        &[q("sum by (outcome) (rate(dyno_operations_total{@}[@]))", "{{outcome}}")],
    ),
    lines(
        "Arrivals and target rate",
        "ops",
        "Open loop: what the schedule asks for, and what it was given.",
        &[q("sum(rate(dyno_arrivals_total{@}[@]))", "arrivals"), q("sum(dyno_target_rate{@})", "target")],
    ),
    lines("Phase", "none", "The phase under way is 1.", &[q("dyno_phase_info{@}", "{{phase}}")]),
];

const RUN_2: [Panel; 4] = [
    lines(
        "Response time, median",
        "s",
        "Completion less intended start: waiting is part of it.",
        &[q(
            r#"histogram_quantile(0.5, sum by (le, metric) (rate(dyno_response_seconds_bucket{@, result="ok"}[@])))"#,
            "{{metric}}",
        )],
    ),
    lines(
        "Response time, p99",
        "s",
        "Completion less intended start: waiting is part of it.",
        &[q(
            r#"histogram_quantile(0.99, sum by (le, metric) (rate(dyno_response_seconds_bucket{@, result="ok"}[@])))"#,
            "{{metric}}",
        )],
    ),
    lines(
        "Response time, p99.9",
        "s",
        "Completion less intended start: waiting is part of it.",
        &[q(
            r#"histogram_quantile(0.999, sum by (le, metric) (rate(dyno_response_seconds_bucket{@, result="ok"}[@])))"#,
            "{{metric}}",
        )],
    ),
    lines(
        "Service time, p99",
        "s",
        "Completion less sending.",
        &[q(
            r#"histogram_quantile(0.99, sum by (le, metric) (rate(dyno_service_seconds_bucket{@, result="ok"}[@])))"#,
            "{{metric}}",
        )],
    ),
];

const RUN_3: [Panel; 6] = [
    lines(
        "Ideal client, p99",
        "s",
        "Open loop: response times of a client that is never late. Below the response time: the client adds waits.",
        &[q("histogram_quantile(0.99, sum by (le) (rate(dyno_ideal_response_seconds_bucket{@}[@])))", "p99")],
    ),
    lines(
        "Schedule lag, p99",
        "s",
        "Open loop: sending less intended start, of arrivals that found a free connection. High: the load generator is too slow.",
        &[q("histogram_quantile(0.99, sum by (le) (rate(dyno_schedule_lag_seconds_bucket{@}[@])))", "p99")],
    ),
    lines(
        "Backlog",
        "none",
        "Longest queue of due arrivals so far.",
        &[q("max by (phase) (dyno_backlog{@})", "{{phase}}")],
    ),
    lines(
        "CPU",
        "none",
        "Cores that dyno keeps busy.",
        &[q(
            "sum by (instance) (rate(process_cpu_seconds_total{@}[@])) and on (instance) dyno_build_info{@}",
            "{{instance}}",
        )],
    ),
    lines(
        "Memory",
        "bytes",
        "Largest resident memory so far.",
        &[q("dyno_peak_resident_bytes{@}", "{{instance}}")],
    ),
    lines(
        "Connections made anew, late replies, redirects",
        "ops",
        "",
        &[
            q("sum(rate(dyno_reconnects_total{@}[@]))", "reconnects"),
            q("sum(rate(dyno_late_replies_total{@}[@]))", "late replies"),
            q("sum(rate(dyno_redirects_total{@}[@]))", "redirects"),
        ],
    ),
];

const HOST_0: [Panel; 4] = [
    lines(
        "CPU by mode",
        "percentunit",
        "Share of all cores' time.",
        &[q(r#"avg by (instance, mode) (rate(node_cpu_seconds_total{@, mode!="idle"}[@]))"#, "{{mode}}")],
    ),
    lines(
        "Load",
        "none",
        "Average of the runnable and waiting tasks over one minute.",
        &[q("node_load1{@}", "{{instance}}")],
    ),
    lines(
        "Memory",
        "bytes",
        "",
        &[
            q("node_memory_MemAvailable_bytes{@}", "available"),
            q("node_memory_Cached_bytes{@}", "page cache"),
            q("node_memory_Dirty_bytes{@}", "dirty"),
        ],
    ),
    lines(
        "Context switches and interrupts",
        "ops",
        "",
        &[
            q("rate(node_context_switches_total{@}[@])", "context switches"),
            q("rate(node_intr_total{@}[@])", "interrupts"),
        ],
    ),
];

const HOST_1: [Panel; 4] = [
    lines(
        "Bytes",
        "Bps",
        "",
        &[
            q("rate(node_disk_read_bytes_total{@}[@])", "{{device}} read"),
            q("rate(node_disk_written_bytes_total{@}[@])", "{{device}} written"),
        ],
    ),
    lines(
        "Operations",
        "iops",
        "",
        &[
            q("rate(node_disk_reads_completed_total{@}[@])", "{{device}} read"),
            q("rate(node_disk_writes_completed_total{@}[@])", "{{device}} written"),
        ],
    ),
    lines(
        "Busy",
        "percentunit",
        "Share of the time with an operation under way.",
        &[q("rate(node_disk_io_time_seconds_total{@}[@])", "{{device}}")],
    ),
    lines(
        "Queue",
        "none",
        "Operations under way, on average.",
        &[q("rate(node_disk_io_time_weighted_seconds_total{@}[@])", "{{device}}")],
    ),
];

const HOST_2: [Panel; 4] = [
    lines(
        "Network",
        "Bps",
        "",
        &[
            q("rate(node_network_receive_bytes_total{@}[@])", "{{device}} received"),
            q("rate(node_network_transmit_bytes_total{@}[@])", "{{device}} sent"),
        ],
    ),
    lines(
        "Dropped packets and errors",
        "pps",
        "",
        &[
            q("sum(rate(node_network_receive_drop_total{@}[@]))", "dropped at receipt"),
            q("sum(rate(node_network_receive_errs_total{@}[@]))", "errors at receipt"),
            q("sum(rate(node_netstat_Tcp_RetransSegs{@}[@]))", "TCP segments sent again"),
        ],
    ),
    lines(
        "Space available",
        "bytes",
        "",
        &[q(r#"node_filesystem_avail_bytes{@, fstype!~"tmpfs|ramfs"}"#, "{{mountpoint}}")],
    ),
    lines("TCP connections", "none", "", &[q("node_netstat_Tcp_CurrEstab{@}", "established")]),
];

const DATABASE_0: [Panel; 4] = [
    number(
        "Commands per second",
        "ops",
        "",
        &[q("sum(rate(redis_commands_processed_total{@}[@]))", "commands")],
    ),
    number("Clients", "none", "", &[q("sum(redis_connected_clients{@})", "clients")]),
    number("Memory", "bytes", "", &[q("sum(redis_memory_used_bytes{@})", "used")]),
    number("Keys", "none", "", &[q("sum(redis_db_keys{@})", "keys")]),
];

const DATABASE_1: [Panel; 4] = [
    lines("Commands by name", "ops", "", &[q("sum by (cmd) (rate(redis_commands_total{@}[@]))", "{{cmd}}")]),
    lines(
        "Time in the server by command",
        "s",
        "Mean time of a command inside the server.",
        &[q(
            "sum by (cmd) (rate(redis_commands_duration_seconds_total{@}[@])) / sum by (cmd) (rate(redis_commands_total{@}[@]))",
            "{{cmd}}",
        )],
    ),
    lines(
        "Keyspace",
        "ops",
        "",
        &[
            q("sum(rate(redis_keyspace_hits_total{@}[@]))", "hits"),
            q("sum(rate(redis_keyspace_misses_total{@}[@]))", "misses"),
            q("sum(rate(redis_evicted_keys_total{@}[@]))", "evicted"),
            q("sum(rate(redis_expired_keys_total{@}[@]))", "expired"),
        ],
    ),
    lines(
        "Network",
        "Bps",
        "",
        &[
            q("sum(rate(redis_net_input_bytes_total{@}[@]))", "received"),
            q("sum(rate(redis_net_output_bytes_total{@}[@]))", "sent"),
        ],
    ),
];

const DATABASE_2: [Panel; 4] = [
    lines(
        "CPU",
        "none",
        "Cores that the server keeps busy.",
        &[
            q("rate(redis_cpu_user_seconds_total{@}[@])", "user"),
            q("rate(redis_cpu_sys_seconds_total{@}[@])", "system"),
        ],
    ),
    lines(
        "Memory",
        "bytes",
        "",
        &[q("redis_memory_used_bytes{@}", "used"), q("redis_memory_used_rss_bytes{@}", "resident")],
    ),
    lines(
        "Clients",
        "none",
        "",
        &[q("redis_connected_clients{@}", "connected"), q("redis_blocked_clients{@}", "blocked")],
    ),
    lines(
        "Persistence",
        "none",
        "",
        &[q("redis_rdb_changes_since_last_save{@}", "changes since the last save")],
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
