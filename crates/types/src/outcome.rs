//! End of an arrival. Every arrival ends as exactly one of these.

/// The end of one arrival (or of one request inside it).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Outcome {
    /// The database did what was asked.
    #[default]
    Ok,
    /// The record was not there.
    NotFound,
    /// The record was there but its content was not what had been written.
    Mismatch,
    /// A read of a key whose insert has not been acknowledged yet.
    NotYet,
    /// The database does not offer this operation.
    NotImplemented,
    /// The database rejected the request as malformed.
    BadRequest,
    /// Authentication or permission refused.
    Forbidden,
    /// The database is out of memory (`OOM`).
    OutOfMemory,
    /// The database is loading its data (`LOADING`).
    Loading,
    /// The cluster cannot serve the slot now (`CLUSTERDOWN`, `TRYAGAIN`, `MASTERDOWN`).
    ClusterDown,
    /// A write met a replica (`READONLY`).
    ReadOnly,
    /// A lock, a conflict or a running script was in the way (`BUSY`, `SQLITE_BUSY`).
    Busy,
    /// A record with this key (or unique index value) is there already.
    Duplicate,
    /// Any other error reply of the database.
    ServerError,
    /// Bytes that do not belong to the protocol.
    Protocol,
    /// More redirections than the limit.
    Redirects,
    /// The connection was lost with the request under way.
    Disconnected,
    /// No connection could be made.
    Unreachable,
    /// No reply within the time-out.
    TimedOut,
    /// Not sent: the queue of due arrivals was longer or older than its bound.
    Dropped,
    /// Not sent or not answered because the run was ended.
    Aborted,
    /// The keys of a command are in several slots of the cluster (`CROSSSLOT`).
    CrossSlot,
    /// A transaction was not carried out because another client had changed a key that it watched (a nil `EXEC`): no error.
    Conflict,
}

impl Outcome {
    /// All outcomes, in the order of their numbers.
    pub const ALL: [Outcome; 23] = [
        Outcome::Ok,
        Outcome::NotFound,
        Outcome::Mismatch,
        Outcome::NotYet,
        Outcome::NotImplemented,
        Outcome::BadRequest,
        Outcome::Forbidden,
        Outcome::OutOfMemory,
        Outcome::Loading,
        Outcome::ClusterDown,
        Outcome::ReadOnly,
        Outcome::Busy,
        Outcome::Duplicate,
        Outcome::ServerError,
        Outcome::Protocol,
        Outcome::Redirects,
        Outcome::Disconnected,
        Outcome::Unreachable,
        Outcome::TimedOut,
        Outcome::Dropped,
        Outcome::Aborted,
        Outcome::CrossSlot,
        Outcome::Conflict,
    ];

    /// Number of outcomes.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns whether the operation succeeded.
    pub fn is_ok(self) -> bool {
        self == Outcome::Ok
    }

    /// Returns whether the operation was given up without an answer.
    pub fn is_unanswered(self) -> bool {
        use Outcome::*;
        matches!(self, TimedOut | Disconnected | Unreachable | Dropped | Aborted)
    }

    /// Returns whether the database's own words belong to it: an error reply, not the absence of one or of a record.
    pub fn is_error_reply(self) -> bool {
        use Outcome::*;
        matches!(
            self,
            NotImplemented
                | BadRequest
                | Forbidden
                | OutOfMemory
                | Loading
                | ClusterDown
                | ReadOnly
                | Busy
                | Duplicate
                | ServerError
                | CrossSlot
        )
    }

    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::NotFound => "not_found",
            Outcome::Mismatch => "mismatch",
            Outcome::NotYet => "not_yet",
            Outcome::NotImplemented => "not_implemented",
            Outcome::BadRequest => "bad_request",
            Outcome::Forbidden => "forbidden",
            Outcome::OutOfMemory => "out_of_memory",
            Outcome::Loading => "loading",
            Outcome::ClusterDown => "cluster_down",
            Outcome::ReadOnly => "read_only",
            Outcome::Busy => "busy",
            Outcome::Duplicate => "duplicate",
            Outcome::ServerError => "server_error",
            Outcome::Protocol => "protocol",
            Outcome::Redirects => "redirects",
            Outcome::Disconnected => "disconnected",
            Outcome::Unreachable => "unreachable",
            Outcome::TimedOut => "timed_out",
            Outcome::Dropped => "dropped",
            Outcome::Aborted => "aborted",
            Outcome::CrossSlot => "cross_slot",
            Outcome::Conflict => "conflict",
        }
    }

    /// The outcome with this name.
    pub fn from_name(name: &str) -> Option<Outcome> {
        Self::ALL.into_iter().find(|o| o.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_agree() {
        for (i, o) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(o as usize, i);
            assert_eq!(Outcome::from_name(o.name()), Some(o));
        }
        assert_eq!(Outcome::ALL.iter().filter(|o| o.is_ok()).count(), 1);
    }
}
