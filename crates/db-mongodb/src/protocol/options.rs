//! Everything a connection string can say (MongoDB's "Connection String" and "URI Options" specifications).

mod credentials;
mod hosts;
mod security;
#[cfg(test)]
mod tests;

pub use self::credentials::Auth;
use self::credentials::{EXTERNAL, LoginParts};
use self::hosts::{addresses, check_database};
use self::security::{TlsParts, parse_flag, refuse_value};
use super::compress::Compressor;
use super::selection::{ReadPreference, Selection};
use super::srv::{Srv, is_service, some};
use dyno_types::address::{Address, Tls, percent_decode};
use dyno_types::bson::{self, kind};
use dyno_types::suggest::nearest;
use dyno_types::{RefusalCode, Refused};

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
        bson::put_head(out, kind::DOCUMENT, "writeConcern");
        let inner = bson::open(out);
        match self.w.as_deref().map(|w| (w, w.parse::<i32>())) {
            Some((_, Ok(members))) => bson::put_int32(out, "w", members),
            Some((tag, Err(_))) => bson::put_string(out, "w", tag),
            None => {}
        }
        match self.timeout_ms.map(|ms| (i32::try_from(ms), ms)) {
            Some((Ok(ms), _)) => bson::put_int32(out, "wtimeout", ms),
            Some((Err(_), ms)) => bson::put_int64(out, "wtimeout", ms as i64),
            None => {}
        }
        if let Some(journal) = self.journal {
            bson::put_boolean(out, "j", journal);
        }
        bson::close(out, inner);
    }
}

/// Version of the server's API that commands declare (MongoDB's "Stable API"). A command line has no other place for it
/// than the URI: `apiVersion`, `apiStrict` and `apiDeprecationErrors` are dyno's own options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerApi {
    /// `apiVersion`: 1 is the only one.
    pub version: String,
    /// `apiStrict`: whether the server refuses commands outside of the version. `None` leaves it to the server.
    pub strict: Option<bool>,
    /// `apiDeprecationErrors`: whether the server refuses what is deprecated. `None` leaves it to the server.
    pub deprecation_errors: Option<bool>,
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
    /// `directConnection`: whether only the seed itself is spoken to. `None` where the URI does not say.
    pub direct: Option<bool>,
    /// `loadBalanced`: the seed is a load balancer, behind which routers stand.
    pub load_balanced: bool,
    /// Version of the server's API that commands declare.
    pub server_api: Option<ServerApi>,
    /// `connectTimeoutMS`: how long the check of a server may stay unanswered, milliseconds; 0 for no bound.
    pub connect_timeout_ms: u64,
    /// `maxAdaptiveRetries`: how often an operation is sent again that the server refused because of overload.
    pub max_adaptive_retries: u32,
    /// `enableOverloadRetargeting`: whether such an operation goes to another server if there is one.
    pub overload_retargeting: bool,
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

impl ServerApi {
    /// Appends it to a command.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        bson::put_string(out, "apiVersion", &self.version);
        if let Some(strict) = self.strict {
            bson::put_boolean(out, "apiStrict", strict);
        }
        if let Some(errors) = self.deprecation_errors {
            bson::put_boolean(out, "apiDeprecationErrors", errors);
        }
    }
}

/// Values that an option without effect may have.
enum ValueRule {
    /// A whole number, at least this.
    Number(i64),
    Flag,
    Names(&'static [&'static str]),
    Text,
}

/// Options of drivers that have no counterpart here: connections follow users, and the run's own time-outs count. Their
/// values are checked all the same.
const UNUSED: [(&str, ValueRule); 15] = [
    ("maxPoolSize", ValueRule::Number(0)),
    ("minPoolSize", ValueRule::Number(0)),
    ("maxIdleTimeMS", ValueRule::Number(0)),
    ("maxLifeTimeMS", ValueRule::Number(0)),
    ("maxConnecting", ValueRule::Number(1)),
    ("waitQueueTimeoutMS", ValueRule::Number(0)),
    ("waitQueueMultiple", ValueRule::Number(1)),
    ("socketTimeoutMS", ValueRule::Number(0)),
    ("timeoutMS", ValueRule::Number(0)),
    ("serverSelectionTryOnce", ValueRule::Flag),
    ("serverMonitoringMode", ValueRule::Names(&["auto", "poll", "stream"])),
    (
        "uuidRepresentation",
        ValueRule::Names(&["unspecified", "standard", "csharpLegacy", "javaLegacy", "pythonLegacy"]),
    ),
    ("streamType", ValueRule::Text),
    // Neither is checked here, with or without them.
    ("tlsDisableOCSPEndpointCheck", ValueRule::Flag),
    ("tlsDisableCertificateRevocationCheck", ValueRule::Flag),
];

const NO_PROXY: &str =
    "dyno has no proxies: make a tunnel (ssh -L, kubectl port-forward) and name its end as the host";

/// Options that are not offered, and what to do instead. The official client is built without them too.
const REFUSED: [(&str, &str); 5] = [
    (
        "tlsCertificateKeyFilePassword",
        "the key must not be encrypted: openssl pkcs8 -in FILE -out NEW decrypts it",
    ),
    ("proxyHost", NO_PROXY),
    ("proxyPort", NO_PROXY),
    ("proxyUsername", NO_PROXY),
    ("proxyPassword", NO_PROXY),
];

/// Options that have an effect, without those of old drivers.
const TAKEN: [&str; 37] = [
    "apiDeprecationErrors",
    "apiStrict",
    "apiVersion",
    "appName",
    "authMechanism",
    "authSource",
    "compressors",
    "connectTimeoutMS",
    "directConnection",
    "enableOverloadRetargeting",
    "heartbeatFrequencyMS",
    "j",
    "journal",
    "loadBalanced",
    "localThresholdMS",
    "maxAdaptiveRetries",
    "maxStalenessSeconds",
    "readConcernLevel",
    "readPreference",
    "readPreferenceTags",
    "replicaSet",
    "retryReads",
    "retryWrites",
    "serverSelectionTimeoutMS",
    "srvMaxHosts",
    "srvServiceName",
    "ssl",
    "tls",
    "tlsAllowInvalidCertificates",
    "tlsAllowInvalidHostnames",
    "tlsCAFile",
    "tlsCertificateKeyFile",
    "tlsInsecure",
    "w",
    "wTimeout",
    "wTimeoutMS",
    "zlibCompressionLevel",
];

/// Options with two names, in lower case: they count as one.
const SYNONYMS: [(&str, &str); 2] = [("j", "journal"), ("wtimeout", "wtimeoutms")];

/// Options that may stand several times, in lower case: the one is a list, of the others only the same value is accepted.
const REPEATABLE: [&str; 3] = ["readpreferencetags", "tls", "ssl"];

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
            direct: None,
            load_balanced: false,
            server_api: None,
            connect_timeout_ms: 10_000,
            max_adaptive_retries: 2,
            overload_retargeting: false,
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

/// What the options have said, until all of them are known.
#[derive(Default)]
struct Pending {
    login: LoginParts,
    tls: TlsParts,
    /// `safe` of old drivers, which `w` goes before.
    safe: Option<bool>,
    api_version: Option<String>,
    api_strict: Option<bool>,
    api_deprecation_errors: Option<bool>,
    /// Names of the options so far: the one that counts, and as it is written.
    seen: Vec<(String, String)>,
}

impl Pending {
    /// Refuses an option that was given before.
    fn note(&mut self, known: &str, key: &str) -> Result<(), Refused> {
        let name = SYNONYMS.iter().find(|(other, _)| *other == known).map_or(known, |(_, name)| name);
        if let Some((_, first)) = self.seen.iter().find(|(seen, _)| seen == name) {
            let also = if first == key { String::new() } else { format!(", before as {first}") };
            return Err(Refused::new(
                RefusalCode::Conflict,
                key,
                format!("option {key}: stands twice in the URI{also}; give it once"),
            ));
        }
        if !REPEATABLE.contains(&name) {
            self.seen.push((name.into(), key.into()));
        }
        Ok(())
    }
}

impl MongoOptions {
    /// Reads `mongodb://[user:password@]host[:port][,...]/[database][?options]` or `mongodb+srv://[...@]name/...`, whose
    /// hosts are asked of DNS later ([`MongoOptions::with_records`]).
    pub fn from_uri(uri: &str) -> Result<Self, Refused> {
        let (by_records, rest) = match (uri.strip_prefix("mongodb://"), uri.strip_prefix("mongodb+srv://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => {
                return Err(Refused::new(
                    RefusalCode::BadValue,
                    "target",
                    "expected mongodb://host:port/ or mongodb+srv://name/",
                ));
            }
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
            Err(_) if unescaped => Err(refuse_unescaped()),
            read => read,
        };
        if unescaped && database.contains('@') {
            return Err(refuse_unescaped());
        }
        let srv = match by_records.then(|| Srv::new(hosts, query)) {
            Some(Err(_)) if unescaped => return Err(refuse_unescaped()),
            read => read.transpose()?,
        };
        let mut pending = Pending::default();
        if let Some(login) = login {
            pending.login = LoginParts::new(login)?;
        }
        let addresses = if by_records { Vec::new() } else { addresses_of(hosts)? };
        let mut options = MongoOptions { addresses, srv, ..MongoOptions::default() };
        let database = percent_decode(database)?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(|| match pair.contains('@') {
                true => refuse_unescaped(),
                false => Refused::new(
                    RefusalCode::Missing,
                    pair,
                    format!("option {pair:?} has no value: write {pair}=value"),
                ),
            })?;
            options.set(key, &percent_decode(value)?, &mut pending)?;
        }
        options.finish(pending, &database)?;
        if !database.is_empty() {
            options.database = database;
        }
        options.check()?;
        Ok(options)
    }

    /// Takes one option.
    fn set(&mut self, key: &str, value: &str, pending: &mut Pending) -> Result<(), Refused> {
        let known = key.to_ascii_lowercase();
        let known = known.as_str();
        if let Some((_, instead)) = REFUSED.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)) {
            return Err(Refused::new(RefusalCode::Unsupported, key, format!("option {key}: {instead}")));
        }
        // An empty set of tags is any member's.
        if value.is_empty() && known != "readpreferencetags" {
            return Err(Refused::new(
                RefusalCode::Missing,
                key,
                format!("option {key}: the value behind the = is missing"),
            ));
        }
        pending.note(known, key)?;
        let refuse = |expected: &str| refuse_value(key, value, expected);
        let flag = || parse_flag(key, value);
        let number = |least: i64, most: i64, unit: &str| {
            let read = value.parse().ok().filter(|n| (least..=most).contains(n));
            read.ok_or_else(|| refuse(&format!("{unit}, {least} to {most}")))
        };
        const MOST: i64 = i32::MAX as i64;
        if let Some((name, shape)) = UNUSED.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)) {
            match shape {
                ValueRule::Number(least) => drop(number(*least, MOST, "a number")?),
                ValueRule::Flag => drop(flag()?),
                ValueRule::Names(names) if !names.contains(&value) => return Err(refuse(&names.join(", "))),
                ValueRule::Names(_) | ValueRule::Text => {}
            }
            self.unused.push((*name).into());
        }
        if pending.tls.set_option(known, key, value)? || self.selection.set(known, value).map_err(refuse)? {
            return Ok(());
        }
        match known {
            "authsource" => pending.login.source = Some(value.into()),
            "authmechanism" => pending.login.mechanism = Some(value.into()),
            "authmechanismproperties" => pending.login.properties = Some(key.into()),
            "replicaset" => self.replica_set = Some(value.into()),
            "retrywrites" => self.retry_writes = flag()?,
            "retryreads" => self.retry_reads = flag()?,
            "directconnection" => self.direct = Some(flag()?),
            "loadbalanced" => self.load_balanced = flag()?,
            "connecttimeoutms" => self.connect_timeout_ms = number(0, MOST, "milliseconds")?.unsigned_abs(),
            "maxadaptiveretries" => self.max_adaptive_retries = number(0, MOST, "a number")? as u32,
            "enableoverloadretargeting" => self.overload_retargeting = flag()?,
            "apiversion" if value != "1" => return Err(refuse("1")),
            "apiversion" => pending.api_version = Some(value.into()),
            "apistrict" => pending.api_strict = Some(flag()?),
            "apideprecationerrors" => pending.api_deprecation_errors = Some(flag()?),
            "w" => self.write_concern.w = Some(value.into()),
            "journal" | "j" => self.write_concern.journal = Some(flag()?),
            "wtimeoutms" | "wtimeout" => {
                let ms = number(0, i64::MAX, "milliseconds")?;
                self.write_concern.timeout_ms = Some(ms.unsigned_abs());
            }
            "readconcernlevel" => self.read_concern = Some(value.into()),
            "readpreference" => {
                let found = ReadPreference::NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
                let names = ReadPreference::NAMES.map(|(name, _)| name).join(", ");
                self.read_preference = found.ok_or_else(|| refuse(&names))?.1;
            }
            // Names of the Java driver before its version 4.
            "safe" => pending.safe = Some(flag()?),
            "fsync" if flag()? => self.write_concern.journal = Some(true),
            "fsync" => {}
            "slaveok" if flag()? => self.read_preference = ReadPreference::SecondaryPreferred,
            "slaveok" => {}
            "compressors" => {
                self.compressors = compressors(value).ok_or_else(|| refuse("snappy, zlib, zstd"))?
            }
            "zlibcompressionlevel" => self.zlib_level = number(-1, 9, "a number")? as i8,
            "appname" => self.app_name = value.into(),
            "srvmaxhosts" | "srvservicename" => {
                let srv = self.srv.as_mut();
                let srv = srv.ok_or_else(|| {
                    Refused::new(
                        RefusalCode::Conflict,
                        key,
                        format!("option {key}: is for mongodb+srv:// alone"),
                    )
                })?;
                if known == "srvmaxhosts" {
                    srv.max_hosts = number(0, MOST, "a number (0 for all)")? as usize;
                } else if is_service(value) {
                    srv.service = value.into();
                } else {
                    return Err(refuse(
                        "1 to 62 letters, digits or - with a letter, no - at an end or beside another",
                    ));
                }
            }
            _ if UNUSED.iter().any(|(name, _)| name.eq_ignore_ascii_case(key)) => {}
            _ => {
                let meant =
                    nearest(key, TAKEN).map_or(String::new(), |name| format!(", did you mean {name}?"));
                let known = TAKEN.join(", ");
                return Err(Refused::new(
                    RefusalCode::UnknownName,
                    key,
                    format!("unknown option {key:?} in the URI{meant}; known: {known}"),
                ));
            }
        }
        Ok(())
    }

    /// Takes what needs all options.
    fn finish(&mut self, pending: Pending, database: &str) -> Result<(), Refused> {
        let Pending { login, tls, safe, api_version, api_strict, api_deprecation_errors, .. } = pending;
        // TLS is the default where the hosts come from DNS.
        self.tls = tls.finish(self.srv.is_some())?;
        (self.auth, self.auth_source) = login.finish(database)?;
        if let (Some(safe), None) = (safe, &self.write_concern.w) {
            self.write_concern.w = Some(if safe { "1" } else { "0" }.into());
        }
        let beside = if api_strict.is_some() { "apiStrict" } else { "apiDeprecationErrors" };
        self.server_api = match api_version {
            None if api_strict.is_some() || api_deprecation_errors.is_some() => {
                return Err(Refused::new(
                    RefusalCode::Missing,
                    beside,
                    format!("option {beside}: needs apiVersion=1 beside it"),
                ));
            }
            None => None,
            Some(version) => {
                let (strict, deprecation_errors) = (api_strict, api_deprecation_errors);
                Some(ServerApi { version, strict, deprecation_errors })
            }
        };
        Ok(())
    }

    /// Returns whether the one host named is spoken to and no other: so it is meant, as the Java driver takes it, where the
    /// URI names one host and no replica set. `directConnection=false` looks for the other members.
    pub fn is_direct(&self) -> bool {
        let one = self.addresses.len() == 1 && self.srv.is_none();
        self.direct.unwrap_or(one && self.replica_set.is_none() && !self.load_balanced)
    }

    /// Refuses what contradicts itself or cannot be done.
    pub fn check(&self) -> Result<(), Refused> {
        let refuse = |code: RefusalCode, key: &str, text: &str| Err(Refused::new(code, key, text));
        let w = self.write_concern.w.as_deref().unwrap_or_default();
        if w == "0" {
            return refuse(
                RefusalCode::Unsupported,
                "w",
                "w=0 (unacknowledged writes) is not offered: without replies there is nothing to measure; use w=1",
            );
        }
        if w.parse::<i128>().is_ok_and(|members| !(1..=i128::from(i32::MAX)).contains(&members)) {
            return Err(Refused::new(
                RefusalCode::BadValue,
                "w",
                format!(
                    "w={w}: expected a number of members from 1, majority, or the name of a write concern"
                ),
            ));
        }
        if self.direct == Some(true) && (self.addresses.len() > 1 || self.srv.is_some()) {
            let text = "directConnection=true needs one host, and no mongodb+srv://";
            return refuse(RefusalCode::Conflict, "directConnection", text);
        }
        if self.srv.as_ref().is_some_and(|srv| srv.max_hosts > 0) {
            if self.replica_set.is_some() {
                let text = "srvMaxHosts is for routers: not together with replicaSet";
                return refuse(RefusalCode::Conflict, "srvMaxHosts", text);
            }
            if self.load_balanced {
                let text = "srvMaxHosts is for routers: not together with loadBalanced=true";
                return refuse(RefusalCode::Conflict, "srvMaxHosts", text);
            }
        }
        if self.load_balanced {
            if self.addresses.len() > 1 {
                return Err(Refused::new(
                    RefusalCode::Conflict,
                    "loadBalanced",
                    format!(
                        "loadBalanced=true needs one host, the load balancer: there are {}",
                        self.addresses.len()
                    ),
                ));
            }
            if self.replica_set.is_some() {
                return refuse(
                    RefusalCode::Conflict,
                    "loadBalanced",
                    "loadBalanced=true is for routers behind a load balancer: not together with replicaSet",
                );
            }
            if self.direct == Some(true) {
                let text = "loadBalanced=true and directConnection=true contradict each other: give one";
                return refuse(RefusalCode::Conflict, "loadBalanced", text);
            }
        }
        self.selection.check(self.read_preference)?;
        check_database(&self.database)?;
        if self.app_name.len() > 128 {
            return refuse(RefusalCode::BadValue, "appName", "appName: at most 128 bytes");
        }
        if matches!(self.auth, Some(Auth::X509 { .. })) {
            if self.tls.as_ref().is_none_or(|tls| tls.cert.is_none()) {
                let text = "authMechanism=MONGODB-X509 needs tlsCertificateKeyFile=FILE";
                return refuse(RefusalCode::Missing, "tlsCertificateKeyFile", text);
            }
            if self.auth_source != EXTERNAL {
                let text = "authMechanism=MONGODB-X509: leave authSource out, or set it to $external";
                return refuse(RefusalCode::Conflict, "authSource", text);
            }
        }
        Ok(())
    }

    /// The URI without secrets.
    pub fn redacted(&self) -> String {
        let user = match &self.auth {
            Some(Auth::Scram { user, .. } | Auth::Plain { user, .. }) => format!("{user}:***@"),
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
                return Err(Refused::new(
                    RefusalCode::BadValue,
                    srv.host.as_str(),
                    format!("{} has {} TXT records; one is allowed", srv.host, texts.len()),
                ));
            }
        }
        self.addresses = some(addresses, srv.max_hosts)?;
        self.check()?;
        Ok(self)
    }

    fn take_text(&mut self, srv: &Srv, text: &str) -> Result<(), Refused> {
        let bad = |why: &str| {
            Refused::new(
                RefusalCode::BadValue,
                srv.host.as_str(),
                format!("the TXT record of {}: {text:?}: {why}", srv.host),
            )
        };
        for pair in text.split('&') {
            let (key, value) = pair.split_once('=').ok_or_else(|| bad("expected name=value"))?;
            if value.is_empty() {
                return Err(bad("a value is empty"));
            }
            let known = key.to_ascii_lowercase();
            match known.as_str() {
                "authsource" | "replicaset" | "loadbalanced" if srv.sets(&[&known]) => {}
                "authsource" => self.auth_source = value.into(),
                "replicaset" => self.replica_set = Some(value.into()),
                "loadbalanced" => {
                    self.load_balanced = value.parse().map_err(|_| bad("loadBalanced is true or false"))?;
                }
                _ => return Err(bad("only authSource, replicaSet and loadBalanced may stand there")),
            }
        }
        Ok(())
    }
}

fn refuse_unescaped() -> Refused {
    Refused::new(RefusalCode::BadValue, "target", UNESCAPED)
}

fn compressors(value: &str) -> Option<Vec<Compressor>> {
    value.split(',').map(|name| Compressor::from_name(name.trim())).collect()
}
