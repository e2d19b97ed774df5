//! Who receives: a URL and what is spoken there.

use crate::push::error::BadReceiver;
use dyno_types::secret::{MASK, mask_text};
use std::fmt;
use ureq::http::Uri;

/// What a receiver speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushProtocol {
    /// Prometheus remote write 1.0.
    RemoteWrite,
    /// OTLP over HTTP, with protobuf.
    Otlp,
}

impl PushProtocol {
    /// Path where receivers usually listen.
    fn path(self) -> &'static str {
        match self {
            PushProtocol::RemoteWrite => "/api/v1/write",
            PushProtocol::Otlp => "/v1/metrics",
        }
    }

    /// Returns whether a push that was refused with this status may be taken later, by the specification.
    pub(crate) fn is_temporary(self, status: u16) -> bool {
        match self {
            PushProtocol::RemoteWrite => status == 429 || status >= 500,
            PushProtocol::Otlp => matches!(status, 429 | 502 | 503 | 504),
        }
    }
}

/// A receiver.
#[derive(Clone, PartialEq, Eq)]
pub struct Receiver {
    pub(crate) protocol: PushProtocol,
    pub(crate) url: Uri,
    pub(crate) headers: Vec<(String, String)>,
}

impl Receiver {
    /// A receiver at a URL; without a path where receivers usually listen.
    ///
    /// # Errors
    /// The text is no URL of HTTP, or has a login.
    pub fn parse(
        protocol: PushProtocol,
        text: &str,
        headers: Vec<(String, String)>,
    ) -> Result<Self, BadReceiver> {
        if !["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Err(BadReceiver::Scheme);
        }
        let url: Uri = text.parse().map_err(|_| BadReceiver::Url)?;
        if url.authority().is_none_or(|authority| authority.as_str().contains('@')) {
            return Err(BadReceiver::Login);
        }
        let host = url.host().unwrap_or_default();
        // A port that is no number of one is not taken for a port.
        let rest = url.authority().map_or("", |authority| &authority.as_str()[host.len()..]);
        if host.is_empty() || !rest.is_empty() && url.port_u16().is_none() {
            return Err(BadReceiver::Url);
        }
        let mut parts = url.into_parts();
        let bare = parts.path_and_query.as_ref().is_none_or(|path| path.as_str() == "/");
        if bare {
            parts.path_and_query = protocol.path().parse().ok();
        }
        let url = Uri::from_parts(parts).map_err(|_| BadReceiver::Url)?;
        Ok(Receiver { protocol, url, headers })
    }

    /// Returns whether it is on this host.
    pub(crate) fn is_here(&self) -> bool {
        let host = self.url.host().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

/// The URL without its query, in which keys stand; no headers.
impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.url.to_string();
        match whole.split_once('?') {
            Some((place, _)) => write!(f, "{}?{MASK}", mask_text(place)),
            None => f.write_str(&mask_text(&whole)),
        }
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {self}", self.protocol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let parse = |protocol, text: &str| {
            Receiver::parse(protocol, text, Vec::new()).map(|receiver| receiver.to_string())
        };
        use PushProtocol::{Otlp, RemoteWrite};
        for (protocol, text, whole) in [
            (RemoteWrite, "http://h:9090", "http://h:9090/api/v1/write"),
            (RemoteWrite, "https://h/", "https://h/api/v1/write"),
            (RemoteWrite, "http://[::1]:1/push?key=x", "http://[::1]:1/push?***"),
            (Otlp, "http://h:4318", "http://h:4318/v1/metrics"),
            (Otlp, "https://h/otlp/v1/metrics", "https://h/otlp/v1/metrics"),
        ] {
            assert_eq!(parse(protocol, text).as_deref(), Ok(whole));
        }
        for (text, error) in [
            ("h:9090", BadReceiver::Scheme),
            ("prometheus+http://h", BadReceiver::Scheme),
            ("", BadReceiver::Scheme),
            ("http://", BadReceiver::Url),
            ("http://a b", BadReceiver::Url),
            ("http://h:99999", BadReceiver::Url),
            ("http://me:pw@h", BadReceiver::Login),
        ] {
            assert_eq!(parse(Otlp, text), Err(error), "{text}");
        }
        let here = |text: &str| Receiver::parse(Otlp, text, Vec::new()).unwrap().is_here();
        assert!(here("http://localhost:1") && here("http://127.0.0.1") && here("http://[::1]:1"));
        assert!(!here("http://10.0.0.1") && !here("http://localhost.example"));
    }
}
