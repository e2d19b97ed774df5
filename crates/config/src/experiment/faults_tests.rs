use crate::experiment::faults::*;
use crate::experiment::read_plan;

const HEAD: &str = "server: {kind: redis}\nphases: {measure: {duration: 20s}}\nfaults:\n";

fn error(fault: &str) -> String {
    read_plan(&format!("{HEAD}- {fault}\n"), "x.yaml", &[]).unwrap_err().to_string()
}

fn spec(faults: &str) -> Experiment {
    read_plan(&format!("{HEAD}{faults}"), "x.yaml", &[]).unwrap().cells[0].spec.clone()
}

#[test]
fn faults_are_read_and_named() {
    let spec = spec(
        "- {kind: pause, at: 5s, for: 1s, times: 3, every: 4s}\n- {kind: delay, on: server 1, at: 2, for: 1s, delay: 50ms}\n\
         - {kind: kill, on: worker 1, at: 19s}\n",
    );
    let further = self::spec(
        "- {kind: loss, percent: 2.5, at: 1s, for: 1s}\n- {kind: clock_step, step: -1h, at: 5s, for: 1s, on: server 1}\n",
    );
    let words: Vec<String> = further.faults.iter().map(Fault::describe_fault).collect();
    assert_eq!(words, ["loss of 2.5 % on server", "clock_step by -1h on server 1"]);
    let words: Vec<String> = spec.faults.iter().map(Fault::describe_fault).collect();
    assert_eq!(words, ["pause on server", "delay of 50ms on server 1", "kill on worker 1"]);
    let times: Vec<(usize, u32, u64, Option<u64>)> = schedule_faults(&spec, 1)
        .iter()
        .map(|one| {
            (one.fault, one.time, one.begin_ns / 1_000_000_000, one.end_ns.map(|ns| ns / 1_000_000_000))
        })
        .collect();
    let expected =
        [(1, 1, 2, Some(3)), (0, 1, 5, Some(6)), (0, 2, 9, Some(10)), (0, 3, 13, Some(14)), (2, 1, 19, None)];
    assert_eq!(times, expected);
}

#[test]
fn random_times_follow_the_seed_and_keep_to_their_window() {
    let text = "- {kind: pause, at: random, from: 4s, to: 16s, for: 500ms, times: 4}\n";
    let spec = spec(text);
    let drawn = schedule_faults(&spec, 1);
    assert_eq!(drawn, schedule_faults(&spec, 1));
    assert_ne!(drawn, schedule_faults(&spec, 2), "repetitions draw anew");
    assert_ne!(drawn, schedule_faults(&Experiment { seed: 2, ..spec.clone() }, 1));
    for repetition in 1..200 {
        let all = schedule_faults(&spec, repetition);
        assert_eq!(all.len(), 4);
        assert!(all[0].begin_ns >= 4_000_000_000 && all[3].end_ns.unwrap() <= 16_000_000_000, "{all:?}");
        assert!(all.windows(2).all(|pair| pair[0].end_ns.unwrap() <= pair[1].begin_ns), "{all:?}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused_where_it_stands() {
    let wrong = error("{kind: explode, at: 1s}");
    assert!(
        wrong.starts_with("x.yaml:4:") && wrong.contains("explode") && wrong.contains("pause"),
        "{wrong}"
    );
    for (fault, message) in [
        ("{kind: pause, at: 1s}", "expected for"),
        ("{kind: pause, at: never, for: 1s}", "or random"),
        ("{kind: pause, at: 1s, for: 0s}", "0s: expected a length"),
        ("{kind: pause, at: 1s, for: 1s, on: client}", "server, server N or worker N"),
        ("{kind: pause, at: 1s, for: 1s, on: server 2}", "server 2: there are 1"),
        ("{kind: pause, at: 1s, for: 1s, on: worker 2}", "worker 2: there are 1"),
        ("{kind: pause, at: 1s, for: 1s, times: 2}", "expected every"),
        ("{kind: pause, at: 1s, for: 2s, times: 2, every: 1s}", "more than for"),
        ("{kind: pause, at: 19s, for: 2s}", "over before it ends"),
        ("{kind: pause, at: random, for: 2s, times: 12}", "does not fit its window"),
        ("{kind: pause, at: random, from: 5s, to: 4s, for: 1s}", "a time after from"),
        ("{kind: kill, at: 1s, for: 1s}", "stays away"),
        ("{kind: kill, at: 1s, cpus: 2}", "is not of kill"),
        ("{kind: cpu_pressure, at: 1s, for: 1s}", "expected cpus"),
        ("{kind: cpu_pressure, at: 1s, for: 1s, cpus: 0}", "0.01 to 65536"),
        ("{kind: restart, at: 1s, on: worker 1}", "of a worker expected kill or pause"),
        ("{kind: disk_full, at: 1s, for: 1s}", "expected server.data.image"),
        ("{kind: loss, at: 1s, for: 1s}", "expected percent"),
        ("{kind: loss, at: 1s, for: 1s, percent: 101}", "0.001 to 100"),
        ("{kind: loss, at: 1s, for: 1s, percent: 0}", "0.001 to 100"),
        ("{kind: loss, at: 1s, for: 1s, percent: 1, on: worker 1}", "of a worker expected kill or pause"),
        ("{kind: clock_step, at: 1s, for: 1s}", "expected step"),
        ("{kind: clock_step, at: 1s, for: 1s, step: 1s, on: worker 1}", "by a clock that cannot be set"),
        ("{kind: clock_step, at: 1s, for: 1s, step: 0s}", "0s: expected a step"),
        ("{kind: clock_step, at: 1s, for: 1s, step: soon}", "back in time such as -1h"),
        ("{kind: pause, at: 1s, for: 1s, step: 1s}", "is not of pause"),
        ("{kind: pause, at: 1s, for: 2s}\n- {kind: restart, at: 2s, on: server 1}", "faults.0 is under way"),
    ] {
        let told = error(fault);
        assert!(told.contains(message) && told.starts_with("x.yaml:"), "{fault}: {told}");
    }
    assert!(
        error("{kind: pause,\n   at: 1s,\n   for: 0s}").starts_with("x.yaml:6:9"),
        "line and column of the value"
    );
    let told = read_plan("target: 'null:'\nfaults: [{kind: kill, at: 1s}]\n", "x.yaml", &[])
        .unwrap_err()
        .to_string();
    assert!(told.contains("expected a server, too"), "{told}");
}

#[test]
fn what_cannot_be_done_there_is_refused() {
    let refused = |text: &str| read_plan(text, "x.yaml", &[]).unwrap_err().to_string();
    let far = "server: {kind: redis}\nssh: {servers: [db]}\nfaults: [{kind: KIND, at: 1s, for: 1s}]\n";
    for kind in [
        "pause",
        "restart",
        "cpu_pressure, cpus: 1",
        "clock_step, step: 1m",
        "pause, on: server 9",
        "loss, percent: 1",
        "delay, delay: 1ms",
        "bandwidth, bytes_per_s: 2M",
        "partition",
    ] {
        assert!(read_plan(&far.replace("KIND", kind), "x.yaml", &[]).is_ok(), "{kind}");
    }
    let clients =
        "server: {kind: redis, address: 10.0.0.1}\nssh: {clients: [a]}\nfaults: [{kind: KIND, at: 1s}]\n";
    let worker = read_plan(&clients.replace("KIND", "kill, on: worker 9"), "x.yaml", &[]);
    assert!(worker.is_ok(), "{worker:?}");
    assert!(read_plan(&clients.replace("KIND", "partition, for: 1s"), "x.yaml", &[]).is_ok());
    let slow = clients.replace("KIND", "bandwidth, bytes_per_s: 10k, for: 1s");
    assert!(refused(&slow).contains("expected 1.6M or more"), "{}", refused(&slow));
    let pods = "server: {kind: redis}\nkubernetes: {image: i}\nfaults: [{kind: KIND, at: 1s}]\n";
    for (kind, why) in [
        ("kill", "expected restart"),
        ("loss, percent: 1, for: 1s", "of servers in pods expected restart or pause"),
        ("restart, for: 1s", "at its own time"),
        ("pause, for: 1s, on: server 2", "there are 1"),
        ("disk_full, for: 1s, on: worker 1", "expected kill or pause"),
    ] {
        let refused = refused(&pods.replace("KIND", kind));
        assert!(refused.contains(why), "{kind}: {refused}");
    }
    for kind in [
        "restart",
        "restart, times: 3, every: 20s",
        "pause, for: 1s",
        "kill, on: worker 9",
        "pause, for: 1s, on: worker 2",
    ] {
        let own =
            pods.replace("KIND", kind).replace("server:", "phases: {measure: {duration: 60s}}\nserver:");
        assert!(read_plan(&own, "x.yaml", &[]).is_ok(), "{kind}");
    }
    let go = "server: {kind: ferretdb}\nfaults: [{kind: clock_step, step: -1m, at: 1s, for: 1s}]\n";
    assert!(refused(go).contains("Go program"), "{}", refused(go));
    let slow = far.replace("KIND", "bandwidth, bytes_per_s: 1k");
    assert!(refused(&slow).contains("expected 1.6M or more"), "{}", refused(&slow));
    assert!(read_plan(&slow.replace("ssh: {servers: [db]}\n", ""), "x.yaml", &[]).is_ok(), "by the proxy");
    let cluster = "server: {kind: redis, topology: cluster}\nfaults: [{kind: KIND, at: 1s, for: 1s}]\n";
    let slow = refused(&cluster.replace("KIND", "bandwidth, bytes_per_s: 1M"));
    assert!(slow.contains("expected 1.6M or more"), "{slow}");
    for kind in ["loss, percent: 1", "delay, delay: 1ms", "partition, on: server 2"] {
        assert!(
            read_plan(&cluster.replace("KIND", kind), "x.yaml", &[]).is_ok(),
            "{kind}: the kernel does it"
        );
    }
}

#[test]
fn link_and_process_may_have_faults_at_the_same_time() {
    spec("- {kind: pause, at: 1s, for: 5s}\n- {kind: delay, at: 2s, for: 1s, delay: 1ms}\n");
    spec("- {kind: pause, at: 1s, for: 5s}\n- {kind: pause, on: worker 1, at: 2s, for: 1s}\n");
    let queues = "server: {kind: redis, instances: 2}\nfaults:\n- {kind: delay, on: server 1, at: 1s, for: 2s, delay: 1ms}\n- \
                  {kind: bandwidth, on: server 2, at: 2s, for: 2s, bytes_per_s: 1M}\n";
    let why = read_plan(queues, "x.yaml", &[]).unwrap_err().to_string();
    assert!(why.contains("a device has one queue"), "{why}");
}

#[test]
fn the_example_has_every_kind() {
    let text = include_str!("../../../../docs/examples/faults.yaml");
    let plan = read_plan(text, "faults.yaml", &[]).unwrap();
    let faults = &plan.cells[0].spec.faults;
    let kinds: std::collections::BTreeSet<&str> = faults.iter().map(|fault| fault.kind.name()).collect();
    assert_eq!(kinds.len(), 12, "{kinds:?}");
}
