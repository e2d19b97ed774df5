//! Servers and clients: how many, where, how large.

use crate::plan::Source;
use crate::plan::cases::Reading;
use crate::plan::lower::draft::Draft;
use crate::plan::lower::options::Deployment;
use dyno_config::server::{IfNotPermitted, ServerKind};
use dyno_types::mongod::MongodVersion;
use dyno_types::{RefusalCode, Refused};
use serde_json::{Value, json};

/// mongod's port, and the first of several.
const PORT: u16 = 27_017;

const GIB: f64 = (1u64 << 30) as f64;

impl Draft<'_> {
    pub(super) fn servers(&mut self) -> Result<(), Refused> {
        let pairs = self.from.number("CLIENT_SERVER_PAIR").unwrap_or(1);
        if let Some(target) = &self.means.target {
            if pairs != 1 {
                return Err(Refused::new(
                    RefusalCode::Conflict,
                    "CLIENT_SERVER_PAIR",
                    format!(
                        "CLIENT_SERVER_PAIR={pairs}: --target is one server; --set CLIENT_SERVER_PAIR=1 goes with it"
                    ),
                ));
            }
            self.own("target", json!(target));
            self.note(
                "a server that exists is the target: variables of placement and of mongod are only recorded",
            );
            return Ok(());
        }
        let kind = self.means.server;
        self.own("server.kind", json!(kind.to_string()));
        if let Some(program) = &self.means.program {
            self.own("server.program", json!(program));
        }
        self.put("server.instances", json!(pairs), "CLIENT_SERVER_PAIR");
        if let Some(port) = self.means.port.or((kind == ServerKind::Mongod).then_some(PORT)) {
            self.own("server.port", json!(port));
        }
        if self.means.if_not_permitted == IfNotPermitted::Continue {
            self.own("server.if_not_permitted", json!("continue"));
        }
        match self.places() {
            true => self.placement()?,
            false => self.no_placement()?,
        }
        if !self.in_pods() {
            self.limits();
        }
        let paths: Vec<&str> = self.from.value("DB_HOSTPATH").split_whitespace().collect();
        if !paths.is_empty() {
            self.put("server.data.path", json!(paths), "DB_HOSTPATH");
        }
        match kind {
            ServerKind::Mongod => self.mongod(),
            _ => {
                self.note(format!("{kind} stands in for mongod: cache, journal and compressors are its own"))
            }
        }
        self.host();
        Ok(())
    }

    fn mongod(&mut self) {
        // Blank stays in the file: what is said of the cache is said of this variable.
        let cache = self.from.value("CACHE_SIZE_GB").parse::<f64>();
        let cache = cache.map_or(Value::Null, |size| json!((size * GIB).round() as u64));
        self.put("server.cache", cache, "CACHE_SIZE_GB");
        self.journal();
        for (key, variable) in [
            ("server.compressor", "COLLECTIONCONFIG_BLOCKCOMPRESSOR"),
            ("server.journal_compressor", "JOURNAL_COMPRESSOR"),
        ] {
            let value = self.from.value(variable).to_owned();
            if !value.is_empty() {
                self.put(key, json!(value), variable);
            }
        }
        if self.from.on("REPLICA_SET") {
            self.put("server.topology", json!("replica_set"), "REPLICA_SET");
            self.own("server.members", json!(1));
        }
    }

    /// The older reading's default switches the journal off, the newer one's leaves it to mongod; from 6.1 on there is no choice.
    fn journal(&mut self) {
        let Some(given) = self.from.given("JOURNAL_ENABLED").filter(|given| !given.value.is_empty()) else {
            return;
        };
        let default = given.source == Source::Default;
        let (on, old) = (self.from.on("JOURNAL_ENABLED"), self.from.reading == Reading::V23);
        let always =
            |version: &&str| MongodVersion::parse(version).is_some_and(MongodVersion::always_journals);
        match self.means.version.as_deref().filter(always) {
            Some(version) if default && !on => {
                self.note(format!(
                    "JOURNAL_ENABLED=false (default): {version} always keeps its journal, so it is on"
                ));
            }
            _ if default && !old => {
                self.note("JOURNAL_ENABLED=false (default): reading 25 leaves it to mongod, which keeps its journal");
            }
            _ => self.put("server.journal", json!(on), "JOURNAL_ENABLED"),
        }
    }

    fn placement(&mut self) -> Result<(), Refused> {
        let own = flags(self.from.value("CUSTOMER_NUMAOPT_SERVER"));
        if !own.is_empty() {
            self.put("server.placement.numactl", json!(own), "CUSTOMER_NUMAOPT_SERVER");
            return Ok(());
        }
        let option = self.from.number("NUMACTL_OPTION").unwrap_or(0);
        let most = if self.from.reading == Reading::V23 { 2 } else { 5 };
        if option > most {
            let reading = self.from.reading;
            let other = if most == 2 && option <= 5 { "; --reading 25 has 0 to 5" } else { "" };
            return Err(Refused::new(
                RefusalCode::BadValue,
                "NUMACTL_OPTION",
                format!("NUMACTL_OPTION={option}: reading {reading} has 0 to {most}{other}"),
            ));
        }
        self.put("server.placement.policy", json!(option), "NUMACTL_OPTION");
        match option {
            2 => {
                let node = self.from.number("SELECT_NUMA_NODE").unwrap_or(0);
                self.put("server.placement.node", json!(node), "SELECT_NUMA_NODE");
                let cores = self.from.value("CORES").to_owned();
                if !cores.is_empty() {
                    self.put("server.placement.cores", json!(cores), "CORES");
                }
            }
            3 | 4 => {
                let Some(each) = self.from.number("CORE_NUMS_EACH_INSTANCE") else {
                    return Err(Refused::new(
                        RefusalCode::Missing,
                        "CORE_NUMS_EACH_INSTANCE",
                        format!("CORE_NUMS_EACH_INSTANCE: NUMACTL_OPTION={option} needs it"),
                    ));
                };
                self.put("server.placement.cores_each", json!(each), "CORE_NUMS_EACH_INSTANCE");
            }
            _ => {}
        }
        Ok(())
    }

    fn limits(&mut self) {
        if !self.from.on("KUBERNETES_RESOURCE_LIMITS") {
            return;
        }
        if let Ok(cpus) = self.from.value("KUBERNETES_RESOURCE_LIMITS_CPU").parse::<f64>() {
            self.put("server.limits.cpus", json!(cpus), "KUBERNETES_RESOURCE_LIMITS_CPU");
        }
        let memory = self.from.value("KUBERNETES_RESOURCE_LIMITS_MEMORY").to_owned();
        if !memory.is_empty() {
            // Kubernetes writes Gi where dyno writes GiB.
            let size = if memory.ends_with('i') { format!("{memory}B") } else { memory };
            self.put("server.limits.memory", json!(size), "KUBERNETES_RESOURCE_LIMITS_MEMORY");
        }
    }

    pub(super) fn clients(&mut self) {
        // YCSB's definition of a latency.
        self.own("client.stamps", json!("client"));
        if !self.places() {
            return;
        }
        let own = flags(self.from.value("CUSTOMER_NUMAOPT_CLIENT"));
        let cores = self.from.value("YCSB_CORES").to_owned();
        let option = self.from.number("NUMACTL_OPTION").unwrap_or(0);
        // Evaluated when all values are known: in 23.3 --set came too late.
        let single = self.single_node();
        let placed = match () {
            () if !own.is_empty() => {
                self.put("client.placement.numactl", json!(own), "CUSTOMER_NUMAOPT_CLIENT");
                true
            }
            () if !cores.is_empty() && (single || (2..=4).contains(&option)) => {
                self.put("client.placement.cores", json!(cores), "YCSB_CORES");
                true
            }
            () => false,
        };
        if self.in_pods() {
            if placed {
                self.own("kubernetes.workers.privileged", json!(true));
            }
            return;
        }
        if self.means.if_not_permitted == IfNotPermitted::Continue {
            self.own("client.if_not_permitted", json!("continue"));
        }
    }

    /// Settings of the host: changed only where that is asked for.
    fn host(&mut self) {
        if !matches!(self.means.deployment, Deployment::Local) {
            self.note("huge pages, zone reclaim and NUMA balancing of the servers' hosts are left alone");
        } else if !self.means.tune_host {
            self.note("settings of the host (huge pages, zone reclaim, NUMA balancing) are left alone: see --tune-host");
        } else {
            let pages = if self.from.on("DB_HUGEPAGE_STATUS") { "always" } else { "never" };
            self.put("host.transparent_huge_pages", json!(pages), "DB_HUGEPAGE_STATUS");
            self.put("host.defrag", json!(pages), "DB_HUGEPAGE_STATUS");
            self.own("host.governor", json!("performance"));
            if self.from.on("KERNEL_SETTING_OPTIMIZED") {
                self.put("host.zone_reclaim_mode", json!(0), "KERNEL_SETTING_OPTIMIZED");
                self.put("host.numa_balancing", json!(true), "KERNEL_SETTING_OPTIMIZED");
            }
        }
        if self.from.on("NETWORK_RPS_TUNE_ENABLE") {
            match self.means.deployment {
                Deployment::Local => self.note("NETWORK_RPS_TUNE_ENABLE: a local run uses no network device"),
                Deployment::Kubernetes(_) if !self.places() => {
                    self.note("NETWORK_RPS_TUNE_ENABLE: pods without privileges change no settings of their node: --privileged");
                }
                // All cores, as the description says; the original's script takes those near one kind of device.
                _ => self.put("host.rps", json!({"*": "all"}), "NETWORK_RPS_TUNE_ENABLE"),
            }
        }
    }
}

/// Options of numactl; the original wants the program's name before them.
fn flags(text: &str) -> String {
    let text = text.trim();
    text.strip_prefix("numactl")
        .filter(|rest| rest.is_empty() || rest.starts_with(' '))
        .unwrap_or(text)
        .trim()
        .to_owned()
}
