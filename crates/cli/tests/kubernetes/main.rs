//! Experiments in pods of a real Kubernetes of three nodes (`tests/kubernetes`), where its binaries are there.

mod bexhoma;
mod charts;
mod faults;
mod images;
mod in_cluster;
mod inside;
mod killed_pods;
use dyno_testkit::kube;
mod mongo;
mod nodes;
mod presets;
mod roles;

use dyno_testkit::{Dyno, assert_exit, stderr, stdout};
use kube::Cluster;
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Folder and record of every run that has ended.
fn records(dyno: &Dyno, out: &str) -> Vec<(PathBuf, Value)> {
    let text = std::fs::read_to_string(dyno.path(out).join("journal.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ended = lines.filter(|line| line["event"] == "ended");
    ended.map(|record| (dyno.path(out).join(record["dir"].as_str().unwrap()), record)).collect()
}

fn record(dyno: &Dyno, out: &str) -> (PathBuf, Value) {
    records(dyno, out).pop().unwrap()
}

/// One test, because there is one cluster; that of killed controllers has a cluster of its own, after this one.
#[test]
#[ignore = "needs a cluster: scripts/test-kubernetes.sh"]
fn experiments_run_in_pods_and_leave_nothing() {
    let Some(cluster) = Cluster::up() else { return };
    cluster.namespace("bench");
    charts::what_is_deployed_is_accepted(&cluster);
    a_server_and_two_pods_of_workers(&cluster);
    images::all_runs_have_the_image_of_the_first(&cluster);
    bexhoma::summary_of_a_run_and_servers_that_others_reach(&cluster);
    presets::all_five(&cluster, "redis");
    if cluster.dragonfly_image() {
        presets::all_five(&cluster, "dragonfly");
    } else {
        dyno_testkit::skip_because("Dragonfly in pods", "dragonfly is not on PATH");
    }
    mongo::mongods(&cluster);
    roles::pods_that_load_others_that_measure_and_a_server_that_is_watched(&cluster);
    faults::servers_and_workers_have_faults(&cluster);
    two_pairs_of_wsf(&cluster);
    nodes::workers_keep_off_servers(&cluster);
    nodes::more_than_there_are(&cluster);
    nodes::wsf_with_privileges(&cluster);
    nodes::sixteen_mongods(&cluster);
    nodes::a_node_that_is_cut_off(&cluster);
    nodes::a_worker_that_the_hub_has_lost(&cluster);
    cpu_of_a_short_phase(&cluster);
    what_cannot_be_says_why(&cluster);
    a_server_that_is_evicted(&cluster);
    the_rights_that_are_asked_for_are_enough(&cluster);
    volumes_and_objects_of_ones_own(&cluster);
    servers_that_stay(&cluster);
    a_pod_that_is_lost(&cluster);
    a_run_that_is_interrupted(&cluster);
    a_controller_that_is_killed(&cluster);
    inside::runs_of_the_manifests(&cluster);
    in_cluster::a_pod_conducts(&cluster);
}

fn a_server_and_two_pods_of_workers(cluster: &Cluster) {
    let dyno = Dyno::new();
    let two = "  worker_pods: 2\n";
    let text = cluster.experiment(
        "bench",
        "{kind: redis}",
        two,
        "connections: 8, rate: 2000, operations: 10000, warmup: 0s",
    );
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let plan = dyno.run(&["plan", "e.yaml", "--manifests", "m"]);
    assert_exit(&plan, &[0]);
    for file in ["rbac.yaml", "rbac-kubelet.yaml", "cell0001.yaml"] {
        let path = dyno.path("m").join(file).display().to_string();
        let (valid, message) = cluster.k(&["-n", "bench", "apply", "--dry-run=server", "-f", &path]);
        assert!(valid, "{file}: {message}");
        assert!(!message.contains("Warning"), "{file}: {message}");
    }
    let begun = Instant::now();
    let output = dyno.run(&["run", "e.yaml", "--out", "one", "--quiet"]);
    dyno.assert_ran(&output);
    let (dir, record) = record(&dyno, "one");
    assert_eq!(record["status"], "complete", "{record}");
    // Five seconds of load; the rest is bounded generously, for a host that does other things, too.
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
    let summary = dyno.summary(dir.to_str().unwrap());
    assert_eq!(dyno_testkit::arrivals(dyno_testkit::phase(&summary, "measure")), 10_000);
    let measured = dyno_testkit::phase(&summary, "measure");
    assert!(measured["monitor"]["workers"]["cpu_cores"].as_f64().is_some(), "{measured}");
    assert!(measured["monitor"]["database"]["operations_per_s"].as_f64().is_some(), "{measured}");
    let run: Value = serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
    let facts = run["facts"].as_object().unwrap();
    assert_eq!(
        facts.keys().filter(|key| key.starts_with("pod.") && key.ends_with(".node")).count(),
        3,
        "{facts:?}"
    );
    assert!(facts["worker-1.clock"].as_str().unwrap().contains("within"));
    cluster.assert_nothing_left(Duration::from_secs(20));
}

fn two_pairs_of_wsf(cluster: &Cluster) {
    let dyno = Dyno::new();
    let kubectl = format!("kubectl={}", cluster.lab.join("k").display());
    let mut words = vec![
        "wsf",
        "gated",
        "--backend",
        "kubernetes",
        "--server",
        "redis",
        "--noenv",
        "--quiet",
        "--reading",
        "25",
    ];
    for key in [
        kubectl.as_str(),
        "namespace=bench",
        "image=localhost/dyno:test",
        "server_image=localhost/redis:7",
        "pull=Never",
        "patience=6s",
    ] {
        words.extend(["--kubernetes", key]);
    }
    words.extend(["--set", "CLIENT_SERVER_PAIR=2", "--set", "KUBERNETES_RESOURCE_REQUESTS_CPU=50m"]);
    let written = dyno.run(&[&words[..], &["--manifests", "m"]].concat());
    assert_exit(&written, &[0]);
    let path = dyno.path("m/kubernetes-config.yaml").display().to_string();
    let (valid, said) = cluster.k(&["-n", "bench", "apply", "--dry-run=server", "-f", &path]);
    assert!(valid && !said.contains("Warning"), "{said}");
    let output = dyno.run(&[&words[..], &["--set", "RUN_SINGLE_NODE=true", "--out", "logs"]].concat());
    assert_exit(&output, &[0]);
    let logs = dyno.path("logs/logs-mongodb_ycsb_gated");
    for client in ["benchmark-0", "benchmark-1"] {
        let status = std::fs::read_to_string(logs.join("itr-1").join(client).join("status")).unwrap();
        assert_eq!(status, "0\n", "{client}");
        assert!(logs.join("itr-1").join(client).join("output.logs").is_file());
    }
    let written = std::fs::read_to_string(logs.join("kubernetes-config.yaml")).unwrap();
    assert_eq!(written.matches("kind: StatefulSet").count(), 2);
    let configuration = std::fs::read_to_string(logs.join("workload-config.yaml")).unwrap();
    assert!(configuration.contains("backend: \"kubernetes\""), "{configuration}");
    cluster.assert_nothing_left(Duration::from_secs(20));
}

/// Processor time of a control group that a process is in, seconds.
fn cpu_of_group(pid: u32) -> Option<f64> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let number = |text: &str| text.trim().parse::<f64>().ok();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        if controllers.split(',').any(|one| one == "cpuacct") {
            let file = format!("/sys/fs/cgroup/cpuacct{path}/cpuacct.usage");
            return number(&std::fs::read_to_string(file).ok()?).map(|ns| ns / 1e9);
        }
        if controllers.is_empty() {
            let text = std::fs::read_to_string(format!("/sys/fs/cgroup{path}/cpu.stat")).unwrap_or_default();
            let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
            if let Some(us) = usage.and_then(number) {
                return Some(us / 1e6);
            }
        }
    }
    None
}

/// The worker of the run under way, by its number on this host.
fn a_worker() -> Option<u32> {
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let is = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        // Without a user namespace of the pod its user is that of the manifests.
        words.get(1..3) == Some(&[&b"worker"[..], &b"--stdio"[..]])
            && std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|meta| meta.uid() == 10_001)
    };
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is)
}

#[expect(clippy::print_stderr, reason = "the figure is written down in docs/benchmarks.md")]
fn say(message: &str) {
    eprintln!("{message}");
}

/// What the summary says of a load phase of two seconds beside what the container's control group has used meanwhile: both
/// count processor time, so it does not matter how busy this host is.
fn cpu_of_a_short_phase(cluster: &Cluster) {
    let dyno = Dyno::new();
    let phases = "  load: {when: always, users: 16, rate: 15000, batch: 1}\n  pause: 4s\n  \
                  measure: {users: 2, duration: 1s, warmup: 0s}";
    let text = cluster
        .experiment("bench", "{kind: redis}", "", "duration: 1s")
        .replace(
            "phases: {measure: {duration: 1s}}",
            &format!("phases:\n{phases}\nmonitors: {{enabled: false}}"),
        )
        .replace("records: 1000", "records: 30000");
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let mut child = dyno.start(&["run", "e.yaml", "--out", "cpu", "--quiet"]);
    let mut samples: Vec<(jiff::Timestamp, f64)> = Vec::new();
    let mut worker = None;
    let status = loop {
        worker = worker.or_else(a_worker);
        samples.extend(worker.and_then(cpu_of_group).map(|used| (jiff::Timestamp::now(), used)));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    dyno.assert_ran(&std::process::Output { status, stdout: Vec::new(), stderr: Vec::new() });
    let (dir, record) = record(&dyno, "cpu");
    assert_eq!(record["status"], "complete", "{record}");
    let events = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let at = |event: &str| -> jiff::Timestamp {
        let found = events.iter().find(|one| one["event"] == event && one["text"] == "load").unwrap();
        found["at"].as_str().unwrap().parse().unwrap()
    };
    let used = |when: jiff::Timestamp| samples.iter().rfind(|(at, _)| *at <= when).unwrap().1;
    let after = |ms: i64| at("end") + jiff::SignedDuration::from_millis(ms);
    // From before connecting until the load is over, less what is used while nothing is to be done.
    let idle_per_s = (used(after(3_500)) - used(after(1_000))) / 2.5;
    let (from, to) = (at("phase"), after(1_000));
    let truth = used(to) - used(from) - idle_per_s * to.duration_since(from).as_secs_f64();
    let summary = dyno.summary(dir.to_str().unwrap());
    let load = dyno_testkit::phase(&summary, "load");
    let share = |key: &str| load["client"][key].as_f64().unwrap_or(0.0);
    let said = share("user_cpu_s") + share("system_cpu_s");
    say(&format!(
        "load phase of {} s: {said:.4} s of CPU, {truth:.4} s by the control group",
        load["seconds"]
    ));
    // Beside the worker the pod has an agent, whose part is not always the same.
    assert!((said / truth - 1.0).abs() < 0.05, "{said} s, {truth} s by the control group");
    cluster.assert_nothing_left(Duration::from_secs(20));
}

fn what_cannot_be_says_why(cluster: &Cluster) {
    let (made, message) = cluster.k(&["create", "namespace", "small"]);
    assert!(made, "{message}");
    let (made, message) = cluster.k(&["-n", "small", "create", "quota", "few", "--hard=pods=1"]);
    assert!(made, "{message}");
    let phases = "duration: 1s";
    let patience = "  patience: 6s\n";
    let nowhere = format!("{patience}  servers: {{node_selector: {{disk: none}}}}\n");
    let later = format!("{nowhere}  autoscaled: true\n");
    let class = format!("{patience}  storage: {{class: no-such-class, size: 1GiB}}\n");
    let little = "  servers: {limits: {memory: 6Mi}}\n";
    for (name, namespace, image, more, expected) in [
        ("image", "bench", "localhost/nothing:1", "", "ErrImageNeverPull"),
        ("node", "bench", "localhost/redis:7", nowhere.as_str(), "servers: no node takes them"),
        ("later", "bench", "localhost/redis:7", later.as_str(), "Unschedulable"),
        ("class", "bench", "localhost/redis:7", class.as_str(), "\"no-such-class\" not found"),
        ("quota", "small", "localhost/redis:7", patience, "exceeded quota"),
        ("namespace", "nowhere", "localhost/redis:7", "", "namespaces \"nowhere\" not found"),
        ("memory", "bench", "localhost/redis:7", little, "OOMKilled"),
        ("crash", "bench", "localhost/redis:7", "", "Bad directive or wrong number of arguments"),
    ] {
        let dyno = Dyno::new();
        let text =
            cluster.experiment(namespace, "{kind: redis}", more, phases).replace("localhost/redis:7", image);
        let text = match name {
            "crash" => text.replace("{kind: redis}", "{kind: redis, options: {no-such-option: 1}}"),
            _ => text,
        };
        std::fs::write(dyno.path("e.yaml"), text).unwrap();
        let begun = Instant::now();
        let output = dyno.run(&["run", "e.yaml", "--out", "o", "--quiet"]);
        let said = stdout(&output) + &stderr(&output);
        assert!(!output.status.success() && said.contains(expected), "{name}: {said}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{name} took {:?}", begun.elapsed());
        cluster.assert_nothing_left(Duration::from_secs(30));
    }
}

/// A kubelet looks every ten seconds at what a pod has written; another pod of its name is made at once. The run ends then, and
/// not with its time.
fn a_server_that_is_evicted(cluster: &Cluster) {
    let dyno = Dyno::new();
    let little = "  servers: {limits: {ephemeral-storage: 4Mi}}\n";
    let phases = "connections: 2, rate: 200, duration: 10m, warmup: 0s";
    let text = cluster.experiment("bench", "{kind: redis, journal: true}", little, phases);
    std::fs::write(dyno.path("e.yaml"), text.replace("records: 1000", "records: 20000")).unwrap();
    let begun = Instant::now();
    let output = dyno.run(&["run", "e.yaml", "--out", "evicted", "--quiet"]);
    let said = stdout(&output) + &stderr(&output);
    assert!(!output.status.success(), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(300), "{:?}", begun.elapsed());
    let (dir, record) = record(&dyno, "evicted");
    let message = record["words"].as_str().unwrap();
    assert!(message.contains("Evicted: Pod ephemeral local storage usage exceeds"), "{record}");
    let summary = dyno.summary(dir.to_str().unwrap());
    assert_eq!(summary["verdict"]["trust"], "invalid", "{summary}");
    assert!(
        dyno_testkit::outcome(dyno_testkit::phase(&summary, "measure"), "ok") > 0,
        "what arrived is kept"
    );
    cluster.assert_nothing_left(Duration::from_secs(30));
}

/// A kubeconfig file of a service account.
fn as_account(cluster: &Cluster, dyno: &Dyno, account: &str) -> String {
    let asked = |words: &[&str]| {
        let (well, said) = cluster.k(words);
        assert!(well, "{words:?}: {said}");
        said.trim().to_owned()
    };
    let admin = asked(&["config", "view", "--minify", "--raw", "--flatten", "-o", "json"]);
    let admin: Value = serde_json::from_str(&admin).unwrap();
    let token = asked(&["-n", "bench", "create", "token", account]);
    let config = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "own",
        "clusters": [{"name": "lab", "cluster": admin["clusters"][0]["cluster"]}],
        "users": [{"name": account, "user": {"token": token}}],
        "contexts": [{"name": "own", "context": {"cluster": "lab", "user": account, "namespace": "bench"}}],
    });
    let path = dyno.path(&format!("{account}.kubeconfig"));
    std::fs::write(&path, config.to_string()).unwrap();
    path.display().to_string()
}

/// With what `rbac.yaml` grants a run comes to its end and leaves nothing; without it, it says what is forbidden.
fn the_rights_that_are_asked_for_are_enough(cluster: &Cluster) {
    let dyno = Dyno::new();
    let text = |account: &str| {
        let more = format!("  kubeconfig: {}\n  worker_pods: 2\n", as_account(cluster, &dyno, account));
        cluster.experiment("bench", "{kind: redis}", &more, "users: 4, duration: 1s, warmup: 0s")
    };
    std::fs::write(dyno.path("plain.yaml"), cluster.experiment("bench", "{kind: redis}", "", "duration: 1s"))
        .unwrap();
    assert_exit(&dyno.run(&["plan", "plain.yaml", "--manifests", "m"]), &[0]);
    let rights = dyno.path("m/rbac.yaml").display().to_string();
    for words in
        [&["-n", "bench", "apply", "-f", &rights][..], &["-n", "bench", "create", "serviceaccount", "nobody"]]
    {
        let (well, said) = cluster.k(words);
        assert!(well, "{words:?}: {said}");
    }
    std::fs::write(dyno.path("own.yaml"), text("dyno")).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "own.yaml", "--out", "own", "--quiet"]));
    let (dir, own) = record(&dyno, "own");
    assert_eq!(own["status"], "complete");
    let events = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    assert!(
        events.contains("server pods are not watched: it takes the right to get nodes/proxy"),
        "{events}"
    );
    cluster.assert_nothing_left(Duration::from_secs(20));
    std::fs::write(dyno.path("none.yaml"), text("nobody")).unwrap();
    let begun = Instant::now();
    let output = dyno.run(&["run", "none.yaml", "--out", "none", "--quiet"]);
    let said = stdout(&output) + &stderr(&output);
    assert!(!output.status.success() && said.contains("forbidden") && said.contains("nobody"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    cluster.assert_nothing_left(Duration::from_secs(20));
}

/// Claims on volumes that were made beforehand, as clusters without a provisioner have them.
fn volumes_and_objects_of_ones_own(cluster: &Cluster) {
    let dyno = Dyno::new();
    presets::shelf(cluster, &dyno, 2);
    std::fs::create_dir(dyno.path("own")).unwrap();
    let own = "apiVersion: v1\nkind: Service\nmetadata: {name: dyno-v-0, labels: {team: own}}\nspec:\n  clusterIP: None\n  \
               ports: [{port: 6379}]\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: dyno-run-notes}\ndata: {a: b}\n";
    std::fs::write(dyno.path("own/service.yaml"), own).unwrap();
    let run = |name: &str, more: &str, records: &str| {
        let kubernetes = format!("  storage: {{class: shelf, size: 1GiB}}\n{more}");
        let server = "{kind: redis, data: {volume: {name: v}}}";
        let text = cluster.experiment("bench", server, &kubernetes, "users: 4, operations: 1000, warmup: 0s");
        std::fs::write(dyno.path("e.yaml"), text.replace("records: 1000", records)).unwrap();
        let output = dyno.run(&["run", "e.yaml", "--out", name, "--quiet"]);
        dyno.assert_ran(&output);
        let (dir, record) = record(&dyno, name);
        assert_eq!(record["status"], "complete", "{record}");
        let run: Value = serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
        let fact = |key: &str| run["facts"][key].as_str().unwrap_or_default().to_owned();
        (fact("volume.data"), fact("volume.why"), fact("volume.count"))
    };
    let first = run("first", "", "records: 1000");
    assert_eq!(first, ("loaded".into(), "there is no such volume yet".into(), "1001".into()));
    let again = run("again", "  manifests: own\n", "records: 1000");
    assert_eq!(again, ("reused".into(), String::new(), "1001".into()));
    let other = run("other", "", "records: 1000, properties: {fieldcount: 2}");
    assert_eq!((other.0.as_str(), other.1.as_str()), ("loaded", "fieldcount: 10 there, 2 asked for"));
    assert_eq!(cluster.left().trim(), "persistentvolumeclaim/data-dyno-v-0-0", "the volume alone stays");
    presets::clear_shelf(cluster);
    cluster.assert_nothing_left(Duration::from_secs(30));
}

/// `dyno bexhoma ycsb ... load`, a run on what it leaves, and `stop`.
fn servers_that_stay(cluster: &Cluster) {
    let dyno = Dyno::new();
    let flags = format!(
        "-dbms Redis -sf 1 -xwl a -xop 1 -xtb 1000 -nlp 2 -nlt 4 -nbt 4 -rr 0 -rc 0 -m --scale 1000 --namespace bench --image \
         localhost/dyno:test --set kubernetes.kubectl={} --set kubernetes.server_image=localhost/redis:7 --set \
         kubernetes.pull=Never --set client.threads=1 --resultfolder results -q",
        cluster.lab.join("k").display()
    );
    let bexhoma = |text: &str| {
        let all: Vec<&str> = ["bexhoma"].into_iter().chain(text.split_whitespace()).collect();
        dyno.run(&all)
    };
    let loaded = bexhoma(&format!("ycsb {flags} load"));
    assert_exit(&loaded, &[0]);
    let left = cluster.left();
    assert!(left.contains("statefulset.apps/") && !left.contains("job.batch/"), "{left}");
    let entry = std::fs::read_dir(dyno.path("results")).unwrap().next().unwrap().unwrap();
    let code = entry.file_name().to_string_lossy().into_owned();
    let status = stdout(&bexhoma("status --resultfolder results"));
    assert!(status.contains("| Redis-1") && status.contains("(1. Running)"), "{status}");
    let run = bexhoma(&format!("ycsb {flags} -e {code} run"));
    dyno.assert_bexhoma_ran(&run);
    assert!(stdout(&run).contains("Nothing was loaded"), "{}", stdout(&run));
    assert_exit(&bexhoma(&format!("stop -e {code} --resultfolder results")), &[0]);
    cluster.assert_nothing_left(Duration::from_secs(20));
}

/// Waits until a run measures.
fn await_measuring(dyno: &Dyno, out: &str) {
    let end = Instant::now() + Duration::from_secs(60);
    let measuring = || {
        let runs = std::fs::read_dir(dyno.path(out).join("runs")).into_iter().flatten().flatten();
        runs.map(|entry| std::fs::read_to_string(entry.path().join("intervals.jsonl")).unwrap_or_default())
            .any(|text| text.contains("\"measure\""))
    };
    while !measuring() {
        assert!(Instant::now() < end, "the measured phase does not begin");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A minute of little load by two pods.
fn a_minute(cluster: &Cluster, dyno: &Dyno) -> std::process::Child {
    let phases = "connections: 4, rate: 200, duration: 60s, warmup: 0s";
    let text = cluster.experiment("bench", "{kind: redis}", "  worker_pods: 2\n", phases);
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let child = dyno.start(&["run", "e.yaml", "--out", "o", "--quiet"]);
    await_measuring(dyno, "o");
    child
}

fn a_pod_that_is_lost(cluster: &Cluster) {
    let dyno = Dyno::new();
    let mut child = a_minute(cluster, &dyno);
    // One process of kubectl for two workers and two agents.
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let line = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let ways = children.split_whitespace().filter(|pid| line(pid).contains("\0exec\0")).count();
    assert_eq!(ways, 1, "{children}");
    // The pod that the hub is not in.
    let chosen = "app.kubernetes.io/component=worker,batch.kubernetes.io/job-completion-index=1";
    let (gone, message) =
        cluster.k(&["-n", "bench", "delete", "pod", "-l", chosen, "--force", "--grace-period=0"]);
    assert!(gone, "{message}");
    let begun = Instant::now();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(5));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let (dir, record) = record(&dyno, "o");
    assert!(record["words"].as_str().unwrap().contains("was lost"), "{record}");
    let summary = dyno.summary(dir.to_str().unwrap());
    assert!(
        dyno_testkit::outcome(dyno_testkit::phase(&summary, "measure"), "ok") > 0,
        "what arrived is kept"
    );
    cluster.assert_nothing_left(Duration::from_secs(30));
}

fn a_run_that_is_interrupted(cluster: &Cluster) {
    let dyno = Dyno::new();
    let mut child = a_minute(cluster, &dyno);
    dyno_testkit::signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(record(&dyno, "o").1["status"], "interrupted");
    cluster.assert_nothing_left(Duration::from_secs(20));
}

fn a_controller_that_is_killed(cluster: &Cluster) {
    let dyno = Dyno::new();
    let mut child = a_minute(cluster, &dyno);
    dyno_testkit::signal(child.id(), "KILL");
    child.wait().unwrap();
    assert!(!cluster.left().trim().is_empty());
    let stopped = dyno.run(&["stop", "o"]);
    assert_exit(&stopped, &[0]);
    cluster.assert_nothing_left(Duration::from_secs(10));
}
