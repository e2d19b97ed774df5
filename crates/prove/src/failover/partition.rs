//! Cutting off: a network namespace of dyno's own, in which every server has an address of its own and packets between some
//! of them are dropped. Servers that can say which address their connections come from have one of the loopback device;
//! the others have a namespace each, which dyno's own routes between.
//!
//! The kernel removes the namespaces, and the rules in them, with the last process in them: nothing is left on the host,
//! whose own network is never touched.

use dyno_hosts::servers::server::NetworkPlacement;
use dyno_localhost::machine::Machine;
use dyno_types::child;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Says to the inner process that it is inside: its number, and the namespace that it has come from.
const MARK: &str = "DYNO_PROVE_OUTSIDE";
/// The table of rules.
const TABLE: &str = "dyno";
/// Where packets are dropped: those of loopback addresses come in here, those of namespaces pass; chains are called after it.
const HOOKS: [&str; 2] = ["input", "forward"];

/// Why nothing can be cut off.
#[derive(Debug, thiserror::Error)]
pub enum PartitionError {
    /// A program is not installed.
    #[error("cutting off needs {program} ({package}), which is not installed")]
    Absent {
        /// The program.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// The system gives no namespace.
    #[error("cutting off needs a network namespace of its own, which is not permitted here: {0}")]
    NotPermitted(#[source] Box<PartitionError>),
    /// unshare has started this process and has changed nothing.
    #[error("cutting off needs a network namespace of its own: unshare made none")]
    NotMade,
    /// Rules would be those of the host's own network.
    #[error("rules are made in a network namespace of dyno's own alone")]
    Outside,
    /// A program has failed.
    #[error("{program}: {text} ({status})")]
    Failed {
        /// The program.
        program: String,
        /// The first line that it complained with.
        text: String,
        /// Outcome.
        status: ExitStatus,
    },
    /// A file cannot be read or written, or a program not started.
    #[error("{name}: {source}")]
    Io {
        /// The file, or the program.
        name: String,
        /// Error of the system.
        source: io::Error,
    },
}

impl PartitionError {
    fn io(name: &Path) -> impl FnOnce(io::Error) -> Self {
        let name = name.display().to_string();
        |source| PartitionError::Io { name, source }
    }
}

/// The network namespace of this process.
fn here() -> Result<String, PartitionError> {
    let link = Path::new("/proc/self/ns/net");
    let target = std::fs::read_link(link).map_err(PartitionError::io(link))?;
    Ok(target.display().to_string())
}

/// Returns whether a mark says that the process of a number has come from another namespace than `here`. A mark of
/// another process says nothing.
fn says_inside(mark: &str, pid: u32, here: &str) -> bool {
    mark.split_once(' ').is_some_and(|(of, outside)| of == pid.to_string() && outside != here)
}

/// Returns whether this process has been put into a namespace of its own by [`entrance`].
///
/// # Errors
/// The system does not say which namespace this process is in.
pub fn inside() -> Result<bool, PartitionError> {
    let here = here()?;
    Ok(std::env::var(MARK).is_ok_and(|mark| says_inside(&mark, std::process::id(), &here)))
}

/// The command that becomes `program` in a network namespace of its own; the caller must replace itself by it.
///
/// # Errors
/// A program is missing, or the system does not permit a namespace.
pub fn entrance(program: &Path) -> Result<Command, PartitionError> {
    let machine = Machine::default();
    let unshare = tool(&machine, "unshare", "util-linux")?;
    tool(&machine, "ip", "iproute2")?;
    let nft = tool(&machine, "nft", "nftables")?;
    // Namespaces of servers have a name in the mounts of dyno alone.
    let as_user = ["--user", "--map-root-user", "--net", "--mount"];
    let ways: &[&[&str]] = match rustix::process::geteuid().is_root() {
        true => &[&["--net", "--mount"], &as_user],
        false => &[&as_user],
    };
    // A process that has been through it and is where it was would go round for ever.
    let been = std::env::var(MARK).is_ok_and(|mark| mark.starts_with(&format!("{} ", std::process::id())));
    if been {
        return Err(PartitionError::NotMade);
    }
    let mut refused = PartitionError::NotMade;
    for way in ways {
        // Tried on what needs most: rules of a namespace that ends with the trial.
        let mut trial = child::clean_command(&unshare);
        trial.args(*way).arg("--").arg(&nft).args(["add", "table", "inet", TABLE]);
        match done(&mut trial) {
            Ok(()) => {
                let mut command = child::clean_command(&unshare);
                command.args(*way).arg("--").arg(program);
                command.env(MARK, format!("{} {}", std::process::id(), here()?));
                return Ok(command);
            }
            Err(why) => refused = why,
        }
    }
    Err(PartitionError::NotPermitted(Box::new(refused)))
}

fn tool(machine: &Machine, program: &'static str, package: &'static str) -> Result<PathBuf, PartitionError> {
    machine.find_program(program).ok_or(PartitionError::Absent { program, package })
}

/// Runs a program to its end; what it complains about is the error.
fn done(command: &mut Command) -> Result<(), PartitionError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let told = match command.stdin(Stdio::null()).output() {
        Ok(told) => told,
        Err(source) => return Err(PartitionError::Io { name: program, source }),
    };
    if told.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&told.stderr);
    let text = words.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no word of why");
    Err(PartitionError::Failed { program, text: text.to_owned(), status: told.status })
}

/// The rules of a namespace that this process is inside of.
#[derive(Debug)]
pub(super) struct Partition {
    nft: PathBuf,
    machine: Machine,
    /// Names of servers' namespaces.
    networks: Vec<PathBuf>,
}

impl Partition {
    /// Brings the loopback device up and makes a chain without rules.
    pub fn new(machine: &Machine) -> Result<Self, PartitionError> {
        if !inside()? {
            return Err(PartitionError::Outside);
        }
        done(child::clean_command(tool(machine, "ip", "iproute2")?).args(["link", "set", "lo", "up"]))?;
        let nft = tool(machine, "nft", "nftables")?;
        let partition = Partition { nft, machine: machine.clone(), networks: Vec::new() };
        partition.nft(&["add", "table", "inet", TABLE])?;
        for hook in HOOKS {
            let message = format!("{{ type filter hook {hook} priority 0; }}");
            partition.nft(&["add", "chain", "inet", TABLE, hook, &message])?;
        }
        Ok(partition)
    }

    /// Places of servers with a namespace each; the names of these lie in `work_dir`. All of them reach each other by way of this
    /// process' own namespace, and it reaches them.
    pub fn ways(&mut self, work_dir: &Path, count: u32) -> Result<Vec<NetworkPlacement>, PartitionError> {
        let forward = Path::new("/proc/sys/net/ipv4/ip_forward");
        std::fs::write(forward, "1").map_err(PartitionError::io(forward))?;
        (0..count).map(|number| self.way(work_dir, number)).collect()
    }

    fn way(&mut self, work_dir: &Path, number: u32) -> Result<NetworkPlacement, PartitionError> {
        let [ip, unshare, nsenter] =
            [("ip", "iproute2"), ("unshare", "util-linux"), ("nsenter", "util-linux")]
                .map(|(name, package)| tool(&self.machine, name, package));
        let (ip, unshare, nsenter) = (ip?, unshare?, nsenter?);
        let name = work_dir.join(format!("network-{number}"));
        std::fs::write(&name, "").map_err(PartitionError::io(&name))?;
        let net = format!("--net={}", name.display());
        // It is mounted before the command in it begins.
        self.networks.push(name.clone());
        done(child::clean_command(unshare).arg(&net).arg(&ip).args(["link", "set", "lo", "up"]))?;
        let (here, there) = (format!("way{number}"), format!("server{number}"));
        let [router, address] = ends(number);
        let (near, far) = (format!("{router}/30"), format!("{address}/30"));
        let (router, name) = (router.to_string(), name.display().to_string());
        for words in [
            &["link", "add", &here, "type", "veth", "peer", "name", &there][..],
            &["link", "set", &there, "netns", &name],
            &["addr", "add", &near, "dev", &here],
            &["link", "set", &here, "up"],
        ] {
            done(child::clean_command(&ip).args(words))?;
        }
        let within = [nsenter.display().to_string(), net, "--".to_owned()];
        for words in [
            &["addr", "add", &far, "dev", &there][..],
            &["link", "set", &there, "up"],
            &["route", "add", "default", "via", &router],
        ] {
            done(child::clean_command(&within[0]).args(&within[1..]).arg(&ip).args(words))?;
        }
        Ok(NetworkPlacement { address: address.into(), prefix: within.into() })
    }

    fn nft(&self, words: &[&str]) -> Result<(), PartitionError> {
        done(child::clean_command(&self.nft).args(words))
    }

    /// Drops every packet between `one` and `others`, both ways, from one moment on.
    pub fn cut(&self, one: IpAddr, others: &[IpAddr]) -> Result<(), PartitionError> {
        self.nft(&[&rules(one, others)])
    }

    /// Lets everything through again.
    pub fn heal(&self) -> Result<(), PartitionError> {
        HOOKS.iter().try_for_each(|hook| self.nft(&["flush", "chain", "inet", TABLE, hook]))
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        // A name that stays mounted stays a file; the namespaces end with their last process in any case.
        for name in &self.networks {
            let unmounted = tool(&self.machine, "umount", "util-linux");
            let _ = unmounted.and_then(|umount| done(child::clean_command(umount).arg("--lazy").arg(name)));
        }
    }
}

/// The addresses of the two ends of a server's way: of the network that documents use, four for each.
fn ends(number: u32) -> [Ipv4Addr; 2] {
    let first = u32::from(Ipv4Addr::new(192, 0, 2, 0)) + 4 * number;
    [first + 1, first + 2].map(Ipv4Addr::from)
}

/// Both directions in one transaction of nft, of packets that come here and of those that pass.
fn rules(one: IpAddr, others: &[IpAddr]) -> String {
    let others: Vec<String> = others.iter().map(ToString::to_string).collect();
    let others = format!("{{ {} }}", others.join(", "));
    let both = HOOKS.map(|hook| {
        format!(
            "add rule inet {TABLE} {hook} ip saddr {one} ip daddr {others} drop; \
             add rule inet {TABLE} {hook} ip saddr {others} ip daddr {one} drop"
        )
    });
    both.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_for_the_process_that_it_names_and_in_another_namespace() {
        assert!(says_inside("7 net:[1]", 7, "net:[2]"));
        assert!(!says_inside("7 net:[1]", 8, "net:[2]"));
        assert!(!says_inside("7 net:[1]", 7, "net:[1]"));
        assert!(!says_inside("1", 1, "net:[1]"));
    }

    #[test]
    fn rules_stay_out_of_the_hosts_network() {
        assert!(!inside().unwrap());
        let outside = Partition::new(&Machine::default());
        assert!(matches!(outside, Err(PartitionError::Outside)), "{outside:?}");
    }

    #[test]
    fn packets_are_dropped_both_ways() {
        let ip = |last: u8| IpAddr::from([127, 0, 0, last]);
        let message = rules(ip(11), &[ip(12), ip(21)]);
        assert!(message.contains("ip saddr 127.0.0.11 ip daddr { 127.0.0.12, 127.0.0.21 } drop"));
        assert!(message.contains("ip saddr { 127.0.0.12, 127.0.0.21 } ip daddr 127.0.0.11 drop"));
        assert_eq!(message.matches("dyno forward ").count(), 2);
    }

    #[test]
    fn every_server_has_a_network_of_four_addresses() {
        assert_eq!(ends(0).map(|end| end.to_string()), ["192.0.2.1", "192.0.2.2"]);
        assert_eq!(ends(6).map(|end| end.to_string()), ["192.0.2.25", "192.0.2.26"]);
    }
}
