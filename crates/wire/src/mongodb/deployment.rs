//! The nodes of a deployment, and which does what (MongoDB's "Server Discovery and Monitoring" specification, as far as a load
//! thread needs it).

use super::options::MongoOptions;
use super::selection::{Member, Role, Tags, eligible};
use dyno_types::Endpoint;
use dyno_types::bson;
use dyno_types::limits::NODES;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The nodes of a deployment, and which does what.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// All that can be spoken to.
    pub endpoints: Vec<Endpoint>,
    /// The node that takes writes, or did when last heard of; several routers (`mongos`) take turns where there is none.
    pub primary: Option<u16>,
    /// Role and state of each node of a replica set; empty for one server and for routers.
    members: Vec<Member>,
    /// The replica set's name.
    set: String,
    /// Members that may be read from.
    readable: Vec<u16>,
    /// True if each router is left out until it answers; empty for a replica set.
    silent: Vec<bool>,
}

impl Deployment {
    /// One server.
    pub fn single(endpoint: Endpoint) -> Self {
        Deployment { primary: Some(0), ..Self::routers(vec![endpoint]) }
    }

    /// Routers.
    pub fn routers(endpoints: Vec<Endpoint>) -> Self {
        let silent = vec![false; endpoints.len()];
        let (set, members, readable) = (String::new(), Vec::new(), Vec::new());
        Deployment { endpoints, primary: None, members, set, readable, silent }
    }

    /// Leaves a router out until it answers.
    pub fn leave_out(&mut self, router: u16) {
        if let Some(silent) = self.silent.get_mut(usize::from(router)) {
            *silent = true;
        }
    }

    /// A replica set of this name, with the number of its primary; what its members are is to be learnt.
    pub fn replica_set(set: &str, endpoints: Vec<Endpoint>, primary: u16) -> Self {
        let members = vec![Member::default(); endpoints.len()];
        let set = set.to_owned();
        Deployment { primary: Some(primary), members, set, silent: Vec::new(), ..Self::routers(endpoints) }
    }

    /// Returns whether it is a replica set, whose members change their parts.
    pub(super) fn is_set(&self) -> bool {
        !self.members.is_empty()
    }

    /// Returns whether it is several routers, one of which may be left out.
    pub(super) fn is_routers(&self) -> bool {
        self.primary.is_none() && self.endpoints.len() > 1
    }

    /// The node for commands that any node that takes writes may have: the primary, or the first router that answers.
    pub fn first(&self) -> u16 {
        let answering = || self.silent.iter().position(|silent| !silent).unwrap_or(0) as u16;
        self.primary.unwrap_or_else(answering)
    }

    /// The router whose turn it is, from `turn` on: those that do not answer are passed over, unless none does.
    pub(super) fn router(&self, turn: &mut u16) -> u16 {
        let count = self.endpoints.len().max(1) as u16;
        let answers = |ahead: &u16| !self.is_silent(turn.wrapping_add(*ahead) % count);
        let ahead = (0..count).find(answers).unwrap_or(0);
        *turn = turn.wrapping_add(ahead);
        *turn % count
    }

    fn is_silent(&self, node: u16) -> bool {
        self.silent.get(usize::from(node)).is_some_and(|silent| *silent)
    }

    /// Members that may be read from; empty for one server and for routers.
    pub fn readable(&self) -> &[u16] {
        &self.readable
    }

    /// Nodes that have been heard: those to connect to before a run.
    pub(super) fn known(&self) -> Vec<u16> {
        let unknown =
            |node: u16| self.members.get(usize::from(node)).is_some_and(|m| m.role == Role::Unknown);
        let all = 0..self.endpoints.len() as u16;
        all.filter(|node| !unknown(*node) && !self.is_silent(*node)).collect()
    }

    /// Returns whether the node that takes writes is not known.
    pub fn lacks_primary(&self) -> bool {
        self.is_set() && !self.members.iter().any(|member| member.role == Role::Primary)
    }

    /// Returns whether it is not known of some node what it is.
    pub(super) fn is_unclear(&self) -> bool {
        self.members.iter().any(|member| member.role == Role::Unknown) || self.silent.contains(&true)
    }

    /// Returns whether what a node is must be asked.
    pub(super) fn is_unsure(&self, node: u16) -> bool {
        self.is_silent(node)
            || self.members.get(usize::from(node)).is_some_and(|member| member.role == Role::Unknown)
    }

    /// Forgets what a node was: that holds no more.
    pub(super) fn doubt(&mut self, node: u16, options: &MongoOptions) {
        if let Some(member) = self.members.get_mut(usize::from(node)) {
            member.role = Role::Unknown;
            self.choose(options);
        } else if self.is_routers() {
            self.leave_out(node);
        }
    }

    /// Sets how long the way to a node and back takes, microseconds.
    pub fn measured(&mut self, node: u16, away_us: u64) {
        if let Some(member) = self.members.get_mut(usize::from(node)) {
            member.away_us = away_us;
        }
    }

    /// Takes what a node says of itself and the others. `asked_ms`: when it was asked, where that is known.
    pub fn learn(&mut self, node: u16, hello: &[u8], asked_ms: Option<i64>, options: &MongoOptions) {
        let at = usize::from(node);
        let says = |name: &str| bson::find(hello, name);
        if self.is_routers() && at < self.silent.len() {
            // Whatever listens in a router's place is none of them.
            self.silent[at] = says("msg").and_then(|e| e.as_str()) != Some("isdbgrid");
        }
        if at >= self.members.len() {
            return;
        }
        let is = |name: &str| says(name).is_some_and(|e| e.is_true());
        let ours = says("setName").and_then(|e| e.as_str()) == Some(&self.set);
        let role = match () {
            () if !ours => Role::Other,
            () if is("isWritablePrimary") || is("ismaster") => Role::Primary,
            () if is("secondary") && !is("hidden") => Role::Secondary,
            () => Role::Other,
        };
        let member = &mut self.members[at];
        member.role = role;
        if let Some(tags) = says("tags").and_then(|e| e.as_document()) {
            member.tags = pairs(tags);
        }
        let wrote = bson::path(hello, "lastWrite.lastWriteDate").and_then(|e| e.as_i64());
        if let (Some(wrote), Some(asked)) = (wrote, asked_ms) {
            (member.wrote_ms, member.asked_ms) = (wrote, asked);
        }
        if ours {
            self.take_hosts(hello, role == Role::Primary);
        }
        if role == Role::Primary {
            self.lead(node);
        } else if let Some(other) = self.named(hello) {
            // A member that does not know of a change yet names the old one: it is believed only of another.
            if ours && self.primary != Some(other) && self.members[usize::from(other)].role != Role::Other {
                self.lead(other);
            }
        }
        self.choose(options);
    }

    /// The node that takes writes from now on.
    fn lead(&mut self, node: u16) {
        for (at, member) in self.members.iter_mut().enumerate() {
            match member.role {
                _ if at == usize::from(node) => member.role = Role::Primary,
                Role::Primary => member.role = Role::Unknown,
                _ => {}
            }
        }
        self.primary = Some(node);
    }

    fn choose(&mut self, options: &MongoOptions) {
        let found = eligible(&self.members, options.read_preference, &options.selection);
        // One lost connection among many does not make a member silent: those in doubt are tried where there is no other.
        let doubted = |at: &u16| self.members[usize::from(*at)].role == Role::Unknown;
        match found.is_empty() {
            true => self.readable.retain(doubted),
            false => self.readable = found,
        }
    }

    /// The node that a member's hello names as primary.
    fn named(&self, hello: &[u8]) -> Option<u16> {
        self.number(bson::find(hello, "primary")?.as_str()?)
    }

    fn number(&self, name: &str) -> Option<u16> {
        self.endpoints.iter().position(|endpoint| endpoint.to_string() == name).map(|at| at as u16)
    }

    /// Members that are new are taken up; those that the primary does not name are left alone from now on.
    fn take_hosts(&mut self, hello: &[u8], by_primary: bool) {
        let lists = ["hosts", "passives"].map(|name| bson::find(hello, name).and_then(|e| e.as_document()));
        let lists = lists.into_iter().flatten().flat_map(|list| bson::elements(list).into_iter().flatten());
        let names: Vec<&str> = lists.flatten().filter_map(|e| e.as_str()).take(NODES).collect();
        for name in &names {
            if self.number(name).is_none()
                && self.endpoints.len() < NODES
                && let Some(endpoint) = resolved(name)
            {
                self.endpoints.push(endpoint);
                self.members.push(Member::default());
            }
        }
        if by_primary && !names.is_empty() {
            for (endpoint, member) in self.endpoints.iter().zip(&mut self.members) {
                if !names.contains(&endpoint.to_string().as_str()) {
                    member.role = Role::Other;
                }
            }
        }
    }
}

/// `host:port` as members name each other.
fn resolved(name: &str) -> Option<Endpoint> {
    let (host, port) = name.rsplit_once(':')?;
    let (host, port) = (host.trim_matches(['[', ']']), port.parse().ok()?);
    let address = match host.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, port),
        Err(_) => (host, port).to_socket_addrs().ok()?.next()?,
    };
    Some(Endpoint::Tcp { host: host.to_owned(), address })
}

fn pairs(document: &[u8]) -> Tags {
    let elements = bson::elements(document).into_iter().flatten().flatten();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    elements.filter_map(|e| Some((text(e.name), e.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::bson::{self, kind};

    fn options(query: &str) -> MongoOptions {
        MongoOptions::from_uri(&format!("mongodb://h/?{query}")).unwrap()
    }

    fn hello(me: &str, primary: &str, hosts: &[&str]) -> Vec<u8> {
        let mut out = Vec::new();
        let at = bson::open(&mut out);
        bson::boolean(&mut out, "isWritablePrimary", me == primary);
        bson::boolean(&mut out, "secondary", me != primary);
        bson::string(&mut out, "setName", "rs");
        bson::string(&mut out, "primary", primary);
        bson::head(&mut out, kind::ARRAY, "hosts");
        let list = bson::open(&mut out);
        for (number, host) in hosts.iter().enumerate() {
            bson::item(&mut out, kind::STRING, number as u32);
            bson::text(&mut out, host.as_bytes());
        }
        bson::close(&mut out, list);
        bson::close(&mut out, at);
        out
    }

    const A: &str = "127.0.0.1:1";
    const B: &str = "127.0.0.1:2";
    const C: &str = "127.0.0.1:3";

    #[test]
    fn members_come_and_go_and_change_their_parts() {
        let options = options("readPreference=secondary");
        let endpoints = [A, B].map(|name| resolved(name).unwrap()).to_vec();
        let mut set = Deployment::replica_set("rs", endpoints, 0);
        set.learn(0, &hello(A, A, &[A, B]), None, &options);
        set.learn(1, &hello(B, A, &[A, B]), None, &options);
        assert_eq!((set.primary, set.readable(), set.lacks_primary()), (Some(0), &[1][..], false));
        // A new host, which is unknown until it answers.
        set.learn(0, &hello(A, A, &[A, B, C]), None, &options);
        assert_eq!((set.endpoints.len(), set.is_unsure(2), set.readable()), (3, true, &[1][..]));
        set.learn(2, &hello(C, A, &[A, B, C]), None, &options);
        assert_eq!(set.readable(), [1, 2]);
        // The primary is lost; a member that still names it is not believed, one that names another is.
        set.doubt(0, &options);
        set.learn(1, &hello(B, A, &[A, B, C]), None, &options);
        assert!(set.lacks_primary() && set.primary == Some(0));
        // All in doubt: those that could be read from are tried.
        let before = set.clone();
        set.doubt(1, &options);
        set.doubt(2, &options);
        assert_eq!((set.readable(), set.is_unclear()), (&[2][..], true));
        set = before;
        set.learn(1, &hello(B, C, &[A, B, C]), None, &options);
        assert_eq!((set.primary, set.lacks_primary(), set.readable()), (Some(2), false, &[1][..]));
        // The old one comes back, and is dropped from the set.
        set.learn(0, &hello(A, C, &[A, B, C]), None, &options);
        assert_eq!(set.readable(), [0, 1]);
        set.learn(2, &hello(C, C, &[B, C]), None, &options);
        assert_eq!(set.readable(), [1]);
    }

    #[test]
    fn routers_that_do_not_answer_are_passed_over() {
        let options = options("");
        let mut routers = Deployment::routers([A, B, C].map(|name| resolved(name).unwrap()).to_vec());
        let turns = |routers: &Deployment| {
            let mut turn = 0u16;
            let mut next = || {
                turn = turn.wrapping_add(1);
                routers.router(&mut turn)
            };
            [next(), next(), next(), next()]
        };
        assert_eq!((turns(&routers), routers.known()), ([1, 2, 0, 1], vec![0, 1, 2]));
        assert!(!routers.is_unclear());
        routers.leave_out(0);
        routers.doubt(1, &options);
        assert_eq!((turns(&routers), routers.first(), routers.known()), ([2; 4], 2, vec![2]));
        assert!(routers.is_unclear() && routers.is_unsure(0) && !routers.is_unsure(2));
        // None answers: all are tried, and every failure counts.
        routers.doubt(2, &options);
        assert_eq!(turns(&routers), [1, 2, 0, 1]);
        // One that has become something else is no router.
        routers.learn(0, &hello(A, A, &[A, B]), None, &options);
        let mut router = Vec::new();
        let at = bson::open(&mut router);
        bson::string(&mut router, "msg", "isdbgrid");
        bson::close(&mut router, at);
        routers.learn(1, &router, None, &options);
        assert_eq!((turns(&routers), routers.first()), ([1; 4], 1));
        // One server is asked whatever has become of it.
        let mut one = Deployment::single(resolved(A).unwrap());
        one.doubt(0, &options);
        assert_eq!((one.first(), one.known(), one.is_unclear()), (0, vec![0], false));
    }

    #[test]
    fn who_belongs_elsewhere_is_left_alone() {
        let options = options("readPreference=nearest");
        let endpoints = [A, B].map(|name| resolved(name).unwrap()).to_vec();
        let mut set = Deployment::replica_set("other", endpoints, 0);
        set.learn(0, &hello(A, A, &[A, B, C]), None, &options);
        assert_eq!((set.endpoints.len(), set.readable().len(), set.lacks_primary()), (2, 0, true));
        let mut one = Deployment::single(resolved(A).unwrap());
        one.learn(0, &hello(A, B, &[A, B]), None, &options);
        assert_eq!((one.primary, one.endpoints.len(), one.is_set()), (Some(0), 1, false));
    }
}
