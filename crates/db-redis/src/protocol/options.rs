//! Everything a user can set about a Redis target, and its URI.

use dyno_types::address::{Address, Tls, percent_decode as decode};
use dyno_types::units::parse_duration_ns;
use dyno_types::{RefusalCode, Refused, suggest};
use std::path::PathBuf;

/// Form in which a record is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordLayout {
    /// A hash of fields (YCSB's Redis binding).
    Hash,
    /// One string that holds all fields' values end to end: GET and SET.
    String,
}

/// Where keys are listed for scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// The sorted set `_indices` with the Java hash of the key as score (YCSB).
    Zset,
    /// Nowhere: inserts are one command, scans are refused.
    None,
}

/// Where reads go, in a cluster or where one server has copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// To the primary.
    Primary,
    /// To the replicas in turn.
    Replica,
    /// To primary and replicas in turn.
    Any,
}

/// A Redis target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisOptions {
    /// Seed addresses; a single server has one.
    pub addresses: Vec<Address>,
    /// ACL user name.
    pub user: Option<String>,
    /// Password.
    pub password: Option<String>,
    /// Database number.
    pub database: u32,
    /// RESP version: 2 or 3.
    pub protocol: u8,
    /// TLS, if wanted.
    pub tls: Option<Tls>,
    /// True if the target is a cluster.
    pub cluster: bool,
    /// Where reads go.
    pub reads: ReadFrom,
    /// Form in which records are stored.
    pub layout: RecordLayout,
    /// Where keys are listed.
    pub index: Index,
    /// Records of one scan asked for at once; 1 asks one by one, as YCSB does.
    pub scan_window: u32,
    /// Time to live that every insert and update gives its record, milliseconds; `None`: records stay.
    pub ttl_ms: Option<u64>,
}

impl Default for RedisOptions {
    fn default() -> Self {
        RedisOptions {
            addresses: vec![Address::Tcp("127.0.0.1".into(), 6379)],
            user: None,
            password: None,
            database: 0,
            protocol: 2,
            tls: None,
            cluster: false,
            reads: ReadFrom::Primary,
            layout: RecordLayout::Hash,
            index: Index::Zset,
            scan_window: 16,
            ttl_ms: None,
        }
    }
}

const KEYS: [(&str, &str); 14] = [
    ("protocol", "2 or 3"),
    ("cluster", "true or false"),
    ("reads", "primary, replica or any"),
    ("layout", "hash or string"),
    ("index", "zset or none"),
    ("scan-window", "a whole number from 1"),
    ("ttl", "a duration with its unit, such as 60s or 500ms; 0 keeps records"),
    ("user", "a user name"),
    ("db", "a whole number from 0"),
    ("ca", "a PEM file"),
    ("cert", "a PEM file"),
    ("key", "a PEM file"),
    ("insecure", "true or false"),
    ("server-name", "a host name"),
];

impl RedisOptions {
    /// Reads `redis://[user[:password]@]host[:port][,host...][/db][?option=value&...]`, `rediss://...` or
    /// `unix://[user[:password]@]/path[?...]` (also `unix:/path`).
    pub fn from_uri(uri: &str) -> Result<Self, Refused> {
        let (scheme, rest) = uri
            .split_once(':')
            .ok_or_else(|| Refused::new(RefusalCode::Missing, "target", format!("{uri:?} has no scheme")))?;
        let mut options =
            RedisOptions { tls: (scheme == "rediss").then(Tls::default), ..RedisOptions::default() };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, rest),
        };
        if let Some(login) = login {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            options.user = Some(decode(user)?).filter(|u| !u.is_empty());
            options.password = Some(decode(password)?).filter(|p| !p.is_empty());
        }
        if scheme == "unix" {
            if !place.starts_with('/') {
                return Err(Refused::new(
                    RefusalCode::BadValue,
                    place,
                    "a unix: target needs an absolute path, such as unix:///run/redis.sock",
                ));
            }
            options.addresses = vec![Address::Unix(PathBuf::from(decode(place)?))];
        } else {
            options.take_hosts(place)?;
        }
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
            options.set_option(&decode(key)?, &decode(value)?)?;
        }
        options.check()?;
        Ok(options)
    }

    fn take_hosts(&mut self, place: &str) -> Result<(), Refused> {
        let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
        if !database.is_empty() {
            self.set_option("db", database)?;
        }
        let hosts = if hosts.is_empty() { "127.0.0.1" } else { hosts };
        self.addresses = hosts.split(',').map(host_and_port).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Sets one option by its name, as in a URI's query.
    pub fn set_option(&mut self, key: &str, value: &str) -> Result<(), Refused> {
        let truth = || match value {
            "true" | "1" | "yes" => Some(true),
            "false" | "0" | "no" => Some(false),
            _ => None,
        };
        let name = key.replace('_', "-");
        let set: Option<()> = match name.as_str() {
            "protocol" => value.parse().ok().filter(|v| [2, 3].contains(v)).map(|v| self.protocol = v),
            "cluster" => truth().map(|v| self.cluster = v),
            "reads" => match value {
                "primary" => {
                    let _: () = self.reads = ReadFrom::Primary;
                    Some(())
                }
                "replica" => {
                    let _: () = self.reads = ReadFrom::Replica;
                    Some(())
                }
                "any" => {
                    let _: () = self.reads = ReadFrom::Any;
                    Some(())
                }
                _ => None,
            },
            "layout" => match value {
                "hash" => {
                    let _: () = self.layout = RecordLayout::Hash;
                    Some(())
                }
                "string" => Some((self.layout, self.index) = (RecordLayout::String, Index::None)),
                _ => None,
            },
            "index" => match value {
                "zset" => {
                    let _: () = self.index = Index::Zset;
                    Some(())
                }
                "none" => {
                    let _: () = self.index = Index::None;
                    Some(())
                }
                _ => None,
            },
            "ttl" => parse_duration_ns(value, 1)
                .ok()
                .filter(|ns| ns % 1_000_000 == 0 && (*ns == 0 || value.ends_with(char::is_alphabetic)))
                .map(|ns| self.ttl_ms = Some(ns / 1_000_000).filter(|ms| *ms > 0)),
            "scan-window" => value.parse().ok().filter(|&v| v > 0).map(|v| self.scan_window = v),
            "user" => {
                let _: () = self.user = Some(value.to_owned());
                Some(())
            }
            "db" => value.parse().ok().map(|v| self.database = v),
            "ca" => {
                let _: () = self.tls_mut().ca = Some(value.into());
                Some(())
            }
            "cert" => {
                let _: () = self.tls_mut().cert = Some(value.into());
                Some(())
            }
            "key" => {
                let _: () = self.tls_mut().key = Some(value.into());
                Some(())
            }
            "insecure" => truth().map(|v| self.tls_mut().insecure = v),
            "server-name" => {
                let _: () = self.tls_mut().server_name = Some(value.to_owned());
                Some(())
            }
            _ => return Err(unknown(key)),
        };
        let accepted = KEYS.iter().find(|(k, _)| *k == name).map_or("", |(_, accepted)| accepted);
        set.ok_or_else(|| {
            Refused::new(
                RefusalCode::BadValue,
                key,
                format!("option {key}={value} of the Redis target: expected {accepted}"),
            )
        })
    }

    fn tls_mut(&mut self) -> &mut Tls {
        self.tls.get_or_insert_default()
    }

    /// Refuses an invalid configuration.
    pub fn check(&self) -> Result<(), Refused> {
        if self.cluster && self.database != 0 {
            return Err(Refused::new(
                RefusalCode::Unsupported,
                "target",
                format!("a Redis cluster has only database 0, not {}", self.database),
            ));
        }
        if let Some(tls) = &self.tls
            && tls.cert.is_some() != tls.key.is_some()
        {
            return Err(Refused::new(
                RefusalCode::Missing,
                if tls.cert.is_none() { "cert" } else { "key" },
                "a client certificate needs both cert=FILE and key=FILE",
            ));
        }
        Ok(())
    }

    /// Returns whether there is a login: a user without a password is one of the ACL's with `nopass`.
    pub fn logs_in(&self) -> bool {
        self.user.is_some() || self.password.is_some()
    }

    /// The URI without its password.
    pub fn redacted(&self) -> String {
        let scheme = match (&self.addresses[0], &self.tls) {
            (Address::Unix(_), _) => "unix",
            (_, Some(_)) => "rediss",
            _ => "redis",
        };
        let login = match (&self.user, &self.password) {
            (Some(user), Some(_)) => format!("{user}:***@"),
            (Some(user), None) => format!("{user}@"),
            (None, Some(_)) => ":***@".to_owned(),
            _ => String::new(),
        };
        let places: Vec<String> = self
            .addresses
            .iter()
            .map(|a| match a {
                Address::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
                Address::Tcp(host, port) => format!("{host}:{port}"),
                Address::Unix(path) => path.display().to_string(),
            })
            .collect();
        let database = if self.database > 0 { format!("/{}", self.database) } else { String::new() };
        format!("{scheme}://{login}{}{database}", places.join(","))
    }
}

fn host_and_port(text: &str) -> Result<Address, Refused> {
    let bad = || {
        Refused::new(RefusalCode::BadValue, text, format!("{text:?} is not HOST, HOST:PORT or [IPv6]:PORT"))
    };
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, tail) = rest.split_once(']').ok_or_else(bad)?;
            (host, tail.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok().filter(|&p: &u16| p > 0).ok_or_else(bad)?,
        None => 6379,
    };
    if host.is_empty() { Err(bad()) } else { Ok(Address::Tcp(decode(host)?, port)) }
}

fn unknown(key: &str) -> Refused {
    let names: Vec<&str> = KEYS.iter().map(|(k, _)| *k).collect();
    let hint = suggest::hint(key, names.iter().copied());
    Refused::new(
        RefusalCode::UnknownName,
        key,
        format!("unknown option {key:?} of the Redis target{hint}; accepted: {}", names.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris() {
        let o = RedisOptions::from_uri(
            "rediss://bob:p%40ss@[::1]:7000,h2/0?cluster=true&ca=/tmp/ca.pem&reads=any",
        )
        .unwrap();
        assert_eq!(o.addresses, [Address::Tcp("::1".into(), 7000), Address::Tcp("h2".into(), 6379)]);
        assert_eq!((o.user.as_deref(), o.password.as_deref()), (Some("bob"), Some("p@ss")));
        // One of the ACL's with `nopass`.
        let open = RedisOptions::from_uri("redis://bob@h").unwrap();
        assert!(open.logs_in() && open.password.is_none());
        assert_eq!(open.redacted(), "redis://bob@h:6379");
        assert_eq!(o.tls.as_ref().unwrap().ca, Some("/tmp/ca.pem".into()));
        assert_eq!((o.cluster, o.reads), (true, ReadFrom::Any));
        assert!(!o.redacted().contains("p@ss"));
        let o = RedisOptions::from_uri("unix:///run/r.sock?db=3").unwrap();
        assert_eq!((o.addresses[0].clone(), o.database), (Address::Unix("/run/r.sock".into()), 3));
        assert_eq!(
            RedisOptions::from_uri("redis://:secret@h/2").unwrap().redacted(),
            "redis://:***@h:6379/2"
        );
    }

    #[test]
    fn refusals_name_what_is_accepted() {
        let text = |uri: &str| RedisOptions::from_uri(uri).unwrap_err().to_string();
        assert!(text("redis://h?clutser=true").contains("did you mean cluster"));
        assert!(text("redis://h?protocol=4").contains("2 or 3"));
        assert!(text("redis://h:x").contains("HOST:PORT"));
        assert!(text("redis://h/1?cluster=true").contains("database 0"));
        assert!(text("unix:run").contains("absolute path"));
    }
}
