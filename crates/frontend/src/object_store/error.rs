//! Errors of object stores.

use crate::http_agent::describe_error;
use std::io;
use std::path::PathBuf;

/// Reasons for which results were not put into a store or taken out of it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address is none, or the bucket's name does not go with it.
    #[error("kubernetes.controller.store.endpoint: {0}: expected http://HOST:PORT or https://HOST:PORT")]
    Address(String),
    /// The Secret lacks a key.
    #[error("the object store's login: there is no {key} in {}: is it a key of the Secret?", folder.display())]
    NoLogin {
        /// The key.
        key: &'static str,
        /// Where the Secret is mounted.
        folder: PathBuf,
    },
    /// The store has not answered.
    #[error("the object store {place} does not answer: {}", describe_error(source))]
    Silent {
        /// Address and bucket.
        place: String,
        /// Error of the client.
        #[source]
        source: Box<ureq::Error>,
    },
    /// The store has refused a request.
    #[error("the object store {place} {}", refused(*status, code, message))]
    Refused {
        /// Address and bucket.
        place: String,
        /// Status of the answer.
        status: u16,
        /// The store's code.
        code: String,
        /// Its message.
        message: String,
    },
    /// What was to be a list is none.
    #[error("the object store {place} does not speak S3: {why}")]
    Garbled {
        /// Address and bucket.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// A file is larger than a request may be.
    #[error("{}: {bytes} bytes: an object store takes no more than 5 GiB at once", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
}

impl StoreError {
    /// Returns whether the same may go well later: by itself, or with a login that is renewed.
    pub fn may_pass(&self) -> bool {
        match self {
            StoreError::Silent { .. } | StoreError::Refused { .. } | StoreError::NoLogin { .. } => true,
            // A proxy's page while the store starts again.
            StoreError::Garbled { .. } => true,
            StoreError::Address(_) | StoreError::TooLarge { .. } | StoreError::Io { .. } => false,
        }
    }

    /// Returns whether the store has not answered, or cannot answer now, so that nothing is known of what was asked.
    pub fn is_silence(&self) -> bool {
        match self {
            StoreError::Silent { .. } | StoreError::Garbled { .. } => true,
            StoreError::Refused { status, .. } => matches!(status, 408 | 429 | 500..),
            _ => false,
        }
    }
}

/// What a refusal means.
fn refused(status: u16, code: &str, message: &str) -> String {
    let what = match code {
        "NoSuchBucket" => "has no such bucket",
        "AccessDenied" => "denies access",
        "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "InvalidToken" | "NotSignedUp" => {
            "does not take the login"
        }
        "ExpiredToken" | "TokenRefreshRequired" => "no longer takes the login, which has expired",
        "RequestTimeTooSkewed" => "finds that this host's clock is wrong",
        _ if status == 403 => "denies access",
        _ => "refuses",
    };
    let said = [code, message].iter().filter(|text| !text.is_empty()).copied().collect::<Vec<_>>().join(": ");
    format!("{what} ({status}{}{said})", if said.is_empty() { "" } else { " " })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, code: &str) -> StoreError {
        let (place, message) = ("http://s3:9000, bucket b,".to_owned(), "No.".to_owned());
        StoreError::Refused { place, status, code: code.into(), message }
    }

    #[test]
    fn a_refusal_is_told_from_silence_and_says_what_it_means() {
        let denied = answered(403, "InvalidAccessKeyId");
        let said = "the object store http://s3:9000, bucket b, does not take the login (403 InvalidAccessKeyId: No.)";
        assert_eq!(denied.to_string(), said);
        // AWS answers 400 to a token that has expired.
        let expired = answered(400, "ExpiredToken").to_string();
        assert!(expired.contains("which has expired (400 ExpiredToken: No.)"), "{expired}");
        assert!(answered(404, "NoSuchBucket").to_string().contains("has no such bucket"));
        assert!(!denied.is_silence() && answered(503, "SlowDown").is_silence());
        let io = StoreError::Io { path: "x".into(), source: io::Error::other("full") };
        assert!(!io.may_pass() && denied.may_pass());
    }
}
