//! One request to a database, bound and ready to be encoded.

/// Operation of a request on a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// Read one record.
    #[default]
    Read,
    /// Write a record that is expected to be new.
    Insert,
    /// Overwrite one or all fields of a record.
    Update,
    /// Read up to [`Request::limit`] records from a start key on.
    Scan,
    /// Remove a record.
    Delete,
    /// An operation on documents: [`Request::shape`] says which.
    Document,
    /// Commands of one's own: [`Request::shape`] says which.
    Command,
    /// A command as it was recorded.
    Recorded,
    /// The driver's own question for the topology; never recorded.
    Topology,
}

impl Verb {
    /// Returns whether the request changes data. Of documents and commands their shapes say so: [`crate::Content::writes`].
    pub fn changes_data(self) -> bool {
        matches!(self, Verb::Insert | Verb::Update | Verb::Delete)
    }
}

/// [`Request::step`] of the command that begins a recorded transaction.
pub const FIRST_STEP: u16 = 0;

/// The same of those within it.
pub const INNER_STEP: u16 = 1;

/// The same of the one that ends it.
pub const LAST_STEP: u16 = 2;

/// Which fields of a record a request is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fields {
    /// All fields, not named one by one.
    #[default]
    All,
    /// All fields, each by its name.
    Named,
    /// One field by its number.
    One(u16),
}

/// A request: small, copied freely, and enough to render the same bytes again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Operation.
    pub verb: Verb,
    /// Which fields are read or written.
    pub fields: Fields,
    /// Index of the metric (operation name) under which the result is recorded.
    pub metric: u16,
    /// The script of several requests that this one belongs to: 0 for none, else the script's metric plus 1. Of a recorded
    /// command: the transaction.
    pub script: u16,
    /// Position inside a script of several requests (0 for the first). Of a command of a recorded transaction:
    /// [`FIRST_STEP`], [`INNER_STEP`] or [`LAST_STEP`].
    pub step: u16,
    /// Number of the shape of a document operation, or of the template of a command.
    pub shape: u16,
    /// Number of records a scan may return; a document workload may give it a meaning of its own. Of a recorded command that
    /// waits for data: the most that it may wait, milliseconds; 0 for one that does not.
    pub limit: u32,
    /// Number of the collection, for workloads that have several.
    pub collection: u32,
    /// Number of the key in the workload's key space.
    pub key: u64,
    /// Seed of the values written; equal seeds render equal bytes.
    pub seed: u64,
}
