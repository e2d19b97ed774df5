//! Servers and clients: how many, where, how large.

use super::super::{Reading, Source};
use super::Draft;
use crate::server::{IfNotPermitted, ServerKind};
use serde_json::json;

/// mongod's port, and the first of several.
const PORT: u16 = 27_017;

const GIB: f64 = (1u64 << 30) as f64;

impl Draft<'_> {
    pub(super) fn servers(&mut self) -> Result<(), String> {
        let pairs = self.from.number("CLIENT_SERVER_PAIR").unwrap_or(1);
        if let Some(target) = &self.means.target {
            if pairs != 1 {
                return Err(format!(
                    "CLIENT_SERVER_PAIR={pairs}: --target is one server; --set CLIENT_SERVER_PAIR=1 goes with it"
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
        if self.in_pods() {
            self.no_placement()?;
        } else {
            self.placement()?;
            self.limits();
        }
        let paths: Vec<&str> = self.from.value("DB_HOSTPATH").split_whitespace().collect();
        if !paths.is_empty() {
            self.put("server.data.path", json!(paths), "DB_HOSTPATH");
        }
        match kind {
            ServerKind::Mongod => self.mongod(pairs),
            _ => {
                self.note(format!("{kind} stands in for mongod: cache, journal and compressors are its own"));
                Ok(())
            }
        }?;
        self.host()
    }

    fn mongod(&mut self, pairs: u64) -> Result<(), String> {
        match self.from.value("CACHE_SIZE_GB").parse::<f64>() {
            Ok(size) => self.put("server.cache", json!((size * GIB).round() as u64), "CACHE_SIZE_GB"),
            Err(_) if pairs > 1 => self.note(format!(
                "CACHE_SIZE_GB is blank: each of {pairs} servers takes half of the memory for its cache"
            )),
            Err(_) => {}
        }
        // Blank and the newer reading's default leave it to mongod, where it is mandatory from 6.1.
        let given = self.from.given("JOURNAL_ENABLED");
        let said = given.is_some_and(|g| g.source != Source::Default && !g.value.is_empty());
        if said || self.from.reading == Reading::V23 {
            self.put("server.journal", json!(self.from.on("JOURNAL_ENABLED")), "JOURNAL_ENABLED");
        }
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
        Ok(())
    }

    fn placement(&mut self) -> Result<(), String> {
        let own = flags(self.from.value("CUSTOMER_NUMAOPT_SERVER"));
        if !own.is_empty() {
            self.put("server.placement.numactl", json!(own), "CUSTOMER_NUMAOPT_SERVER");
            return Ok(());
        }
        let option = self.from.number("NUMACTL_OPTION").unwrap_or(0);
        let most = if self.from.reading == Reading::V23 { 2 } else { 5 };
        if option > most {
            let reading = self.from.reading;
            return Err(format!("NUMACTL_OPTION={option}: reading {reading} has 0 to {most}"));
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
                    return Err(format!("CORE_NUMS_EACH_INSTANCE: NUMACTL_OPTION={option} needs it"));
                };
                self.put("server.placement.cores_each", json!(each), "CORE_NUMS_EACH_INSTANCE");
            }
            _ => {}
        }
        if option != 2 && !self.from.value("CORES").is_empty() {
            self.note("CORES: has no effect unless NUMACTL_OPTION=2");
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
            // Kubernetes writes Gi where everybody else writes GiB.
            let size = if memory.ends_with('i') { format!("{memory}B") } else { memory };
            self.put("server.limits.memory", json!(size), "KUBERNETES_RESOURCE_LIMITS_MEMORY");
        }
    }

    pub(super) fn clients(&mut self) -> Result<(), String> {
        if self.in_pods() {
            return Ok(());
        }
        let own = flags(self.from.value("CUSTOMER_NUMAOPT_CLIENT"));
        let cores = self.from.value("YCSB_CORES").to_owned();
        let option = self.from.number("NUMACTL_OPTION").unwrap_or(0);
        // Evaluated when all values are known: in 23.3 --set came too late.
        let single = self.single_node();
        match () {
            () if !own.is_empty() => {
                self.put("client.placement.numactl", json!(own), "CUSTOMER_NUMAOPT_CLIENT");
            }
            () if !cores.is_empty() && (single || (2..=4).contains(&option)) => {
                self.put("client.placement.cores", json!(cores), "YCSB_CORES");
            }
            () if !cores.is_empty() => {
                self.note("YCSB_CORES: has no effect unless NUMACTL_OPTION=2 or RUN_SINGLE_NODE=true");
            }
            () => {}
        }
        if self.means.if_not_permitted == IfNotPermitted::Continue {
            self.own("client.if_not_permitted", json!("continue"));
        }
        Ok(())
    }

    /// Settings of the host: changed only where that is asked for.
    fn host(&mut self) -> Result<(), String> {
        if !matches!(self.means.rig, super::Rig::Local) {
            self.note(
                "settings of the servers' hosts (huge pages, zone reclaim, NUMA balancing) are left alone",
            );
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
            self.note("NETWORK_RPS_TUNE_ENABLE: a local run uses no network device; for others set host.rps");
        }
        Ok(())
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
