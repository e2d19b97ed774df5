//! Commands of one's own, as templates that a driver compiles once, before the run.
//!
//! A workload of commands lists its [`CommandTemplate`]s; a [`crate::Request`] with [`crate::Verb::Command`] names one by its
//! number. What differs from request to request are the arguments that are not literal: [`crate::Content::argument`] renders
//! them as bytes. A database that has no such commands refuses them before any load is sent.

/// One named operation: a command, or several that go out together.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandTemplate {
    /// Name of the operation in messages.
    pub name: String,
    /// Commands, in the order in which they are sent; at least one.
    pub commands: Vec<CommandForm>,
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
#[derive(Clone, Debug, PartialEq)]
pub struct CommandForm {
    /// The command's name and its arguments; the name is literal.
    pub arguments: Vec<CommandArgument>,
    /// Number of the argument that is the key, by which a cluster finds the node; `None` where any node will do.
    pub key: Option<u16>,
    /// True if it changes data: it goes to a primary.
    pub writes: bool,
    /// True if an empty answer means that nothing was found.
    pub misses: bool,
}

/// An argument of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandArgument {
    /// Always these bytes.
    Literal(Vec<u8>),
    /// Rendered for each request.
    Rendered,
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
