//! bexhoma's `cluster.config`: contexts, databases and metrics, as far as they mean something here. Keys that are not known
//! are named; those that are known and do nothing say why.

use crate::plan::literal::{Literal, LiteralError, PythonLiteral, read};
use dyno_types::suggest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A context of the kubeconfig.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Namespace.
    pub namespace: Option<String>,
    /// Name of the cluster for people.
    pub cluster: Option<String>,
}

/// A database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Docker {
    /// The command that runs scripts of SQL.
    pub load_data: Option<String>,
    /// Pause between a server's start and the load, seconds.
    pub delay_s: f64,
    /// Folder of its data.
    pub data: Option<String>,
    /// Folder of its log.
    pub log: Option<String>,
    /// Price of an hour of it.
    pub price: f64,
    /// Metrics of each component (`sut`, `worker`), by key.
    pub metrics: BTreeMap<String, Vec<CatalogueMetric>>,
    /// True if pods are to be discovered by a Prometheus.
    pub discovery: bool,
    /// Unknown keys, and what is left out.
    pub warnings: Vec<String>,
}

/// True if a metric only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    /// The figure is the increase over a phase.
    Counter,
    /// The figure is the greatest value in a phase.
    Gauge,
    /// A share or a mean: its figure is the mean over a phase.
    Ratio,
}

/// A metric of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogueMetric {
    /// Key.
    pub name: String,
    /// Column.
    pub title: String,
    /// PromQL.
    pub query: String,
    /// Kind of its values.
    pub kind: MetricKind,
}

/// Content of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterConfig {
    /// Contexts by name.
    pub contexts: BTreeMap<String, Context>,
    /// Databases by bexhoma's key; why one cannot be read.
    pub dockers: BTreeMap<String, Result<Docker, ConfigError>>,
    /// URL of a Prometheus, as a template with `{service}` and `{namespace}`.
    pub prometheus: Option<String>,
    /// Unknown keys outside of the databases.
    pub warnings: Vec<String>,
}

const TOP: [&str; 5] = ["benchmarker", "credentials", "volumes", "instances", "dockers"];
const K8S: [&str; 6] = ["appname", "context", "contexts", "monitor", "namespace", "clustername"];
const CONTEXT: [&str; 4] = ["namespace", "clustername", "service_sut", "port"];
const DOCKER: [&str; 13] = [
    "loadData",
    "delay_prepare",
    "attachWorker",
    "template",
    "logfile",
    "datadir",
    "priceperhourdollar",
    "monitor",
    "worker_port",
    "store_args",
    "image",
    "connectionmanagement",
    "poolPort",
];
const COMPONENT: [&str; 7] =
    ["metrics", "discovery", "discovery_config", "headless", "blackbox", "blackbox_config", "service"];
const METRIC: [&str; 5] = ["type", "active", "metric", "query", "title"];
const COLLECTION: [&str; 1] = ["metrics"];

/// A file that cannot be used, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is no literal of Python.
    #[error("{file}:{source}")]
    Literal {
        /// The file.
        file: String,
        /// Error, and its position.
        source: LiteralError,
    },
    /// The file is something else than a dictionary.
    #[error("{file}:{line}:{column}: expected a dictionary")]
    NoDictionary {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// A key has a value of another kind.
    #[error("{file}:{line}:{column}: {path}: expected {expected}")]
    Value {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The key and those above it.
        path: String,
        /// Accepted values.
        expected: &'static str,
    },
}

struct ConfigDraft<'a> {
    file: &'a str,
    root: &'a Literal,
    out: ClusterConfig,
}

/// Reads a file; `file` is what messages call it.
pub fn read_config(text: &str, file: &str) -> Result<ClusterConfig, ConfigError> {
    let root = read(text).map_err(|source| ConfigError::Literal { file: file.to_owned(), source })?;
    if !root.is_dictionary() {
        let Literal { line, column, .. } = root;
        return Err(ConfigError::NoDictionary { file: file.to_owned(), line, column });
    }
    let mut draft = ConfigDraft { file, root: &root, out: ClusterConfig::default() };
    // Sets of metrics may stand beside the rest.
    let top: Vec<&str> =
        root.entries().filter(|(_, value)| value.get("metrics").is_some()).map(|(key, _)| key).collect();
    draft.unknown(&root, "", &[&TOP[..], &top].concat());
    draft.contexts()?;
    draft.dockers();
    Ok(draft.out)
}

impl<'a> ConfigDraft<'a> {
    fn unknown(&mut self, of: &Literal, path: &str, known: &[&str]) {
        for (key, value) in of.entries().filter(|(key, _)| !known.contains(key)) {
            let hint = suggest::hint(key, known.iter().copied());
            let message =
                format!("{}:{}:{}: {path}{key}: is not known{hint}", self.file, value.line, value.column);
            self.out.warnings.push(message);
        }
    }

    fn wrong(&self, at: &Literal, path: &str, expected: &'static str) -> ConfigError {
        let (file, path) = (self.file.to_owned(), path.to_owned());
        ConfigError::Value { file, line: at.line, column: at.column, path, expected }
    }

    fn text(&self, of: &Literal, path: &str, key: &str) -> Result<Option<String>, ConfigError> {
        let Some(found) = of.get(key).filter(|found| found.value != PythonLiteral::Nothing) else {
            return Ok(None);
        };
        let text = found.text().ok_or_else(|| self.wrong(found, &format!("{path}{key}"), "a text"))?;
        Ok(Some(text.to_owned()))
    }

    fn number(&self, of: &Literal, path: &str, key: &str) -> Result<f64, ConfigError> {
        let Some(found) = of.get(key).filter(|found| found.value != PythonLiteral::Nothing) else {
            return Ok(0.0);
        };
        let number = found.number().filter(|n| n.is_finite() && *n >= 0.0);
        number.ok_or_else(|| self.wrong(found, &format!("{path}{key}"), "a number of 0 or more"))
    }

    fn contexts(&mut self) -> Result<(), ConfigError> {
        let Some(k8s) = self.root.get("credentials").and_then(|all| all.get("k8s")) else { return Ok(()) };
        let sets: Vec<&str> =
            k8s.entries().filter(|(_, v)| v.get("metrics").is_some()).map(|(key, _)| key).collect();
        self.unknown(k8s, "credentials.k8s.", &[&K8S[..], &sets].concat());
        let contexts = k8s.get("context").or_else(|| k8s.get("contexts"));
        for (name, context) in contexts.into_iter().flat_map(Literal::entries) {
            let path = format!("credentials.k8s.context.{name}.");
            self.unknown(context, &path, &CONTEXT);
            let found = Context {
                namespace: self.text(context, &path, "namespace")?,
                cluster: self.text(context, &path, "clustername")?,
            };
            self.out.contexts.insert(name.to_owned(), found);
        }
        if let Some(monitor) = k8s.get("monitor") {
            self.out.prometheus = self.text(monitor, "credentials.k8s.monitor.", "service_monitoring")?;
        }
        Ok(())
    }

    fn dockers(&mut self) {
        let Some(all) = self.root.get("dockers") else { return };
        for (name, docker) in all.entries() {
            // Problems of a database matter only to those who use it.
            let others = std::mem::take(&mut self.out.warnings);
            let found = self.docker(name, docker);
            let warnings = std::mem::replace(&mut self.out.warnings, others);
            self.out.dockers.insert(name.to_owned(), found.map(|found| Docker { warnings, ..found }));
        }
    }

    fn docker(&mut self, name: &str, docker: &Literal) -> Result<Docker, ConfigError> {
        let path = format!("dockers.{name}.");
        if !docker.is_dictionary() {
            return Err(self.wrong(docker, path.trim_end_matches('.'), "a dictionary"));
        }
        self.unknown(docker, &path, &DOCKER);
        let delay = docker.get("delay_prepare").is_some();
        let mut found = Docker {
            load_data: self.text(docker, &path, "loadData")?,
            delay_s: if delay { self.number(docker, &path, "delay_prepare")? } else { 60.0 },
            data: self.text(docker, &path, "datadir")?,
            log: self.text(docker, &path, "logfile")?,
            price: self.number(docker, &path, "priceperhourdollar")?,
            ..Docker::default()
        };
        for (component, monitor) in docker.get("monitor").into_iter().flat_map(Literal::entries) {
            let path = format!("{path}monitor.{component}.");
            self.unknown(monitor, &path, &COMPONENT);
            found.discovery |= monitor.get("discovery").and_then(Literal::switch).unwrap_or(false);
            let metrics = self.metrics(monitor, &path)?;
            found.metrics.insert(component.to_owned(), metrics);
        }
        Ok(found)
    }

    /// A component's metrics: a set by its name, or the set itself.
    fn metrics(&mut self, monitor: &Literal, path: &str) -> Result<Vec<CatalogueMetric>, ConfigError> {
        let Some(asked) = monitor.get("metrics") else { return Ok(Vec::new()) };
        let set = match asked.text() {
            Some(name) => match set(self.root, name) {
                Some(set) => set,
                None => {
                    let message = format!(
                        "{}:{}:{}: {path}metrics: there is no set of metrics {name:?}",
                        self.file, asked.line, asked.column
                    );
                    self.out.warnings.push(message);
                    return Ok(Vec::new());
                }
            },
            None => asked.get("metrics").unwrap_or(asked),
        };
        let mut all = Vec::new();
        for (name, metric) in set.entries() {
            let path = format!("metrics.{name}.");
            self.unknown(metric, &path, &METRIC);
            let Some(query) = self.text(metric, &path, "query")? else {
                return Err(self.wrong(metric, &format!("metrics.{name}"), "a query"));
            };
            let kind = match self.text(metric, &path, "metric")?.as_deref() {
                None | Some("gauge") => MetricKind::Gauge,
                Some("counter") => MetricKind::Counter,
                Some("ratio") => MetricKind::Ratio,
                Some(_) => {
                    let at = metric.get("metric").unwrap_or(metric);
                    let words = self.wrong(at, &format!("{path}metric"), "counter, gauge or ratio");
                    self.out.warnings.push(format!("{words}; it is left out"));
                    continue;
                }
            };
            let title = self.text(metric, &path, "title")?.unwrap_or_else(|| name.to_owned());
            if metric.get("active").and_then(Literal::switch).unwrap_or(true) {
                all.push(CatalogueMetric { name: name.to_owned(), title, query, kind });
            }
        }
        Ok(all)
    }
}

/// A set of metrics, wherever it stands.
fn set<'a>(at: &'a Literal, name: &str) -> Option<&'a Literal> {
    at.entries().find_map(|(key, value)| match value.get(COLLECTION[0]) {
        Some(metrics) if key == name && metrics.is_dictionary() => Some(metrics),
        _ => set(value, name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{
    'benchmarker': {'resultfolder': '/home/myself/benchmarks', 'jarfolder': './jars/'},
    'credentials': {'k8s': {
        'appname': 'bexhoma',
        'context': {'lab': {'namespace': 'bench', 'clustername': 'Lab', 'service_sut': '{service}', 'port': 9091}},
        'monitor': {'service_monitoring': 'http://{service}.{namespace}.svc:9090/api/v1/'},
    }},
    'dragonfly': {'metrics': {
        'replies': {'type': 'application', 'active': True, 'metric': 'counter',
                    'query': 'sum(dragonfly_reply_total)', 'title': 'Replies Sent [count]'},
        'memory': {'active': True, 'metric': 'gauge', 'query': 'sum(x)/1024', 'title': 'Memory'},
        'off': {'active': False, 'metric': 'gauge', 'query': 'sum(y)', 'title': 'Off'},
    }},
    'dockers': {
        'Dragonfly': {
            'loadData': 'redis-cli < {scriptname}', 'delay_prepare': 0, 'attachWorker': '', 'template': {'version': 'x'},
            'logfile': '/var/log/redis/redis-server.log', 'datadir': '/data', 'priceperhourdollar': 0.25,
            'monitor': {'sut': {'metrics': 'dragonfly', 'discovery': True, 'discovery_config': '''
  - job_name: 'dragonfly-pods'
''', 'headless': True}},
        },
        'Redis': {'loadDate': 1},
    },
}";

    #[test]
    fn the_examples_sections() {
        let config = read_config(TEXT, "cluster.config").unwrap();
        assert_eq!(config.contexts["lab"].namespace.as_deref(), Some("bench"));
        let dragonfly = config.dockers["Dragonfly"].as_ref().unwrap();
        assert_eq!((dragonfly.delay_s, dragonfly.price, dragonfly.discovery), (0.0, 0.25, true));
        assert_eq!(dragonfly.data.as_deref(), Some("/data"));
        let titles: Vec<&str> = dragonfly.metrics["sut"].iter().map(|metric| metric.title.as_str()).collect();
        assert_eq!(titles, ["Replies Sent [count]", "Memory"], "what is not active is left out");
        assert_eq!(dragonfly.metrics["sut"][0].kind, MetricKind::Counter);
        let redis = config.dockers["Redis"].as_ref().unwrap();
        assert_eq!(redis.delay_s, 60.0, "bexhoma's default");
        assert!(config.warnings.is_empty() && dragonfly.warnings.is_empty(), "{:?}", config.warnings);
        assert_eq!(redis.warnings.len(), 1, "{:?}", redis.warnings);
        let expected = "cluster.config:22:31: dockers.Redis.loadDate: is not known";
        assert!(redis.warnings[0].contains("dockers.Redis.loadDate: is not known"), "{redis:?} {expected}");
    }

    #[test]
    fn ratios_are_known_and_other_kinds_are_left_out_with_a_word() {
        let text = "{'a': {'metrics': {
            'hits': {'metric': 'ratio', 'query': 'x'}, 'odd': {'metric': 'histogram', 'query': 'y'}}},
            'dockers': {'Redis': {'monitor': {'sut': {'metrics': 'a'}}}, 'Other': 3}}";
        let config = read_config(text, "c").unwrap();
        let redis = config.dockers["Redis"].as_ref().unwrap();
        let kinds: Vec<MetricKind> = redis.metrics["sut"].iter().map(|metric| metric.kind).collect();
        assert_eq!(kinds, [MetricKind::Ratio]);
        let sentence = "c:2:95: metrics.odd.metric: expected counter, gauge or ratio; it is left out";
        assert!(redis.warnings[0].ends_with(sentence.split_once(": ").unwrap().1), "{:?}", redis.warnings);
        assert!(
            config.dockers["Other"]
                .as_ref()
                .unwrap_err()
                .to_string()
                .contains("dockers.Other: expected a dictionary")
        );
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let told = |text: &str| match read_config(text, "c") {
            Err(error) => error.to_string(),
            Ok(config) => config.dockers.into_values().find_map(Result::err).unwrap().to_string(),
        };
        assert_eq!(told("[1]"), "c:1:1: expected a dictionary");
        assert!(
            told("{'dockers': {'A': {'delay_prepare': 'x'}}}")
                .starts_with("c:1:37: dockers.A.delay_prepare: expected a number")
        );
        assert!(told("{'dockers': {'A': 1}}").contains("dockers.A: expected a dictionary"));
        assert!(
            told("{'dockers': {'A': {'monitor': {'sut': {'metrics': {'m': {}}}}}}}")
                .contains("expected a query")
        );
        assert!(told("{'a': exec('x')}").starts_with("c:1:7: \"exec\""));
        let missing =
            read_config("{'dockers': {'A': {'monitor': {'sut': {'metrics': 'none'}}}}}", "c").unwrap();
        let warnings = &missing.dockers["A"].as_ref().unwrap().warnings;
        assert!(warnings[0].contains("no set of metrics \"none\""), "{warnings:?}");
        assert!(read_config("{'docker': {}}", "c").unwrap().warnings[0].contains("docker: is not known"));
    }
}
