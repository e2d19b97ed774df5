//! Reads an inventory in whichever form it has.

use crate::inventory::{Inventory, InventoryError, ini, yaml};

impl Inventory {
    /// Reads the text of an inventory; `path` is for messages, and its ending tells the form: `.yml` and `.yaml` are YAML, what
    /// begins with `---` or `all:` too.
    pub fn parse(text: &str, path: &str) -> Result<Self, InventoryError> {
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
        assert_eq!(inventory.select("g39").unwrap().len(), 5_000);
        let many = Inventory::parse("[a]\nx[0:999].y[0:999]\n", "hosts.ini").unwrap_err().to_string();
        assert!(many.contains("hosts.ini:2") && many.contains("10000"), "{many}");
    }

    #[test]
    fn ini_with_ranges_children_and_variables() {
        let lab = Inventory::parse(INI, "hosts").unwrap();
        let names = |what: &str| -> Vec<String> {
            lab.select(what).unwrap().into_iter().map(|host| host.name).collect()
        };
        assert_eq!(names("mongod"), ["db01.lab", "db02.lab", "db03.lab"]);
        assert_eq!(names("clients"), ["load-a", "load-b", "other"]);
        assert_eq!(names("lab").len(), 6);
        assert_eq!(names("all").len(), 7);
        assert_eq!(names("db02.lab"), ["db02.lab"]);
        let db = &lab.select("mongod").unwrap()[0];
        assert_eq!((db.get("ansible_user"), db.get("disks")), (Some("admin"), Some("[\"vdb\", \"vdc\"]")));
        let load = &lab.select("clients").unwrap()[0];
        assert_eq!((load.get("ansible_user"), load.get("ansible_port")), (Some("root"), Some("2222")));
        assert_eq!(lab.select("bastion").unwrap()[0].destination(), "10.0.0.1");
        assert_eq!(
            lab.select("other").unwrap()[0].get("ansible_ssh_common_args"),
            Some("-o ProxyJump=bastion -4")
        );
        let unknown = lab.select("nobody").unwrap_err().to_string();
        assert!(unknown.contains("no host or group \"nobody\"") && unknown.contains("mongod"), "{unknown}");
    }

    #[test]
    fn yaml_says_the_same() {
        let text = "all:\n  hosts: {bastion: {ansible_host: 10.0.0.1}}\n  vars: {ansible_port: 22}\n  children:\n    lab:\n\
                    \x20     vars: {ansible_user: root}\n      children:\n        mongod:\n          hosts:\n            db1:\n\
                    \x20           db2: {ansible_user: admin}\n";
        let lab = Inventory::parse(text, "hosts.yml").unwrap();
        let hosts = lab.select("lab").unwrap();
        let users: Vec<_> = hosts.iter().map(|host| (host.name.as_str(), host.get("ansible_user"))).collect();
        assert_eq!(users, [("db1", Some("root")), ("db2", Some("admin"))]);
        assert_eq!(lab.select("bastion").unwrap()[0].get("ansible_port"), Some("22"));
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
        assert_eq!(round.select("b").unwrap()[0].name, "x");
    }
}
