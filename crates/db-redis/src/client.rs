//! A small blocking client for the commands that set up and look after Redis servers.

use crate::protocol::resp::{self, ErrorReply, RespReply};
use dyno_db::copies::database::DatabaseError;
use dyno_db::probe::{NEVER, ProbeConnection, ProbeFailure, ReadStatus};
use dyno_engine::net::TlsConfig;
use dyno_types::Endpoint;
use dyno_types::limits::ANSWER_BYTES;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Why a command has no good reply.
#[derive(Debug, thiserror::Error)]
pub enum RespError {
    /// There is no connection.
    #[error("{address}: {source}")]
    Connect {
        /// The server.
        address: SocketAddr,
        /// Why.
        source: ProbeFailure,
    },
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
        source: ProbeFailure,
    },
}

impl From<RespError> for DatabaseError {
    fn from(error: RespError) -> Self {
        DatabaseError::Client(Box::new(error))
    }
}

/// Login and transport of a connection.
#[derive(Clone, Copy, Default)]
pub(crate) struct ClientLogin<'a> {
    /// An ACL user; the default one without.
    pub user: Option<&'a str>,
    pub password: Option<&'a str>,
    /// TLS, and the host's name to verify where the settings say none.
    pub tls: Option<(&'a Arc<TlsConfig>, &'a str)>,
}

/// A connection.
pub struct Client {
    address: SocketAddr,
    patience_ns: u64,
    line: ProbeConnection,
}

impl Client {
    /// Connects, with a password where one is needed. Connecting and each command may take as long as `patience`.
    ///
    /// # Errors
    /// The server does not answer, or refuses the password.
    pub fn connect(
        address: SocketAddr,
        password: Option<&str>,
        patience: Duration,
    ) -> Result<Self, RespError> {
        Client::log_in(address, &ClientLogin { password, ..ClientLogin::default() }, patience)
    }

    /// Connects with a login, by TLS where that is asked for.
    pub(crate) fn log_in(
        address: SocketAddr,
        login: &ClientLogin<'_>,
        patience: Duration,
    ) -> Result<Self, RespError> {
        let (tls, host) = login.tls.unzip();
        let endpoint =
            Endpoint::Tcp { host: host.map_or_else(|| address.ip().to_string(), str::to_owned), address };
        let patience_ns = patience.as_nanos() as u64;
        let connected = ProbeConnection::open(tls, &endpoint).and_then(|mut line| {
            line.send_words(Vec::new(), (patience_ns, NEVER))?;
            Ok(line)
        });
        let line = connected.map_err(|source| RespError::Connect { address, source })?;
        let mut client = Client { address, patience_ns, line };
        match (login.user, login.password) {
            (Some(user), password) => {
                client.send_command(&["AUTH", user, password.unwrap_or_default()]).map(drop)?;
            }
            (None, Some(password)) => client.send_command(&["AUTH", password]).map(drop)?,
            (None, None) => {}
        }
        Ok(client)
    }

    /// Sends a command and does not wait for a reply.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) fn send(&mut self, words: &[&str]) -> Result<(), RespError> {
        let said = self.line.send_words(encoded(words), (self.patience_ns, NEVER));
        said.map_err(|source| self.lost(words, source))
    }

    /// Sends a command and takes its reply; an error reply is an error.
    ///
    /// # Errors
    /// The server refuses the command, or the connection is lost.
    pub fn send_command(&mut self, words: &[&str]) -> Result<RespReply, RespError> {
        let replies = self.pipeline(encoded(words), 1).map_err(|source| self.lost(words, source))?;
        match replies.into_iter().next().unwrap_or(RespReply::Null) {
            RespReply::Error(reply) => Err(RespError::Refused { command: name(words), reply }),
            reply => Ok(reply),
        }
    }

    /// Sends `count` commands at once, and takes their replies.
    ///
    /// # Errors
    /// The connection is lost: the commands may have been done.
    pub(crate) fn pipeline(
        &mut self,
        commands: Vec<u8>,
        count: usize,
    ) -> Result<Vec<RespReply>, ProbeFailure> {
        let (mut replies, mut commands) = (Vec::with_capacity(count), commands);
        // Patience is for each reply: a server that is slow, but answers, is not lost.
        while replies.len() < count {
            let before = replies.len();
            self.line.continue_conversation(
                std::mem::take(&mut commands),
                (self.patience_ns, NEVER),
                &mut |received, _| {
                    let mut at = 0;
                    let heard = loop {
                        if replies.len() == count {
                            break ReadStatus::Done;
                        }
                        match resp::read_reply(&received[at..], ANSWER_BYTES) {
                            Ok(Some((reply, used))) => {
                                replies.push(reply);
                                at += used;
                            }
                            Ok(None) if replies.len() > before => break ReadStatus::Done,
                            Ok(None) => break ReadStatus::Need,
                            Err(why) => break ReadStatus::Refused(why.to_string()),
                        }
                    };
                    received.drain(..at);
                    heard
                },
            )?;
        }
        Ok(replies)
    }

    fn lost(&self, words: &[&str], source: ProbeFailure) -> RespError {
        RespError::Lost { address: self.address, command: name(words), source }
    }
}

/// The first word alone: others may be secrets.
fn name(words: &[&str]) -> String {
    words.first().copied().unwrap_or_default().to_owned()
}

fn encoded(words: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    resp::put_command(&mut out, &words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// A server that hears a command and then says `words`, by one connection.
    fn server(say: impl FnOnce(&mut TcpStream) + Send + 'static) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 1000]).unwrap() > 0);
            say(&mut stream);
        });
        Client::connect(address, None, Duration::from_millis(300)).unwrap()
    }

    #[test]
    fn replies_and_refusals_are_told_apart() {
        let mut client = server(|stream| stream.write_all(b"+OK\r\n-READONLY no\r\n:7\r\n").unwrap());
        let replies = client.pipeline(encoded(&["PING"]).repeat(3), 3).unwrap();
        let [RespReply::Text(ok), RespReply::Error(refused), RespReply::Text(seven)] = &replies[..] else {
            panic!("{replies:?}")
        };
        assert_eq!((ok.as_str(), refused.error_code(), seven.as_str()), ("OK", "READONLY", "7"));
        let mut client = server(|stream| stream.write_all(b"-WRONGPASS no such user\r\n").unwrap());
        let told = client.send_command(&["AUTH", "hunter2"]).unwrap_err();
        assert!(matches!(told, RespError::Refused { .. }));
        assert_eq!(told.to_string(), "AUTH: WRONGPASS no such user");
    }

    #[test]
    fn a_reply_that_trickles_is_not_awaited_for_ever() {
        let mut client = server(|stream| {
            stream.write_all(b"$1000000\r\n").unwrap();
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let told = client.send_command(&["INFO"]).unwrap_err();
        assert!(matches!(told, RespError::Lost { source: ProbeFailure::Silent(_), .. }), "{told}");
        assert_eq!(told.to_string(), format!("{}: INFO: no answer within 0.3 s", client.address));
    }

    #[test]
    fn a_connection_that_is_lost_says_so() {
        let mut client = server(|stream| stream.write_all(b"$10\r\nabc").unwrap());
        let told = client.send_command(&["INFO"]).unwrap_err();
        assert!(matches!(told, RespError::Lost { source: ProbeFailure::Closed(_), .. }), "{told}");
        let mut client = server(|stream| stream.write_all(b"HTTP/1.1 400 Bad Request\r\n").unwrap());
        let told = client.send_command(&["INFO"]).unwrap_err();
        assert!(matches!(told, RespError::Lost { source: ProbeFailure::Final(_), .. }), "{told}");
        let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let told = Client::connect(unused, None, Duration::from_secs(5)).err().unwrap();
        assert!(matches!(told, RespError::Connect { source: ProbeFailure::Absent(_), .. }), "{told}");
    }
}
