//! TLS options of a connection string, and which of them contradict each other.

use dyno_types::address::Tls;
use dyno_types::{RefusalCode, Refused};
use std::path::PathBuf;

/// Options that must not stand together, whatever their values, in lower case.
const CONTRADICTIONS: [(&str, &str); 7] = [
    ("tlsinsecure", "tlsallowinvalidcertificates"),
    ("tlsinsecure", "tlsallowinvalidhostnames"),
    ("tlsinsecure", "tlsdisableocspendpointcheck"),
    ("tlsinsecure", "tlsdisablecertificaterevocationcheck"),
    ("tlsallowinvalidcertificates", "tlsdisableocspendpointcheck"),
    ("tlsallowinvalidcertificates", "tlsdisablecertificaterevocationcheck"),
    ("tlsdisableocspendpointcheck", "tlsdisablecertificaterevocationcheck"),
];

/// TLS options, until all of them are known.
#[derive(Default)]
pub(super) struct TlsParts {
    /// `tls` or `ssl` as it is written, and its value.
    switch: Option<(String, bool)>,
    /// All others, as they are written.
    given: Vec<String>,
    /// The first that is of use with TLS alone, as it is written.
    asks: Option<String>,
    /// The old `sslInvalidHostNameAllowed`, which turns TLS on with none of the drivers that know it.
    any_name: bool,
    tls: Tls,
}

impl TlsParts {
    /// Takes one of the options, whose name in lower case is `known`; false if it is none of them.
    pub fn set_option(&mut self, known: &str, key: &str, value: &str) -> Result<bool, Refused> {
        let flag = || parse_flag(key, value);
        let asks = match known {
            "tls" | "ssl" => {
                let on = flag()?;
                match &self.switch {
                    Some((first, other)) if *other != on => {
                        return Err(Refused::new(
                            RefusalCode::Conflict,
                            key,
                            format!(
                                "options {first}={other} and {key}={value} contradict each other: give tls alone"
                            ),
                        ));
                    }
                    _ => self.switch = Some((key.into(), on)),
                }
                return Ok(true);
            }
            "sslinvalidhostnameallowed" => {
                self.any_name = flag()?;
                return Ok(true);
            }
            "tlscafile" => {
                self.tls.ca = Some(PathBuf::from(value));
                true
            }
            "tlscertificatekeyfile" => {
                (self.tls.cert, self.tls.key) = (Some(PathBuf::from(value)), Some(PathBuf::from(value)));
                true
            }
            "tlsinsecure" | "tlsallowinvalidcertificates" => {
                let on = flag()?;
                self.tls.insecure |= on;
                on
            }
            "tlsallowinvalidhostnames" => {
                self.tls.any_name = flag()?;
                self.tls.any_name
            }
            // Neither is checked here, with or without them.
            "tlsdisableocspendpointcheck" | "tlsdisablecertificaterevocationcheck" => {
                flag().map(|_| false)?
            }
            _ => return Ok(false),
        };
        if asks {
            self.asks.get_or_insert_with(|| key.into());
        }
        self.given.push(key.into());
        Ok(true)
    }

    /// The settings; `by_default` says whether TLS is on where the options leave it open.
    pub fn finish(mut self, by_default: bool) -> Result<Option<Tls>, Refused> {
        let given = |name: &str| self.given.iter().find(|key| key.eq_ignore_ascii_case(name));
        for (one, other) in CONTRADICTIONS {
            if let (Some(one), Some(other)) = (given(one), given(other)) {
                return Err(Refused::new(
                    RefusalCode::Conflict,
                    one,
                    format!(
                        "options {one} and {other} must not stand together, whatever their values: give one"
                    ),
                ));
            }
        }
        let on = match (&self.switch, &self.asks) {
            (Some((switch, false)), Some(asks)) => {
                return Err(Refused::new(
                    RefusalCode::Conflict,
                    switch,
                    format!("option {switch}=false: expected true beside {asks}"),
                ));
            }
            (Some((_, on)), _) => *on,
            (None, asks) => by_default || asks.is_some(),
        };
        self.tls.any_name |= self.any_name;
        Ok(on.then_some(self.tls))
    }
}

pub(super) fn parse_flag(key: &str, value: &str) -> Result<bool, Refused> {
    value.parse().map_err(|_| refuse_value(key, value, "true or false"))
}

pub(super) fn refuse_value(key: &str, value: &str, expected: &str) -> Refused {
    Refused::new(RefusalCode::BadValue, key, format!("option {key}={value}: expected {expected}"))
}
