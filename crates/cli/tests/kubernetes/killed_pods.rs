//! A controller's pod that is killed in the middle of each phase, with results on a volume and in an object store: nothing that
//! was complete is lost, nothing is made twice, and the exit code is that of the experiment.

use crate::in_cluster::experiment;
use crate::inside::{a_volume, controller_of};
use crate::kube::Cluster;
use dyno_testkit::object_store::{BUCKET, StoreProcess};
use dyno_testkit::{Dyno, assert_exit, finish, skip_because, stdout};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const NAMESPACE: &str = "kills";
const LOGIN: (&str, &str) = ("AKIDYNO", "first-quite-secret");
/// Experiments under way at once.
const AT_ONCE: usize = 3;

/// The phases in which a pod is killed, by what its directory has then.
const PHASES: [(&str, fn(&Path) -> bool); 10] = [
    ("it begins", |_| true),
    ("the experiment is noted", |out| has(&out.join("journal.jsonl"), "\"event\":\"begin\"")),
    ("a run is noted", |out| has(&out.join("journal.jsonl"), "\"event\":\"run\"")),
    ("pods are made", |out| names(out).iter().any(|name| name.starts_with("kubernetes-"))),
    ("records are loaded", |out| of_runs(out, "intervals.jsonl").any(|file| has(&file, "\"load\""))),
    ("load is measured", |out| of_runs(out, "intervals.jsonl").any(|file| has(&file, "\"measure\""))),
    ("the run is summed up", |out| of_runs(out, "summary.json").any(|file| file.exists())),
    ("the run has ended", |out| has(&out.join("journal.jsonl"), "\"event\":\"ended\"")),
    ("the second run is measured", |out| {
        of_runs(out, "intervals.jsonl").filter(|file| has(file, "\"measure\"")).count() == 2
    }),
    ("the experiment has ended", |out| has(&out.join("journal.jsonl"), "\"event\":\"end\"")),
];

fn has(file: &Path, text: &str) -> bool {
    std::fs::read_to_string(file).is_ok_and(|found| found.contains(text))
}

/// Folders of the runs that a journal says have ended.
fn ended_runs(journal: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(journal).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ended = lines.filter(|line| line["event"] == "ended");
    ended.map(|line| line["dir"].as_str().unwrap().to_owned()).collect()
}

/// The runs of a controller that have pods of servers now.
fn runs_of_servers(cluster: &Cluster, controller: &str) -> BTreeSet<String> {
    let own = format!("dyno.controller={controller},app.kubernetes.io/component=server");
    let label = "jsonpath={range .items[*]}{.metadata.labels['dyno\\.run']}{\"\\n\"}{end}";
    let words = ["--namespace", NAMESPACE, "get", "pods", "--selector", &own, "--output", label];
    let (listed, found) = cluster.k(&words);
    // A cluster that is busy may not answer in time.
    if listed {
        found.lines().filter(|line| !line.contains(' ')).map(str::to_owned).collect()
    } else {
        BTreeSet::new()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn of_runs<'a>(out: &Path, name: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    let runs = out.join("runs");
    names(&runs).into_iter().map(move |run| runs.join(run).join(name))
}

#[test]
#[ignore = "needs a cluster: scripts/test-kubernetes.sh"]
fn a_controller_is_killed_in_every_phase() {
    let Some(cluster) = Cluster::up() else { return };
    cluster.images_of_deploy();
    cluster.namespace(NAMESPACE);
    let roles = crate::kube::deploy().join("rbac.yaml").display().to_string();
    let (applied, said) = cluster.k(&["--namespace", NAMESPACE, "apply", "--filename", &roles]);
    assert!(applied, "{said}");
    let store = StoreProcess::start_in("kubelab", "198.18.0.1", LOGIN);
    if store.is_none() {
        skip_because("killed pods with an object store", "s3s-fs is not there (scripts/need s3 compiles it)");
    }
    let words = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].into_iter().zip([LOGIN.0, LOGIN.1]);
    let words: Vec<String> = words.map(|(key, value)| format!("--from-literal={key}={value}")).collect();
    let secret = ["--namespace", NAMESPACE, "create", "secret", "generic", "s3-login", &words[0], &words[1]];
    let (made, said) = cluster.k(&secret);
    assert!(made, "{said}");
    let mut todo: Vec<(usize, Option<&StoreProcess>)> =
        (0..PHASES.len()).map(|phase| (phase, None)).collect();
    todo.extend(store.iter().flat_map(|store| (0..PHASES.len()).map(move |phase| (phase, Some(store)))));
    let todo = Mutex::new(todo);
    // A claim takes any of them.
    let volumes = Dyno::new();
    for phase in 0..PHASES.len() {
        a_volume(&cluster, &volumes.path(&format!("kills-{phase}")));
    }
    let work = || {
        loop {
            let next = todo.lock().unwrap().pop();
            let Some((phase, store)) = next else { return };
            one_is_killed(&cluster, phase, store);
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    cluster.assert_nothing_left(Duration::from_secs(60));
}

fn one_is_killed(cluster: &Cluster, phase: usize, store: Option<&StoreProcess>) {
    let (phase_name, is_reached) = PHASES[phase];
    let what = format!("{phase_name}, {}", if store.is_some() { "store" } else { "volume" });
    let dyno = Dyno::new();
    let controller = store.map_or(String::new(), |store| {
        format!("store: {{bucket: {BUCKET}, endpoint: '{}', login: s3-login}}, ", store.address())
    });
    let text =
        experiment(cluster, NAMESPACE).replace("controller: {", &format!("controller: {{{controller}"));
    std::fs::write(dyno.path("night.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "night.yaml", "--in-cluster", "--out", "night"]), &[0]);
    let record: Value =
        serde_json::from_slice(&std::fs::read(dyno.path("night/controller.json")).unwrap()).unwrap();
    let name = record["name"].as_str().unwrap();
    let work = format!("/work/{name}");
    let end = Instant::now() + Duration::from_secs(180);
    let completed = loop {
        assert!(Instant::now() < end, "{what}: it does not come to that");
        let Some(pid) = controller_of(&work) else { continue };
        let out = PathBuf::from(format!("/proc/{pid}/root{work}"));
        if is_reached(&out) {
            // What outlives the pod: the volume, or what the store has.
            let kept = store.map_or(out, |store| store.bucket().join(name));
            let completed = ended_runs(&kept.join("journal.jsonl"));
            dyno_testkit::signal(pid, "KILL");
            break completed;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let mut waits = dyno.start(&["status", "night", "--wait"]);
    let mut seen = BTreeSet::new();
    while waits.try_wait().unwrap().is_none() {
        // Servers of the run that was lost are gone before those of the next one are made.
        let runs = runs_of_servers(cluster, name);
        assert!(runs.len() <= 1, "{what}: servers of {runs:?} at once");
        seen.extend(runs);
        std::thread::sleep(Duration::from_millis(300));
    }
    let waited = finish(waits);
    let has_ended = phase + 1 == PHASES.len();
    assert!(has_ended || !seen.is_empty(), "{what}: no servers were seen");
    let log = stdout(&dyno.run(&["logs", "night"]));
    assert!(stdout(&waited).contains("ended (exit code "), "{what}: {}\n{log}", stdout(&waited));
    assert_exit(&dyno.run(&["fetch", "night", "--remove"]), &[0]);
    dyno_testkit::assert_ran_in(&dyno.path("night"), &waited, &[]);
    let journal = std::fs::read_to_string(dyno.path("night/journal.jsonl")).unwrap();
    let lines: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    let mut cells: Vec<u64> = of("ended").iter().map(|line| line["cell"].as_u64().unwrap()).collect();
    cells.sort_unstable();
    assert_eq!(cells, [1, 2], "{what}: each run ends once: {journal}");
    assert!(of("run").len() <= 3, "{what}: no more than the run under way is begun again: {journal}");
    let ended = ended_runs(&dyno.path("night/journal.jsonl"));
    assert!(completed.iter().all(|run| ended.contains(run)), "{what}: {completed:?} were there: {journal}");
    for ended in of("ended") {
        assert_eq!(ended["status"], "complete", "{what}: {ended}");
        let summary = dyno.summary(&format!("night/{}", ended["dir"].as_str().unwrap()));
        let measured = dyno_testkit::phase(&summary, "measure");
        assert_eq!(dyno_testkit::arrivals(measured), 2_000, "{what}: {measured:#}");
    }
    let rows = std::fs::read_to_string(dyno.path("night/results.csv")).unwrap();
    assert_eq!(rows.lines().count(), 3, "{what}: {rows}");
    assert!(dyno.path("night/report.html").is_file(), "{what}");
    crate::say(&format!("killed when {what}: {} runs begun, {} pods", of("run").len(), of("begin").len()));
}
