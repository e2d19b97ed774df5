//! Exit codes, the same for every front end, and the errors that lead to them. `docs/exit-codes.md` describes them.

use crate::object_store::StoreError;
use crate::{signals, terminal};
use dyno_config::template::TemplateError;
use dyno_config::tree::TreeError;
use dyno_db::copies::database::DatabaseError;
use dyno_db::target_error::TargetError;
use dyno_db_mongodb::command_error::CommandError;
use dyno_engine::RunError;
use dyno_experiment::directory::DirectoryError;
use dyno_rundir::ReadError;
use dyno_types::Refused;
use std::process::ExitCode;

/// End of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Valid, or suspect with a warning.
    Ok = 0,
    /// An error of dyno or of the system.
    Internal = 1,
    /// Wrong usage.
    Usage = 2,
    /// The target does not answer, or not as it should.
    Unreachable = 3,
    /// A threshold was missed.
    Threshold = 4,
    /// The run is invalid.
    Invalid = 5,
    /// Ended by a signal.
    Interrupted = 130,
}

impl Exit {
    /// Turns `Ok` into `Internal` if stdout could not be written: a caller that got no figures must not take it for success.
    pub fn unless_output_lost(self) -> Exit {
        match terminal::lost() {
            Some(why) if self == Exit::Ok => {
                terminal::error(&format!("stdout: {why}"));
                Exit::Internal
            }
            _ => self,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Cause of a failure: a message, or the error of a crate with its own source.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Reasons for which a command could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Wrong usage.
    #[error(transparent)]
    Usage(Cause),
    /// The target does not answer.
    #[error(transparent)]
    Unreachable(Cause),
    /// Anything else.
    #[error(transparent)]
    Internal(Cause),
    /// Ended by a signal before anything was measured.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// Wrong usage, in the words of an error.
    pub fn usage(error: impl Into<Cause>) -> Self {
        Failure::Usage(error.into())
    }

    /// A target that does not answer, in the words of an error.
    pub fn unreachable(error: impl Into<Cause>) -> Self {
        Failure::Unreachable(error.into())
    }

    /// An error of dyno or of the system, in its words.
    pub fn internal(error: impl Into<Cause>) -> Self {
        Failure::Internal(error.into())
    }

    /// A directory that cannot be made: wrong usage where it is there already.
    pub fn of_new_directory(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => Failure::usage(error),
            _ => Failure::internal(error),
        }
    }

    /// Returns why something that was asked for was refused, with its code and its place, where that is known.
    pub fn refusal(&self) -> Option<&Refused> {
        match self {
            Failure::Usage(cause) => cause.downcast_ref(),
            _ => None,
        }
    }

    /// The code to exit with.
    pub fn exit(&self) -> Exit {
        match self {
            Failure::Usage(_) => Exit::Usage,
            // After a signal dyno no longer waits for the last answer.
            Failure::Unreachable(_) if signals::interrupted() => Exit::Interrupted,
            Failure::Unreachable(_) => Exit::Unreachable,
            Failure::Internal(_) => Exit::Internal,
            Failure::Interrupted => Exit::Interrupted,
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Failure::usage(refused)
    }
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Refused(refused) => refused.into(),
            TargetError::Unreachable(message) => {
                Failure::unreachable(format!("target unreachable: {message}"))
            }
        }
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        match error.server_code() {
            // The server has answered: what was asked of it is wrong, not the way to it.
            Some(_) => Failure::usage(error),
            None => Failure::unreachable(format!("target unreachable: {error}")),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Refused(refused) => refused.into(),
            RunError::Unreachable { outcome: dyno_types::Outcome::Aborted, .. } => Failure::Interrupted,
            RunError::Unreachable { message, .. } => {
                Failure::unreachable(format!("target unreachable: {message}"))
            }
            RunError::Io(_) | RunError::Panicked => Failure::internal(error),
        }
    }
}

impl From<DirectoryError> for Failure {
    fn from(error: DirectoryError) -> Self {
        match error {
            DirectoryError::Io { .. } => Failure::internal(error),
            DirectoryError::NotCopied(ref cause) => match cause.downcast_ref() {
                Some(StoreError::Io { .. } | StoreError::TooLarge { .. }) => Failure::internal(error),
                _ => Failure::unreachable(error),
            },
            error => Failure::usage(error),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Io { .. } => Failure::internal(error),
            StoreError::Address(_) | StoreError::NoLogin { .. } => Failure::usage(error),
            // The store has answered: what was asked of it is wrong, not the way to it.
            StoreError::Refused { .. } if !error.is_silence() => Failure::usage(error),
            error => Failure::unreachable(error),
        }
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        Failure::unreachable(error)
    }
}

/// Makes errors of input end with exit code 2 (wrong usage).
#[macro_export]
macro_rules! usage_errors {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for $crate::exit::Failure {
            fn from(error: $error) -> Self {
                $crate::exit::Failure::usage(error)
            }
        })*
    };
}

usage_errors!(ReadError, TemplateError, TreeError);

/// A document of dyno's own that has no JSON. Files that are read say which they are.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Failure::internal(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::internal(terminal::limited(error).to_string())
    }
}
