//! Where a server listens and how the way to it is secured, as a user writes it down.

use crate::{RefusalCode, Refused, percent};
use std::path::PathBuf;

/// TLS settings; files are PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificates to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// Client certificate chain.
    pub cert: Option<PathBuf>,
    /// Client key.
    pub key: Option<PathBuf>,
    /// Accept any certificate. The report says so.
    pub insecure: bool,
    /// Accept a certificate of another name, if a trusted authority has signed it.
    pub any_name: bool,
    /// Name to verify and to send as SNI, if not the host.
    pub server_name: Option<String>,
}

/// Where the first connection goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host and port.
    Tcp(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Undoes percent-encoding.
///
/// # Errors
/// What follows a `%` is no two hex digits, or the result is not UTF-8.
pub fn percent_decode(text: &str) -> Result<String, Refused> {
    let decoded = percent::decode(text).ok_or_else(|| {
        Refused::new(
            RefusalCode::BadValue,
            "target",
            format!("{text:?} has a % that is not followed by two hex digits"),
        )
    })?;
    String::from_utf8(decoded).map_err(|_| {
        Refused::new(RefusalCode::BadValue, "target", format!("{text:?} is not UTF-8 after decoding"))
    })
}
