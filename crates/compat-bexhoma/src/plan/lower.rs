//! Turns configurations and rounds into the text of an experiment file.

use crate::plan::expand::{Configuration, PodGroup, dropped, expand};
use crate::plan::options::{Dbms, Options};
use dyno_compat_wsf::plan::lower::text::Tree;
use dyno_config::server::ServerKind;
use dyno_types::{RefusalCode, Refused};
use serde_json::{Map, Value, json};

/// An experiment, and what one should know about it.
#[derive(Clone, Debug)]
pub struct LoweredExperiment {
    /// The experiment file.
    pub text: String,
    /// Departures from the original, and what has no meaning here.
    pub notes: Vec<String>,
    /// Configurations that the flags expand into.
    pub configurations: Vec<Configuration>,
}

/// An experiment file in the making.
struct ExperimentDraft<'a> {
    options: &'a Options,
    configurations: Vec<Configuration>,
    tree: Tree,
    notes: Vec<String>,
}

/// Turns flags into an experiment.
pub fn lower(options: &Options) -> Result<LoweredExperiment, Refused> {
    let configurations = expand(options);
    let mut notes = options.typed.notes.clone();
    notes.extend(dropped(&configurations));
    let mut draft = ExperimentDraft { options, configurations, tree: Tree::default(), notes };
    draft.head();
    draft.servers()?;
    draft.clients();
    draft.workload();
    draft.phases();
    draft.varied();
    let ExperimentDraft { configurations, tree, notes, .. } = draft;
    Ok(LoweredExperiment { text: tree.text(), notes, configurations })
}

/// A quantity of Kubernetes, which must be one; `None` where it is "0": no limit.
fn quantity(flag: &str, text: &str) -> Result<Option<String>, Refused> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let known = ["", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"].contains(&&text[digits..]);
    match text[..digits].parse::<f64>() {
        Ok(0.0) => Ok(None),
        Ok(_) if known => Ok(Some(text.to_owned())),
        _ => Err(Refused::new(
            RefusalCode::BadValue,
            flag,
            format!("{flag} {text}: expected a quantity such as 4, 500m or 16Gi"),
        )),
    }
}

/// The same in bytes, as experiment files write them: `64Gi` is 64GiB.
fn size(text: &str) -> String {
    let binary = text.ends_with('i');
    if binary { format!("{text}B") } else { text.to_owned() }
}

/// The same as a number of CPUs.
fn cpus(flag: &str, text: &str) -> Result<f64, Refused> {
    let (number, factor) = match text.strip_suffix('m') {
        Some(thousandths) => (thousandths, 1e-3),
        None => (text, 1.0),
    };
    let number: Result<f64, _> = number.parse();
    number.map(|number| number * factor).map_err(|_| {
        Refused::new(RefusalCode::BadValue, flag, format!("{flag} {text}: expected CPUs such as 4 or 500m"))
    })
}

impl ExperimentDraft<'_> {
    /// Puts a value, with the flag it comes from.
    fn put(&mut self, path: &str, value: Value, flag: &str) {
        self.tree.put(path, value, flag);
    }

    fn note(&mut self, message: impl Into<String>) {
        self.notes.push(message.into());
    }

    fn value(&self, long: &str) -> &str {
        self.options.typed.value(long)
    }

    fn head(&mut self) {
        let options = self.options;
        let names: Vec<String> = options.dbms.iter().map(|dbms| options.deployment(*dbms)).collect();
        self.put("name", json!("bexhoma-ycsb"), "");
        let sf = options.rows as f64 / 1e6;
        let about = format!("bexhoma: YCSB SF={sf}, workload {}, {}", options.workload, names.join(", "));
        self.put("description", json!(about), "");
    }

    /// Returns whether -nwr makes one primary of it with copies, instead of a cluster.
    fn is_one_with_copies(&self, dbms: Dbms) -> bool {
        dbms.kind() == ServerKind::Dragonfly && self.options.workers > 1 && self.options.replicas > 0
    }

    /// Returns the settings of a server by -nw and -nwr: keys, values and the flag each comes from.
    fn shape(&self, dbms: Dbms) -> Vec<(&'static str, Value, &'static str)> {
        let (workers, replicas) = (self.options.workers, self.options.replicas);
        if self.is_one_with_copies(dbms) {
            return vec![
                ("server.topology", json!("replication"), "-nwr"),
                ("server.replicas", json!(workers - 1), "-nw"),
            ];
        }
        let mut shape = Vec::new();
        if workers > 0 {
            shape.push(("server.topology", json!("cluster"), "-nw"));
            shape.push(("server.members", json!(workers), "-nw"));
        }
        if replicas > 0 {
            shape.push(("server.replicas", json!(replicas), "-nwr"));
        }
        shape
    }

    /// Returns whether all servers have the same shape.
    fn alike(&self) -> bool {
        self.options.dbms.windows(2).all(|pair| self.shape(pair[0]) == self.shape(pair[1]))
    }

    fn servers(&mut self) -> Result<(), Refused> {
        let options = self.options;
        self.put("server.kind", json!(options.dbms[0].kind().to_string()), "-dbms");
        if self.alike() {
            self.shape(options.dbms[0]).into_iter().for_each(|(key, value, flag)| self.put(key, value, flag));
        }
        if options.dbms.iter().any(|dbms| self.is_one_with_copies(*dbms)) {
            self.note(format!(
                "-nwr {}: of Dragonfly one primary with {} copies, as bexhoma's is then, whatever -nwr says",
                options.replicas,
                options.workers - 1
            ));
        }
        if options.replicas > 0 && !options.dbms.iter().all(|dbms| self.is_one_with_copies(*dbms)) {
            let processes = options.workers * (options.replicas + 1);
            self.note(format!(
                "-nwr {}: each of the {} primaries has so many replicas, {processes} processes in all",
                options.replicas, options.workers
            ));
        }
        if !self.value("program").is_empty() {
            let program = self.value("program").to_owned();
            self.put("server.program", json!(program), "--program");
        }
        match options.local {
            true => self.limits_here()?,
            false => self.pods()?,
        }
        for flag in ["max-sut", "max-sut-experiment"] {
            if options.typed.given(flag) && (flag == "max-sut" || self.value(flag) != "1") {
                let other = match flag {
                    "max-sut" => "; servers of other experiments are not counted, as bexhoma counts them",
                    _ => "",
                };
                self.note(format!(
                    "{}: runs of this experiment follow each other, one server at a time{other}",
                    crate::plan::flags::shown(flag)
                ));
            }
        }
        Ok(())
    }

    /// `--local`: limits are control groups, and what is about nodes and volumes says so.
    fn limits_here(&mut self) -> Result<(), Refused> {
        if let Some(limit) = quantity("-lr", self.value("limit-ram"))? {
            self.put("server.limits.memory", json!(size(&limit)), "-lr");
        }
        if let Some(limit) = quantity("-lc", self.value("limit-cpu"))? {
            self.put("server.limits.cpus", json!(cpus("-lc", &limit)?), "-lc");
        }
        let elsewhere = [
            "context",
            "namespace",
            "image",
            "manifests",
            "request-ram",
            "request-cpu",
            "request-cpu-type",
            "request-node-name",
            "request-node-loading",
            "request-node-benchmarking",
            "request-storage-size",
        ];
        if !self.value("request-storage-type").is_empty() {
            let folder = format!("{}/volumes", self.value("resultfolder").trim_end_matches('/'));
            self.put("server.data.path", json!(folder), "-rst, --local");
            self.volume();
        }
        let typed = &self.options.typed;
        let given: Vec<String> = elsewhere
            .iter()
            .filter(|flag| typed.given(flag))
            .map(|flag| crate::plan::flags::shown(flag))
            .collect();
        if !given.is_empty() {
            self.note(format!("{}: without effect on this host (--local)", given.join(", ")));
        }
        Ok(())
    }

    /// Requests, limits, nodes and volumes of the servers' pods.
    fn pods(&mut self) -> Result<(), Refused> {
        let places = ["context", "namespace", "image", "manifests"];
        for (flag, key) in places.map(|one| (one, one)) {
            if !self.value(flag).is_empty() {
                let value = self.value(flag).to_owned();
                self.put(&format!("kubernetes.{key}"), json!(value), &crate::plan::flags::shown(flag));
            }
        }
        if !self.value("program").is_empty() {
            return Err(Refused::new(
                RefusalCode::Missing,
                "--program",
                "--program: is for servers of this host: expected --local, too",
            ));
        }
        let resources = [
            ("requests", "memory", "request-ram"),
            ("requests", "cpu", "request-cpu"),
            ("limits", "memory", "limit-ram"),
            ("limits", "cpu", "limit-cpu"),
        ];
        for (side, resource, flag) in resources {
            let shown = crate::plan::flags::shown(flag);
            if let Some(quantity) = quantity(&shown, self.value(flag))? {
                let value = quantity.parse::<u64>().map_or_else(|_| json!(quantity), |whole| json!(whole));
                self.put(&format!("kubernetes.servers.{side}.{resource}"), value, &shown);
            }
        }
        let mut node = Map::new();
        // As in bexhoma it pins what there is once; members of a cluster are spread over the nodes.
        let cluster = self.options.workers > 0;
        for (label, flag) in [("kubernetes.io/hostname", "request-node-name"), ("cpu", "request-cpu-type")] {
            let spread = cluster && flag == "request-node-name";
            if !spread && !self.value(flag).is_empty() {
                node.insert(label.into(), json!(self.value(flag)));
            }
        }
        if !node.is_empty() {
            self.put("kubernetes.servers.node_selector", Value::Object(node), "-rnn, -rct");
        }
        if cluster && !self.value("request-node-name").is_empty() {
            self.note(
                "-rnn: without effect on a cluster, whose servers are spread over the nodes; bexhoma pins a pod beside them that \
                 holds no data. --set 'kubernetes.servers.node_selector={kubernetes.io/hostname: NODE}' pins them",
            );
        }
        self.storage()
    }

    fn storage(&mut self) -> Result<(), Refused> {
        let class = self.value("request-storage-type").to_owned();
        let Some(size_asked) = (match self.value("request-storage-size") {
            "" => None,
            text => quantity("-rss", text)?,
        }) else {
            return match class.as_str() {
                "" => Ok(()),
                class => Err(Refused::new(
                    RefusalCode::Missing,
                    "-rst",
                    format!("-rst {class}: expected -rss, too: how large volumes are"),
                )),
            };
        };
        if class.is_empty() {
            for side in ["requests", "limits"] {
                let key = format!("kubernetes.servers.{side}.ephemeral-storage");
                self.put(&key, json!(size_asked), "-rss");
            }
            return Ok(());
        }
        if class == "ramdisk" {
            return Err(Refused::new(
                RefusalCode::Unsupported,
                "-rst",
                "-rst ramdisk: is not offered: expected a storage class, or none",
            ));
        }
        self.put("kubernetes.storage.class", json!(class), "-rst");
        self.put("kubernetes.storage.size", json!(size(&size_asked)), "-rss");
        self.volume();
        Ok(())
    }

    /// Loaded data that later runs go on with: the volume of the first configuration's kind of deployment.
    fn volume(&mut self) {
        let name = self.volume_of(self.options.dbms[0]);
        self.put("server.data.volume.name", json!(name), "-rst, -dbms, -sf");
        if self.options.typed.given("request-storage-remove") {
            self.put("server.data.volume.reuse", json!("own"), "-rsr");
        }
    }

    /// bexhoma's name of a volume, apart for single servers and clusters.
    fn volume_of(&self, dbms: Dbms) -> String {
        let scale =
            if self.options.scale == 1 { String::new() } else { format!("-of-{}", self.options.scale) };
        let kind = self.options.deployment(dbms).to_lowercase();
        format!("{kind}-ycsb-{}{scale}", self.value("scaling-factor"))
    }

    /// Pods of the load: as many as any job needs; each phase says how many of them take part.
    fn clients(&mut self) {
        // YCSB's definition of a latency.
        self.put("client.stamps", json!("client"), "");
        let benchmarking =
            self.configurations.iter().flat_map(|one| one.rounds.iter().map(|round| round.job.pods));
        let benchmarking = benchmarking.max().unwrap_or(1);
        let loading = self.configurations.iter().map(|one| one.loading.pods).max().unwrap_or(1);
        if self.options.local {
            self.put("client.workers", json!(loading.max(benchmarking)), "-nlp, -nbp, -ne");
            return;
        }
        let on = |node: &str| json!({"kubernetes.io/hostname": node});
        let (load_node, node) = (
            self.value("request-node-loading").to_owned(),
            self.value("request-node-benchmarking").to_owned(),
        );
        if load_node == node {
            self.put("kubernetes.worker_pods", json!(loading.max(benchmarking)), "-nlp, -nbp, -ne");
            if !node.is_empty() {
                self.put("kubernetes.workers.node_selector", on(&node), "-rnl, -rnb");
            }
            return;
        }
        self.put("kubernetes.worker_pods", json!(benchmarking), "-nbp, -ne");
        self.put("kubernetes.load_pods", json!(loading), "-nlp");
        if !node.is_empty() {
            self.put("kubernetes.workers.node_selector", on(&node), "-rnb");
        }
        if !load_node.is_empty() {
            self.put("kubernetes.loaders.node_selector", on(&load_node), "-rnl");
        }
    }

    fn workload(&mut self) {
        let options = self.options;
        self.put("workload.ycsb.workload", json!(options.workload.to_string()), "-xwl");
        self.put("workload.ycsb.records", json!(options.rows), "-sf");
        self.put("workload.ycsb.properties.insertorder", json!(options.order), "-xio");
        if options.typed.given("extra-insert-order") && "abcf".contains(options.workload) {
            self.note("-xio: holds for every workload; bexhoma leaves it out of a, b, c and f");
        }
    }

    fn phases(&mut self) {
        let options = self.options;
        let first = &self.configurations[0];
        let (loading, round) = (first.loading, first.rounds[0].job);
        match options.typed.given("skip-loading") {
            true => self.put("phases.load.when", json!("never"), "-sl"),
            false => self.put("phases.load.when", json!("always"), ""),
        }
        for (key, value) in of_loading(&loading) {
            self.put(&key, value, "-nlp, -nlt, -xnlf, -xtb");
        }
        self.put("phases.load.batch", json!(1), "");
        for (key, value) in of_round(&round) {
            self.put(&key, value, "-nbp, -nbt, -xnbf, -xtb, -ne");
        }
        if options.base > 0 {
            self.put("phases.measure.arrivals", json!("constant"), "");
        }
        self.put("phases.measure.operations", json!(options.operations), "-xop");
        if options.longest_s > 0 {
            self.put("phases.measure.duration", json!(format!("{}s", options.longest_s)), "-xmet");
        }
        self.put("phases.measure.warmup", json!("0s"), "");
        self.put("repetitions", json!(options.repetitions), "-nc");
        self.put("order", json!("file"), "");
        if !options.watched {
            self.put("monitors.enabled", json!(false), "-m, -mc, -ma");
        }
    }

    /// Several configurations or rounds: factors of these names.
    fn varied(&mut self) {
        let level = |label: String, set: Vec<(String, Value)>| {
            let mut all = Map::from_iter([("label".to_owned(), json!(label))]);
            all.extend(set);
            Value::Object(all)
        };
        let volume = !self.value("request-storage-type").is_empty();
        let rounds = &self.configurations[0].rounds;
        if self.configurations.len() == 1 && rounds.len() == 1 {
            return;
        }
        let configurations: Vec<Value> = self
            .configurations
            .iter()
            .map(|one| {
                let mut set = of_loading(&one.loading);
                set.push(("server.kind".into(), json!(one.dbms.kind().to_string())));
                if !self.alike() {
                    let shape = self.shape(one.dbms).into_iter();
                    set.extend(shape.map(|(key, value, _)| (key.to_owned(), value)));
                }
                if volume {
                    set.push(("server.data.volume.name".into(), json!(self.volume_of(one.dbms))));
                }
                level(one.name.clone(), set)
            })
            .collect();
        let clients: Vec<Value> =
            rounds.iter().map(|round| level(round.client.to_string(), of_round(&round.job))).collect();
        let several = clients.len() > 1;
        self.put("factors.configuration", json!(configurations), "");
        self.put("factors.client", json!(clients), "");
        if several {
            self.note(
                "rounds: each has a server and loaded data of its own (with -rst loaded once), so that none sees what the one \
                 before has left; bexhoma runs them one after the other on the same data",
            );
        }
    }
}

/// Settings of loading.
fn of_loading(job: &PodGroup) -> Vec<(String, Value)> {
    let mut all = vec![
        ("phases.load.workers".to_owned(), json!(job.pods)),
        ("phases.load.users".to_owned(), json!(job.threads)),
    ];
    if job.target > 0 {
        all.push(("phases.load.rate".to_owned(), json!(job.target.to_string())));
    }
    all
}

/// Settings of a round.
fn of_round(job: &PodGroup) -> Vec<(String, Value)> {
    let concurrency = if job.target > 0 { "connections" } else { "users" };
    let mut all = vec![
        ("phases.measure.workers".to_owned(), json!(job.pods)),
        (format!("phases.measure.{concurrency}"), json!(job.threads)),
    ];
    if job.target > 0 {
        all.push(("phases.measure.rate".to_owned(), json!(job.target.to_string())));
    }
    all
}
