//! The INI form: hosts with variables in sections that are groups.

use crate::inventory::{Inventory, InventoryError, InventoryLineError};
use dyno_types::limits::INVENTORY_HOSTS;
use dyno_types::shell::split_words;

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
        if line.starts_with('[') && !line.contains(']') {
            return Err(wrong(InventoryLineError::Section));
        }
        if let Some((name, behind)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']'))
            && (behind.trim().is_empty() || behind.trim_start().starts_with('#'))
        {
            section = begin(name.trim()).map_err(wrong)?;
            let (Section::Hosts(name) | Section::Children(name) | Section::Variables(name)) = &section;
            inventory.group(name);
            continue;
        }
        match &section {
            Section::Hosts(group) => host(&mut inventory, group, line).map_err(wrong)?,
            Section::Children(group) => {
                let child = line.split('#').next().unwrap_or(line).trim_end();
                inventory.group(group).children.insert(child.to_owned());
            }
            Section::Variables(group) => {
                let (name, value) =
                    line.split_once('=').ok_or_else(|| wrong(InventoryLineError::Variable))?;
                let value = literal(value.trim()).to_owned();
                inventory.group(group).variables.insert(name.trim().to_owned(), value);
            }
        }
    }
    Ok(inventory)
}

fn begin(name: &str) -> Result<Section, InventoryLineError> {
    match name.split_once(':') {
        _ if name.is_empty() => Err(InventoryLineError::Section),
        None => Ok(Section::Hosts(name.to_owned())),
        Some((name, "children")) => Ok(Section::Children(name.to_owned())),
        Some((name, "vars")) => Ok(Section::Variables(name.to_owned())),
        Some(_) => Err(InventoryLineError::SectionKind),
    }
}

/// A value as Ansible takes it: one of Python's literals, behind which a comment may stand, else the text as it is.
fn literal(text: &str) -> &str {
    let commented = |rest: &str| rest.trim_start().is_empty() || rest.trim_start().starts_with('#');
    let quoted = |quote: char| {
        let (inner, behind) = text.strip_prefix(quote)?.split_once(quote)?;
        commented(behind).then_some(inner)
    };
    let plain = || {
        let front = text.split('#').next().unwrap_or(text).trim_end();
        let is_word = ["True", "False", "None"].contains(&front);
        (is_word || front.parse::<f64>().is_ok()).then_some(front)
    };
    quoted('"').or_else(|| quoted('\'')).or_else(plain).unwrap_or(text)
}

/// A line without the comment behind it: `#` begins one wherever it stands outside of quotes.
fn uncommented(line: &str) -> &str {
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in line.char_indices() {
        match (c, quote) {
            _ if std::mem::take(&mut escaped) => {}
            ('\\', None | Some('"')) => escaped = true,
            ('#', None) => return &line[..at],
            (';', None) if line[..at].ends_with([' ', '\t']) => return &line[..at],
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
    }
    line
}

/// `db[01:03].lab:2222 ansible_user=admin`
fn host(inventory: &mut Inventory, group: &str, line: &str) -> Result<(), InventoryLineError> {
    let mut all = split_words(uncommented(line))?.into_iter();
    let pattern = all.next().unwrap_or_default();
    let mut variables = Vec::new();
    for word in all {
        let (name, value) =
            word.split_once('=').ok_or_else(|| InventoryLineError::HostVariable(word.clone()))?;
        variables.push((name.to_owned(), value.to_owned()));
    }
    hosts(inventory, group, &pattern, variables)
}

/// Adds the hosts of a pattern (`db[01:03].lab:2222`) to a group, each with these variables.
pub(super) fn hosts(
    inventory: &mut Inventory,
    group: &str,
    pattern: &str,
    variables: impl IntoIterator<Item = (String, String)> + Clone,
) -> Result<(), InventoryLineError> {
    let (pattern, port) = addressed(pattern);
    let names = if pattern.contains("::") { vec![pattern.to_owned()] } else { ranged(pattern)? };
    for name in names {
        let own = inventory.host(&name);
        own.extend(port.map(|port| ("ansible_port".to_owned(), port.to_owned())));
        own.extend(variables.clone());
        inventory.group(group).hosts.insert(name);
    }
    Ok(())
}

/// Host and port: `h:22`, `[2001:db8::1]:22`; an address of IPv6 alone has no port.
fn addressed(pattern: &str) -> (&str, Option<&str>) {
    let digits = |port: &&str| !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
    if let Some((address, behind)) = pattern.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && (behind.is_empty() || behind.starts_with(':'))
        && address.parse::<std::net::Ipv6Addr>().is_ok()
    {
        return (address, behind.strip_prefix(':').filter(digits));
    }
    // A colon inside brackets belongs to a range.
    let after = pattern.rfind(']').map_or(0, |at| at + 1);
    match pattern[after..].split_once(':').filter(|(_, port)| digits(port)) {
        Some((_, port)) => (&pattern[..pattern.len() - port.len() - 1], Some(port)),
        None => (pattern, None),
    }
}

/// `db[01:03].lab` as names; a pattern without brackets is one.
fn ranged(pattern: &str) -> Result<Vec<String>, InventoryLineError> {
    let Some((before, rest)) = pattern.split_once('[') else { return Ok(vec![pattern.to_owned()]) };
    let (range, after) =
        rest.split_once(']').ok_or_else(|| InventoryLineError::OpenRange(pattern.to_owned()))?;
    let bad = || InventoryLineError::Range(range.to_owned());
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
        return Err(InventoryLineError::TooManyHosts(pattern.to_owned()));
    }
    Ok(middles.iter().flat_map(|m| tails.iter().map(move |tail| format!("{before}{m}{tail}"))).collect())
}
