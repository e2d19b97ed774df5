//! A deployment as a load thread knows it: its topology, the endpoints of its servers, and which of them serves what.

use super::description::{ServerDescription, ServerType};
use super::options::MongoOptions;
use super::selection::{ReadPreference, nearest_servers, suitable_servers};
use super::topology::{ApplicationError, Handshake, Topology, TopologyType};
use dyno_db::names::Names;
use dyno_types::Endpoint;
use dyno_types::driver::NOWHERE;

/// Longest time that a replaced primary may leave its check unanswered, nanoseconds: it is frozen or cut off.
const REPLACED_NS: u64 = 500_000_000;

/// The nodes of a deployment, and which does what.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// Endpoints of all servers, by number.
    pub endpoints: Vec<Endpoint>,
    topology: Topology,
    /// The member that takes writes, or did when last heard of.
    primary: Option<u16>,
    /// Servers that reads go to: members that suit the read preference, or routers.
    readable: Vec<u16>,
    /// Addresses of names that were heard during the run.
    names: Names,
}

impl Deployment {
    fn new(kind: TopologyType, set: Option<&str>, endpoints: Vec<Endpoint>) -> Self {
        let addresses: Vec<String> = endpoints.iter().map(Endpoint::to_string).collect();
        let topology = Topology::new(kind, set.map(str::to_owned), &addresses);
        Deployment { endpoints, topology, primary: None, readable: Vec::new(), names: Names::default() }
    }

    /// One server, whatever it is.
    pub fn single_server(endpoint: Endpoint) -> Self {
        Self::new(TopologyType::Single, None, vec![endpoint])
    }

    /// A load balancer.
    pub fn load_balanced(endpoint: Endpoint) -> Self {
        Self::new(TopologyType::LoadBalanced, None, vec![endpoint])
    }

    /// Routers, all of which have answered.
    pub fn from_routers(endpoints: Vec<Endpoint>) -> Self {
        let mut routers = Self::new(TopologyType::Sharded, None, endpoints);
        for node in 0..routers.endpoints.len() as u16 {
            routers.topology.assume(node, ServerType::Mongos);
        }
        routers.readable = (0..routers.endpoints.len() as u16).collect();
        routers
    }

    /// Leaves a router out until it answers.
    pub fn leave_out(&mut self, router: u16) {
        self.topology.assume(router, ServerType::Unknown);
        self.readable.retain(|at| *at != router);
    }

    /// A replica set of this name, with the number of its primary; what its members are is to be learnt.
    pub fn replica_set(set: &str, endpoints: Vec<Endpoint>, primary: u16) -> Self {
        let set = Self::new(TopologyType::ReplicaSetNoPrimary, Some(set), endpoints);
        Deployment { primary: Some(primary), ..set }
    }

    /// The servers and what is known of them.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns whether it is a replica set.
    pub(super) fn is_set(&self) -> bool {
        matches!(
            self.topology.topology_type(),
            TopologyType::ReplicaSetNoPrimary | TopologyType::ReplicaSetWithPrimary
        )
    }

    /// Returns whether servers are checked: those of replica sets, and routers.
    pub(super) fn is_monitored(&self) -> bool {
        self.is_set() || self.topology.topology_type() == TopologyType::Sharded
    }

    /// Returns whether a server is checked: it belongs to the deployment, and its name leads somewhere.
    pub(super) fn is_checked(&self, node: u16) -> bool {
        let at = usize::from(node);
        let is_known = self.endpoints.get(at).is_some_and(|endpoint| !endpoint.is_unresolved());
        is_known && self.topology.all_servers().get(at).is_some_and(|server| !server.removed)
    }

    /// Returns whether the one server that is spoken to is a member of a replica set.
    pub(super) fn is_single_member(&self) -> bool {
        let is_member = self.description(0).is_some_and(|server| server.kind.is_member());
        is_member && self.topology.topology_type() == TopologyType::Single
    }

    /// Greatest wire version that a server has told, and whether it was a router then.
    pub(super) fn spoke(&self, node: u16) -> (i64, bool) {
        self.topology.all_servers().get(usize::from(node)).map_or((0, false), |server| server.spoke)
    }

    /// Endpoints of the servers that may have figures to tell: all but arbiters, which know no users, and those whose names lead
    /// nowhere.
    pub fn watched_endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        let kinds = self.topology.all_servers().iter().map(|server| server.description.kind);
        let all = self.endpoints.iter().zip(kinds);
        all.filter(|(_, kind)| *kind != ServerType::RsArbiter)
            .map(|(endpoint, _)| endpoint)
            .filter(|endpoint| !endpoint.is_unresolved())
    }

    /// The server for commands that any server that takes writes may have: the primary, or the first router that answers.
    pub fn first_writable(&self) -> u16 {
        self.primary.or(self.readable.first().copied()).unwrap_or(0)
    }

    /// What the one server that is spoken to is, where it is a member of a replica set that takes no writes.
    pub fn member_without_writes(&self) -> Option<&'static str> {
        if self.topology.topology_type() != TopologyType::Single {
            return None;
        }
        match self.topology.all_servers().first()?.description.kind {
            ServerType::RsSecondary => Some("a secondary"),
            ServerType::RsArbiter => Some("an arbiter"),
            ServerType::RsOther => Some("a member that is hidden or recovers"),
            _ => None,
        }
    }

    /// Servers that have answered: those to connect to before a run.
    pub(super) fn known(&self) -> Vec<u16> {
        let all = self.topology.all_servers().iter().enumerate();
        let known = all.filter(|(_, server)| {
            !server.removed && (!self.is_monitored() || !server.description.kind.is_unknown())
        });
        known.map(|(node, _)| node as u16).collect()
    }

    /// Returns whether the member that takes writes is not known.
    pub fn lacks_primary(&self) -> bool {
        self.is_set() && self.topology.primary_number().is_none()
    }

    /// Returns whether a server is to be checked before its next heartbeat.
    pub(super) fn is_checked_soon(&self, node: u16) -> bool {
        let server = &self.topology.all_servers()[usize::from(node)];
        server.check_soon || server.description.kind.is_unknown() || self.lacks_primary()
    }

    /// Returns how long a server's check may stay unanswered, nanoseconds.
    pub(super) fn check_timeout_ns(&self, node: u16, options: &MongoOptions) -> u64 {
        let longest = match options.connect_timeout_ms {
            0 => u64::MAX,
            ms => ms.saturating_mul(1_000_000),
        };
        match self.topology.all_servers().get(usize::from(node)) {
            Some(server) if server.replaced => longest.min(REPLACED_NS),
            _ => longest,
        }
    }

    /// Number that tells connections from those of the time before a server was given up.
    pub(super) fn generation(&self, node: u16) -> u32 {
        self.topology.all_servers().get(usize::from(node)).map_or(0, |server| server.generation)
    }

    /// What is known of a server.
    pub(super) fn description(&self, node: u16) -> Option<&ServerDescription> {
        self.topology.all_servers().get(usize::from(node)).map(|server| &server.description)
    }

    /// Counts a round trip to a server, microseconds.
    pub fn note_round_trip(&mut self, node: u16, rtt_us: u64, options: &MongoOptions) {
        self.topology.note_round_trip(node, rtt_us);
        self.refresh(options);
    }

    /// Takes what a server says of itself and the others. `asked_ms`: when it was asked, where that is known.
    pub fn learn_hello(&mut self, node: u16, hello: &[u8], asked_ms: Option<i64>, options: &MongoOptions) {
        self.topology.update_from_hello(node, hello, asked_ms);
        self.refresh(options);
    }

    /// A server left its check unanswered, or could not be connected to for it.
    pub(super) fn check_failed(&mut self, node: u16, error: &str, options: &MongoOptions) {
        self.topology.check_failed(node, error);
        self.refresh(options);
    }

    /// An operation has failed, or a connection of this generation was lost.
    pub(super) fn failed(
        &mut self,
        node: u16,
        generation: u32,
        error: ApplicationError<'_>,
        options: &MongoOptions,
    ) {
        if self.is_monitored() && self.topology.note_failure(node, generation, error) {
            self.refresh(options);
        }
    }

    /// A server has not answered an operation in time.
    pub(super) fn timed_out(&mut self, node: u16, options: &MongoOptions) {
        let generation = self.generation(node);
        self.failed(node, generation, ApplicationError::Timeout(Handshake::Complete), options);
    }

    /// Follows the topology.
    fn refresh(&mut self, options: &MongoOptions) {
        for (at, server) in self.topology.all_servers().iter().enumerate() {
            match self.endpoints.get_mut(at) {
                Some(endpoint) if !endpoint.is_unresolved() => {}
                Some(endpoint) => *endpoint = self.names.resolve_endpoint(&server.address),
                None => self.endpoints.push(self.names.resolve_endpoint(&server.address)),
            }
        }
        debug_assert_eq!(
            self.endpoints.len(),
            self.topology.all_servers().len(),
            "a server's number is its endpoint's"
        );
        if !self.is_monitored() {
            return;
        }
        self.primary = self.topology.primary_number().or(self.primary);
        let mode = options.read_preference;
        let found = suitable_servers(&self.topology, false, mode, &options.selection, &[]);
        let found = nearest_servers(&self.topology, found, &options.selection);
        if !found.is_empty() {
            self.readable = found;
            return;
        }
        // One lost connection among many does not make a server silent: those in doubt are tried where there is no other.
        let servers = self.topology.all_servers();
        self.readable.retain(|at| {
            let server = &servers[usize::from(*at)];
            !server.removed && !server.silent && server.description.kind.is_unknown()
        });
        if self.readable.is_empty() && self.topology.topology_type() == TopologyType::Sharded {
            // Every failure counts.
            self.readable =
                (0..servers.len() as u16).filter(|at| !servers[usize::from(*at)].removed).collect();
        }
    }

    /// The server for an operation, [`NOWHERE`] if there is none. Operations take turns by `turn`.
    pub(super) fn select(&self, turn: u16, writes: bool, mode: ReadPreference) -> u16 {
        if self.is_set() && (writes || mode == ReadPreference::Primary) {
            // A primary in doubt is asked until its check has failed or another one is known: every failure counts.
            let answers =
                |at: &u16| self.is_checked(*at) && !self.topology.all_servers()[usize::from(*at)].silent;
            return self.primary.filter(answers).unwrap_or(NOWHERE);
        }
        match self.readable.as_slice() {
            [] if self.is_monitored() => NOWHERE,
            [] => 0,
            servers => servers[usize::from(turn) % servers.len()],
        }
    }

    /// The same for another try, of servers that are known to suit; those that have failed before come last.
    pub(super) fn select_again(
        &self,
        turn: u16,
        writes: bool,
        options: &MongoOptions,
        failed: &[u16],
    ) -> Option<u16> {
        if !self.is_monitored() {
            return Some(0);
        }
        let mode = options.read_preference;
        let found = suitable_servers(&self.topology, writes, mode, &options.selection, failed);
        let found = nearest_servers(&self.topology, found, &options.selection);
        found.get(usize::from(turn) % found.len().max(1)).copied()
    }
}
