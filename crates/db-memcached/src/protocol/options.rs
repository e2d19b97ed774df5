//! Everything a user can set about a memcached target, and its URI.

use dyno_types::address::{Address, Tls, percent_decode as decode};
use dyno_types::{RefusalCode, Refused, suggest};

/// Port of a server whose address names none.
const PORT: u16 = 11211;

/// Which protocol is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The meta protocol where the server knows it, else the classic one.
    Auto,
    /// The meta protocol: `mg`, `ms`, `md` (memcached 1.6).
    Meta,
    /// The classic text protocol: `get`, `add`, `replace`, `delete`.
    Text,
}

/// Method by which keys are spread over servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// On a ring of MD5 hashes, 160 points for each server.
    Ketama,
    /// Java's hash of the key modulo the number of servers (YCSB's memcached binding).
    Modulo,
}

/// Form in which a record is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// As a JSON object of strings (YCSB's memcached binding).
    Json,
    /// As the values of all fields end to end.
    String,
}

/// Treatment of the other fields by an update of some. An update of all fields always replaces the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Keeps them: the value is read, changed, and written on condition that no other client has written it.
    Merge,
    /// Loses them: the value is replaced by the written fields alone (YCSB's memcached binding, issue 1358).
    Replace,
}

/// A memcached target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemcachedOptions {
    /// The servers; keys are spread over them.
    pub addresses: Vec<Address>,
    /// User name of the login by text (`memcached -Y`).
    pub user: Option<String>,
    /// Password.
    pub password: Option<String>,
    /// TLS, if wanted.
    pub tls: Option<Tls>,
    /// Which protocol is spoken.
    pub protocol: Protocol,
    /// Method by which keys are spread over servers.
    pub hash: Hash,
    /// Form in which records are stored.
    pub layout: Layout,
    /// Treatment of the other fields by an update of some.
    pub update: Update,
    /// Text that every key begins with.
    pub prefix: String,
    /// Seconds after which a record that is written expires; 0: never. The server takes more than 30 days for a date, as
    /// seconds since 1970.
    pub expiry_s: u32,
}

impl Default for MemcachedOptions {
    fn default() -> Self {
        MemcachedOptions {
            addresses: vec![Address::Tcp("127.0.0.1".into(), PORT)],
            user: None,
            password: None,
            tls: None,
            protocol: Protocol::Auto,
            hash: Hash::Ketama,
            layout: Layout::Json,
            update: Update::Merge,
            prefix: String::new(),
            expiry_s: 0,
        }
    }
}

const KEYS: [(&str, &str); 12] = [
    ("protocol", "auto, meta or text"),
    ("hash", "ketama or modulo"),
    ("layout", "json or string"),
    ("update", "merge or replace"),
    ("prefix", "up to 200 bytes without spaces and control characters"),
    ("expiry", "whole seconds from 0 (never) to 2147483647; more than 2592000 is a date"),
    ("user", "a user name"),
    ("ca", "a PEM file"),
    ("cert", "a PEM file"),
    ("key", "a PEM file"),
    ("insecure", "true or false"),
    ("server-name", "a host name"),
];

/// The value that stands beside a word.
fn one_of<T: Copy>(word: &str, known: &[(&str, T)]) -> Option<T> {
    known.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

/// Returns whether a text has characters that end a word or a line of the protocol.
fn has_breaks(text: &str) -> bool {
    text.bytes().any(|byte| byte <= b' ' || byte == 0x7f)
}

impl MemcachedOptions {
    /// Reads `memcached://[user:password@]host[:port][,host...][?option=value&...]`, or `memcacheds://...` for TLS; a Unix socket
    /// is `memcached:///path`, in a list a path with `%2F` for `/`. Refuses what it does not know, with what is accepted.
    pub fn from_uri(uri: &str) -> Result<Self, Refused> {
        let (scheme, rest) = uri
            .split_once(':')
            .ok_or_else(|| Refused::new(RefusalCode::Missing, "target", format!("{uri:?} has no scheme")))?;
        let tls = (scheme == "memcacheds").then(Tls::default);
        let mut options = MemcachedOptions { tls, ..MemcachedOptions::default() };
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
        let place = place.strip_suffix('/').unwrap_or(place);
        if place.starts_with('/') {
            options.addresses = vec![Address::Unix(decode(place)?.into())];
        } else if let Some((_, path)) = place.split_once('/') {
            let message = "a memcached target has no databases: remove";
            return Err(Refused::new(
                RefusalCode::Unsupported,
                format!("/{path}"),
                format!("{message} /{path} (a socket is memcached:///run/memcached.sock)"),
            ));
        } else if !place.is_empty() {
            options.addresses = place.split(',').map(host_and_port).collect::<Result<_, _>>()?;
        }
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
            options.set_option(&decode(key)?, &decode(value)?)?;
        }
        options.check()?;
        Ok(options)
    }

    /// Sets one option by its name, as in a URI's query.
    pub fn set_option(&mut self, key: &str, value: &str) -> Result<(), Refused> {
        let truth = || {
            one_of(value, &[("true", true), ("1", true), ("yes", true)])
                .or(one_of(value, &[("false", false), ("0", false), ("no", false)]))
        };
        let text = || Some(value.to_owned());
        let name = key.replace('_', "-");
        let set = match name.as_str() {
            "protocol" => {
                let known = [("auto", Protocol::Auto), ("meta", Protocol::Meta), ("text", Protocol::Text)];
                one_of(value, &known).map(|v| self.protocol = v)
            }
            "hash" => {
                one_of(value, &[("ketama", Hash::Ketama), ("modulo", Hash::Modulo)]).map(|v| self.hash = v)
            }
            "layout" => {
                one_of(value, &[("json", Layout::Json), ("string", Layout::String)]).map(|v| self.layout = v)
            }
            "update" => one_of(value, &[("merge", Update::Merge), ("replace", Update::Replace)])
                .map(|v| self.update = v),
            "prefix" => text().filter(|v| v.len() <= 200 && !has_breaks(v)).map(|v| self.prefix = v),
            "expiry" => value.parse().ok().filter(|v| *v <= i32::MAX as u32).map(|v| self.expiry_s = v),
            "user" => text().map(|v| self.user = Some(v)),
            "ca" => text().map(|v| self.tls_mut().ca = Some(v.into())),
            "cert" => text().map(|v| self.tls_mut().cert = Some(v.into())),
            "key" => text().map(|v| self.tls_mut().key = Some(v.into())),
            "insecure" => truth().map(|v| self.tls_mut().insecure = v),
            "server-name" => text().map(|v| self.tls_mut().server_name = Some(v)),
            _ => return Err(unknown(key)),
        };
        let accepted = KEYS.iter().find(|(k, _)| *k == name).map_or("", |(_, accepted)| accepted);
        set.ok_or_else(|| {
            Refused::new(
                RefusalCode::BadValue,
                key,
                format!("option {key}={value} of the memcached target: expected {accepted}"),
            )
        })
    }

    fn tls_mut(&mut self) -> &mut Tls {
        self.tls.get_or_insert_default()
    }

    /// Refuses invalid combinations: half a login, half a client certificate, the same server twice.
    pub fn check(&self) -> Result<(), Refused> {
        if self.user.is_some() != self.password.is_some() {
            return Err(Refused::new(
                RefusalCode::Missing,
                "target",
                "memcached's login has a user name and a password: write memcached://user:password@host",
            ));
        }
        if let (Some(user), Some(password)) = (&self.user, &self.password)
            && (has_breaks(user) || has_breaks(password))
        {
            return Err(Refused::new(
                RefusalCode::BadValue,
                "target",
                "memcached's login is two words: no spaces and control characters in user name and password",
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
        for (number, address) in self.addresses.iter().enumerate() {
            if self.addresses[..number].contains(address) {
                return Err(Refused::new(
                    RefusalCode::Conflict,
                    place_text(address),
                    format!("{} is named twice: name each server once", place_text(address)),
                ));
            }
        }
        Ok(())
    }

    /// The URI without its password and its options.
    pub fn redacted(&self) -> String {
        let scheme = if self.tls.is_some() { "memcacheds" } else { "memcached" };
        let login = self.user.as_ref().map_or(String::new(), |user| format!("{user}:***@"));
        let places: Vec<String> = self.addresses.iter().map(place_text).collect();
        format!("{scheme}://{login}{}", places.join(","))
    }
}

/// An address as a URI has it: `host:port`, an IPv6 address in brackets.
pub(super) fn place_text(address: &Address) -> String {
    match address {
        Address::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
        Address::Tcp(host, port) => format!("{host}:{port}"),
        Address::Unix(path) => {
            let marks = [('%', "%25"), ('/', "%2F"), ('@', "%40"), (',', "%2C"), ('?', "%3F")];
            marks.iter().fold(path.display().to_string(), |text, (mark, code)| text.replace(*mark, code))
        }
    }
}

fn host_and_port(text: &str) -> Result<Address, Refused> {
    let bad = || {
        Refused::new(
            RefusalCode::BadValue,
            text,
            format!("{text:?} is not HOST, HOST:PORT, [IPv6]:PORT or a socket (%2Frun%2Fa.sock)"),
        )
    };
    if text.starts_with("%2F") || text.starts_with("%2f") {
        return Ok(Address::Unix(decode(text)?.into()));
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']').ok_or_else(bad)? {
            (host, "") => (host, None),
            (host, tail) => (host, Some(tail.strip_prefix(':').ok_or_else(bad)?)),
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok().filter(|&p: &u16| p > 0).ok_or_else(bad)?,
        None => PORT,
    };
    if host.is_empty() { Err(bad()) } else { Ok(Address::Tcp(decode(host)?, port)) }
}

fn unknown(key: &str) -> Refused {
    let names: Vec<&str> = KEYS.iter().map(|(k, _)| *k).collect();
    let hint = suggest::hint(key, names.iter().copied());
    Refused::new(
        RefusalCode::UnknownName,
        key,
        format!("unknown option {key:?} of the memcached target{hint}; accepted: {}", names.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(uri: &str) -> MemcachedOptions {
        MemcachedOptions::from_uri(uri).unwrap()
    }

    #[test]
    fn uris() {
        let o =
            read("memcacheds://bob:p%40ss@[::1]:7000,h2,[fe80::1]?ca=/tmp/ca.pem&insecure=no&protocol=text");
        let expected = [("::1", 7000), ("h2", 11211), ("fe80::1", 11211)];
        assert_eq!(o.addresses, expected.map(|(host, port)| Address::Tcp(host.into(), port)));
        assert_eq!((o.user.as_deref(), o.password.as_deref()), (Some("bob"), Some("p@ss")));
        assert_eq!(o.tls, Some(Tls { ca: Some("/tmp/ca.pem".into()), ..Tls::default() }));
        assert_eq!(o.protocol, Protocol::Text);
        assert_eq!(o.redacted(), "memcacheds://bob:***@[::1]:7000,h2:11211,[fe80::1]:11211");
        let o = read(
            "memcached://h:1/?hash=modulo&layout=string&update=replace&prefix=usertable-&expiry=2147483647",
        );
        assert_eq!((o.hash, o.layout, o.update), (Hash::Modulo, Layout::String, Update::Replace));
        assert_eq!((o.prefix.as_str(), o.expiry_s), ("usertable-", i32::MAX as u32));
        assert_eq!(o.redacted(), "memcached://h:1");
        assert_eq!(read("memcached://"), MemcachedOptions::default());
        assert_eq!(read("memcached:h"), read("memcached://h:11211"));
    }

    #[test]
    fn passwords_are_hidden_by_their_place() {
        let uri = "memcached://bob:s3cret-w0rd@h:1,h:2?protocol=meta";
        let shown = dyno_types::secret::mask_text(uri);
        assert_eq!(shown, "memcached://bob:***@h:1,h:2?protocol=meta");
        assert!(!read(uri).redacted().contains("s3cret"));
    }

    #[test]
    fn refusals_name_what_is_accepted() {
        let cases = [
            ("memcached://h?protcol=text", "did you mean protocol"),
            ("memcached://h?x=1", "accepted: protocol, hash, layout, update, prefix, expiry, user, ca"),
            ("memcached://h?protocol=binary", "auto, meta or text"),
            ("memcached://h?hash=crc", "ketama or modulo"),
            ("memcached://h?layout=fields", "json or string"),
            ("memcached://h?update=cas", "merge or replace"),
            ("memcached://h?expiry=1s", "whole seconds"),
            ("memcached://h?expiry=2147483648", "2147483647"),
            ("memcached://h?prefix=a%20b", "without spaces"),
            ("memcached://h:x", "HOST:PORT"),
            ("memcached://[::1]7", "HOST:PORT"),
            ("memcached://h:0", "HOST:PORT"),
            ("memcached://h/1", "no databases"),
            ("memcached://bob@h", "user:password@"),
            ("memcached://:word@h", "user:password@"),
            ("memcached://b%20b:word@h", "two words"),
            ("memcached://bob:w%0d%0ax@h", "two words"),
            ("memcached://h,h:11211", "h:11211 is named twice"),
            ("memcacheds://h?cert=c", "key=FILE"),
            ("memcached", "scheme"),
        ];
        for (uri, message) in cases {
            let refusal = MemcachedOptions::from_uri(uri).unwrap_err().to_string();
            assert!(refusal.contains(message), "{uri}: {refusal}");
        }
    }
}
