//! The server: `-h`, `-p`, `-s`, `-u` and the flags of login and TLS, as one URI of dyno.

use super::{BenchmarkRefusal, Program};
use dyno_types::percent::{self, AsciiSet, RESERVED};

/// Characters that are encoded in a host: the colons of IPv6 addresses are not.
const HOST: &AsciiSet = &RESERVED.remove(b':');
/// Characters that are encoded in a path.
pub(super) const PATH: &AsciiSet = &RESERVED.remove(b'/');

/// The server and the login.
#[derive(Debug)]
pub(super) struct ServerAddress {
    pub host: String,
    pub port: u16,
    pub socket: Option<String>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u32,
    pub tls: bool,
    pub sni: Option<String>,
    pub ca: Option<String>,
    pub insecure: bool,
    pub cert: Option<String>,
    pub key: Option<String>,
}

impl Default for ServerAddress {
    fn default() -> Self {
        ServerAddress {
            host: "127.0.0.1".to_owned(),
            port: 6379,
            socket: None,
            user: None,
            password: None,
            database: 0,
            tls: false,
            sni: None,
            ca: None,
            insecure: false,
            cert: None,
            key: None,
        }
    }
}

impl ServerAddress {
    /// Takes the parts that a URI of the original has; the others stay. A login without a colon is a password.
    pub fn read_uri(&mut self, program: Program, uri: &str) -> Result<(), BenchmarkRefusal> {
        let (is_tls, rest) = without_scheme(program, uri).ok_or(BenchmarkRefusal::UriScheme)?;
        self.tls |= is_tls;
        let place = match rest.split_once('@') {
            None => rest,
            Some((login, place)) => {
                let password = match login.split_once(':') {
                    Some((user, password)) => {
                        self.user = Some(decoded(user)?);
                        password
                    }
                    None => login,
                };
                self.password = Some(decoded(password)?);
                place
            }
        };
        let (host, path) = place.split_once('/').unwrap_or((place, ""));
        if !host.is_empty() {
            self.read_host(host)?;
        }
        if !path.is_empty() {
            self.database = leading_number(path).unwrap_or(0).try_into().unwrap_or(u32::MAX);
        }
        Ok(())
    }

    /// Reads `HOST`, `HOST:PORT` or, beyond the original, `[IPv6]:PORT`.
    fn read_host(&mut self, text: &str) -> Result<(), BenchmarkRefusal> {
        let (host, rest) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':')),
            None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        if let Some(digits) = rest {
            self.port = port(leading_number(digits).unwrap_or(0))?;
        }
        self.host = host.to_owned();
        Ok(())
    }

    /// Flags that only TLS uses, and whether they are given.
    pub fn tls_flags(&self) -> [(&'static str, bool); 5] {
        [
            ("--sni", self.sni.is_some()),
            ("--cacert", self.ca.is_some()),
            ("--insecure", self.insecure),
            ("--cert", self.cert.is_some()),
            ("--key", self.key.is_some()),
        ]
    }

    /// The place, without login and options.
    pub fn place(&self) -> Result<String, BenchmarkRefusal> {
        if let Some(socket) = &self.socket {
            let path = std::path::absolute(socket).ok();
            let path = path.as_deref().and_then(|path| path.to_str());
            let refused = || BenchmarkRefusal::Value {
                flag: "-s",
                value: socket.clone(),
                expected: "the path of a socket",
            };
            return Ok(percent::percent_encode(path.ok_or_else(refused)?, PATH));
        }
        if self.host.is_empty() {
            return Err(BenchmarkRefusal::Value { flag: "-h", value: String::new(), expected: "a host" });
        }
        let host = percent::percent_encode(&self.host, HOST);
        Ok(if host.contains(':') {
            format!("[{host}]:{}", self.port)
        } else {
            format!("{host}:{}", self.port)
        })
    }

    pub fn login(&self) -> String {
        let Some(password) = &self.password else { return String::new() };
        let user = percent::percent_encode(self.user.as_deref().unwrap_or_default(), RESERVED);
        format!("{user}:{}@", percent::percent_encode(password, RESERVED))
    }

    pub fn tls_options(&self) -> Result<Vec<(&'static str, String)>, BenchmarkRefusal> {
        if !self.tls {
            return Ok(Vec::new());
        }
        match (&self.cert, &self.key) {
            (Some(_), None) => return Err(BenchmarkRefusal::Needs { flag: "--cert", other: "--key" }),
            (None, Some(_)) => return Err(BenchmarkRefusal::Needs { flag: "--key", other: "--cert" }),
            _ => {}
        }
        let insecure = self.insecure.then(|| "true".to_owned());
        let all = [
            ("ca", self.ca.clone()),
            ("cert", self.cert.clone()),
            ("key", self.key.clone()),
            ("insecure", insecure),
            ("server-name", self.sni.clone()),
        ];
        Ok(all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }
}

/// A URI of the original without its password.
pub(super) fn masked(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else { return "***".to_owned() };
    match rest.split_once('@') {
        None => uri.to_owned(),
        Some((login, place)) => match login.split_once(':') {
            Some((user, _)) => format!("{scheme}://{user}:***@{place}"),
            None => format!("{scheme}://***@{place}"),
        },
    }
}

/// Whether a URI's scheme is one of TLS, and what follows it.
fn without_scheme(program: Program, uri: &str) -> Option<(bool, &str)> {
    let (scheme, rest) = uri.split_once("://")?;
    let is_valkey = program == Program::ValkeyBenchmark;
    match scheme.to_ascii_lowercase().as_str() {
        "redis" => Some((false, rest)),
        "rediss" => Some((true, rest)),
        "valkey" if is_valkey => Some((false, rest)),
        "valkeys" if is_valkey => Some((true, rest)),
        _ => None,
    }
}

fn decoded(text: &str) -> Result<String, BenchmarkRefusal> {
    if text.split('%').skip(1).any(|rest| rest.len() < 2) {
        return Err(BenchmarkRefusal::UriIncomplete);
    }
    let bytes = percent::decode(text).ok_or(BenchmarkRefusal::UriCharacter)?;
    String::from_utf8(bytes).map_err(|_| BenchmarkRefusal::UriCharacter)
}

/// The number at the beginning of a text.
pub(super) fn leading_number(text: &str) -> Option<i64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().ok()
}

/// Port 0 is no port to connect to.
pub(super) fn port(number: i64) -> Result<u16, BenchmarkRefusal> {
    u16::try_from(number).ok().filter(|port| *port > 0).ok_or(BenchmarkRefusal::Port)
}
