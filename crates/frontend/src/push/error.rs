//! Errors of receivers.

use crate::http_agent::describe_error;
use std::time::Duration;

/// A text that names no receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReceiver {
    /// The scheme is another one, or there is none.
    #[error("expected http://HOST:PORT/PATH or https://HOST:PORT/PATH")]
    Scheme,
    /// It is no URL.
    #[error("is no URL of a host")]
    Url,
    /// A user, or a password.
    #[error("has a login; expected it in a header, Authorization, from a file or the environment")]
    Login,
}

/// A text that holds no headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHeaders {
    /// A line of another form.
    #[error("line {0}: expected `Name: value`, or name=value,name=value in one line")]
    Line(usize),
    /// Nothing.
    #[error("there are no headers in it")]
    Empty,
    /// A header that dyno itself sets.
    #[error("line {0}: dyno sets this header itself")]
    Taken(usize),
}

/// Reasons for which a receiver has not taken a push.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The receiver has not answered.
    #[error("no answer: {}", describe_error(.0))]
    Silent(#[source] Box<ureq::Error>),
    /// It has answered with another status than 2xx.
    #[error("answered {status}{}", said(message))]
    Refused {
        /// Status with its name.
        status: String,
        /// First line of the answer.
        message: String,
        /// True if the receiver may take the same push later.
        again: bool,
        /// When it wants to be asked again.
        after: Option<Duration>,
    },
    /// It took a part.
    #[error("did not take {points} data points{}", said(message))]
    Partly {
        /// Data points that it did not take.
        points: i64,
        /// Why.
        message: String,
    },
    /// The push could not be compressed.
    #[error(transparent)]
    Snappy(#[from] snap::Error),
}

impl PushError {
    /// Returns whether the same push may be taken later.
    pub(crate) fn again(&self) -> bool {
        match self {
            PushError::Silent(_) => true,
            PushError::Refused { again, .. } => *again,
            PushError::Partly { .. } | PushError::Snappy(_) => false,
        }
    }

    /// The time after which the receiver wants to be asked again.
    pub(crate) fn after(&self) -> Option<Duration> {
        match self {
            PushError::Refused { after, .. } => *after,
            _ => None,
        }
    }
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}
