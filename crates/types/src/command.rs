//! Commands of one's own, as templates that a driver compiles once, before the run.
//!
//! A workload of commands lists its [`CommandTemplate`]s; a [`crate::Request`] with [`crate::Verb::Command`] names one by its
//! number. What differs from request to request are the arguments that are not literal: [`crate::Content::argument`] renders
//! them as bytes. A database that has no such commands refuses them before any load is sent.

/// One named operation: a command, or several that go out together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandTemplate {
    /// Name of the operation in messages.
    pub name: String,
    /// Commands, in the order in which they are sent; at least one.
    pub commands: Vec<CommandForm>,
    /// True if the first of them begins a transaction (`MULTI`) and the last one carries it out (`EXEC`): all go to one node.
    pub atomic: bool,
}

/// What was exchanged for the operations of a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Answers of reads that have found something, and nothing.
    pub hits: u64,
    /// Number of the latter.
    pub misses: u64,
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, more: Traffic) {
        self.sent += more.sent;
        self.received += more.received;
        self.hits += more.hits;
        self.misses += more.misses;
    }
}

/// A command: its words, some of which are rendered anew for each request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandForm {
    /// The command's name and its arguments; the name is literal.
    pub arguments: Vec<CommandArgument>,
    /// Number of the argument that is the key, by which a cluster finds the node; `None` where any node will do.
    pub key: Option<u16>,
    /// True if it changes data: it goes to a primary.
    pub writes: bool,
    /// True if an empty answer means that nothing was found.
    pub misses: bool,
    /// True if each element of its answer is one that was asked for, found or not.
    pub by_element: bool,
    /// True if that is the outcome of the operation, too: [`crate::Outcome::NotFound`].
    pub not_found: bool,
    /// Demands on its reply.
    pub expect: ReplyExpectation,
    /// Parts of its reply that later commands of the operation use.
    pub keeps: Vec<KeptReply>,
    /// The text of the script that it calls by its digest, for a server that has lost it.
    pub script: Option<Vec<u8>>,
    /// Where messages in its reply have the time at which they were sent.
    pub delivery: Option<SentStamp>,
    /// True if it subscribes: it is sent once on a connection, and each message is a reply.
    pub subscribes: bool,
}

/// Where a message has the time at which it was sent: 19 digits, nanoseconds since 1970 by the sender's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SentStamp {
    /// The message begins with it.
    Message,
    /// The value of the field of this name begins with it.
    Field(Vec<u8>),
}

/// Kind of a reply, the same in all versions of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    /// A short text such as `OK`.
    Status,
    /// Bytes.
    Text,
    /// A whole number.
    Integer,
    /// Several replies: a list, a set or a map.
    Array,
    /// Nothing.
    Nil,
}

impl ReplyKind {
    /// All kinds.
    pub const ALL: [ReplyKind; 5] =
        [ReplyKind::Status, ReplyKind::Text, ReplyKind::Integer, ReplyKind::Array, ReplyKind::Nil];

    /// The name in files.
    pub fn kind_name(self) -> &'static str {
        match self {
            ReplyKind::Status => "status",
            ReplyKind::Text => "string",
            ReplyKind::Integer => "integer",
            ReplyKind::Array => "array",
            ReplyKind::Nil => "nil",
        }
    }
}

/// What a reply is like, the same in all versions of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyFacts<'a> {
    /// Its kind; `None` for an error.
    pub kind: Option<ReplyKind>,
    /// Length of a text in bytes; elements of an array, a set or a map (two of each pair); 0 of anything else.
    pub size: u64,
    /// The class of an error: its first word; empty otherwise.
    pub error: &'a [u8],
}

/// Nodes of a cluster that a recorded command is sent to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordedPlace {
    /// One of them, whichever.
    #[default]
    AnyNode,
    /// Every node that serves slots as a primary.
    EveryNode,
    /// The node that serves this slot.
    Slot(u16),
}

/// Demands on a reply. One that does not meet them is [`crate::Outcome::Mismatch`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyExpectation {
    /// Its kind.
    pub kind: Option<ReplyKind>,
    /// Whether it is nil.
    pub nil: Option<bool>,
    /// Its bytes.
    pub value: Option<Vec<u8>>,
    /// Least and greatest number of its bytes, or of its elements.
    pub length: Option<(u64, u64)>,
}

impl ReplyExpectation {
    /// Returns whether every reply will do.
    pub fn is_empty(&self) -> bool {
        *self == ReplyExpectation::default()
    }

    /// Says in which way a reply differs from what is expected: its kind, its bytes where it has some, and its length.
    pub fn mismatch(&self, kind: ReplyKind, value: &[u8], length: u64) -> Option<String> {
        if let Some(wanted) = self.kind.filter(|wanted| *wanted != kind) {
            return Some(format!("expected {}, got {}", wanted.kind_name(), kind.kind_name()));
        }
        let is_nil = kind == ReplyKind::Nil;
        if let Some(nil) = self.nil.filter(|nil| *nil != is_nil) {
            let message = if nil { "expected nil, got" } else { "expected a value, got" };
            return Some(format!("{message} {}", kind.kind_name()));
        }
        let shown = |text: &[u8]| String::from_utf8_lossy(&text[..text.len().min(100)]).into_owned();
        if let Some(wanted) =
            self.value.as_ref().filter(|wanted| kind == ReplyKind::Array || *wanted != value)
        {
            return Some(format!(
                "expected {:?}, got {} {:?}",
                shown(wanted),
                kind.kind_name(),
                shown(value)
            ));
        }
        let (least, most) = self.length.filter(|(least, most)| !(*least..=*most).contains(&length))?;
        Some(format!("expected a length of {least} to {most}, got {length}"))
    }
}

/// A part of a reply that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptReply {
    /// Number under which it is kept, of those of its operation.
    pub number: u16,
    /// The way to it: the place in the array, then in that element, and so on. Empty: the reply itself.
    pub path: Vec<u16>,
}

/// Facts about a command that only its server knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandFacts {
    /// Numbers of the arguments that are keys; 0 is the command's name.
    pub keys: Vec<u16>,
    /// True if it only reads: an empty answer means that nothing was found, and replicas may be asked.
    pub reads: bool,
    /// True if it may wait for data.
    pub blocks: bool,
}

/// An argument of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandArgument {
    /// Always these bytes.
    Literal(Vec<u8>),
    /// Rendered for each request.
    Rendered,
    /// Rendered from the request and from earlier replies of its operation: [`crate::Content::argument_after`].
    Follows,
}

impl CommandForm {
    /// The command's name as it was written.
    pub fn name(&self) -> &[u8] {
        match self.arguments.first() {
            Some(CommandArgument::Literal(name)) => name,
            _ => b"",
        }
    }
}
