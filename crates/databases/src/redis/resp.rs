//! A small blocking client for the commands that set up and look after Redis servers.

use dyno_engine::net::TlsConfig;
use dyno_types::Endpoint;
use dyno_types::limits::ANSWER_BYTES;
use rustls::StreamOwned;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A status, a text or a number.
    Text(String),
    /// Nothing.
    Null,
    /// Several.
    List(Vec<Reply>),
}

impl Reply {
    /// The text; empty for what is none.
    pub fn text(&self) -> &str {
        match self {
            Reply::Text(text) => text,
            _ => "",
        }
    }
}

/// What an element of a list costs beside its text, bytes.
const ELEMENT: usize = size_of::<Reply>();
/// Longest line.
const LINE: u64 = 64 << 10;

/// Why nothing more can be expected of a connection.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// The server has not answered in time.
    #[error("no answer in time")]
    Late,
    /// The connection has failed.
    #[error(transparent)]
    Io(io::Error),
    /// What came is no reply, or not a whole one.
    #[error("{0}")]
    Malformed(String),
}

/// An error reply. Its first word is its code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ErrorReply(String);

impl ErrorReply {
    /// The code, such as `READONLY`.
    pub fn code(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }
}

/// Why there is no reply to use.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The server has answered with an error.
    #[error(transparent)]
    Said(ErrorReply),
    /// Nothing more can be expected of the connection.
    #[error(transparent)]
    Lost(Lost),
}

/// Why a command has no good reply.
#[derive(Debug, thiserror::Error)]
pub enum RespError {
    /// There is no connection.
    #[error("{address}: {source}")]
    Connect {
        /// The server.
        address: SocketAddr,
        /// What the system, or TLS, says.
        source: io::Error,
    },
    /// The command could not be sent.
    #[error(transparent)]
    Send(io::Error),
    /// The server has refused the command.
    #[error("{command}: {reply}")]
    Refused {
        /// The command's name.
        command: String,
        /// The server's code and words.
        #[source]
        reply: ErrorReply,
    },
    /// The connection is of no use any more: the command may have been done.
    #[error("{address}: {command}: {source}")]
    Lost {
        /// The server.
        address: SocketAddr,
        /// The command's name.
        command: String,
        /// Why.
        source: Lost,
    },
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

/// A socket that is read until an instant, however slowly it answers.
struct Timed {
    stream: TcpStream,
    end: Arc<Mutex<Instant>>,
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let end = *self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

/// A connection.
pub struct Client {
    address: SocketAddr,
    patience: Duration,
    /// Until when the reply that is awaited may come.
    end: Arc<Mutex<Instant>>,
    stream: BufReader<Box<dyn Wire>>,
}

impl Client {
    /// Connects, with a password where one is needed.
    pub fn connect(
        address: SocketAddr,
        password: Option<&str>,
        patience: Duration,
    ) -> Result<Self, RespError> {
        Client::log_in(address, &Login { password, ..Login::default() }, patience)
    }

    /// Connects as somebody, by TLS where that is asked for.
    pub(crate) fn log_in(
        address: SocketAddr,
        login: &Login<'_>,
        patience: Duration,
    ) -> Result<Self, RespError> {
        let unconnected = |source| RespError::Connect { address, source };
        let stream = TcpStream::connect_timeout(&address, patience).map_err(unconnected)?;
        stream.set_write_timeout(Some(patience)).map_err(unconnected)?;
        let end = Arc::new(Mutex::new(Instant::now() + patience));
        let stream = Timed { stream, end: end.clone() };
        let stream: Box<dyn Wire> = match login.tls {
            None => Box::new(stream),
            Some((tls, host)) => {
                let to = Endpoint::Tcp { host: host.to_owned(), address };
                let mut stream = StreamOwned::new(tls.begin(&to).map_err(unconnected)?, stream);
                // Whom one speaks to is known before anything is said.
                stream.conn.complete_io(&mut stream.sock).map_err(unconnected)?;
                Box::new(stream)
            }
        };
        let mut client = Client { address, patience, end, stream: BufReader::new(stream) };
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
    pub(crate) fn send(&mut self, words: &[&str]) -> Result<(), RespError> {
        let mut out = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| out.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        self.stream.get_mut().write_all(out.as_bytes()).map_err(RespError::Send)
    }

    /// Sends commands in one go and does not wait; their bytes.
    pub(crate) fn send_all(&mut self, commands: &[Vec<String>]) -> io::Result<u64> {
        let mut out = Vec::new();
        for words in commands {
            out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
            for word in words {
                out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
            }
        }
        self.stream.get_mut().write_all(&out)?;
        Ok(out.len() as u64)
    }

    /// The next reply; an error reply is an error.
    pub(crate) fn next(&mut self) -> Result<Reply, Failed> {
        self.reply()
    }

    /// Sends a command and takes its reply; an error reply is an error.
    pub fn call(&mut self, words: &[&str]) -> Result<Reply, RespError> {
        self.send(words)?;
        // The first word alone: others may be secrets.
        let command = words.first().copied().unwrap_or_default().to_owned();
        self.reply().map_err(|failed| match failed {
            Failed::Said(reply) => RespError::Refused { command, reply },
            Failed::Lost(source) => RespError::Lost { address: self.address, command, source },
        })
    }

    fn reply(&mut self) -> Result<Reply, Failed> {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + self.patience;
        reply(&mut self.stream)
    }
}

/// Reads a reply; nothing is believed of its length before it has come, and no reply is longer than [`ANSWER_BYTES`].
pub fn reply(from: &mut impl BufRead) -> Result<Reply, Failed> {
    part(from, 0, &mut { ANSWER_BYTES })
}

/// Reads a part of a reply that lies `depth` lists deep; `left` bytes may come yet.
fn part(from: &mut impl BufRead, depth: usize, left: &mut usize) -> Result<Reply, Failed> {
    let mut take = |bytes: usize| {
        let rest = left
            .checked_sub(bytes)
            .ok_or_else(|| malformed(format!("its answer is longer than {ANSWER_BYTES} bytes")));
        rest.map(|rest| *left = rest)
    };
    let mut line = Vec::new();
    from.by_ref().take(LINE).read_until(b'\n', &mut line).map_err(lost)?;
    take(ELEMENT + line.len())?;
    let line = String::from_utf8_lossy(&line).into_owned();
    let line = line.trim_end_matches(['\r', '\n']);
    if !line.is_char_boundary(1) || line.is_empty() || depth > 8 {
        return Err(malformed("the connection was closed, or speaks another protocol"));
    }
    let (kind, rest) = line.split_at(1);
    let length = || rest.parse::<i64>().map_err(|_| malformed(format!("{line:?} is no reply")));
    match kind {
        "+" | ":" => Ok(Reply::Text(rest.to_owned())),
        "-" => Err(Failed::Said(ErrorReply(rest.to_owned()))),
        "$" | "*" => match usize::try_from(length()?) {
            Err(_) => Ok(Reply::Null),
            Ok(count) if kind == "*" => {
                (0..count).map(|_| part(from, depth + 1, left)).collect::<Result<_, _>>().map(Reply::List)
            }
            Ok(long) => {
                take(long)?;
                let mut text = Vec::new();
                from.by_ref().take(long as u64 + 2).read_to_end(&mut text).map_err(lost)?;
                if text.len() < long + 2 {
                    return Err(malformed("the connection was closed within a reply"));
                }
                Ok(Reply::Text(String::from_utf8_lossy(&text[..long]).into_owned()))
            }
        },
        _ => Err(malformed(format!("{line:?} is no reply of Redis"))),
    }
}

fn malformed(words: impl Into<String>) -> Failed {
    Failed::Lost(Lost::Malformed(words.into()))
}

fn lost(error: io::Error) -> Failed {
    use io::ErrorKind::{TimedOut, WouldBlock};
    Failed::Lost(match error.kind() {
        WouldBlock | TimedOut => Lost::Late,
        _ => Lost::Io(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::repeat;

    fn read(bytes: &[u8]) -> Result<Reply, Failed> {
        reply(&mut BufReader::new(bytes))
    }

    #[test]
    fn replies_are_read_to_their_end() {
        let text = |text: &str| Reply::Text(text.into());
        let list = Reply::List(vec![text("abc"), text("7")]);
        assert_eq!(read(b"*2\r\n$3\r\nabc\r\n:7\r\n").unwrap(), list);
        assert_eq!(read(b"$-1\r\n").unwrap(), Reply::Null);
        let Err(Failed::Said(reply)) = read(b"-ERR no\r\n") else { panic!("an error reply") };
        assert_eq!((reply.code(), reply.to_string().as_str()), ("ERR", "ERR no"));
    }

    #[test]
    fn what_claims_or_says_too_much_is_refused() {
        let too_long = |told: Result<Reply, Failed>| match told {
            Err(Failed::Lost(Lost::Malformed(words))) => assert!(words.contains("longer than"), "{words}"),
            other => panic!("{other:?}"),
        };
        too_long(read(format!("${}\r\nabc", 1_u64 << 40).as_bytes()));
        // Elements that go on for ever, flat and in lists of their own.
        let head = format!("*{}\r\n", 1_u64 << 40);
        for element in [&b":1\r\n"[..], b"*1\r\n:1\r\n", b"$5\r\nabcde\r\n"] {
            let endless = element.repeat(ANSWER_BYTES / ELEMENT + 2);
            too_long(read(&[head.as_bytes(), &endless].concat()));
        }
        let endless = BufReader::new(repeat(b'x'));
        assert!(matches!(reply(&mut { endless }), Err(Failed::Lost(_))));
        let deep = b"*1\r\n".repeat(100);
        assert!(matches!(read(&deep), Err(Failed::Lost(_))));
    }

    #[test]
    fn a_reply_that_trickles_is_not_awaited_for_ever() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"$1000000\r\n").unwrap();
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let mut client = Client::connect(address, None, Duration::from_millis(300)).unwrap();
        let told = client.call(&["INFO"]).unwrap_err();
        assert!(matches!(told, RespError::Lost { source: Lost::Late, .. }), "{told}");
        assert_eq!(told.to_string(), format!("{address}: INFO: no answer in time"));
    }
}
