//! What a URI says, as the driver reads it, and what is told beside it.

use dyno_types::{RefusalCode, Refused};
use mongodb::error::{Error, ErrorKind};
use mongodb::options::{Acknowledgment, ConnectionString, HostInfo, ServerAddress};

/// A target of the official driver.
#[derive(Clone, Debug, PartialEq)]
pub struct OfficialOptions {
    uri: String,
    /// Scheme, user and hosts.
    place: String,
    local: bool,
    /// Database of the records.
    pub database: String,
    /// Inserts replace a record that is there (YCSB's `mongodb.upsert`).
    pub upsert: bool,
}

/// The text without what stands between the user's colon and the last `@` of the hosts' part.
fn without_password(text: &str, uri: &str) -> String {
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let place = rest.split(['/', '?']).next().unwrap_or_default();
    // A password with a slash that is not encoded reaches beyond: everything up to the last @ is hidden then.
    let login = place.rsplit_once('@').or_else(|| rest.rsplit_once('@')).map_or("", |(login, _)| login);
    match login.split_once(':') {
        Some((_, password)) if !password.is_empty() => text.replace(password, "***"),
        _ => text.to_owned(),
    }
}

/// Logins that need a feature of cargo: mechanism, feature, whether this build has it, and what it needs.
const FEATURES: [(&str, &str, bool, &str); 2] = [
    ("MONGODB-AWS", "aws", cfg!(feature = "aws"), ""),
    ("GSSAPI", "gssapi", cfg!(feature = "gssapi"), " (libkrb5-dev and clang)"),
];

/// Refuses a URI that asks for a login that this build does not have.
fn not_built_in(uri: &str) -> Result<(), Refused> {
    let query = uri.split_once('?').map_or("", |(_, query)| query);
    let asked = query.split('&').filter_map(|pair| pair.split_once('='));
    let asked = asked.filter(|(key, _)| key.eq_ignore_ascii_case("authMechanism")).map(|(_, value)| value);
    for asked in asked {
        let of = |(mechanism, ..): &&(&str, &str, bool, &str)| mechanism.eq_ignore_ascii_case(asked);
        if let Some((mechanism, feature, false, needs)) = FEATURES.iter().find(of) {
            return Err(Refused::new(
                RefusalCode::NotBuilt,
                "authMechanism",
                format!(
                    "authMechanism={mechanism}: this build has no such login: build with --features {feature}{needs}"
                ),
            ));
        }
    }
    Ok(())
}

fn refused(error: &Error, uri: &str) -> Refused {
    let message = match &*error.kind {
        ErrorKind::InvalidArgument { message, .. } => message.clone(),
        kind => kind.to_string(),
    };
    Refused::new(RefusalCode::BadValue, "target", without_password(&message, uri))
}

impl OfficialOptions {
    /// Reads `mongodb://...` or `mongodb+srv://...`; nothing is asked of DNS yet.
    pub fn from_uri(uri: &str) -> Result<Self, Refused> {
        if !uri.starts_with("mongodb://") && !uri.starts_with("mongodb+srv://") {
            return Err(Refused::new(
                RefusalCode::Conflict,
                "target",
                "the official driver is for mongodb:// and mongodb+srv:// targets",
            ));
        }
        not_built_in(uri)?;
        let parsed = ConnectionString::parse(uri).map_err(|error| refused(&error, uri))?;
        let unacknowledged = |w: &Option<Acknowledgment>| matches!(w, Some(Acknowledgment::Nodes(0)));
        if parsed.write_concern.as_ref().is_some_and(|concern| unacknowledged(&concern.w)) {
            return Err(Refused::new(
                RefusalCode::Unsupported,
                "w",
                "w=0 (unacknowledged writes) is not offered: without replies there is nothing to measure; use w=1",
            ));
        }
        let user = parsed.credential.as_ref().and_then(|c| c.username.as_deref());
        let user = user.map_or(String::new(), |user| format!("{user}:***@"));
        let (scheme, hosts, local) = match &parsed.host_info {
            HostInfo::HostIdentifiers(all) => {
                let hosts: Vec<String> = all.iter().map(shown).collect();
                ("mongodb", hosts.join(","), all.iter().all(is_local))
            }
            HostInfo::DnsRecord(name) => ("mongodb+srv", name.clone(), false),
            _ => ("mongodb", "?".into(), false),
        };
        Ok(OfficialOptions {
            uri: uri.to_owned(),
            place: format!("{scheme}://{user}{hosts}"),
            local,
            database: parsed.default_database.unwrap_or_else(|| "ycsb".into()),
            upsert: false,
        })
    }

    /// The URI, with its secrets.
    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    /// The URI without secrets.
    pub fn redacted(&self) -> String {
        format!("{}/{}", self.place, self.database)
    }

    /// Returns whether all hosts are this one.
    pub fn is_local(&self) -> bool {
        self.local
    }
}

fn shown(address: &ServerAddress) -> String {
    match address {
        ServerAddress::Tcp { host, port } if host.contains(':') => {
            format!("[{host}]:{}", port.unwrap_or(27017))
        }
        address => address.to_string(),
    }
}

fn is_local(address: &ServerAddress) -> bool {
    match address {
        ServerAddress::Tcp { host, .. } => {
            matches!(host.as_str(), "localhost" | "::1") || host.starts_with("127.")
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_uri() {
        let options =
            OfficialOptions::from_uri("mongodb://us%40er:p%3Ass@a:1,[::1]:2,c/db?w=majority").unwrap();
        assert_eq!(options.redacted(), "mongodb://us@er:***@a:1,[::1]:2,c:27017/db");
        assert!(!options.is_local());
        let srv = OfficialOptions::from_uri("mongodb+srv://u:p@cluster.example.com/").unwrap();
        assert_eq!(srv.redacted(), "mongodb+srv://u:***@cluster.example.com/ycsb");
        assert!(OfficialOptions::from_uri("mongodb://127.0.0.1:1,localhost").unwrap().is_local());
    }

    #[test]
    fn logins_that_are_not_built_in_name_their_feature() {
        for (mechanism, feature, built, _) in FEATURES {
            let uri = format!("mongodb://u:secret@h/?w=1&authmechanism={mechanism}&authSource=$external");
            match OfficialOptions::from_uri(&uri) {
                Ok(options) => assert!(built && options.redacted().starts_with("mongodb://u:***@h:27017/")),
                Err(refused) => {
                    let message = refused.to_string();
                    assert!(!built && message.contains(&format!("--features {feature}")), "{message}");
                    assert!(!message.contains("secret"), "{message}");
                }
            }
        }
    }

    #[test]
    fn refusals_hide_the_password() {
        let text = |uri: &str| OfficialOptions::from_uri(uri).unwrap_err().to_string();
        assert!(text("mongodb://h/?w=0").contains("use w=1"));
        assert!(text("redis://h").contains("mongodb+srv://"));
        for uri in ["mongodb://u:se%cret@h", "mongodb://u:sec/ret@h", "mongodb://u:secret@h/?w=-2"] {
            let message = text(uri);
            assert!(!message.contains("secret") && !message.contains("cret"), "{message}");
        }
    }
}
