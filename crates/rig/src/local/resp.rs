//! A small blocking client for the commands that set up and look after Redis servers.

use dyno_engine::net::TlsConfig;
use dyno_types::Endpoint;
use rustls::StreamOwned;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// A status, a text or a number.
    Text(String),
    /// Nothing.
    Null,
    /// Several.
    List(Vec<Reply>),
}

impl Reply {
    /// The text; empty for what is none.
    pub(crate) fn text(&self) -> &str {
        match self {
            Reply::Text(text) => text,
            _ => "",
        }
    }
}

/// Longest text and longest list that are believed.
const LIMIT: usize = 64 << 20;
/// Longest line.
const LINE: u64 = 64 << 10;

/// Why there is no reply to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The server has answered with an error.
    Said(String),
    /// Nothing more can be expected of the connection.
    Lost(String),
}

/// Who connects, and how.
#[derive(Clone, Copy, Default)]
pub(crate) struct Login<'a> {
    /// An ACL user; the default one without.
    pub user: Option<&'a str>,
    pub password: Option<&'a str>,
    /// TLS, and the host's name to verify where the settings say none.
    pub tls: Option<(&'a TlsConfig, &'a str)>,
}

/// Bytes both ways.
trait Wire: Read + Write + Send {}
impl<T: Read + Write + Send> Wire for T {}

/// A connection.
pub(crate) struct Client {
    address: SocketAddr,
    stream: BufReader<Box<dyn Wire>>,
}

impl Client {
    /// Connects, with a password where one is needed.
    pub(crate) fn connect(
        address: SocketAddr,
        password: Option<&str>,
        patience: Duration,
    ) -> Result<Self, String> {
        Client::log_in(address, &Login { password, ..Login::default() }, patience)
    }

    /// Connects as somebody, by TLS where that is asked for.
    pub(crate) fn log_in(address: SocketAddr, login: &Login<'_>, patience: Duration) -> Result<Self, String> {
        let words = |e: std::io::Error| format!("{address}: {e}");
        let stream = TcpStream::connect_timeout(&address, patience).map_err(words)?;
        stream.set_read_timeout(Some(patience)).map_err(words)?;
        stream.set_write_timeout(Some(patience)).map_err(words)?;
        let stream: Box<dyn Wire> = match login.tls {
            None => Box::new(stream),
            Some((tls, host)) => {
                let to = Endpoint::Tcp { host: host.to_owned(), address };
                let mut stream = StreamOwned::new(tls.begin(&to).map_err(words)?, stream);
                // Whom one speaks to is known before anything is said.
                stream.conn.complete_io(&mut stream.sock).map_err(words)?;
                Box::new(stream)
            }
        };
        let mut client = Client { address, stream: BufReader::new(stream) };
        match (login.user, login.password) {
            (Some(user), password) => {
                client.call(&["AUTH", user, password.unwrap_or_default()]).map(drop)?;
            }
            (None, Some(password)) => client.call(&["AUTH", password]).map(drop)?,
            (None, None) => {}
        }
        Ok(client)
    }

    /// Sends a command and does not wait.
    pub(crate) fn send(&mut self, words: &[&str]) -> Result<(), String> {
        let mut out = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| out.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        self.stream.get_mut().write_all(out.as_bytes()).map_err(|e| e.to_string())
    }

    /// Sends commands in one go and does not wait; their bytes.
    pub(crate) fn send_all(&mut self, commands: &[Vec<String>]) -> Result<u64, String> {
        let mut out = Vec::new();
        for words in commands {
            out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
            for word in words {
                out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
            }
        }
        self.stream.get_mut().write_all(&out).map_err(|e| e.to_string())?;
        Ok(out.len() as u64)
    }

    /// The next reply; an error reply is an error.
    pub(crate) fn next(&mut self) -> Result<Reply, Failed> {
        self.reply(0)
    }

    /// Sends a command and takes its reply; an error reply is an error.
    pub(crate) fn call(&mut self, words: &[&str]) -> Result<Reply, String> {
        self.send(words)?;
        // The first word alone: others may be secrets.
        let name = words.first().copied().unwrap_or_default();
        self.reply(0).map_err(|why| match why {
            Failed::Said(words) => format!("{name}: {words}"),
            Failed::Lost(words) => format!("{}: {name}: {words}", self.address),
        })
    }

    fn reply(&mut self, depth: usize) -> Result<Reply, Failed> {
        reply(&mut self.stream, depth)
    }
}

/// Reads a reply; nothing is believed of its length before it has come.
pub(crate) fn reply(from: &mut impl BufRead, depth: usize) -> Result<Reply, Failed> {
    let mut line = Vec::new();
    from.by_ref().take(LINE).read_until(b'\n', &mut line).map_err(lost)?;
    let line = String::from_utf8_lossy(&line).into_owned();
    let line = line.trim_end_matches(['\r', '\n']);
    if !line.is_char_boundary(1) || line.is_empty() || depth > 8 {
        return Err(Failed::Lost("the connection was closed, or speaks another protocol".into()));
    }
    let (kind, rest) = line.split_at(1);
    let length = || rest.parse::<i64>().map_err(|_| Failed::Lost(format!("{line:?} is no reply")));
    match kind {
        "+" | ":" => Ok(Reply::Text(rest.to_owned())),
        "-" => Err(Failed::Said(rest.to_owned())),
        "$" | "*" => match usize::try_from(length()?) {
            Err(_) => Ok(Reply::Null),
            Ok(long) if long > LIMIT => Err(Failed::Lost(format!("{line:?} is too long"))),
            Ok(count) if kind == "*" => {
                (0..count).map(|_| reply(from, depth + 1)).collect::<Result<_, _>>().map(Reply::List)
            }
            Ok(long) => {
                let mut text = Vec::new();
                from.by_ref().take(long as u64 + 2).read_to_end(&mut text).map_err(lost)?;
                if text.len() < long + 2 {
                    return Err(Failed::Lost("the connection was closed within a reply".into()));
                }
                Ok(Reply::Text(String::from_utf8_lossy(&text[..long]).into_owned()))
            }
        },
        _ => Err(Failed::Lost(format!("{line:?} is no reply of Redis"))),
    }
}

fn lost(error: std::io::Error) -> Failed {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    match error.kind() {
        WouldBlock | TimedOut => Failed::Lost("no answer in time".into()),
        _ => Failed::Lost(error.to_string()),
    }
}
