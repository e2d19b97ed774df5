//! Everything a connection string can say (MongoDB's "Connection String" and "URI Options" specifications).

use super::compress::Compressor;
use super::scram::Mechanism;
use super::selection::{ReadPreference, Selection};
use super::srv::{Srv, some};
use crate::address::{Address, Tls, percent_decode};
use dyno_types::Refused;
use dyno_types::bson::{self, kind};
use std::path::PathBuf;

/// Number of members that must have a write before it is acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteConcern {
    /// `w`: a number of members, or `majority` or a tag. `None` leaves it to the server.
    pub w: Option<String>,
    /// `j`: whether it must be in the journal.
    pub journal: Option<bool>,
    /// `wtimeout`, milliseconds.
    pub timeout_ms: Option<u64>,
}

impl WriteConcern {
    /// Returns whether the server's default is left alone.
    pub fn is_default(&self) -> bool {
        *self == WriteConcern::default()
    }

    /// Appends it as an element.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        bson::head(out, kind::DOCUMENT, "writeConcern");
        let inner = bson::open(out);
        match self.w.as_deref().map(|w| (w, w.parse::<i32>())) {
            Some((_, Ok(members))) => bson::int32(out, "w", members),
            Some((tag, Err(_))) => bson::string(out, "w", tag),
            None => {}
        }
        match self.timeout_ms.map(|ms| (i32::try_from(ms), ms)) {
            Some((Ok(ms), _)) => bson::int32(out, "wtimeout", ms),
            Some((Err(_), ms)) => bson::int64(out, "wtimeout", ms as i64),
            None => {}
        }
        if let Some(journal) = self.journal {
            bson::boolean(out, "j", journal);
        }
        bson::close(out, inner);
    }
}

/// Method of login, and the user who logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// By a password.
    Scram {
        /// `None` takes the best that the server offers.
        mechanism: Option<Mechanism>,
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// By the client's certificate.
    X509 {
        /// The certificate's subject; the server takes it from the certificate where it is not given.
        user: Option<String>,
    },
}

/// A target that speaks MongoDB's protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MongoOptions {
    /// Seeds.
    pub addresses: Vec<Address>,
    /// Questions to DNS for the seeds.
    pub srv: Option<Srv>,
    /// Database of the records.
    pub database: String,
    /// Login.
    pub auth: Option<Auth>,
    /// Database that knows the user.
    pub auth_source: String,
    /// TLS.
    pub tls: Option<Tls>,
    /// Name of the replica set, if one is expected.
    pub replica_set: Option<String>,
    /// Only the seed itself is spoken to.
    pub direct: bool,
    /// Write concern.
    pub write_concern: WriteConcern,
    /// Read concern.
    pub read_concern: Option<String>,
    /// Which members are read from.
    pub read_preference: ReadPreference,
    /// Conditions that narrow the choice of members.
    pub selection: Selection,
    /// Compressors offered, in order of preference.
    pub compressors: Vec<Compressor>,
    /// Level of zlib, -1 for its own choice.
    pub zlib_level: i8,
    /// Name of the application in the server's log.
    pub app_name: String,
    /// Inserts replace a record that is there (YCSB's `mongodb.upsert`).
    pub upsert: bool,
    /// Writes of single documents are numbered and sent once more where the server says that they may be.
    pub retry_writes: bool,
    /// Reads are sent once more where the server says that they may be or the connection is lost.
    pub retry_reads: bool,
    /// Options that were given and change nothing here.
    pub unused: Vec<String>,
}

/// Options of drivers that have no counterpart here: connections follow users, and the run's own time-outs count.
const UNUSED: [&str; 16] = [
    "maxpoolsize",
    "minpoolsize",
    "maxidletimems",
    "maxlifetimems",
    "streamtype",
    "maxconnecting",
    "waitqueuetimeoutms",
    "waitqueuemultiple",
    "connecttimeoutms",
    "sockettimeoutms",
    "serverselectiontryonce",
    "timeoutms",
    "uuidrepresentation",
    "servermonitoringmode",
    // Neither is checked here, with or without them.
    "tlsdisableocspendpointcheck",
    "tlsdisablecertificaterevocationcheck",
];

/// Options that only the official driver has.
const OFFICIAL: [&str; 5] =
    ["tlscertificatekeyfilepassword", "proxyhost", "proxyport", "proxyusername", "proxypassword"];

const KNOWN: &str = "appName, authMechanism, authSource, compressors, directConnection, heartbeatFrequencyMS, journal, \
    localThresholdMS, maxStalenessSeconds, readConcernLevel, readPreference, readPreferenceTags, replicaSet, retryReads, \
    retryWrites, serverSelectionTimeoutMS, srvMaxHosts, srvServiceName, tls, tlsAllowInvalidCertificates, \
    tlsAllowInvalidHostnames, tlsCAFile, tlsCertificateKeyFile, tlsInsecure, w, wTimeoutMS, zlibCompressionLevel";

impl Default for MongoOptions {
    fn default() -> Self {
        MongoOptions {
            addresses: vec![Address::Tcp("localhost".into(), 27017)],
            srv: None,
            database: "ycsb".into(),
            auth: None,
            auth_source: "admin".into(),
            tls: None,
            replica_set: None,
            direct: false,
            write_concern: WriteConcern::default(),
            read_concern: None,
            read_preference: ReadPreference::Primary,
            selection: Selection::default(),
            compressors: Vec::new(),
            zlib_level: -1,
            app_name: "dyno".into(),
            upsert: false,
            retry_writes: false,
            retry_reads: false,
            unused: Vec::new(),
        }
    }
}

const UNESCAPED: &str = "there is an @ behind the first / or ?: in a user or password write %2F for /, %3F for ? and \
                         %40 for @";

/// Parts of the login in the options, until all of them are known.
#[derive(Default)]
struct Pending {
    user: Option<String>,
    password: Option<String>,
    mechanism: Option<String>,
    source: Option<String>,
    any_name: bool,
}

impl MongoOptions {
    /// Reads `mongodb://[user:password@]host[:port][,...]/[database][?options]` or `mongodb+srv://[...@]name/...`, whose
    /// hosts are asked of DNS later ([`MongoOptions::with_records`]).
    pub fn from_uri(uri: &str) -> Result<Self, Refused> {
        let (by_records, rest) = match (uri.strip_prefix("mongodb://"), uri.strip_prefix("mongodb+srv://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(Refused("expected mongodb://host:port/ or mongodb+srv://name/".into())),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, database) = place.split_once('/').unwrap_or((place, ""));
        let (login, hosts) = match place.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, place),
        };
        // A / or ? in a password ends the place early; what comes out must not be shown.
        let unescaped = login.is_none() && rest.contains('@');
        let addresses_of = |hosts: &str| match addresses(hosts) {
            Err(_) if unescaped => Err(Refused(UNESCAPED.into())),
            read => read,
        };
        if unescaped && database.contains('@') {
            return Err(Refused(UNESCAPED.into()));
        }
        let srv = match by_records.then(|| Srv::new(hosts, query)) {
            Some(Err(_)) if unescaped => return Err(Refused(UNESCAPED.into())),
            read => read.transpose()?,
        };
        let addresses = if by_records { Vec::new() } else { addresses_of(hosts)? };
        // TLS is the default where the hosts come from DNS.
        let tls = srv.as_ref().filter(|srv| !srv.sets(&["tls", "ssl"])).map(|_| Tls::default());
        let mut options = MongoOptions { addresses, srv, tls, ..MongoOptions::default() };
        let mut pending = Pending::default();
        if let Some(login) = login {
            let (user, password) = login.split_once(':').map_or((login, None), |(u, p)| (u, Some(p)));
            let hidden =
                |_| Refused("the user or password has a % that is not followed by two hex digits".into());
            pending.user = Some(percent_decode(user).map_err(hidden)?).filter(|u| !u.is_empty());
            pending.password = password.map(percent_decode).transpose().map_err(hidden)?;
        }
        let database = percent_decode(database)?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(|| match pair.contains('@') {
                true => Refused(UNESCAPED.into()),
                false => Refused(format!("option {pair:?} has no value")),
            })?;
            options.set(key, &percent_decode(value)?, &mut pending)?;
        }
        options.auth_source = match &pending.source {
            Some(source) => source.clone(),
            None if database.is_empty() => "admin".into(),
            None => database.clone(),
        };
        if !database.is_empty() {
            check_database(&database)?;
            options.database = database;
        }
        if let Some(tls) = options.tls.as_mut().filter(|_| pending.any_name) {
            tls.any_name = true;
        }
        options.auth = auth(pending)?;
        options.check()?;
        Ok(options)
    }

    fn set(&mut self, key: &str, value: &str, pending: &mut Pending) -> Result<(), Refused> {
        let refuse = |expected: &str| Refused(format!("option {key}={value}: expected {expected}"));
        let flag = || match value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(refuse("true or false")),
        };
        match key.to_ascii_lowercase().as_str() {
            "authsource" => pending.source = Some(value.into()),
            "authmechanism" => pending.mechanism = Some(value.into()),
            "authmechanismproperties" => {
                return Err(Refused(format!(
                    "option {key}: the mechanisms that have properties are --client official's"
                )));
            }
            "replicaset" => self.replica_set = Some(value.into()).filter(|name: &String| !name.is_empty()),
            "retrywrites" => self.retry_writes = flag()?,
            "retryreads" => self.retry_reads = flag()?,
            "directconnection" => self.direct = flag()?,
            "loadbalanced" if flag()? => return Err(refuse("false: load balancers are not offered")),
            "loadbalanced" => {}
            "w" => self.write_concern.w = Some(value.into()),
            "journal" | "j" => self.write_concern.journal = Some(flag()?),
            "wtimeoutms" | "wtimeout" => {
                self.write_concern.timeout_ms = Some(value.parse().map_err(|_| refuse("milliseconds"))?);
            }
            "readconcernlevel" => self.read_concern = Some(value.into()),
            "readpreference" => {
                let found = ReadPreference::NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
                let names = ReadPreference::NAMES.map(|(name, _)| name).join(", ");
                self.read_preference = found.ok_or_else(|| refuse(&names))?.1;
            }
            "tls" | "ssl" if flag()? => drop(self.tls.get_or_insert_default()),
            "tls" | "ssl" if self.tls.is_some() => return Err(refuse("true beside other tls options")),
            "tls" | "ssl" => {}
            "tlscafile" => self.tls.get_or_insert_default().ca = Some(PathBuf::from(value)),
            "tlscertificatekeyfile" => {
                let tls = self.tls.get_or_insert_default();
                (tls.cert, tls.key) = (Some(PathBuf::from(value)), Some(PathBuf::from(value)));
            }
            "tlsinsecure" | "tlsallowinvalidcertificates" if flag()? => {
                self.tls.get_or_insert_default().insecure = true;
            }
            "tlsinsecure" | "tlsallowinvalidcertificates" => {}
            "tlsallowinvalidhostnames" if flag()? => self.tls.get_or_insert_default().any_name = true,
            "tlsallowinvalidhostnames" => {}
            // It turns TLS on with none of the drivers that know it.
            "sslinvalidhostnameallowed" => pending.any_name = flag()?,
            // Names of the Java driver before its version 4.
            "safe" => self.write_concern.w = Some(if flag()? { "1" } else { "0" }.into()),
            "fsync" if flag()? => self.write_concern.journal = Some(true),
            "fsync" => {}
            "slaveok" if flag()? => self.read_preference = ReadPreference::SecondaryPreferred,
            "slaveok" => {}
            known if OFFICIAL.contains(&known) => {
                return Err(Refused(format!("option {key}: --client official has it")));
            }
            "compressors" => {
                self.compressors = compressors(value).ok_or_else(|| refuse("snappy, zlib, zstd"))?
            }
            "zlibcompressionlevel" => {
                let level = value.parse().ok().filter(|n| (-1..=9).contains(n));
                self.zlib_level = level.ok_or_else(|| refuse("-1 to 9"))?;
            }
            "appname" => self.app_name = value.into(),
            "srvmaxhosts" | "srvservicename" => {
                let srv = self
                    .srv
                    .as_mut()
                    .ok_or_else(|| Refused(format!("option {key}: is for mongodb+srv:// alone")))?;
                if key.eq_ignore_ascii_case("srvMaxHosts") {
                    srv.max_hosts = value.parse().map_err(|_| refuse("a number from 0 (all)"))?;
                } else {
                    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
                    let good = (1..=15).contains(&value.len()) && value.chars().all(is_name);
                    srv.service = Some(value)
                        .filter(|_| good)
                        .ok_or_else(|| refuse("1 to 15 letters, digits or -"))?
                        .into();
                }
            }
            known if UNUSED.contains(&known) => self.unused.push(key.into()),
            known if self.selection.set(known, value).map_err(refuse)? => {}
            _ => return Err(Refused(format!("unknown option {key:?} in the URI; known: {KNOWN}"))),
        }
        Ok(())
    }

    /// Refuses what contradicts itself or cannot be done.
    pub fn check(&self) -> Result<(), Refused> {
        let refuse = |text: &str| Err(Refused(text.into()));
        if self.write_concern.w.as_deref() == Some("0") {
            return refuse(
                "w=0 (unacknowledged writes) is not offered: without replies there is nothing to measure; use w=1",
            );
        }
        if self.direct && (self.addresses.len() > 1 || self.srv.is_some()) {
            return refuse("directConnection=true needs one host, and no mongodb+srv://");
        }
        if self.srv.as_ref().is_some_and(|srv| srv.max_hosts > 0) && self.replica_set.is_some() {
            return refuse("srvMaxHosts is for routers: not together with replicaSet");
        }
        self.selection.check(self.read_preference)?;
        check_database(&self.database)?;
        if self.app_name.len() > 128 {
            return refuse("appName: at most 128 bytes");
        }
        if matches!(self.auth, Some(Auth::X509 { .. })) && self.tls.as_ref().is_none_or(|t| t.cert.is_none())
        {
            return refuse("authMechanism=MONGODB-X509 needs tlsCertificateKeyFile=FILE");
        }
        Ok(())
    }

    /// The URI without secrets.
    pub fn redacted(&self) -> String {
        let user = match &self.auth {
            Some(Auth::Scram { user, .. }) => format!("{user}:***@"),
            Some(Auth::X509 { .. }) | None => String::new(),
        };
        if let Some(srv) = &self.srv {
            return format!("mongodb+srv://{user}{}/{}", srv.host, self.database);
        }
        let hosts: Vec<String> = self
            .addresses
            .iter()
            .map(|address| match address {
                Address::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
                Address::Tcp(host, port) => format!("{host}:{port}"),
                Address::Unix(path) => path.display().to_string(),
            })
            .collect();
        format!("mongodb://{user}{}/{}", hosts.join(","), self.database)
    }

    /// The options with what DNS has said: hosts of the SRV records of [`Srv::name`], texts of the TXT records of
    /// [`Srv::host`].
    pub fn with_records(mut self, hosts: Vec<(String, u16)>, texts: &[String]) -> Result<Self, Refused> {
        let Some(srv) = self.srv.clone() else { return Ok(self) };
        let addresses = srv.accept(hosts)?;
        match texts {
            [] => {}
            [text] => self.take_text(&srv, text)?,
            _ => {
                return Err(Refused(format!("{} has {} TXT records; one is allowed", srv.host, texts.len())));
            }
        }
        if srv.max_hosts > 0 && self.replica_set.is_some() {
            return Err(Refused("srvMaxHosts is for routers: not together with replicaSet".into()));
        }
        self.addresses = some(addresses, srv.max_hosts)?;
        self.check()?;
        Ok(self)
    }

    fn take_text(&mut self, srv: &Srv, text: &str) -> Result<(), Refused> {
        let bad = |why: &str| Refused(format!("the TXT record of {}: {text:?}: {why}", srv.host));
        for pair in text.split('&') {
            let (key, value) = pair.split_once('=').ok_or_else(|| bad("expected name=value"))?;
            if value.is_empty() {
                return Err(bad("a value is empty"));
            }
            match key.to_ascii_lowercase().as_str() {
                key @ "authsource" if !srv.sets(&[key]) => self.auth_source = value.into(),
                key @ "replicaset" if !srv.sets(&[key]) => self.replica_set = Some(value.into()),
                "authsource" | "replicaset" => {}
                "loadbalanced" => match value {
                    "false" => {}
                    _ if srv.sets(&["loadbalanced"]) => {}
                    _ => return Err(bad("load balancers are not offered")),
                },
                _ => return Err(bad("only authSource, replicaSet and loadBalanced may stand there")),
            }
        }
        Ok(())
    }
}

fn addresses(hosts: &str) -> Result<Vec<Address>, Refused> {
    hosts
        .split(',')
        .map(|host| {
            let bad = |why: &str| Refused(format!("host {host:?}: {why}"));
            if host.ends_with(".sock") {
                return percent_decode(host).map(|path| Address::Unix(path.into()));
            }
            let port = |text: &str| {
                text.parse().ok().filter(|&p: &u16| p > 0).ok_or_else(|| bad("a port is 1 to 65535"))
            };
            let (name, port) = match (host.strip_prefix('['), host.split_once(':')) {
                (Some(rest), _) => {
                    let (name, tail) = rest.split_once(']').ok_or_else(|| bad("no ] after the address"))?;
                    (name, tail.strip_prefix(':').map_or(Ok(27017), port)?)
                }
                (None, Some((name, number))) => (name, port(number)?),
                (None, None) => (host, 27017),
            };
            if name.is_empty() {
                return Err(bad("a name or address is missing"));
            }
            Ok(Address::Tcp(name.into(), port))
        })
        .collect()
}

fn check_database(name: &str) -> Result<(), Refused> {
    if name.len() > 63 || name.contains(['/', '\\', ' ', '"', '$', '.', '\0']) {
        return Err(Refused(format!(
            "database {name:?}: a name of up to 63 bytes without / \\ . \" $ and space"
        )));
    }
    Ok(())
}

fn compressors(value: &str) -> Option<Vec<Compressor>> {
    value.split(',').map(|name| Compressor::from_name(name.trim())).collect()
}

fn auth(pending: Pending) -> Result<Option<Auth>, Refused> {
    let mechanism = match pending.mechanism.as_deref() {
        None => None,
        Some("SCRAM-SHA-1") => Some(Mechanism::Sha1),
        Some("SCRAM-SHA-256") => Some(Mechanism::Sha256),
        Some("MONGODB-X509") => return Ok(Some(Auth::X509 { user: pending.user })),
        Some(other) => {
            return Err(Refused(format!(
                "option authMechanism={other}: expected SCRAM-SHA-1, SCRAM-SHA-256 or MONGODB-X509; --client official has \
                 others"
            )));
        }
    };
    match (pending.user, pending.password) {
        (None, None) if mechanism.is_none() => Ok(None),
        (Some(user), Some(password)) => Ok(Some(Auth::Scram { mechanism, user, password })),
        (Some(_), None) => Err(Refused("the URI names a user but no password".into())),
        (None, _) => Err(Refused("the URI names no user to log in".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(uri: &str) -> String {
        MongoOptions::from_uri(uri).unwrap_err().0
    }

    #[test]
    fn a_whole_uri() {
        let uri = "mongodb://us%40er:p%3Ass@a:1,[::1]:2,c/db?replicaSet=rs0&w=majority&journal=true&readPreference=\
                   secondaryPreferred&compressors=zstd,snappy&tlsCAFile=/ca.pem&maxPoolSize=7&authSource=users";
        let options = MongoOptions::from_uri(uri).unwrap();
        let tcp = |host: &str, port| Address::Tcp(host.into(), port);
        assert_eq!(options.addresses, [tcp("a", 1), tcp("::1", 2), tcp("c", 27017)]);
        let auth = Auth::Scram { mechanism: None, user: "us@er".into(), password: "p:ss".into() };
        assert_eq!(options.auth, Some(auth));
        assert_eq!((options.database.as_str(), options.auth_source.as_str()), ("db", "users"));
        assert_eq!(options.write_concern.w.as_deref(), Some("majority"));
        assert_eq!(options.read_preference, ReadPreference::SecondaryPreferred);
        assert_eq!(options.compressors, [Compressor::Zstd, Compressor::Snappy]);
        assert_eq!(options.unused, ["maxPoolSize"]);
        assert!(options.tls.is_some());
        assert_eq!(options.redacted(), "mongodb://us@er:***@a:1,[::1]:2,c:27017/db");
    }

    #[test]
    fn defaults() {
        let options = MongoOptions::from_uri("mongodb://localhost").unwrap();
        assert_eq!(options, MongoOptions::default());
        let with_login = MongoOptions::from_uri("mongodb://u:p@h/x").unwrap();
        assert_eq!(with_login.auth_source, "x");
        assert_eq!(MongoOptions::from_uri("mongodb://u:p@h").unwrap().auth_source, "admin");
    }

    #[test]
    fn refusals_name_option_and_accepted_values_and_no_password() {
        for (uri, words) in [
            ("mongodb+srv://h:1", "no port"),
            ("mongodb://h:0", "1 to 65535"),
            ("mongodb://", "missing"),
            ("mongodb://u@h", "no password"),
            ("mongodb://h/?w=0", "use w=1"),
            ("mongodb://h/?readPreference=best", "nearest"),
            ("mongodb://h/?colour=red", "unknown option"),
            ("mongodb://h/?tls=maybe", "true or false"),
            ("mongodb://h/a.b", "63 bytes"),
            ("mongodb://h/?authMechanism=GSSAPI", "MONGODB-X509"),
            ("mongodb://h/?authMechanism=MONGODB-X509", "tlsCertificateKeyFile"),
            ("mongodb://a,b/?directConnection=true", "one host"),
            ("mongodb://h/?compressors=lz4", "zstd"),
        ] {
            assert!(refused(uri).contains(words), "{uri}: {}", refused(uri));
        }
        assert!(!refused("mongodb://u:sec%ret@h").contains("sec"));
        for uri in ["u:sec/ret@h/db", "u:sec?ret@h/", "u:1/sec@h", "u:1?sec@h/"] {
            let words = refused(&format!("mongodb://{uri}"));
            assert!(words.contains("%2F") && !words.contains("sec"), "{uri}: {words}");
        }
        assert!(MongoOptions::from_uri("mongodb://h/?appName=a@b").is_ok());
        assert!(refused("mongodb://h/?proxyHost=p").contains("--client official"));
        assert!(refused("mongodb://h/?srvMaxHosts=1").contains("mongodb+srv:// alone"));
        let names = MongoOptions::from_uri("mongodb://h/?tlsAllowInvalidHostnames=true").unwrap();
        assert!(names.tls.is_some_and(|tls| tls.any_name && !tls.insecure));
        let old = |uri: &str| MongoOptions::from_uri(uri).unwrap().tls.map(|tls| tls.any_name);
        assert_eq!(old("mongodb://h/?sslInvalidHostNameAllowed=true"), None);
        assert_eq!(old("mongodb://h/?sslInvalidHostNameAllowed=true&ssl=true"), Some(true));
    }
}
