//! The servers of a deployment and what is known of them (MongoDB's "Server Discovery and Monitoring" specification).
//!
//! Pure: replies to hello and errors in, descriptions out. A server keeps its number for as long as the topology lives; one
//! that is removed is never asked again unless it is added anew.

use super::description::{ServerDescription, ServerType, TopologyVersion};
use super::errors::{StateChange, error_labels, is_ok};
use dyno_types::bson;
use dyno_types::limits::NODES;

/// Least and greatest wire version that this client speaks: MongoDB 3.6 to 8.x.
pub const WIRE_VERSIONS: (i64, i64) = (6, 29);

/// Wire version from which a primary's election decides before its configuration (MongoDB 6.0).
const ELECTION_FIRST: i64 = 17;

/// Type of a deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopologyType {
    /// No server has answered yet.
    #[default]
    Unknown,
    /// One server, whatever it is.
    Single,
    /// Routers of a sharded cluster.
    Sharded,
    /// A replica set whose primary is not known.
    ReplicaSetNoPrimary,
    /// A replica set with a primary.
    ReplicaSetWithPrimary,
    /// Behind a load balancer.
    LoadBalanced,
}

/// A server of the topology.
#[derive(Clone, Debug, Default)]
pub struct TopologyServer {
    /// `host:port` as members name it, in lower case.
    pub address: String,
    /// Its last reply to hello.
    pub description: ServerDescription,
    /// Number of times that its connections were given up. Errors of earlier connections tell nothing new.
    pub generation: u32,
    /// It does not belong to the deployment any more.
    pub removed: bool,
    /// It must be asked soon, whatever it is taken for.
    pub check_soon: bool,
    /// It was the primary until another one was elected; it has not answered since.
    pub replaced: bool,
    /// Its last check failed.
    pub silent: bool,
    /// Greatest wire version that it has told, and whether it was a router then; kept while it is unknown.
    pub spoke: (i64, bool),
}

/// Step of a connection at which an error came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// The connection was refused, or ended before its hello was answered.
    Hello,
    /// During the login.
    Login,
    /// After both.
    Complete,
}

/// An error of an operation or of its connection.
#[derive(Clone, Copy, Debug)]
pub enum ApplicationError<'a> {
    /// The connection was lost at this step.
    Network(Handshake),
    /// There was no reply in time at this step.
    Timeout(Handshake),
    /// The server's reply after the handshake, which need not be an error.
    Reply(&'a [u8]),
    /// The server refused the handshake by this reply.
    HandshakeReply(&'a [u8]),
}

/// The deployment.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    kind: TopologyType,
    set_name: Option<String>,
    servers: Vec<TopologyServer>,
    seeds: usize,
    max_set_version: Option<i64>,
    max_election_id: Option<[u8; 12]>,
}

impl Topology {
    /// A topology of unknown servers. `set_name`: the set that they must belong to.
    pub fn new(kind: TopologyType, set_name: Option<String>, addresses: &[String]) -> Self {
        let first = match kind {
            TopologyType::LoadBalanced => ServerType::LoadBalancer,
            _ => ServerType::Unknown,
        };
        let server = |address: &String| TopologyServer {
            address: address.to_ascii_lowercase(),
            description: ServerDescription { kind: first, ..ServerDescription::default() },
            ..TopologyServer::default()
        };
        let servers: Vec<TopologyServer> = addresses.iter().map(server).collect();
        let seeds = servers.len();
        Topology { kind, set_name, servers, seeds, max_set_version: None, max_election_id: None }
    }

    /// A topology of servers that are known already.
    pub fn of_servers(kind: TopologyType, servers: Vec<TopologyServer>) -> Self {
        Topology { kind, seeds: servers.len(), servers, ..Topology::default() }
    }

    /// Its type.
    pub fn topology_type(&self) -> TopologyType {
        self.kind
    }

    /// Name of the replica set.
    pub fn set_name(&self) -> Option<&str> {
        self.set_name.as_deref()
    }

    /// All servers by number, those that are removed too.
    pub fn all_servers(&self) -> &[TopologyServer] {
        &self.servers
    }

    /// Largest version of a configuration, and largest election, that a primary has named.
    pub fn newest_election(&self) -> (Option<i64>, Option<[u8; 12]>) {
        (self.max_set_version, self.max_election_id)
    }

    /// Number of the primary.
    pub fn primary_number(&self) -> Option<u16> {
        let found = self.present().find(|(_, server)| server.description.kind == ServerType::RsPrimary)?;
        Some(found.0 as u16)
    }

    /// Minutes after which all servers that bear data forget a session; `None` where one has none.
    pub fn session_minutes(&self) -> Option<i64> {
        let told = self.present().filter_map(|(_, server)| server.description.sessions());
        told.reduce(|a, b| Some(a?.min(b?))).flatten()
    }

    /// Why the deployment cannot be spoken to: a server speaks only other versions of the protocol.
    pub fn describe_incompatibility(&self) -> Option<String> {
        let (least, most) = WIRE_VERSIONS;
        self.present().filter(|(_, server)| !server.description.kind.is_unknown()).find_map(|(_, server)| {
            let (address, (from, to)) = (&server.address, server.description.wire);
            match server.description.kind {
                ServerType::LoadBalancer => None,
                _ if from > most => Some(format!(
                    "{address} requires wire version {from}; this version of dyno supports up to {most}"
                )),
                _ if to < least => Some(format!(
                    "{address} reports wire version {to}; dyno requires at least {least} (MongoDB 3.6)"
                )),
                _ => None,
            }
        })
    }

    fn present(&self) -> impl Iterator<Item = (usize, &TopologyServer)> {
        self.servers.iter().enumerate().filter(|(_, server)| !server.removed)
    }

    /// Number of the server of an address.
    fn find(&self, address: &str) -> Option<usize> {
        self.present().find(|(_, server)| server.address == address).map(|(at, _)| at)
    }

    /// Sets what a server is without its word, where that is known otherwise.
    pub(super) fn assume(&mut self, node: u16, kind: ServerType) {
        if let Some(server) = self.servers.get_mut(usize::from(node)) {
            server.description = ServerDescription { kind, ..ServerDescription::default() };
        }
    }

    /// Has a server asked as soon as may be.
    pub(super) fn request_check(&mut self, node: u16) {
        if let Some(server) = self.servers.get_mut(usize::from(node)) {
            server.check_soon = true;
        }
    }

    /// Counts a round trip of hello: an exponentially weighted moving average with a weight of 0.2 for the newest ("Server
    /// Selection" specification).
    pub fn note_round_trip(&mut self, node: u16, rtt_us: u64) {
        let known = |server: &&mut TopologyServer| !server.description.kind.is_unknown();
        if let Some(server) = self.servers.get_mut(usize::from(node)).filter(known) {
            let before = server.description.rtt_us;
            server.description.rtt_us = Some(before.map_or(rtt_us, |before| (rtt_us + 4 * before) / 5));
        }
    }

    /// Takes a server's reply to hello. `asked_ms`: when it was asked, where that is known.
    pub fn update_from_hello(&mut self, node: u16, hello: &[u8], asked_ms: Option<i64>) {
        let at = usize::from(node);
        let Some(server) = self.servers.get_mut(at).filter(|server| !server.removed) else { return };
        if self.kind == TopologyType::LoadBalanced {
            return;
        }
        let before = &server.description;
        let mut news = ServerDescription::parse(hello, asked_ms.unwrap_or(before.asked_ms));
        if let (Some(known), false) = (before.topology_version, news.kind == ServerType::Unknown)
            && known.covers(news.topology_version, true)
        {
            return;
        }
        if !news.kind.is_unknown() {
            news.rtt_us = before.rtt_us;
            (server.check_soon, server.replaced, server.silent) = (false, false, false);
            server.spoke = (news.wire.1, news.kind == ServerType::Mongos);
            if asked_ms.is_none() {
                news.wrote_ms = before.wrote_ms;
            }
        }
        self.replace(at, news);
    }

    /// A server did not answer hello: nothing is known of it any more.
    pub fn check_failed(&mut self, node: u16, error: &str) {
        let at = usize::from(node);
        if self.kind == TopologyType::LoadBalanced || self.servers.get(at).is_none_or(|server| server.removed)
        {
            return;
        }
        self.servers[at].generation += 1;
        self.servers[at].silent = true;
        self.replace(at, ServerDescription::unknown_server(Some(error.to_owned())));
    }

    /// An operation or its connection, of this generation, has failed. Returns whether that says something new of the server.
    pub fn note_failure(&mut self, node: u16, generation: u32, error: ApplicationError<'_>) -> bool {
        let at = usize::from(node);
        let Some(server) = self.servers.get(at).filter(|server| !server.removed) else { return false };
        if generation < server.generation || self.kind == TopologyType::LoadBalanced {
            self.request_check(node);
            return false;
        }
        let (change, version) = match error {
            ApplicationError::Reply(reply) | ApplicationError::HandshakeReply(reply) => {
                (StateChange::from_reply(reply), TopologyVersion::from_reply(reply))
            }
            _ => (None, None),
        };
        if server.description.topology_version.is_some_and(|known| known.covers(version, false)) {
            return false;
        }
        let (lost, message) = match error {
            _ if change.is_some() => (change == Some(StateChange::Shutdown), "the server changed its state"),
            ApplicationError::Reply(_) => return false,
            // Before hello is answered nothing is known that could be wrong; the server's own check will tell.
            ApplicationError::Network(Handshake::Hello) | ApplicationError::Timeout(Handshake::Hello) => {
                self.request_check(node);
                return false;
            }
            // A server may be slow.
            ApplicationError::Timeout(Handshake::Complete) => {
                self.request_check(node);
                return false;
            }
            ApplicationError::HandshakeReply(reply) => {
                if error_labels(reply).any(|label| label == "SystemOverloadedError")
                    || is_ok(bson::find_element(reply, "ok"))
                {
                    return false;
                }
                (true, "the server refused a connection")
            }
            ApplicationError::Network(_) | ApplicationError::Timeout(_) => (true, "a connection was lost"),
        };
        self.servers[at].generation += u32::from(lost);
        let unknown = ServerDescription {
            topology_version: version,
            ..ServerDescription::unknown_server(Some(message.to_owned()))
        };
        self.replace(at, unknown);
        self.servers[at].check_soon = true;
        true
    }

    /// Replaces a server's description; the rest of the topology follows.
    fn replace(&mut self, at: usize, news: ServerDescription) {
        use ServerType as S;
        use TopologyType as T;
        let kind = news.kind;
        self.servers[at].description = news;
        match (self.kind, kind) {
            (T::Single, _) => {
                let expected = self.set_name.as_deref();
                let is = self.servers[at].description.set_name.as_deref();
                if expected.is_some() && expected != is && !kind.is_unknown() {
                    let message = "the server does not belong to the replica set that was asked for";
                    self.servers[at].description = ServerDescription::unknown_server(Some(message.into()));
                }
            }
            (T::LoadBalanced, _) | (T::Unknown | T::ReplicaSetNoPrimary, S::RsGhost) => {}
            (T::Unknown | T::Sharded | T::ReplicaSetNoPrimary, S::Unknown | S::PossiblePrimary) => {}
            (T::Unknown, S::Standalone) => {
                if self.seeds == 1 {
                    self.kind = T::Single
                } else {
                    self.remove(at)
                }
            }
            (T::Unknown, S::Mongos) => self.kind = T::Sharded,
            (T::Sharded, S::Mongos) => {}
            (T::Unknown | T::ReplicaSetNoPrimary | T::ReplicaSetWithPrimary, S::RsPrimary) => {
                self.kind = T::ReplicaSetWithPrimary;
                self.update_from_primary(at);
            }
            (T::Unknown | T::ReplicaSetNoPrimary, kind) if kind.is_member() => {
                self.kind = T::ReplicaSetNoPrimary;
                self.update_without_primary(at);
            }
            (T::ReplicaSetWithPrimary, kind) if kind.is_member() => self.update_from_member(at),
            (T::ReplicaSetWithPrimary, S::Unknown | S::PossiblePrimary | S::RsGhost) => self.check_primary(),
            (T::ReplicaSetWithPrimary, _) => {
                self.remove(at);
                self.check_primary();
            }
            (T::Unknown | T::Sharded | T::ReplicaSetNoPrimary, _) => self.remove(at),
        }
        debug_assert!(self.kind != T::ReplicaSetWithPrimary || self.primary_number().is_some());
        debug_assert!(self.kind != T::ReplicaSetNoPrimary || self.primary_number().is_none());
    }

    fn remove(&mut self, at: usize) {
        let server = &mut self.servers[at];
        server.removed = true;
        server.description = ServerDescription::unknown_server(server.description.error.take());
        debug_assert!(server.description.kind.is_unknown(), "what has left serves nothing");
    }

    fn check_primary(&mut self) {
        self.kind = match self.primary_number() {
            Some(_) => TopologyType::ReplicaSetWithPrimary,
            None => TopologyType::ReplicaSetNoPrimary,
        };
    }

    /// Adds servers that were not known.
    fn add(&mut self, addresses: &[String]) {
        for address in addresses {
            if self.find(address).is_some() {
                continue;
            }
            if let Some(removed) = self.servers.iter_mut().find(|server| server.address == *address) {
                removed.removed = false;
                removed.description = ServerDescription::default();
            } else if self.servers.len() < NODES {
                self.servers.push(TopologyServer { address: address.clone(), ..TopologyServer::default() });
            }
        }
    }

    /// Returns whether a member belongs to the replica set; the first names it.
    fn accept_set(&mut self, at: usize) -> bool {
        let name = &self.servers[at].description.set_name;
        if self.set_name.is_none() {
            self.set_name.clone_from(name);
        }
        self.set_name == *name
    }

    /// Returns whether a member names itself as it is known here.
    fn is_itself(&self, at: usize) -> bool {
        let server = &self.servers[at];
        server.description.me.as_ref().is_none_or(|me| *me == server.address)
    }

    /// A member names a primary that has not answered yet.
    fn suppose_primary(&mut self, at: usize) {
        let named = self.servers[at].description.primary.clone();
        if let Some(other) = named.and_then(|address| self.find(&address)) {
            let description = &mut self.servers[other].description;
            if description.kind == ServerType::Unknown {
                description.kind = ServerType::PossiblePrimary;
            }
        }
    }

    /// `updateRSWithoutPrimary` of the specification.
    fn update_without_primary(&mut self, at: usize) {
        if !self.accept_set(at) {
            return self.remove(at);
        }
        let hosts = self.servers[at].description.hosts.clone();
        self.add(&hosts);
        self.suppose_primary(at);
        if !self.is_itself(at) {
            self.remove(at);
        }
    }

    /// `updateRSWithPrimaryFromMember` of the specification.
    fn update_from_member(&mut self, at: usize) {
        if !self.accept_set(at) || !self.is_itself(at) {
            self.remove(at);
            return self.check_primary();
        }
        if self.primary_number().is_none() {
            self.kind = TopologyType::ReplicaSetNoPrimary;
            self.suppose_primary(at);
        }
    }

    /// `updateRSFromPrimary` of the specification.
    fn update_from_primary(&mut self, at: usize) {
        if !self.accept_set(at) {
            self.remove(at);
            return self.check_primary();
        }
        if !self.is_newest(at) {
            let message = "primary marked stale due to electionId/setVersion mismatch: another member was elected since";
            self.servers[at].description = ServerDescription::unknown_server(Some(message.into()));
            return self.check_primary();
        }
        for (other, server) in self.servers.iter_mut().enumerate() {
            if other != at && server.description.kind == ServerType::RsPrimary {
                let message = "primary marked stale due to discovery of newer primary";
                server.description = ServerDescription::unknown_server(Some(message.into()));
                (server.replaced, server.check_soon) = (true, true);
            }
        }
        let hosts = self.servers[at].description.hosts.clone();
        self.add(&hosts);
        for other in 0..self.servers.len() {
            if !self.servers[other].removed && !hosts.contains(&self.servers[other].address) {
                self.remove(other);
            }
        }
        self.check_primary();
    }

    /// Compares a primary's election and configuration with the newest that are known, and keeps them if they are newer.
    fn is_newest(&mut self, at: usize) -> bool {
        let description = &self.servers[at].description;
        let (election, version) = (description.election_id, description.set_version);
        // Nothing is less than something.
        if description.wire.1 >= ELECTION_FIRST {
            if (election, version) < (self.max_election_id, self.max_set_version) {
                return false;
            }
            (self.max_election_id, self.max_set_version) = (election, version);
            return true;
        }
        if let (Some(election), Some(version)) = (election, version) {
            if let (Some(newest), Some(highest)) = (self.max_election_id, self.max_set_version)
                && (highest, newest) > (version, election)
            {
                return false;
            }
            self.max_election_id = Some(election);
        }
        self.max_set_version = self.max_set_version.max(version);
        true
    }
}
