//! Reads an inventory in whichever form it has.

use crate::inventory::{Inventory, InventoryError, InventoryLineError, VAULT, ini, yaml};

impl Inventory {
    /// Reads the text of an inventory; `path` is for messages, and its ending tells the form: `.yml` and `.yaml` are YAML, what
    /// begins with `---` or `all:` too.
    pub fn parse(text: &str, path: &str) -> Result<Self, InventoryError> {
        if text.starts_with(VAULT) {
            return Err(InventoryError::Line {
                path: path.to_owned(),
                line: 1,
                problem: InventoryLineError::Vaulted,
            });
        }
        let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
        let yaml = path.ends_with(".yml")
            || path.ends_with(".yaml")
            || first.is_some_and(|line| line.starts_with("---") || line == "all:");
        let inventory = if yaml { yaml::parse(text, path)? } else { ini::parse(text, path)? };
        for (name, group) in &inventory.groups {
            if let Some(child) = group.children.iter().find(|child| !inventory.groups.contains_key(*child)) {
                let [path, group, child] = [path, name, child].map(str::to_owned);
                return Err(InventoryError::NoChild { path, group, child });
            }
        }
        Ok(inventory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const INI: &str = "\
# the lab
bastion ansible_host=10.0.0.1

[mongod]
db[01:03].lab ansible_user=admin
[clients]
load-[a:b]:2222
other  ansible_ssh_common_args='-o ProxyJump=bastion -4' ; a comment

[lab:children]
mongod
clients

[lab:vars]
ansible_user=root
ansible_ssh_private_key_file=~/.ssh/lab
[mongod:vars]
disks=[\"vdb\", \"vdc\"]
";

    #[test]
    fn groups_that_contain_each_other_and_many_hosts_take_no_time() {
        let names: Vec<String> = (0..40).map(|n| format!("g{n}")).collect();
        let sections = names.iter().map(|name| format!("[{name}:children]\n{}\n", names.join("\n")));
        let text = format!("[g0]\nh[1:5000]\n{}", sections.collect::<String>());
        let inventory = Inventory::parse(&text, "hosts.ini").unwrap();
        assert_eq!(inventory.select_hosts("g39").unwrap().len(), 5_000);
        let many = Inventory::parse("[a]\nx[0:999].y[0:999]\n", "hosts.ini").unwrap_err().to_string();
        assert!(many.contains("hosts.ini:2") && many.contains("10000"), "{many}");
    }

    #[test]
    fn ini_with_ranges_children_and_variables() {
        let lab = Inventory::parse(INI, "hosts").unwrap();
        let names = |what: &str| -> Vec<String> {
            lab.select_hosts(what).unwrap().into_iter().map(|host| host.name).collect()
        };
        assert_eq!(names("mongod"), ["db01.lab", "db02.lab", "db03.lab"]);
        assert_eq!(names("clients"), ["load-a", "load-b", "other"]);
        assert_eq!(names("lab").len(), 6);
        assert_eq!(names("all").len(), 7);
        assert_eq!(names("db02.lab"), ["db02.lab"]);
        let db = &lab.select_hosts("mongod").unwrap()[0];
        assert_eq!((db.get("ansible_user"), db.get("disks")), (Some("admin"), Some("[\"vdb\", \"vdc\"]")));
        let load = &lab.select_hosts("clients").unwrap()[0];
        assert_eq!((load.get("ansible_user"), load.get("ansible_port")), (Some("root"), Some("2222")));
        assert_eq!(lab.select_hosts("bastion").unwrap()[0].ssh_destination(), "10.0.0.1");
        assert_eq!(
            lab.select_hosts("other").unwrap()[0].get("ansible_ssh_common_args"),
            Some("-o ProxyJump=bastion -4")
        );
        let unknown = lab.select_hosts("absent").unwrap_err().to_string();
        assert!(unknown.contains("no host or group \"absent\"") && unknown.contains("mongod"), "{unknown}");
    }

    #[test]
    fn yaml_says_the_same() {
        let text = "all:\n  hosts: {bastion: {ansible_host: 10.0.0.1}}\n  vars: {ansible_port: 22}\n  children:\n    lab:\n\
                    \x20     vars: {ansible_user: root}\n      children:\n        mongod:\n          hosts:\n            db1:\n\
                    \x20           db2: {ansible_user: admin}\n";
        let lab = Inventory::parse(text, "hosts.yml").unwrap();
        let hosts = lab.select_hosts("lab").unwrap();
        let users: Vec<_> = hosts.iter().map(|host| (host.name.as_str(), host.get("ansible_user"))).collect();
        assert_eq!(users, [("db1", Some("root")), ("db2", Some("admin"))]);
        assert_eq!(lab.select_hosts("bastion").unwrap()[0].get("ansible_port"), Some("22"));
    }

    /// What ansible-inventory says of the same files: `tests/data/ansible`.
    #[test]
    fn inventories_are_read_as_ansible_reads_them() {
        for name in ["hosts.ini", "hosts.yml"] {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/ansible");
            let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
            let told: serde_json::Value = serde_json::from_str(&read(&format!("{name}.json"))).unwrap();
            let inventory = Inventory::parse(&read(name), name).unwrap();
            let ours = |group: &str| -> BTreeSet<String> {
                inventory.select_hosts(group).unwrap().into_iter().map(|host| host.name).collect()
            };
            let groups = told.as_object().unwrap().iter().filter(|(_, group)| group.get("hosts").is_some());
            for (group, members) in groups.filter(|(group, _)| *group != "ungrouped") {
                let members = members["hosts"].as_array().unwrap().iter();
                let theirs: BTreeSet<String> =
                    members.map(|host| host.as_str().unwrap().to_owned()).collect();
                assert!(theirs.is_subset(&ours(group)), "{name}: {group}: {theirs:?} and {:?}", ours(group));
            }
            let variables = told["_meta"]["hostvars"].as_object().unwrap();
            assert!(variables.keys().all(|host| ours("all").contains(host)), "{name}: {:?}", ours("all"));
            for (host, theirs) in variables {
                let own = inventory.select_hosts(host).unwrap().remove(0);
                for (key, value) in theirs.as_object().unwrap().iter().filter(|(_, value)| !value.is_array())
                {
                    let text = match value {
                        serde_json::Value::String(text) => text.clone(),
                        serde_json::Value::Null => "nothing".to_owned(),
                        other => other.to_string(),
                    };
                    assert_eq!(own.get(key), Some(text.as_str()), "{name}: {host}: {key}");
                }
            }
        }
    }

    #[test]
    fn what_is_encrypted_is_refused() {
        let file = Inventory::parse("$ANSIBLE_VAULT;1.1;AES256\n3662\n", "h").unwrap_err().to_string();
        assert!(file.starts_with("h:1: it is encrypted (ansible-vault)"), "{file}");
        let text =
            "all:\n  hosts:\n    a:\n      p: !vault |\n        $ANSIBLE_VAULT;1.1;AES256\n        3662\n";
        let value = Inventory::parse(text, "h.yml").unwrap_err().to_string();
        assert!(value.contains("it is encrypted (ansible-vault)"), "{value}");
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, path, expected) in [
            ("[a\nx\n", "hosts", "hosts:1: expected a section such as [name]"),
            ("[a:vars]\nx\n", "hosts", "hosts:2: expected NAME=VALUE"),
            ("[a]\nx user\n", "hosts", "hosts:2: expected NAME=VALUE"),
            ("[a:sons]\n", "hosts", "hosts:1: expected [name], [name:children] or [name:vars]"),
            ("[a:children]\nb\n", "hosts", "hosts: group a has a child b that is no group"),
            ("h[3:1]\n", "hosts", "hosts:1: range [3:1]"),
            ("h a='b\n", "hosts", "hosts:1: a ' that is not closed"),
            (
                "all:\n  host: {}\n",
                "h.yml",
                "h.yml:2: group all: unknown key host: expected hosts, vars, children",
            ),
            ("all: 3\n", "h.yml", "h.yml:1: group all: expected a mapping"),
        ] {
            let wrong = Inventory::parse(text, path).unwrap_err().to_string();
            assert!(wrong.starts_with(expected), "{wrong}");
        }
        // Groups that are children of each other end.
        let round = Inventory::parse("[a:children]\nb\n[b:children]\na\n[a]\nx\n", "hosts").unwrap();
        assert_eq!(round.select_hosts("b").unwrap()[0].name, "x");
    }
}
