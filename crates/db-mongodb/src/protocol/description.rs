//! Description of one server: what its last reply to hello said ("Server Discovery and Monitoring" specification).

use super::errors::is_ok;
use dyno_types::bson;
use dyno_types::limits::MESSAGE_BYTES;

/// Names and values that a member has, or is asked to have.
pub type Tags = Vec<(String, String)>;

/// Type of a server, by its last reply to hello.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerType {
    /// Has not answered, or what it answered holds no more.
    #[default]
    Unknown,
    /// Unknown, but another member names it as primary: it is checked first.
    PossiblePrimary,
    /// A single server.
    Standalone,
    /// A router of a sharded cluster.
    Mongos,
    /// Takes a replica set's writes.
    RsPrimary,
    /// Can be read from.
    RsSecondary,
    /// Votes and holds no data.
    RsArbiter,
    /// A member that is hidden, starts up or recovers.
    RsOther,
    /// Started for a replica set, but not initiated or no member any more.
    RsGhost,
    /// A load balancer, which is never asked what it is.
    LoadBalancer,
}

impl ServerType {
    /// Returns whether the server is a member of a replica set that can say which others there are.
    pub(super) fn is_member(self) -> bool {
        matches!(self, Self::RsPrimary | Self::RsSecondary | Self::RsArbiter | Self::RsOther)
    }

    /// Returns whether nothing is known of the server.
    pub(super) fn is_unknown(self) -> bool {
        matches!(self, Self::Unknown | Self::PossiblePrimary)
    }

    /// Returns whether operations may go to it.
    pub(super) fn bears_data(self) -> bool {
        matches!(
            self,
            Self::Standalone | Self::Mongos | Self::RsPrimary | Self::RsSecondary | Self::LoadBalancer
        )
    }
}

/// Counter by which a server numbers its changes of state, and the process that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopologyVersion {
    process: [u8; 12],
    counter: i64,
}

impl TopologyVersion {
    /// Reads the field `topologyVersion` of a reply.
    pub fn from_reply(reply: &[u8]) -> Option<Self> {
        let version = bson::find_element(reply, "topologyVersion")?.as_document()?;
        let process = object_id(version, "processId")?;
        Some(TopologyVersion { process, counter: bson::find_element(version, "counter")?.as_i64()? })
    }

    /// Returns whether news of version `other` tells nothing beyond `self`. Versions of another process, or none, are news.
    pub(super) fn covers(self, other: Option<Self>, equal_is_news: bool) -> bool {
        match other {
            Some(other) if other.process == self.process => {
                if equal_is_news {
                    self.counter > other.counter
                } else {
                    self.counter >= other.counter
                }
            }
            _ => false,
        }
    }
}

/// Largest messages and batches that a server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `maxBsonObjectSize`: bytes of one document.
    pub document_bytes: usize,
    /// `maxMessageSizeBytes`: bytes of one message.
    pub message_bytes: usize,
    /// `maxWriteBatchSize`: documents or statements of one command.
    pub batch: usize,
}

impl Default for Limits {
    /// The limits of every version from 3.6 on.
    fn default() -> Self {
        Limits { document_bytes: 16 << 20, message_bytes: 48_000_000, batch: 100_000 }
    }
}

impl Limits {
    /// Reads a reply to hello. Limits that it does not give, or that make no sense, are the default ones.
    pub fn from_hello(hello: &[u8]) -> Self {
        let of = |name: &str, otherwise: usize| {
            let told = bson::find_element(hello, name)
                .and_then(|e| e.as_i64())
                .and_then(|n| usize::try_from(n).ok());
            told.filter(|n| *n > 0).map_or(otherwise, |n| n.min(MESSAGE_BYTES))
        };
        let all = Limits::default();
        Limits {
            document_bytes: of("maxBsonObjectSize", all.document_bytes),
            message_bytes: of("maxMessageSizeBytes", all.message_bytes),
            batch: of("maxWriteBatchSize", all.batch),
        }
    }
}

/// One server as it was when last asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerDescription {
    /// Its type.
    pub kind: ServerType,
    /// Why it is unknown, where it was known before.
    pub error: Option<String>,
    /// Name of its replica set.
    pub set_name: Option<String>,
    /// Its own address, as members name it.
    pub me: Option<String>,
    /// Addresses of all members: those that can become primary, passive ones and arbiters; in lower case.
    pub hosts: Vec<String>,
    /// Address of the member that it takes for the primary.
    pub primary: Option<String>,
    /// Version of the replica set's configuration.
    pub set_version: Option<i64>,
    /// Number of the election that made it primary.
    pub election_id: Option<[u8; 12]>,
    /// Least and greatest wire version.
    pub wire: (i64, i64),
    /// Version of its state.
    pub topology_version: Option<TopologyVersion>,
    /// Minutes after which it forgets a session; `None` where it has no sessions.
    pub session_minutes: Option<i64>,
    /// Tags.
    pub tags: Tags,
    /// Time of its last write, by the servers' clock, milliseconds.
    pub wrote_ms: i64,
    /// When it was asked, by the client's clock, milliseconds.
    pub asked_ms: i64,
    /// Smoothed round trip time of hello, microseconds; `None` before the first.
    pub rtt_us: Option<u64>,
    /// It knows the command `hello`.
    pub knows_hello: bool,
}

impl ServerDescription {
    /// Reads a reply to hello. One that failed leaves the server unknown. `asked_ms`: when it was asked.
    pub fn parse(hello: &[u8], asked_ms: i64) -> Self {
        let find = |name: &str| bson::find_element(hello, name);
        let text = |name: &str| find(name).and_then(|e| e.as_str()).map(str::to_owned);
        let number = |name: &str| find(name).and_then(|e| e.as_i64());
        if !is_ok(find("ok")) {
            let message = text("errmsg").unwrap_or_else(|| "hello failed".to_owned());
            return ServerDescription::unknown_server(Some(message));
        }
        let address = |name: &str| text(name).map(|address| address.to_ascii_lowercase());
        let wrote = bson::element_at_path(hello, "lastWrite.lastWriteDate").and_then(|e| e.as_i64());
        ServerDescription {
            kind: kind_of(hello),
            error: None,
            set_name: text("setName"),
            me: address("me"),
            hosts: ["hosts", "passives", "arbiters"].iter().flat_map(|name| addresses(hello, name)).collect(),
            primary: address("primary"),
            set_version: number("setVersion"),
            election_id: object_id(hello, "electionId"),
            wire: (number("minWireVersion").unwrap_or(0), number("maxWireVersion").unwrap_or(0)),
            topology_version: TopologyVersion::from_reply(hello),
            session_minutes: number("logicalSessionTimeoutMinutes"),
            tags: find("tags").and_then(|e| e.as_document()).map(pairs).unwrap_or_default(),
            wrote_ms: wrote.unwrap_or(0),
            asked_ms,
            rtt_us: None,
            knows_hello: find("helloOk").is_some_and(|e| e.is_true()),
        }
    }

    /// A server of which nothing is known, and why.
    pub fn unknown_server(error: Option<String>) -> Self {
        ServerDescription { error, ..ServerDescription::default() }
    }

    /// Minutes after which sessions end, where the server bears data: `Some(None)` if it has no sessions.
    pub(super) fn sessions(&self) -> Option<Option<i64>> {
        self.kind.bears_data().then_some(self.session_minutes)
    }
}

fn kind_of(hello: &[u8]) -> ServerType {
    let is = |name: &str| bson::find_element(hello, name).is_some_and(|e| e.is_true());
    let text = |name: &str| bson::find_element(hello, name).and_then(|e| e.as_str());
    match () {
        () if text("msg") == Some("isdbgrid") => ServerType::Mongos,
        () if is("isreplicaset") => ServerType::RsGhost,
        () if text("setName").is_none() => ServerType::Standalone,
        () if is("isWritablePrimary") || is("ismaster") => ServerType::RsPrimary,
        () if is("hidden") => ServerType::RsOther,
        () if is("secondary") => ServerType::RsSecondary,
        () if is("arbiterOnly") => ServerType::RsArbiter,
        () => ServerType::RsOther,
    }
}

fn addresses(hello: &[u8], name: &str) -> Vec<String> {
    let list = bson::find_element(hello, name).and_then(|e| e.as_document()).unwrap_or_default();
    let elements = bson::read_elements(list).into_iter().flatten().flatten();
    elements.filter_map(|e| e.as_str()).map(str::to_ascii_lowercase).collect()
}

fn object_id(document: &[u8], name: &str) -> Option<[u8; 12]> {
    let element = bson::find_element(document, name)?;
    if element.kind == bson::kind::OBJECT_ID { element.value.try_into().ok() } else { None }
}

fn pairs(document: &[u8]) -> Tags {
    let elements = bson::read_elements(document).into_iter().flatten().flatten();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    elements.filter_map(|e| Some((text(e.name), e.as_str()?.to_owned()))).collect()
}
