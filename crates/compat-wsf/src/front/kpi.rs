//! `dyno wsf list-kpi`: reads logs, dyno's or the framework's own.

use super::args::{ListFormat, ListKpiArgs};
use crate::folder::EXPERIMENT;
use crate::report::client::read_log;
use crate::report::grammar::{Kpis, read_kpis};
use crate::report::kpis::kpi_text;
use crate::report::list::{Axes, IterationKpis, Listing, csv, list, pivot};
use dyno_config::tree::Node;
use dyno_frontend::environment;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_rundir::files;
use std::path::{Path, PathBuf};

/// Entries of a folder, by the number at the end of their names, then by name.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let number = |path: &Path| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        name[name.len() - digits..].parse::<u64>().unwrap_or(0)
    };
    all.sort_by(|a, b| number(a).cmp(&number(b)).then_with(|| a.cmp(b)));
    all
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The iterations of a folder of logs.
pub fn iterations(logs_dir: &Path) -> Vec<PathBuf> {
    entries(logs_dir).into_iter().filter(|path| path.is_dir() && name(path).starts_with("itr-")).collect()
}

/// Folders of logs at a path: itself, or those in it.
fn folders(path: &Path) -> Vec<PathBuf> {
    if !iterations(path).is_empty() {
        return vec![path.to_owned()];
    }
    entries(path).into_iter().filter(|path| path.is_dir() && !iterations(path).is_empty()).collect()
}

/// The command.
pub fn list_kpi(args: &ListKpiArgs) -> Result<Exit, Failure> {
    accept(args)?;
    let mut listings = Vec::new();
    let mut latest: Option<(std::time::SystemTime, PathBuf)> = None;
    for dir in &args.dirs {
        let found = folders(dir);
        if found.is_empty() {
            return Err(Failure::usage(format!("{}: no logs with itr-* here", dir.display())));
        }
        for folder in found {
            let at = std::fs::metadata(&folder).and_then(|meta| meta.modified());
            match at.ok().filter(|_| args.recent) {
                Some(at) if latest.as_ref().is_none_or(|(known, _)| *known < at) => {
                    latest = Some((at, folder))
                }
                Some(_) => {}
                None => listings.push(listing(&folder, args.sutinfo)?),
            }
        }
    }
    if let Some((_, folder)) = latest {
        listings.push(listing(&folder, args.sutinfo)?);
    }
    let text = match args.format {
        ListFormat::XlsTable => table(args, &listings)?,
        ListFormat::XlsList => csv(&listings, args.all, args.params),
        ListFormat::List => listings
            .iter()
            .map(|one| list(one, args.all, args.params, args.outlier))
            .collect::<Vec<_>>()
            .join("\n"),
    };
    match &args.file {
        Some(path) => {
            files::put_file(path, text.as_bytes())
                .map_err(|e| Failure::usage(format!("--file {}: {e}", path.display())))?;
        }
        None => terminal::out(&text),
    }
    Ok(Exit::Ok)
}

/// `xls-table`: `--var3` and `--var4` have tables of their own.
fn table(args: &ListKpiArgs, listings: &[Listing]) -> Result<String, Failure> {
    let (Some(row), Some(column)) = (&args.var1, &args.var2) else {
        let message =
            "--format xls-table: expected --var1 NAME and --var2 NAME, two of the parameters (--params)";
        return Err(Failure::usage(message));
    };
    let tables: Vec<&str> = [&args.var3, &args.var4].into_iter().flatten().map(String::as_str).collect();
    pivot(listings, Axes { row, column, tables: &tables }, args.all)
        .map_err(|why| Failure::usage(format!("--var1 to --var4: {why}")))
}

/// Refuses what needs a service that is not there, and says what has no effect.
fn accept(args: &ListKpiArgs) -> Result<(), Failure> {
    let published =
        args.owner.is_some() || args.tags.is_some() || args.pretag.is_some() || args.uri.is_some();
    if args.intel_publish || published {
        let message =
            "--intel_publish: is not offered: it needs the framework's own service; --format xls-list is CSV";
        return Err(Failure::usage(message));
    }
    let varied = args.format != ListFormat::XlsTable
        && [&args.var1, &args.var2, &args.var3, &args.var4].into_iter().any(Option::is_some);
    let silent = [
        ("--export-trace", args.export_trace, "what tracers printed is in experiment/runs/*/traces as it is"),
        ("--filter", args.filter.is_some(), "the table has every test under its own name"),
        ("--var1 to --var4", varied, "they are of --format xls-table"),
    ];
    for (option, _, why) in silent.iter().filter(|(_, given, _)| *given) {
        terminal::note(&format!("note: {option}: without effect; {why}"));
    }
    Ok(())
}

/// Facts about the host of a folder of logs.
fn host(logs_dir: &Path) -> Vec<(String, String)> {
    match environment::read_system(&logs_dir.join(EXPERIMENT)) {
        Ok(system) => {
            let of = |group: &str, name: &str| format!("{group}.{name}");
            let all = system.facts.iter().flat_map(|(group, facts)| {
                facts.iter().map(move |(name, value)| (of(group, name), value.clone()))
            });
            all.collect()
        }
        Err(_) => {
            terminal::note(&format!("{}: nothing is known about its host", logs_dir.display()));
            Vec::new()
        }
    }
}

fn listing(logs_dir: &Path, sutinfo: bool) -> Result<Listing, Failure> {
    let shown = std::fs::canonicalize(logs_dir).map_or_else(|_| name(logs_dir), |path| name(&path));
    let host = if sutinfo { host(logs_dir) } else { Vec::new() };
    let mut all = Listing { name: shown, parameters: parameters(logs_dir), host, iterations: Vec::new() };
    for folder in iterations(logs_dir) {
        let clients: Vec<PathBuf> = entries(&folder).into_iter().filter(|path| path.is_dir()).collect();
        let status = |client: &PathBuf| files::read_to_string(&client.join("status")).unwrap_or_default();
        let passed = !clients.is_empty() && clients.iter().all(|client| status(client).trim() == "0");
        all.iterations.push(IterationKpis { name: name(&folder), kpis: kpis(&folder, &clients)?, passed });
    }
    Ok(all)
}

/// Reads the KPIs that were computed when it ran, or else computes them from the clients' logs.
fn kpis(folder: &Path, clients: &[PathBuf]) -> Result<Kpis, Failure> {
    if let Ok(text) = files::read_to_string(&folder.join("kpi.txt")) {
        return Ok(read_kpis(&text));
    }
    let mut all = Vec::new();
    for client in clients {
        let logs = entries(client).into_iter().filter(|path| {
            let name = name(path);
            name.starts_with("output") && name.ends_with(".logs")
        });
        for log in logs {
            let bytes = files::read(&log)?;
            all.push(read_log(&String::from_utf8_lossy(&bytes)));
        }
    }
    Ok(read_kpis(&kpi_text(&all, None)))
}

/// The tunables of workload-config.yaml.
fn parameters(logs_dir: &Path) -> Vec<(String, String)> {
    let path = logs_dir.join("workload-config.yaml");
    let Ok(text) = files::read_to_string(&path) else { return Vec::new() };
    let tree = match Node::parse(&text, &path.display().to_string()) {
        Ok(tree) => tree,
        Err(error) => {
            terminal::warn(&error.to_string());
            return Vec::new();
        }
    };
    let Some(tunables) = tree.get("tunables") else { return Vec::new() };
    match tunables.entries() {
        Some(entries) => entries.iter().map(|(name, value)| (name.clone(), value.to_label())).collect(),
        None => vec![("tunables".into(), tunables.to_label())],
    }
}
