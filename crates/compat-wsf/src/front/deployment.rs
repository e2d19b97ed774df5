//! `--backend`: this host, hosts of an inventory, or pods; and what the latter are made of.

use super::args::{Backend, WsfArgs};
use super::iteration::{self, Iteration, folder_name};
use crate::plan::lower::options::{Deployment, PRIVILEGED, SshDeployment};
use dyno_config::experiment::ExperimentPlan;
use dyno_config::inventory::Inventory;
use dyno_frontend::exit::{Cause, Exit, Failure};
use dyno_frontend::experiment;
use dyno_frontend::experiment::manifests as written;
use dyno_frontend::terminal;
use dyno_hosts::servers::preflight::program_version;
use dyno_localhost::machine::Machine;
use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use serde_json::Value;
use std::path::Path;

/// Name of the file that the seed's m4 step writes.
const WRITTEN: &str = "kubernetes-config.yaml";

/// Name of a backend in workload-config.yaml.
pub fn name(backend: Backend) -> &'static str {
    match backend {
        Backend::Local => "local",
        Backend::Ssh => "ssh",
        Backend::Kubernetes => "kubernetes",
    }
}

fn usage(words: impl Into<Cause>) -> Failure {
    Failure::usage(words)
}

/// Reads the place of servers and clients.
pub fn read_deployment(args: &WsfArgs) -> Result<Deployment, Failure> {
    let asked = &args.deployment;
    let strange = [
        ("--inventory", asked.inventory.is_some(), Backend::Ssh),
        ("--ssh", !asked.ssh.is_empty(), Backend::Ssh),
        ("--kubernetes", !asked.kubernetes.is_empty(), Backend::Kubernetes),
        ("--privileged", asked.privileged, Backend::Kubernetes),
        ("--manifests", asked.manifests.is_some(), Backend::Kubernetes),
    ];
    if let Some((option, _, of)) = strange.iter().find(|(_, given, of)| *given && *of != asked.backend) {
        return Err(usage(format!("{option}: is for --backend {}", name(*of))));
    }
    match asked.backend {
        Backend::Local => Ok(Deployment::Local),
        Backend::Ssh => ssh(args),
        Backend::Kubernetes => {
            let mut keys = keys("--kubernetes", "namespace=bench", &asked.kubernetes)?;
            if asked.privileged {
                keys.push((PRIVILEGED.to_owned(), true.into()));
            }
            Ok(Deployment::Kubernetes(keys))
        }
    }
}

/// Returns the version of the servers' program, as far as it can be known from here: on this host, or by the tag of the pods'
/// image.
pub fn version(args: &WsfArgs) -> Option<String> {
    match args.deployment.backend {
        Backend::Local => program_version(args.server.into(), args.program.as_deref(), &Machine::default()),
        Backend::Ssh => None,
        Backend::Kubernetes => {
            let image = args
                .deployment
                .kubernetes
                .iter()
                .rev()
                .find_map(|text| text.strip_prefix("server_image="))?;
            let (_, tag) = image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
            Some(tag.to_owned())
        }
    }
}

/// Keys and values; a value that is no JSON is a text.
fn keys(option: &str, such: &str, texts: &[String]) -> Result<Vec<(String, Value)>, Failure> {
    let of = |text: &String| {
        let wrong = || usage(format!("{option} {text}: expected KEY=VALUE, such as {such}"));
        let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(wrong)?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        Ok((key.to_owned(), value))
    };
    texts.iter().map(of).collect()
}

fn ssh(args: &WsfArgs) -> Result<Deployment, Failure> {
    let Some(path) = &args.deployment.inventory else {
        let message = "expected --inventory FILE, with the groups worker and client";
        return Err(usage(format!("--backend ssh: {message}")));
    };
    let shown = path.display().to_string();
    let wrong = |why: &dyn std::fmt::Display| usage(format!("--inventory {shown}: {why}"));
    // The experiment may be gone on with from another folder.
    let absolute = |path: &Path| std::fs::canonicalize(path).map(|path| path.display().to_string());
    let text = bounded::text_file(path, TEXT_BYTES).map_err(|e| wrong(&e))?;
    let inventory = Inventory::parse(&text, &shown).map_err(|e| wrong(&e))?;
    let group = |name: &str| -> Result<Vec<String>, Failure> {
        let hosts = inventory.select_hosts(name).map_err(|e| wrong(&e))?;
        Ok(hosts.into_iter().map(|host| host.name).collect())
    };
    let mut more = keys("--ssh", "config=FILE", &args.deployment.ssh)?;
    for (_, value) in more.iter_mut().filter(|(key, _)| key == "config") {
        let path = value.as_str().unwrap_or_default().to_owned();
        let whole = absolute(Path::new(&path)).map_err(|e| usage(format!("--ssh config={path}: {e}")))?;
        *value = whole.into();
    }
    Ok(Deployment::Ssh(SshDeployment {
        inventory: absolute(path).map_err(|e| wrong(&e))?,
        more,
        servers: group("worker")?,
        // One host may be all there is, with RUN_SINGLE_NODE=true.
        clients: if inventory.all_names().contains(&"client") { group("client")? } else { Vec::new() },
    }))
}

/// `--manifests`.
pub fn manifests(args: &WsfArgs, iterations: &[Iteration]) -> Result<Exit, Failure> {
    let Some(folder) = &args.deployment.manifests else { return Ok(Exit::Ok) };
    for one in iterations {
        let own = match iterations.len() {
            1 => folder.clone(),
            _ => folder.join(folder_name(one, "")),
        };
        let planned = experiment::planned(&one.lowered.text, &one.resolved.full_name(), &[])?;
        std::fs::create_dir_all(&own)?;
        note(&planned, &own)?;
        iteration::note(one);
        terminal::note(&format!("{}", own.join(WRITTEN).display()));
    }
    Ok(Exit::Ok)
}

/// Writes what the cluster is given beside other logs; names, passwords and the token of a run are its own.
pub fn note(plan: &ExperimentPlan, folder: &Path) -> Result<(), Failure> {
    let Some(asked) = &plan.base.kubernetes else { return Ok(()) };
    written::put(&folder.join(WRITTEN), &written::of_cell(&plan.base, asked)?)
}
