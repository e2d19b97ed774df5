//! The INI form: hosts with variables in sections that are groups.

use crate::inventory::{Inventory, InventoryError, LineError};
use dyno_types::limits::INVENTORY_HOSTS;
use dyno_types::shell::words;

enum Section {
    Hosts(String),
    Children(String),
    Variables(String),
}

pub(super) fn parse(text: &str, path: &str) -> Result<Inventory, InventoryError> {
    let mut inventory = Inventory::default();
    let mut section = Section::Hosts("ungrouped".into());
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let wrong = |problem| InventoryError::Line { path: path.to_owned(), line: at as u64 + 1, problem };
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[').filter(|_| !line.contains('=')) {
            let name = rest
                .split_once(']')
                .map(|(name, _)| name.trim())
                .filter(|name| !name.is_empty())
                .ok_or_else(|| wrong(LineError::Section))?;
            section = begin(name).map_err(wrong)?;
            let (Section::Hosts(name) | Section::Children(name) | Section::Variables(name)) = &section;
            inventory.group(name);
            continue;
        }
        match &section {
            Section::Hosts(group) => host(&mut inventory, group, line).map_err(wrong)?,
            Section::Children(group) => {
                inventory.group(group).children.insert(line.to_owned());
            }
            Section::Variables(group) => {
                let (name, value) = line.split_once('=').ok_or_else(|| wrong(LineError::Variable))?;
                let value = unquoted(value.trim()).to_owned();
                inventory.group(group).variables.insert(name.trim().to_owned(), value);
            }
        }
    }
    Ok(inventory)
}

fn begin(name: &str) -> Result<Section, LineError> {
    match name.split_once(':') {
        None => Ok(Section::Hosts(name.to_owned())),
        Some((name, "children")) => Ok(Section::Children(name.to_owned())),
        Some((name, "vars")) => Ok(Section::Variables(name.to_owned())),
        Some(_) => Err(LineError::SectionKind),
    }
}

fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

/// `db[01:03].lab:2222 ansible_user=admin`
fn host(inventory: &mut Inventory, group: &str, line: &str) -> Result<(), LineError> {
    let comment = line.find(" #").or_else(|| line.find(" ;")).unwrap_or(line.len());
    let mut all = words(&line[..comment])?.into_iter();
    let pattern = all.next().unwrap_or_default();
    let mut variables = Vec::new();
    for word in all {
        let (name, value) = word.split_once('=').ok_or_else(|| LineError::HostVariable(word.clone()))?;
        variables.push((name.to_owned(), value.to_owned()));
    }
    // A colon inside brackets belongs to a range.
    let after = pattern.rfind(']').map_or(0, |at| at + 1);
    let port = pattern[after..].split_once(':').map(|(_, port)| port.to_owned());
    let pattern = match &port {
        Some(port) => &pattern[..pattern.len() - port.len() - 1],
        None => pattern.as_str(),
    };
    for name in ranged(pattern)? {
        let own = inventory.host(&name);
        own.extend(port.iter().map(|port| ("ansible_port".to_owned(), port.clone())));
        own.extend(variables.iter().cloned());
        inventory.group(group).hosts.insert(name);
    }
    Ok(())
}

/// `db[01:03].lab` as names; a pattern without brackets is one.
fn ranged(pattern: &str) -> Result<Vec<String>, LineError> {
    let Some((before, rest)) = pattern.split_once('[') else { return Ok(vec![pattern.to_owned()]) };
    let (range, after) = rest.split_once(']').ok_or_else(|| LineError::OpenRange(pattern.to_owned()))?;
    let bad = || LineError::Range(range.to_owned());
    let parts: Vec<&str> = range.split(':').collect();
    let (&[from, to] | &[from, to, _]) = parts.as_slice() else { return Err(bad()) };
    let step: usize =
        parts.get(2).map_or(Ok(1), |step| step.parse()).ok().filter(|s| *s > 0).ok_or_else(bad)?;
    let middles: Vec<String> = match (from.parse::<usize>(), to.parse::<usize>()) {
        (Ok(first), Ok(last)) if first <= last && last - first < INVENTORY_HOSTS => {
            let width = if from.starts_with('0') { from.len() } else { 0 };
            (first..=last).step_by(step).map(|n| format!("{n:0width$}")).collect()
        }
        _ => {
            let letter =
                |text: &str| text.bytes().next().filter(|c| text.len() == 1 && c.is_ascii_alphabetic());
            let (first, last) = letter(from).zip(letter(to)).filter(|(a, b)| a <= b).ok_or_else(bad)?;
            (first..=last).step_by(step).map(|c| char::from(c).to_string()).collect()
        }
    };
    let tails = ranged(after)?;
    if middles.len().saturating_mul(tails.len()) > INVENTORY_HOSTS {
        return Err(LineError::TooManyHosts(pattern.to_owned()));
    }
    Ok(middles.iter().flat_map(|m| tails.iter().map(move |tail| format!("{before}{m}{tail}"))).collect())
}
