//! YCSB's statuses of operations, and which of them an outcome is.

use dyno_types::Outcome;

/// YCSB's status of an ended operation, in the order of its `Return=` lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReturnCode {
    /// Done.
    Ok,
    /// The database does not offer the operation.
    NotImplemented,
    /// Malformed request.
    BadRequest,
    /// Not permitted.
    Forbidden,
    /// The record's content was not what had been written.
    UnexpectedState,
    /// The database could not serve now.
    ServiceUnavailable,
    /// No such record.
    NotFound,
    /// Anything else.
    Error,
}

impl ReturnCode {
    /// All codes, in the order of `Return=` lines.
    pub const ALL: [ReturnCode; 8] = [
        ReturnCode::Ok,
        ReturnCode::NotImplemented,
        ReturnCode::BadRequest,
        ReturnCode::Forbidden,
        ReturnCode::UnexpectedState,
        ReturnCode::ServiceUnavailable,
        ReturnCode::NotFound,
        ReturnCode::Error,
    ];

    /// The code that YCSB has for an outcome.
    pub fn of(outcome: Outcome) -> ReturnCode {
        match outcome {
            Outcome::Ok => ReturnCode::Ok,
            Outcome::NotFound => ReturnCode::NotFound,
            Outcome::Mismatch => ReturnCode::UnexpectedState,
            Outcome::NotImplemented => ReturnCode::NotImplemented,
            Outcome::BadRequest => ReturnCode::BadRequest,
            Outcome::Forbidden => ReturnCode::Forbidden,
            Outcome::OutOfMemory
            | Outcome::Loading
            | Outcome::ClusterDown
            | Outcome::CrossSlot
            | Outcome::Conflict
            | Outcome::ReadOnly
            | Outcome::Busy => ReturnCode::ServiceUnavailable,
            Outcome::NotYet
            | Outcome::Duplicate
            | Outcome::ServerError
            | Outcome::Protocol
            | Outcome::Redirects
            | Outcome::Disconnected
            | Outcome::Unreachable
            | Outcome::TimedOut
            | Outcome::Dropped
            | Outcome::Aborted => ReturnCode::Error,
        }
    }

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            ReturnCode::Ok => "OK",
            ReturnCode::NotImplemented => "NOT_IMPLEMENTED",
            ReturnCode::BadRequest => "BAD_REQUEST",
            ReturnCode::Forbidden => "FORBIDDEN",
            ReturnCode::UnexpectedState => "UNEXPECTED_STATE",
            ReturnCode::ServiceUnavailable => "SERVICE_UNAVAILABLE",
            ReturnCode::NotFound => "NOT_FOUND",
            ReturnCode::Error => "ERROR",
        }
    }
}
