//! Settings of the host, applied only when a file says so, and put back at the end.

use crate::error::LocalError;
use crate::machine::Machine;
use crate::settings::{FILES, chosen, governor_files, hardware_devices, rps_files};
use crate::undo::{Journal, Undo};
use dyno_config::server::tuning::{HostTuning, Rps, RpsWord};
use dyno_monitor::topology::parse_list;
use std::fs;
use std::path::{Path, PathBuf};

/// Settings applied; dropping it puts them back.
#[derive(Debug)]
pub struct Tuned {
    journal: Journal,
    /// Settings that could not be changed, where the file allows that.
    pub lost: Vec<String>,
}

impl Tuned {
    /// Puts everything back as it was.
    pub fn revert_settings(mut self) -> Result<(), LocalError> {
        self.journal.undo_all()
    }
}

/// Applies what is asked for; each setting is noted in the journal of `work_dir`, a folder for nothing else, before,
/// and read back after. With `go_on` what
/// cannot be set is listed instead of refused.
pub fn apply_settings(
    tuning: &HostTuning,
    machine: &Machine,
    work_dir: &Path,
    go_on: bool,
) -> Result<Tuned, LocalError> {
    tuning.check().map_err(|why| LocalError::refuse("host", format!("host.{why}")))?;
    let mut tuned = Tuned { journal: Journal::open(work_dir, machine)?, lost: Vec::new() };
    for (key, files, value) in wanted(tuning, machine)? {
        let none = LocalError::NotPermitted {
            what: key.clone(),
            why: "this host has no such setting".into(),
            lost: "it stays as it is".into(),
        };
        let set = match files.is_empty() {
            true => Err(none),
            false => files.iter().try_for_each(|file| set(&mut tuned.journal, &key, file, &value)),
        };
        match set {
            Err(error @ LocalError::NotPermitted { .. }) if go_on => tuned.lost.push(error.to_string()),
            other => other?,
        }
    }
    Ok(tuned)
}

/// Key, files and value of everything asked for.
type Wanted = Vec<(String, Vec<PathBuf>, String)>;

fn wanted(tuning: &HostTuning, machine: &Machine) -> Result<Wanted, LocalError> {
    let mut list = Wanted::new();
    let there =
        |path: PathBuf| -> Vec<PathBuf> { Some(path).filter(|path| path.exists()).into_iter().collect() };
    if let Some(governor) = &tuning.governor {
        list.push(("governor".into(), governor_files(machine), governor.clone()));
    }
    let pages = machine.sys.join("kernel/mm/transparent_hugepage");
    if let Some(word) = &tuning.transparent_huge_pages {
        list.push(("transparent_huge_pages".into(), there(pages.join("enabled")), word.clone()));
    }
    if let Some(word) = &tuning.defrag {
        list.push(("defrag".into(), there(pages.join("defrag")), word.clone()));
    }
    for (device, kib) in &tuning.read_ahead_kib {
        let file = machine.sys.join("block").join(device).join("queue/read_ahead_kb");
        list.push((format!("read_ahead_kib.{device}"), there(file), kib.to_string()));
    }
    for (name, rps) in &tuning.rps {
        let devices = if name == "*" { hardware_devices(machine) } else { vec![name.clone()] };
        for device in devices {
            let mask = rps_mask(rps, &device, machine)?;
            list.push((format!("rps.{device}"), rps_files(machine, &device), mask));
        }
    }
    let numbers = [tuning.swappiness, tuning.zone_reclaim_mode, tuning.numa_balancing.map(u32::from)];
    for ((key, path), number) in FILES.into_iter().zip(numbers) {
        if let Some(number) = number {
            list.push((key.into(), there(machine.proc.join(path)), number.to_string()));
        }
    }
    Ok(list)
}

fn rps_mask(rps: &Rps, device: &str, machine: &Machine) -> Result<String, LocalError> {
    match rps {
        Rps::Word(RpsWord::None) => Ok("0".into()),
        Rps::Word(RpsWord::All) => {
            let cpus = machine.machine_topology()?.cpus.into_keys();
            Ok(mask(&cpus.collect::<Vec<_>>()))
        }
        Rps::Cores(cores) => Ok(mask(&cores.0)),
        Rps::Word(RpsWord::Local) => {
            let file = machine.sys.join("class/net").join(device).join("device/local_cpulist");
            let text = fs::read_to_string(&file).map_err(|e| LocalError::failed_step(file.display(), e))?;
            let cores = parse_list(&text).filter(|cores| !cores.is_empty());
            cores
                .map(|cores| mask(&cores))
                .ok_or_else(|| LocalError::failed_step(file.display(), "is no list of cores"))
        }
    }
}

/// Words of 32 bits in hexadecimal, the highest first, as the kernel writes them: `1,00000003`.
fn mask(cores: &[usize]) -> String {
    let words = cores.iter().max().map_or(1, |highest| highest / 32 + 1);
    let mut bits = vec![0u32; words];
    cores.iter().for_each(|core| bits[core / 32] |= 1 << (core % 32));
    let mut out = format!("{:x}", bits[words - 1]);
    bits[..words - 1].iter().rev().for_each(|word| out.push_str(&format!(",{word:08x}")));
    out
}

fn set(journal: &mut Journal, key: &str, file: &Path, value: &str) -> Result<(), LocalError> {
    let refused = |why: String| LocalError::NotPermitted {
        what: key.to_owned(),
        why: format!("{}: {why}", file.display()).into(),
        lost: "it stays as it is".into(),
    };
    let read = || fs::read_to_string(file).map(|text| chosen(text.trim()).to_owned());
    let old = read().map_err(|e| refused(e.to_string()))?;
    if same(&old, value) {
        return Ok(());
    }
    let id = journal.note_action(Undo::Value { path: file.to_owned(), old })?;
    if let Err(e) = fs::write(file, value) {
        // Nothing was changed, so what cannot be written need not be written back.
        journal.forget_note(id)?;
        return Err(refused(format!("{value}: {e}")));
    }
    let now = read().map_err(|e| refused(e.to_string()))?;
    if !same(&now, value) {
        return Err(refused(format!("is {now:?} after {value:?} was written")));
    }
    Ok(())
}

/// Masks are padded with zeros when they are read.
fn same(there: &str, wanted: &str) -> bool {
    let bare = |text: &str| {
        let text: String = text.chars().filter(|c| *c != ',').collect();
        text.trim_start_matches('0').to_owned()
    };
    there == wanted
        || (bare(there) == bare(wanted)
            && there.len() > 1
            && there.bytes().all(|b| b == b',' || b.is_ascii_hexdigit()))
}

#[cfg(test)]
#[path = "tuning_tests.rs"]
mod tests;
