//! Checks that the types of an experiment file cannot make: values that exclude each other, and bounds.

use crate::experiment::kubernetes::{Controller, Kubernetes};
use crate::experiment::{Experiment, Lifetime, Strategy, When, faults};
use crate::server::invalid::InvalidSetting;
use crate::server::placement::Policy;
use crate::server::{ServerSpec, Topology};
use crate::tree::{Node, TreeError};
use dyno_types::limits::{BATCH, CONNECTIONS, INVENTORY_HOSTS, PIPELINE, PODS, THREADS, WORKERS};
use std::ops::RangeInclusive;

const SECOND_NS: u64 = 1_000_000_000;

/// Time between two samples of monitors, nanoseconds.
const MONITORED_EVERY_NS: RangeInclusive<u64> = 10_000_000..=3_600 * SECOND_NS;

impl Experiment {
    /// Reads an experiment, and checks what its types cannot say.
    ///
    /// # Errors
    /// Names the value that cannot be, and where it was written.
    pub fn from_tree(tree: &Node) -> Result<Self, TreeError> {
        let spec = tree.read()?;
        check(tree, &spec)?;
        Ok(spec)
    }

    /// Refuses fewer users than there are workers: `measuring` and `loading` are those that there are for a phase.
    ///
    /// # Errors
    /// Names the phase's key.
    pub fn check_shares(&self, measuring: u32, loading: u32) -> Result<(), InvalidSetting> {
        check_shares(self, measuring, loading)
    }
}

fn check(tree: &Node, spec: &Experiment) -> Result<(), TreeError> {
    let refuse = |path: &str, text: &str| {
        let node = tree.find_path(path).unwrap_or(tree);
        Err(node.error_at(path, text))
    };
    let work = &spec.workload;
    let kinds = [
        work.ycsb.is_some(),
        work.documents.is_some(),
        work.commands.is_some(),
        work.recording.is_some(),
        work.sysbench.is_some(),
        work.pocdriver.is_some(),
    ];
    if kinds.iter().filter(|there| **there).count() > 1 {
        return refuse(
            "workload",
            "expected one of ycsb, documents, commands, recording, sysbench, pocdriver",
        );
    }
    if spec.phases.load.from.is_some() && (work.sysbench.is_some() || work.pocdriver.is_some()) {
        return refuse("phases.load.from", "sysbench and pocdriver load their own data");
    }
    if spec.phases.load.from.is_some() {
        for (key, path) in [
            ("rate", "phases.load.rate"),
            ("pipeline", "phases.load.pipeline"),
            ("batch", "phases.load.batch"),
        ] {
            if tree.find_path(path).is_some() {
                return refuse(
                    path,
                    &format!("a data set (phases.load.from) has no {key}: it is loaded as fast as it goes"),
                );
            }
        }
    }
    if spec.target.is_some() && spec.server.is_some() {
        return refuse("server", "a target that exists is named too: remove target or server");
    }
    if let Some(Err(why)) = spec.server.as_ref().map(crate::server::ServerSpec::check) {
        return at(tree, "server", why);
    }
    let invalid = |wrong: InvalidSetting| {
        tree.find_path(&wrong.key).unwrap_or(tree).error_at(&wrong.key, wrong.problem)
    };
    check_ssh(spec)
        .and_then(|()| check_kubernetes(spec))
        .and_then(|()| check_volume(spec))
        .map_err(invalid)?;
    if let Err(why) = spec.host.check() {
        return at(tree, "host", why);
    }
    if let Err(why) = spec.client.placement.check() {
        return at(tree, "client.placement", why);
    }
    if let Err(why) = spec.client.limits.check() {
        return at(tree, "client.limits", why);
    }
    if spec.repetition.is_some() {
        return refuse("repetition", "is set for each run: say repetitions");
    }
    if spec.repetitions == 0 {
        return refuse("repetitions", "0: expected 1 or more");
    }
    if let Some((path, value, most)) = beyond(spec) {
        return match value {
            0 => refuse(path, "0: expected 1 or more"),
            _ => refuse(path, &format!("{value}: expected 1 to {most}")),
        };
    }
    let (load, measure) = (&spec.phases.load, &spec.phases.measure);
    // Hosts of ssh are not counted here: a group may be of any size.
    let (pods, loading) =
        spec.kubernetes.as_ref().map_or((1, 0), |asked| (asked.worker_pods, asked.load_pods));
    let most = |pods: u32| match spec.ssh.clients.is_empty() {
        true => spec.client.workers.saturating_mul(pods),
        false => u32::MAX,
    };
    let loading = if loading > 0 { loading } else { pods };
    for (path, asked, most) in [
        ("phases.load.workers", load.workers, most(loading)),
        ("phases.measure.workers", measure.workers, most(pods)),
    ] {
        if asked.is_some_and(|workers| workers == 0 || workers > most) {
            return refuse(path, "expected 1 or more, and no more than there are workers");
        }
    }
    // An inventory says how many hosts there are: they are counted where it is read.
    if spec.ssh.clients.is_empty() {
        spec.check_shares(most(pods), most(loading)).map_err(invalid)?;
    }
    if measure.rate.is_some() && measure.think.is_some() {
        return refuse("phases.measure.think", "users think in a closed loop only: remove think or rate");
    }
    check_warmup(spec).map_err(invalid)?;
    if !MONITORED_EVERY_NS.contains(&spec.monitors.interval.0) {
        return refuse("monitors.interval", &format!("{}: expected 10ms to 1h", spec.monitors.interval));
    }
    let interval_ns = measure.interval.0;
    if !(10_000_000..=SECOND_NS).contains(&interval_ns) || !SECOND_NS.is_multiple_of(interval_ns) {
        let text = format!("{}: expected 10ms to 1s, a whole number of them in a second", measure.interval);
        return refuse("phases.measure.interval", &text);
    }
    if let (Some(from), Some(to)) = (&spec.window.from, &spec.window.to)
        && from >= to
    {
        return refuse("window.to", "expected a time after window.from");
    }
    check_window(spec).map_err(invalid)?;
    check_loop(spec).map_err(invalid)?;
    faults::check(tree, spec)
}

/// Most users of all workers together. Of a group of hosts it is not known how many there are.
pub(super) fn most_users(spec: &Experiment) -> u64 {
    let pods_or_hosts = match (spec.ssh.clients.is_empty(), &spec.kubernetes) {
        (false, _) => INVENTORY_HOSTS as u64,
        (true, Some(asked)) => u64::from(asked.worker_pods.max(asked.load_pods)),
        (true, None) => 1,
    };
    let all_workers = u64::from(spec.client.workers.clamp(1, WORKERS)).saturating_mul(pods_or_hosts);
    (CONNECTIONS as u64).saturating_mul(all_workers)
}

/// The first count that is none, or greater than what there is room for: its path, itself, and the greatest.
fn beyond(spec: &Experiment) -> Option<(&'static str, u64, u64)> {
    let (load, measure) = (&spec.phases.load, &spec.phases.measure);
    let workers = u64::from(WORKERS);
    let users = most_users(spec);
    let pods = spec.kubernetes.as_ref();
    let count = |count: Option<usize>| count.map(|count| count as u64);
    let warm = spec.phases.warmup.as_ref().and_then(|warmup| warmup.users);
    let all = [
        ("client.workers", Some(u64::from(spec.client.workers)), workers),
        ("client.threads", count(spec.client.threads), THREADS as u64),
        ("phases.load.users", Some(load.users as u64), users),
        ("phases.load.pipeline", Some(load.pipeline as u64), PIPELINE as u64),
        ("phases.load.batch", Some(load.batch as u64), BATCH as u64),
        ("phases.measure.users", count(measure.users), users),
        ("phases.measure.connections", count(measure.connections), users),
        ("phases.measure.pipeline", Some(measure.pipeline as u64), PIPELINE as u64),
        ("phases.warmup.users", count(warm), users),
        ("kubernetes.worker_pods", pods.map(|pods| u64::from(pods.worker_pods)), u64::from(PODS)),
    ];
    let known = all.into_iter().filter_map(|(path, value, most)| Some((path, value?, most)));
    let loading = pods.map(|pods| ("kubernetes.load_pods", u64::from(pods.load_pods), u64::from(PODS)));
    let mut known = known.chain(loading.filter(|(_, pods, _)| *pods > 0));
    known.find(|(_, value, most)| !(1..=*most).contains(value))
}

/// A closed loop has users, an open one a rate and connections.
fn check_loop(spec: &Experiment) -> Result<(), InvalidSetting> {
    let measure = &spec.phases.measure;
    let refuse = |key: &str, why: &str| Err(InvalidSetting::new(&format!("phases.measure.{key}"), why));
    for (key, count) in [("users", measure.users), ("connections", measure.connections)] {
        if count == Some(0) {
            return refuse(key, "0: expected 1 or more");
        }
    }
    if measure.duration.as_ref().is_some_and(|duration| duration.0 == 0) {
        return refuse("duration", "0s: expected a time above 0");
    }
    let searched = matches!(spec.strategy, Some(Strategy::HighestRate(_)));
    match (measure.users.is_some(), measure.connections.is_some(), measure.rate.is_some() || searched) {
        (true, _, true) => refuse(
            "users",
            "users and rate exclude each other: a closed loop has users; an open loop has a rate, and connections \
             (--set users=null takes users away)",
        ),
        (_, true, false) => refuse("connections", "only with phases.measure.rate; a closed loop has users"),
        _ => Ok(()),
    }
}

/// Every worker has a user at least: of `measuring` and `loading` workers, as far as it is known how many there are.
fn check_shares(spec: &Experiment, measuring: u32, loading: u32) -> Result<(), InvalidSetting> {
    let (load, measure) = (&spec.phases.load, &spec.phases.measure);
    let instances = spec.server.as_ref().map_or(1, |server| server.instances);
    let workload = &spec.workload;
    let own = workload.documents.is_some()
        || workload.commands.is_some()
        || workload.recording.is_some()
        || workload.sysbench.is_some()
        || workload.pocdriver.is_some();
    // Workers are dealt out among several targets; other workloads have users of their own.
    if own || instances > 1 || spec.ssh.clients.is_empty() && !spec.ssh.servers.is_empty() {
        return Ok(());
    }
    let too_few = |users: usize, workers: u32, key: &str| {
        let why = format!("{users}: expected {workers} or more, a user for each worker, or a smaller {key}");
        (users < workers as usize).then_some(why)
    };
    let workers = measure.workers.unwrap_or(measuring);
    if let Some(users) = measure.concurrency()
        && !matches!(spec.strategy, Some(Strategy::Ladder(_)))
        && let Some(why) = too_few(users, workers, "phases.measure.workers")
    {
        let key = if measure.users.is_some() { "phases.measure.users" } else { "phases.measure.connections" };
        return Err(InvalidSetting::new(key, why));
    }
    let workers = load.workers.unwrap_or(loading);
    // It is not known here whether a database that is there already is loaded.
    if spec.server.is_some()
        && load.when != When::Never
        && let Some(why) = too_few(load.users, workers, "phases.load.workers")
    {
        return Err(InvalidSetting::new("phases.load.users", why));
    }
    Ok(())
}

/// A warm-up has either a length or a load of its own, of the kind that is measured.
fn check_warmup(spec: &Experiment) -> Result<(), InvalidSetting> {
    let Some(warmup) = &spec.phases.warmup else { return Ok(()) };
    let measure = &spec.phases.measure;
    if measure.warmup.is_some() {
        return Err(InvalidSetting::new(
            "phases.measure.warmup",
            "phases.warmup says how long the warm-up is: remove one of the two",
        ));
    }
    if warmup.users == Some(0) {
        return Err(InvalidSetting::new("phases.warmup.users", "0: expected 1 or more"));
    }
    if warmup.users.is_some() && measure.rate.is_some() {
        return Err(InvalidSetting::new(
            "phases.warmup.users",
            "with phases.measure.rate the schedule decides: expected rate",
        ));
    }
    // A search for the highest rate sets it in every run.
    let searched = matches!(spec.strategy, Some(Strategy::HighestRate(_)));
    if warmup.users.is_some() && searched {
        return Err(InvalidSetting::new(
            "phases.warmup.users",
            "strategy.highest_rate applies rates: expected rate",
        ));
    }
    if warmup.rate.is_some() && measure.rate.is_none() && !searched {
        return Err(InvalidSetting::new(
            "phases.warmup.rate",
            "the measured phase is a closed loop: expected users, or phases.measure.rate too",
        ));
    }
    Ok(())
}

/// A window lies within the phase: beyond its end there is nothing to be counted.
fn check_window(spec: &Experiment) -> Result<(), InvalidSetting> {
    let (measure, work) = (&spec.phases.measure, &spec.workload);
    // The originals' own settings say how long they run.
    let elsewhere = work.sysbench.is_some() || work.pocdriver.is_some();
    let length = match (&measure.duration, &measure.operations) {
        (Some(span), _) => span.clone(),
        (None, None) if !elsewhere => crate::values::Span(10_000_000_000),
        _ => return Ok(()),
    };
    for (path, time) in [("window.to", &spec.window.to), ("window.from", &spec.window.from)] {
        if let Some(time) = time.as_ref().filter(|time| **time > length) {
            let message = format!("{time}: expected a time within the measured phase, which lasts {length}");
            return Err(InvalidSetting::new(path, message));
        }
    }
    Ok(())
}

fn check_kubernetes(spec: &Experiment) -> Result<(), InvalidSetting> {
    let Some(kubernetes) = &spec.kubernetes else { return Ok(()) };
    if !spec.ssh.is_nothing() {
        return Err(InvalidSetting::new("kubernetes", "hosts of ssh are named too: remove one of the two"));
    }
    if kubernetes.worker_pods == 0 {
        return Err(InvalidSetting::new("kubernetes.worker_pods", "0: expected 1 or more"));
    }
    let targets = spec.server.as_ref().map_or(1, |server| server.instances);
    if kubernetes.load_pods > 0 && targets > 1 {
        return Err(InvalidSetting::new(
            "kubernetes.load_pods",
            "are for one target: expected server.instances: 1",
        ));
    }
    if [&kubernetes.workers, &kubernetes.loaders, &kubernetes.servers]
        .iter()
        .any(|pods| pods.max_skew == Some(0))
    {
        return Err(InvalidSetting::new("kubernetes", "max_skew: 0: expected 1 or more"));
    }
    check_controller(&kubernetes.controller)?;
    let target = spec.target.as_deref().unwrap_or("spawn:");
    if spec.server.is_none() && (target.starts_with("spawn:") || target.contains("{dir}")) {
        return Err(InvalidSetting::new(
            "target",
            "workers run in pods: expected a server, or a target that they can reach",
        ));
    }
    if spec.server_lifetime == Lifetime::Shared {
        return Err(InvalidSetting::new("server_lifetime", "servers in pods live for a run: expected run"));
    }
    if !(spec.host.is_nothing() || kubernetes.servers.privileged && spec.server.is_some()) {
        return Err(InvalidSetting::new(
            "host",
            "settings of nodes take privileged servers: expected kubernetes.servers.privileged: true",
        ));
    }
    if kubernetes.loaders.privileged {
        return Err(InvalidSetting::new("kubernetes.loaders.privileged", "is for servers and workers"));
    }
    if let Some(server) = &spec.server {
        check_server_in_pods(server, kubernetes)?;
    }
    if !spec.client.limits.is_nothing() {
        return Err(InvalidSetting::new(
            "client.limits",
            "are for this host: expected kubernetes.workers.limits instead",
        ));
    }
    let placement = &spec.client.placement;
    if !placement.is_nothing() && !kubernetes.workers.privileged {
        return Err(InvalidSetting::new(
            "client.placement",
            "pods without privileges choose no cores: expected kubernetes.workers.privileged: true",
        ));
    }
    if matches!(placement.policy, Policy::BindByPort | Policy::CoresEach | Policy::CoresEachSmt) {
        return Err(InvalidSetting::new(
            "client.placement.policy",
            "workers of several pods share no plan: expected interleave, node or none",
        ));
    }
    Ok(())
}

/// Results lie on a volume or in a bucket, whose name and folder are such as become a key.
fn check_controller(controller: &Controller) -> Result<(), InvalidSetting> {
    let Some(store) = &controller.store else { return Ok(()) };
    let of_volume = [
        ("claim", controller.claim.is_some()),
        ("class", controller.class.is_some()),
        ("size", controller.size.is_some()),
    ];
    if let Some((key, _)) = of_volume.iter().find(|(_, given)| *given) {
        return Err(InvalidSetting::new(
            &format!("kubernetes.controller.{key}"),
            "is for a volume, and results go to kubernetes.controller.store: remove one of the two",
        ));
    }
    let wrong = |key: &str, message: String| {
        Err(InvalidSetting::new(&format!("kubernetes.controller.store.{key}"), message))
    };
    let is_plain = |text: &str| {
        !matches!(text, "" | "." | "..")
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    };
    for (key, text) in [("bucket", &store.bucket), ("region", &store.region), ("login", &store.login)] {
        if !is_plain(text) {
            return wrong(key, format!("{text:?}: expected a name of letters, digits, '.', '-' and '_'"));
        }
    }
    if let Some(prefix) = store.prefix.as_ref().filter(|prefix| !prefix.split('/').all(is_plain)) {
        return wrong(
            "prefix",
            format!("{prefix:?}: expected names with '/' between them, such as teams/bench"),
        );
    }
    let is_address = |text: &str| {
        let host = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
        host.is_some_and(|host| {
            !host.is_empty() && !host.starts_with('/') && !host.contains(['@', '?', '#', ' '])
        })
    };
    match &store.endpoint {
        Some(endpoint) if !is_address(endpoint) => {
            // It may hold a login.
            wrong("endpoint", "expected http://HOST:PORT or https://HOST:PORT, without a login".into())
        }
        _ => Ok(()),
    }
}

/// Pods without privileges choose neither cores nor folders of their node.
fn check_server_in_pods(server: &ServerSpec, kubernetes: &Kubernetes) -> Result<(), InvalidSetting> {
    if !server.limits.is_nothing() {
        return Err(InvalidSetting::new(
            "server.limits",
            "are for this host: expected kubernetes.servers.limits instead",
        ));
    }
    if !kubernetes.servers.privileged {
        if !server.placement.is_nothing() {
            return Err(InvalidSetting::new(
                "server.placement",
                "pods without privileges choose no cores: expected kubernetes.servers.privileged: true",
            ));
        }
        if server.data.path.is_some() {
            return Err(InvalidSetting::new(
                "server.data.path",
                "is a folder of the node: expected kubernetes.storage, or kubernetes.servers.privileged: true",
            ));
        }
    }
    let last = u32::from(server.port.unwrap_or(0)) + server.instances - 1;
    if kubernetes.servers.privileged && last > u32::from(u16::MAX) {
        return Err(InvalidSetting::new(
            "server.port",
            "each instance has the next port: expected a lower one",
        ));
    }
    if server.data.path.is_some() && kubernetes.storage.is_some() {
        return Err(InvalidSetting::new(
            "server.data.path",
            "kubernetes.storage says where the data are: remove one of the two",
        ));
    }
    if server.data.snapshot || server.data.image.is_some() {
        return Err(InvalidSetting::new(
            "server.data",
            "is for this host: expected kubernetes.storage instead",
        ));
    }
    Ok(())
}

/// A volume needs somewhere to be, and a server that begins with it.
fn check_volume(spec: &Experiment) -> Result<(), InvalidSetting> {
    let Some(data) = spec.server.as_ref().map(|server| &server.data).filter(|data| data.volume.is_some())
    else {
        return Ok(());
    };
    let key = "server.data.volume";
    if spec.server.as_ref().is_some_and(|server| server.topology == Topology::Sharded) {
        return Err(InvalidSetting::new(
            key,
            "a sharded cluster's data are not kept: expected another topology",
        ));
    }
    if spec.server_lifetime == Lifetime::Shared {
        return Err(InvalidSetting::new(
            key,
            "every run begins with the volume's data: expected server_lifetime: run",
        ));
    }
    let set = spec.server.as_ref().filter(|server| server.topology == Topology::ReplicaSet);
    if set.is_some_and(|server| spec.kubernetes.is_some() || server.port.is_none()) {
        return Err(InvalidSetting::new(
            key,
            "members of a replica set stand in its data by address: expected server.port, on this host",
        ));
    }
    match &spec.kubernetes {
        Some(asked) if asked.storage.is_none() => {
            Err(InvalidSetting::new(key, "expected kubernetes.storage, too: its claims are the volume"))
        }
        None if data.path.is_none() && !spec.ssh.servers.is_empty() => Err(InvalidSetting::new(
            key,
            "expected server.data.path, too: a folder of the server's host that outlives the run",
        )),
        _ => Ok(()),
    }
}

/// Hosts that are elsewhere must have something to do there, and be able to do it.
fn check_ssh(spec: &Experiment) -> Result<(), InvalidSetting> {
    let ssh = &spec.ssh;
    if !ssh.servers.is_empty() && spec.server.is_none() {
        return Err(InvalidSetting::new(
            "ssh.servers",
            "expected a server, too, which says what is started there",
        ));
    }
    if !ssh.servers.is_empty() && spec.server_lifetime == Lifetime::Shared {
        return Err(InvalidSetting::new(
            "server_lifetime",
            "servers on other hosts live for a run: expected run",
        ));
    }
    if !ssh.watched.is_empty() {
        check_watched(spec)?;
    }
    if ssh.clients.is_empty() {
        return Ok(());
    }
    let here = spec.server.is_some() && ssh.servers.is_empty();
    if here && spec.server.as_ref().is_some_and(|server| server.address.is_none()) {
        return Err(InvalidSetting::new(
            "server",
            "its clients are on other hosts: expected server.address, an address of this host",
        ));
    }
    let target = spec.target.as_deref().unwrap_or("spawn:");
    if spec.server.is_none() && (target.starts_with("spawn:") || target.contains("{dir}")) {
        return Err(InvalidSetting::new(
            "target",
            "workers run on other hosts (ssh.clients): expected a target that they can reach",
        ));
    }
    if !spec.client.placement.is_nothing() || !spec.client.limits.is_nothing() {
        return Err(InvalidSetting::new(
            "client",
            "placement and limits are for workers of this host: remove them or ssh.clients",
        ));
    }
    Ok(())
}

/// Hosts that are only watched are those of a target that others have started.
fn check_watched(spec: &Experiment) -> Result<(), InvalidSetting> {
    let key = "ssh.watched";
    if spec.server.is_some() {
        return Err(InvalidSetting::new(
            key,
            "servers that dyno starts are watched where they run: expected a target, and no server",
        ));
    }
    if spec.target.is_none() {
        return Err(InvalidSetting::new(key, "expected a target whose servers run there"));
    }
    if !spec.monitors.enabled {
        return Err(InvalidSetting::new(key, "nothing is watched there: expected monitors.enabled: true"));
    }
    Ok(())
}

/// An error of a key below `path`.
fn at(tree: &Node, path: &str, wrong: InvalidSetting) -> Result<(), TreeError> {
    let wrong = wrong.below_key(path);
    let node = tree.find_path(&wrong.key).or_else(|| tree.find_path(path)).unwrap_or(tree);
    Err(node.error_at(&wrong.key, wrong.problem))
}
