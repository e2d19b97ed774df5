//! Ansible's inventories: hosts, groups of them, and their variables, in the INI and in the YAML form.
//!
//! Read are the keys that say how a host is reached (`ansible_host`, `ansible_port`, `ansible_user`,
//! `ansible_ssh_private_key_file`, `ansible_ssh_common_args`); other variables are kept as they are. Templates and scripts
//! (dynamic inventories) are not evaluated.

pub mod ini;
mod parse;
pub mod yaml;

use dyno_types::limits::{GROUP_DEPTH, INVENTORY_HOSTS};
use dyno_types::shell::OpenQuote;
use std::collections::{BTreeMap, BTreeSet};

/// Variables by name.
pub type Variables = BTreeMap<String, String>;

/// A host and what holds for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InventoryHost {
    /// Name in the inventory.
    pub name: String,
    /// Variables of its groups and its own, which win.
    pub variables: Variables,
}

impl InventoryHost {
    /// A host that no inventory names: the user's ssh configuration knows it.
    pub fn named_host(name: &str) -> Self {
        InventoryHost { name: name.to_owned(), variables: Variables::new() }
    }

    /// A variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Name or address that ssh is given.
    pub fn ssh_destination(&self) -> &str {
        self.get("ansible_host").unwrap_or(&self.name)
    }
}

/// A group of hosts.
#[derive(Clone, Debug, Default)]
struct HostGroup {
    hosts: BTreeSet<String>,
    children: BTreeSet<String>,
    variables: Variables,
}

/// Hosts and groups.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    hosts: BTreeMap<String, Variables>,
    /// In the order of the file.
    order: Vec<String>,
    groups: BTreeMap<String, HostGroup>,
}

/// What an encrypted file or value begins with.
const VAULT: &str = "$ANSIBLE_VAULT;";

/// An inventory that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// The text is no YAML.
    #[error("{path}: {source}")]
    Yaml {
        /// The file.
        path: String,
        /// The parser's error.
        source: Box<serde_saphyr::Error>,
    },
    /// A line that is not understood.
    #[error("{path}:{line}: {problem}")]
    Line {
        /// The file.
        path: String,
        /// The line, from 1.
        line: u64,
        /// Problem of the line.
        #[source]
        problem: InventoryLineError,
    },
    /// A group has a child that is not there.
    #[error("{path}: group {group} has a child {child} that is no group")]
    NoChild {
        /// The file.
        path: String,
        /// The group.
        group: String,
        /// Child.
        child: String,
    },
}

/// Problem of a line of an inventory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InventoryLineError {
    /// A bracket that begins no section.
    #[error("expected a section such as [name]")]
    Section,
    /// A section of an unknown kind.
    #[error("expected [name], [name:children] or [name:vars]")]
    SectionKind,
    /// A line of a section of variables that is none.
    #[error("expected NAME=VALUE")]
    Variable,
    /// A word behind a host that is no variable.
    #[error("expected NAME=VALUE, not {0:?}")]
    HostVariable(String),
    /// A quote without its other one.
    #[error(transparent)]
    OpenQuote(#[from] OpenQuote),
    /// A range of hosts without its end.
    #[error("range {0}: no ]")]
    OpenRange(String),
    /// A range of hosts that is none.
    #[error("range [{0}]: expected [1:3], [01:10], [1:9:2] or [a:c]")]
    Range(String),
    /// Ranges with more hosts than one line may have.
    #[error("range {0}: more than {INVENTORY_HOSTS} hosts")]
    TooManyHosts(String),
    /// YAML that is no mapping of groups.
    #[error("expected groups with their hosts")]
    Groups,
    /// Groups inside each other beyond the depth that is followed.
    #[error("group {0}: groups are nested too deeply")]
    TooDeep(String),
    /// A group, or one of its keys, that is no mapping.
    #[error("group {group}: {}expected a mapping", .key.as_ref().map_or(String::new(), |key| format!("{key}: ")))]
    NoMapping {
        /// The group.
        group: String,
        /// Key, if it is not the group itself.
        key: Option<String>,
    },
    /// A key that groups do not have.
    #[error("group {group}: unknown key {key}: expected hosts, vars, children")]
    UnknownKey {
        /// The group.
        group: String,
        /// The key.
        key: String,
    },
    /// A file or a value that is encrypted.
    #[error("it is encrypted (ansible-vault): dyno has no password for it; give a file in the clear")]
    Vaulted,
    /// Variables that are no mapping.
    #[error("expected variables and their values")]
    Variables,
}

/// The inventory has neither a group nor a host of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no host or group {name:?}; there are {}", there.join(", "))]
pub struct NoSuchHost {
    /// The name.
    pub name: String,
    /// Names of the groups and hosts that are there.
    pub there: Vec<String>,
}

impl Inventory {
    fn host(&mut self, name: &str) -> &mut Variables {
        if !self.hosts.contains_key(name) {
            self.order.push(name.to_owned());
        }
        self.hosts.entry(name.to_owned()).or_default()
    }

    fn group(&mut self, name: &str) -> &mut HostGroup {
        self.groups.entry(name.to_owned()).or_default()
    }

    /// Names of hosts and groups, for messages.
    pub fn all_names(&self) -> Vec<&str> {
        self.groups.keys().chain(&self.order).map(String::as_str).collect()
    }

    /// The hosts of a group, or the one of this name; `all` is every one. In the order of the file.
    pub fn select_hosts(&self, name: &str) -> Result<Vec<InventoryHost>, NoSuchHost> {
        let wanted: BTreeSet<&str> = if name == "all" {
            self.order.iter().map(String::as_str).collect()
        } else if self.groups.contains_key(name) {
            self.members(name)
        } else if let Some((host, _)) = self.hosts.get_key_value(name) {
            BTreeSet::from([host.as_str()])
        } else {
            let there = self.all_names().into_iter().map(str::to_owned).collect();
            return Err(NoSuchHost { name: name.to_owned(), there });
        };
        let groups = self.ranked();
        let of =
            |host: &String| InventoryHost { name: host.clone(), variables: self.variables(host, &groups) };
        Ok(self.order.iter().filter(|host| wanted.contains(host.as_str())).map(of).collect())
    }

    /// Hosts of a group and of all below it, however they refer to each other.
    fn members(&self, name: &str) -> BTreeSet<&str> {
        let (mut seen, mut next, mut hosts) = (BTreeSet::new(), vec![name], BTreeSet::new());
        while let Some(name) = next.pop() {
            let Some((name, group)) = self.groups.get_key_value(name) else { continue };
            if !seen.insert(name) {
                continue;
            }
            hosts.extend(group.hosts.iter().map(String::as_str));
            next.extend(group.children.iter().map(String::as_str));
        }
        hosts
    }

    /// Distance of every group from the top, at most [`GROUP_DEPTH`]: variables of what is nearer to the host win.
    fn depths(&self) -> BTreeMap<&str, usize> {
        let mut depths: BTreeMap<&str, usize> = self.groups.keys().map(|name| (name.as_str(), 0)).collect();
        for _ in 0..GROUP_DEPTH {
            let before = depths.clone();
            for (name, group) in &self.groups {
                for child in &group.children {
                    if let Some(depth) = depths.get_mut(child.as_str()) {
                        *depth = (before[name.as_str()] + 1).clamp(*depth, GROUP_DEPTH);
                    }
                }
            }
            if depths == before {
                break;
            }
        }
        depths
    }

    /// Every group with its members, those farthest from their hosts first.
    fn ranked(&self) -> Vec<(&str, BTreeSet<&str>)> {
        let depths = self.depths();
        let priority = |name: &str| {
            let own = self.groups[name].variables.get("ansible_group_priority");
            own.and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or(1)
        };
        let rank = |name: &str| if name == "all" { (0, 0) } else { (depths[name] + 1, priority(name)) };
        let mut groups: Vec<_> = self.groups.keys().map(|name| (rank(name), name.as_str())).collect();
        groups.sort_unstable();
        groups.into_iter().map(|(_, name)| (name, self.members(name))).collect()
    }

    fn variables(&self, host: &str, groups: &[(&str, BTreeSet<&str>)]) -> Variables {
        let mut all = Variables::new();
        for (name, _) in groups.iter().filter(|(name, members)| *name == "all" || members.contains(host)) {
            all.extend(self.groups[*name].variables.clone());
        }
        all.extend(self.hosts.get(host).cloned().unwrap_or_default());
        all
    }
}
