//! Readers against recorded trees: a host with cgroup v2 and pressure stall information, and one with cgroup v1.

use dyno_monitor::{Cgroup, HostSource, Pid, ProcessSource, Roots, Sample, SeriesKind, Source};
use std::path::Path;

const PID: u32 = 4242;

fn roots(tree: &str) -> Roots {
    Roots::recorded_tree(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees").join(tree))
}

fn sampled(mut source: impl Source) -> Sample {
    let mut sample = Sample::default();
    source.sample(&mut sample).unwrap();
    sample
}

fn assert_all(sample: &Sample, expected: &[(&str, f64)]) {
    for (name, value) in expected {
        let found = sample.get(name);
        assert!(found.is_some_and(|f| (f - value).abs() < 1e-9), "{name}: {found:?}, expected {value}");
    }
}

fn kind(sample: &Sample, name: &str) -> SeriesKind {
    sample.all_readings().iter().find(|r| r.name == name).unwrap().kind
}

#[test]
fn the_host() {
    let sample = sampled(HostSource::new(roots("v2")));
    assert_all(
        &sample,
        &[
            ("cpu.user_s", 18_854.02),
            ("cpu.steal_s", 7.91),
            ("cpu1.iowait_s", 109.05),
            ("load_1m", 1.25),
            ("context_switches", 159_506_069.0),
            ("processes_running", 3.0),
            ("memory.available_bytes", 22_528_000.0 * 1024.0),
            ("memory.major_faults", 321.0),
            ("memory.oom_kills", 2.0),
            ("disk.vda.reads", 3_917_994.0),
            ("disk.vda.read_bytes", 162_939_858.0 * 512.0),
            ("disk.vda.write_s", 1_116.424),
            ("disk.vda.busy_s", 300.904),
            ("disk.vda.weighted_s", 5_518.362),
            ("disk.vda.under_way", 2.0),
            ("network.eth0.received_bytes", 418_121_045.0),
            ("network.eth0.send_drops", 4.0),
            ("network.lo.receive_drops", 17.0),
            ("tcp.retransmitted_segments", 10_645.0),
            ("pressure.cpu.some_s", 3_502.192_78),
            ("pressure.io.full_s", 2.0),
        ],
    );
    assert_eq!(kind(&sample, "disk.vda.under_way"), SeriesKind::Gauge);
    assert_eq!(kind(&sample, "disk.vda.reads"), SeriesKind::Counter);
    // Partitions would count everything twice; unused disks and interfaces are noise.
    for absent in ["disk.vda1.reads", "disk.loop0.reads", "network.ifb0.sent_bytes", "intr"] {
        assert_eq!(sample.get(absent), None, "{absent}");
    }
}

#[test]
fn a_kernel_without_pressure_has_none() {
    let sample = sampled(HostSource::new(roots("v1")));
    assert!(sample.all_readings().iter().all(|r| !r.name.starts_with("pressure")));
    let mut none = HostSource::new(Roots::recorded_tree(Path::new("/nonexistent")));
    let message = none.sample(&mut Sample::default()).unwrap_err().to_string();
    assert!(message.contains("/nonexistent/proc/stat cannot be read"), "{message}");
}

/// What both versions of cgroups say of the process in the trees.
const CGROUP: [(&str, f64); 13] = [
    ("cgroup.cpu_s", 191.34),
    ("cgroup.periods", 1_200.0),
    ("cgroup.throttled_periods", 30.0),
    ("cgroup.throttled_s", 4.5),
    ("cgroup.memory_bytes", 16_777_216.0),
    ("cgroup.memory_peak_bytes", 33_554_432.0),
    ("cgroup.memory_anonymous_bytes", 12_582_912.0),
    ("cgroup.memory_file_bytes", 4_194_304.0),
    ("cgroup.major_faults", 12.0),
    ("cgroup.memory_limit_hits", 5.0),
    ("cgroup.oom_kills", 1.0),
    ("cgroup.read_bytes", 4_196.0),
    ("cgroup.writes", 6.0),
];

#[test]
fn a_process_and_its_cgroup() {
    for tree in ["v1", "v2"] {
        let sample = sampled(ProcessSource::new("server", roots(tree), PID));
        assert_all(
            &sample,
            &[
                ("cpu.user_s", 123.45),
                ("cpu.system_s", 67.89),
                ("minor_faults", 5_120.0),
                ("major_faults", 7.0),
                ("threads", 5.0),
                ("resident_bytes", 10_485_760.0),
                ("peak_resident_bytes", 12_288_000.0),
                ("io.written_bytes", 8_192.0),
            ],
        );
        assert_all(&sample, &CGROUP);
        assert_eq!(sample.get("cgroup.memory_limit_bytes"), None, "no limit is no number");
    }
    let sample = sampled(ProcessSource::new("server", roots("v2"), PID));
    assert_all(&sample, &[("cgroup.pressure.cpu.full_s", 0.25), ("cgroup.swap_bytes", 0.0)]);
}

#[test]
fn a_container_that_sees_only_its_own_part() {
    let Some(Cgroup::V1 { memory, blkio, .. }) = Cgroup::of_process(&roots("v1"), PID) else {
        panic!("not v1")
    };
    assert!(memory.unwrap().ends_with("cgroup/memory/redis"));
    assert!(blkio.unwrap().ends_with("cgroup/blkio"));
}

#[test]
fn a_process_that_has_ended_is_missing() {
    let mut source = ProcessSource::new("server", roots("v2"), 4243);
    let mut sample = Sample::default();
    assert_eq!(source.sample(&mut sample).unwrap_err().to_string(), "process 4243 has ended");
    assert!(sample.is_empty());
}

#[test]
fn a_process_that_is_started_again_is_followed() {
    let pid = Pid::from(PID);
    let mut source = ProcessSource::new("server", roots("v2"), pid.clone());
    let mut sample = Sample::default();
    source.sample(&mut sample).unwrap();
    pid.set_process(None);
    assert_eq!(source.sample(&mut sample).unwrap_err().to_string(), "is not running");
    pid.set_process(Some(4243));
    assert_eq!(source.sample(&mut sample).unwrap_err().to_string(), "process 4243 has ended");
    pid.set_process(Some(PID));
    sample.clear();
    source.sample(&mut sample).unwrap();
    // Two processes have used so much; a group's counters go on by themselves.
    assert_all(
        &sample,
        &[("cpu.user_s", 2.0 * 123.45), ("io.written_bytes", 2.0 * 8_192.0), ("threads", 5.0)],
    );
    assert_all(&sample, &CGROUP);
}

#[test]
fn this_host_and_this_process() {
    let host = sampled(HostSource::new(Roots::default()));
    assert!(host.get("cpu.idle_s").is_some() && host.get("memory.total_bytes").is_some());
    let own = sampled(ProcessSource::new("dyno", Roots::default(), std::process::id()));
    assert!(own.get("resident_bytes").unwrap() > 100_000.0);
}
