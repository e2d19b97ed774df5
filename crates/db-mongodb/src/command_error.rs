//! Why a command of MongoDB was not done.

use crate::protocol::ServerError;
use dyno_db::copies::database::DatabaseError;
use dyno_db::probe::{ResolveError, Unreached};
use dyno_engine::RunError;
use dyno_types::bson::NotBson;
use dyno_types::{Outcome, RefusalCode, Refused};

/// Why a command was not done.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The server has refused it.
    #[error(transparent)]
    Refused(#[from] ServerError),
    /// There is no connection, or it was lost: the command may have been done.
    #[error(transparent)]
    Lost(#[from] Unreached),
    /// The server's name leads nowhere.
    #[error(transparent)]
    Unresolved(#[from] ResolveError),
    /// The URI asks for what the driver cannot do.
    #[error(transparent)]
    Options(#[from] Refused),
    /// The official driver has no answer of the server.
    #[error("{0}")]
    Official(String),
    /// The reply is no document.
    #[error(transparent)]
    Malformed(#[from] NotBson),
    /// The reply lacks what was asked for.
    #[error("{0}")]
    Incomplete(&'static str),
    /// The same as another one, which is said in its words.
    #[error("{message}")]
    Explained {
        /// All that is to be read.
        message: String,
        /// Why.
        source: Box<CommandError>,
    },
}

impl From<CommandError> for DatabaseError {
    fn from(error: CommandError) -> Self {
        DatabaseError::Client(Box::new(error))
    }
}

impl CommandError {
    /// The server's code; `None` where no answer of the server came.
    pub fn server_code(&self) -> Option<i64> {
        match self {
            CommandError::Refused(refusal) => Some(refusal.code),
            CommandError::Explained { source, .. } => source.server_code(),
            _ => None,
        }
    }

    /// The same in other words, which must have its own in them.
    pub fn with_explanation(self, message: String) -> Self {
        CommandError::Explained { message, source: Box::new(self) }
    }
}

impl From<CommandError> for RunError {
    fn from(error: CommandError) -> Self {
        match error.server_code() {
            Some(_) => Refused::from(error).into(),
            None => RunError::Unreachable { outcome: Outcome::TimedOut, message: error.to_string() },
        }
    }
}

impl From<CommandError> for Refused {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Options(refused) => refused,
            other => Refused::new(RefusalCode::Unsupported, "target", other.to_string()),
        }
    }
}
