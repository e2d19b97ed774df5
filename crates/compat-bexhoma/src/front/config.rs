//! `cluster.config`: what it says about the cluster, the databases that were asked for, and their metrics.

use crate::catalogue::Catalogue;
use crate::plan::config::{CatalogueMetric, ClusterConfig, Docker, read_config};
use crate::plan::flags::TypedFlags;
use crate::plan::options::Options;
use dyno_frontend::exit::Failure;
use dyno_frontend::terminal;
use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use std::collections::BTreeSet;

/// Name of the file in bexhoma.
const NAME: &str = "cluster.config";

/// Additions of a configuration to an experiment.
#[derive(Debug, Default)]
pub struct Added {
    /// Keys of the experiment, as `--set` has them.
    pub sets: Vec<String>,
    /// Metrics that are figured out once runs have ended.
    pub catalogue: Catalogue,
}

/// The configuration that was named, or the one in this folder; warnings are printed.
fn load(typed: &TypedFlags) -> Result<Option<ClusterConfig>, Failure> {
    let named = typed.value("cluster-config");
    let path = if named.is_empty() { NAME } else { named };
    let text = match bounded::text_file(path, TEXT_BYTES) {
        Err(error) if named.is_empty() && error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|e| Failure::usage(format!("{path}: {e}")))?,
    };
    let config = read_config(&text, path)?;
    for warning in &config.warnings {
        terminal::warn(warning);
    }
    Ok(Some(config))
}

/// Reads it and says what comes of it.
pub fn added(options: &Options) -> Result<Added, Failure> {
    let typed = &options.typed;
    let mut added = Added::default();
    added.catalogue.prometheus = Some(typed.value("prometheus").to_owned()).filter(|url| !url.is_empty());
    let Some(config) = load(typed)? else { return Ok(added) };
    let namespace = if options.local { None } else { place(typed, &config, &mut added.sets)? };
    if added.catalogue.prometheus.is_none() {
        let template = config.prometheus.clone().unwrap_or_default();
        let url = template.replace("{namespace}", namespace.as_deref().unwrap_or("{namespace}"));
        // A service without a name is one of bexhoma's own, which is not there.
        added.catalogue.prometheus = Some(url).filter(|url| !url.is_empty() && !url.contains('{'));
    }
    let mut warnings: BTreeSet<&String> = BTreeSet::new();
    let mut delay = 0.0_f64;
    for dbms in &options.dbms {
        let key = options.deployment(*dbms);
        let found = config.dockers.get(&key).or_else(|| config.dockers.get(dbms.name()));
        let Some(docker) = found.map(|found| found.as_ref().map_err(|why| Failure::usage(why.to_string())))
        else {
            terminal::note(&format!("note: {NAME} has no section dockers.{key}"));
            continue;
        };
        let docker = docker?;
        warnings.extend(&docker.warnings);
        notes(&key, docker);
        delay = delay.max(docker.delay_s);
        let price = added.catalogue.price_per_hour.unwrap_or(0.0).max(docker.price);
        added.catalogue.price_per_hour = Some(price).filter(|price| *price > 0.0);
        for metric in docker.metrics.values().flatten() {
            if !added.catalogue.metrics.iter().any(|known: &CatalogueMetric| known.title == metric.title) {
                added.catalogue.metrics.push(metric.clone());
            }
        }
    }
    warnings.into_iter().for_each(|warning| terminal::warn(warning));
    if delay > 0.0 {
        added.sets.push(format!("hooks.before_load=[[sleep, '{delay}']]"));
    }
    Ok(added)
}

/// Context and namespace: of `-cx`, which must be known then, or of the only one there is.
fn place(
    typed: &TypedFlags,
    config: &ClusterConfig,
    sets: &mut Vec<String>,
) -> Result<Option<String>, Failure> {
    let named = typed.value("context");
    let known: Vec<&str> = config.contexts.keys().map(String::as_str).collect();
    let name = match (named, known.as_slice()) {
        ("", [only]) => {
            sets.push(format!("kubernetes.context={only}"));
            *only
        }
        ("", _) => return Ok(None),
        (named, []) => named,
        (named, known) if known.contains(&named) => named,
        (named, known) => {
            let message = format!("-cx {named}: is no context of {NAME}: expected {}", known.join(", "));
            return Err(Failure::usage(message));
        }
    };
    let namespace = match typed.value("namespace") {
        "" => config.contexts.get(name).and_then(|context| context.namespace.clone()),
        typed => return Ok(Some(typed.to_owned())),
    };
    sets.extend(namespace.iter().map(|namespace| format!("kubernetes.namespace={namespace}")));
    Ok(namespace)
}

/// Notes what a section says that has another meaning here, or none.
fn notes(key: &str, docker: &Docker) {
    let say = |name: &str, why: &str| terminal::note(&format!("note: dockers.{key}.{name}: {why}"));
    if docker.load_data.is_some() {
        say("loadData", "without effect: key-value stores have no scripts, workers load");
    }
    if docker.data.as_deref().is_some_and(|path| path != "/data") {
        say(
            "datadir",
            "without effect: servers have their data in /data, on this host below server.data.path",
        );
    }
    if docker.log.is_some() {
        say("logfile", "without effect: servers log to their output, which is kept with the run");
    }
    if docker.discovery {
        say("monitor", "nothing is discovered: dyno's monitors ask the servers that it has started");
    }
}
