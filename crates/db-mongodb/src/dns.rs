//! The two questions of `mongodb+srv://`: SRV and TXT records.
//!
//! A stub resolver: it asks the servers that the system names, by UDP and, where an answer does not fit, by TCP. The messages
//! are the `domain` crate's; a whole resolver would bring an asynchronous runtime and sixty crates for two questions.

use crate::protocol::MongoOptions;
use domain::base::iana::Rcode;
use domain::base::{Message, MessageBuilder, Name, Rtype, ToName};
use domain::rdata::{Srv, Txt};
use dyno_db::target_error::TargetError;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Whom to ask instead of the system's servers: `address:port`, several with commas.
const SERVERS: &str = "DYNO_DNS";
/// Time for one answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Number of times that every server is asked.
const ROUNDS: usize = 2;
/// As many servers as the system's own resolver asks.
const MOST_SERVERS: usize = 3;
/// Longest UDP answer without extensions is 512 bytes; some servers send more.
const DATAGRAM: usize = 4_096;

/// The options with their seeds; those of `mongodb+srv://` are asked of DNS.
pub(crate) fn seeds(options: MongoOptions) -> Result<MongoOptions, TargetError> {
    match std::env::var(SERVERS) {
        _ if options.srv.is_none() => Ok(options),
        Ok(text) => look_up(options, &listed(&text)?),
        Err(_) => {
            let file = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
            look_up(options, &configured(&file))
        }
    }
}

fn listed(text: &str) -> Result<Vec<SocketAddr>, TargetError> {
    let server = |one: &str| {
        let one = one.trim();
        let address = one.parse().or_else(|_| one.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53)));
        address.map_err(|_| {
            dyno_types::Refused::new(
                dyno_types::RefusalCode::BadValue,
                SERVERS,
                format!("{SERVERS}={text}: expected address[:port]"),
            )
            .into()
        })
    };
    text.split(',').map(server).collect()
}

/// The servers of a `resolv.conf`; this host, as the system's resolver does, where there are none.
fn configured(file: &str) -> Vec<SocketAddr> {
    let server = |line: &str| {
        let mut words = line.split_whitespace();
        let address = words.next().filter(|word| *word == "nameserver").and_then(|_| words.next())?;
        Some(SocketAddr::new(address.parse().ok()?, 53))
    };
    let mut found: Vec<SocketAddr> = file.lines().filter_map(server).take(MOST_SERVERS).collect();
    if found.is_empty() {
        found.push(SocketAddr::from((Ipv4Addr::LOCALHOST, 53)));
    }
    found
}

fn look_up(options: MongoOptions, servers: &[SocketAddr]) -> Result<MongoOptions, TargetError> {
    let Some(srv) = &options.srv else { return Ok(options) };
    let failed = |name: &str, why: DnsError| TargetError::Unreachable(format!("DNS: {name}: {why}"));
    let (name, host) = (srv.name(), srv.host.clone());
    let hosts = ask(servers, &name, Rtype::SRV).and_then(|answer| read_services(&answer));
    let hosts = hosts.map_err(|why| failed(&name, why))?;
    let texts = ask(servers, &host, Rtype::TXT).and_then(|answer| read_texts(&answer));
    let texts = texts.map_err(|why| failed(&host, why))?;
    // Errors in the records are no fault of the command line.
    options.with_records(hosts, &texts).map_err(|refused| TargetError::Unreachable(refused.to_string()))
}

/// Why DNS has no records to go by.
#[derive(Debug, thiserror::Error)]
pub enum DnsError {
    /// No name that can be sent.
    #[error("no name that DNS can be asked for")]
    Name,
    /// The answer is malformed.
    #[error("{BROKEN}")]
    Broken,
    /// A text record is of another encoding.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// No server has an answer; why each has none.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Unanswered(Vec<NoAnswer>),
}

/// Why a server of DNS has no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// It is silent.
    #[error("{0}: no answer")]
    Silent(SocketAddr),
    /// It cannot be asked.
    #[error("{server}: {source}")]
    Io {
        /// Whom.
        server: SocketAddr,
        /// Why.
        source: Error,
    },
    /// It has failed, or refuses.
    #[error("{server} says {code}")]
    Says {
        /// Server that answered.
        server: SocketAddr,
        /// Response code that it gave.
        code: Rcode,
    },
}

const BROKEN: &str = "the answer cannot be read";

/// Reads host and port of every SRV record of an answer.
///
/// # Errors
/// The answer is malformed or says that there is none.
pub fn read_services(answer: &[u8]) -> Result<Vec<(String, u16)>, DnsError> {
    let answer = Message::from_octets(answer).map_err(|_| DnsError::Broken)?;
    let records = answer.answer().map_err(|_| DnsError::Broken)?.limit_to_in::<Srv<_>>();
    records
        .map(|record| {
            let record = record.map_err(|_| DnsError::Broken)?;
            let data = record.data();
            Ok((data.target().to_name::<Vec<u8>>().to_string(), data.port()))
        })
        .collect()
}

/// Reads every TXT record of an answer.
///
/// # Errors
/// The answer is malformed or says that there is none.
pub fn read_texts(answer: &[u8]) -> Result<Vec<String>, DnsError> {
    let answer = Message::from_octets(answer).map_err(|_| DnsError::Broken)?;
    let records = answer.answer().map_err(|_| DnsError::Broken)?.limit_to_in::<Txt<_>>();
    records
        .map(|record| {
            let text: Vec<u8> = record.map_err(|_| DnsError::Broken)?.data().text();
            String::from_utf8(text).map_err(|_| DnsError::NotUtf8)
        })
        .collect()
}

/// Asks the servers in turn until one answers. A name without such records has none; one that does not exist has no TXT
/// records either, and the caller that needs SRV records reports their lack.
fn ask(servers: &[SocketAddr], name: &str, kind: Rtype) -> Result<Vec<u8>, DnsError> {
    let owner: Name<Vec<u8>> = name.parse().map_err(|_| DnsError::Name)?;
    let mut failures = Vec::new();
    for _ in 0..ROUNDS {
        for server in servers {
            match ask_one(*server, &owner, kind) {
                Ok(answer) => {
                    let message = Message::from_octets(&answer[..]).map_err(|_| DnsError::Broken)?;
                    match message.header().rcode() {
                        Rcode::NOERROR | Rcode::NXDOMAIN => return Ok(answer),
                        code => failures.push(NoAnswer::Says { server: *server, code }),
                    }
                }
                Err(source) => failures.push(match source.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => NoAnswer::Silent(*server),
                    _ => NoAnswer::Io { server: *server, source },
                }),
            }
        }
    }
    failures.dedup_by_key(|failure| failure.to_string());
    Err(DnsError::Unanswered(failures))
}

fn ask_one(server: SocketAddr, owner: &Name<Vec<u8>>, kind: Rtype) -> Result<Vec<u8>, Error> {
    let mut id = [0; 2];
    getrandom::fill(&mut id).map_err(|e| Error::other(e.to_string()))?;
    let mut question = MessageBuilder::new_vec();
    question.header_mut().set_id(u16::from_le_bytes(id));
    question.header_mut().set_rd(true);
    let mut question = question.question();
    question.push((owner, kind)).map_err(|e| Error::other(e.to_string()))?;
    let question = question.into_message();
    let answer = by_datagram(server, &question)?;
    let truncated = Message::from_octets(&answer[..]).is_ok_and(|answer| answer.header().tc());
    if truncated { by_stream(server, &question) } else { Ok(answer) }
}

/// Returns whether `bytes` answer the question; whatever else arrives is not taken.
fn answers(bytes: &[u8], question: &Message<Vec<u8>>) -> bool {
    Message::from_octets(bytes).is_ok_and(|answer| answer.is_answer(question))
}

fn by_datagram(server: SocketAddr, question: &Message<Vec<u8>>) -> Result<Vec<u8>, Error> {
    let any =
        if server.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.send(question.as_slice())?;
    let deadline = Instant::now() + PATIENCE;
    let mut buffer = vec![0; DATAGRAM];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let n = socket.recv(&mut buffer)?;
        if answers(&buffer[..n], question) {
            buffer.truncate(n);
            return Ok(buffer);
        }
    }
}

fn by_stream(server: SocketAddr, question: &Message<Vec<u8>>) -> Result<Vec<u8>, Error> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let length = (question.as_slice().len() as u16).to_be_bytes();
    stream.write_all(&[&length[..], question.as_slice()].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer)?;
    if answers(&answer, question) { Ok(answer) } else { Err(Error::other(BROKEN)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::rdata::Txt;
    use dyno_types::address::Address;
    use std::net::TcpListener;

    /// Behaviour of a scripted server towards a question.
    #[derive(Clone, Copy, PartialEq)]
    enum Manner {
        Plain,
        /// An answer to another question, one with another number, and bytes of nothing come first.
        Noisy,
        /// By UDP it says only that the answer does not fit.
        Truncated,
        Fails,
        NoSuchName,
        Silent,
    }

    fn answer(question: &[u8], texts: &[&[&str]], manner: Manner) -> Vec<u8> {
        let question = Message::from_octets(question).unwrap();
        let asked = question.first_question().unwrap();
        let rcode = match manner {
            Manner::Fails => Rcode::SERVFAIL,
            Manner::NoSuchName => Rcode::NXDOMAIN,
            _ => Rcode::NOERROR,
        };
        let mut answer = MessageBuilder::new_vec().start_answer(&question, rcode).unwrap();
        if rcode == Rcode::NOERROR && manner != Manner::Truncated {
            if asked.qtype() == Rtype::SRV {
                for (host, port) in [("a.example.com", 1), ("b.example.com", 27_017)] {
                    let host: Name<Vec<u8>> = host.parse().unwrap();
                    answer.push((asked.qname(), 60, Srv::new(0, 0, port, host))).unwrap();
                }
            }
            for parts in texts.iter().filter(|_| asked.qtype() == Rtype::TXT) {
                let mut text = Vec::new();
                for part in *parts {
                    text.push(part.len() as u8);
                    text.extend_from_slice(part.as_bytes());
                }
                answer.push((asked.qname(), 60, Txt::from_octets(text).unwrap())).unwrap();
            }
        }
        answer.header_mut().set_tc(manner == Manner::Truncated);
        answer.finish()
    }

    fn serve(manner: Manner, texts: &'static [&'static [&'static str]]) -> SocketAddr {
        // The same port twice: another process may have it for the other protocol.
        let both = || {
            let socket = UdpSocket::bind("127.0.0.1:0").ok()?;
            let address = socket.local_addr().ok()?;
            Some((TcpListener::bind(address).ok()?, socket, address))
        };
        let (listener, socket, address) = (0..100).find_map(|_| both()).unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 600];
            while let Ok((n, from)) = socket.recv_from(&mut buffer) {
                let question = &buffer[..n];
                if manner == Manner::Silent {
                    continue;
                }
                if manner == Manner::Noisy {
                    let good = answer(question, texts, Manner::Plain);
                    let (mut number, mut name) = (good.clone(), good);
                    number[0] ^= 1;
                    name[14] ^= 1;
                    for bad in [&number[..], &name[..], b"junk", b"", question] {
                        socket.send_to(bad, from).unwrap();
                    }
                }
                socket.send_to(&answer(question, texts, manner), from).unwrap();
            }
        });
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut length = [0; 2];
                stream.read_exact(&mut length).unwrap();
                let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
                stream.read_exact(&mut question).unwrap();
                let answer = answer(&question, texts, Manner::Plain);
                stream.write_all(&[&(answer.len() as u16).to_be_bytes()[..], &answer].concat()).unwrap();
            }
        });
        address
    }

    fn found(uri: &str, servers: &[SocketAddr]) -> Result<MongoOptions, String> {
        look_up(MongoOptions::from_uri(uri).unwrap(), servers).map_err(|error| error.to_string())
    }

    const CLUSTER: &str = "mongodb+srv://u:p@cluster.example.com/db";

    #[test]
    fn hosts_and_options_come_from_the_records() {
        let texts: &[&[&str]] = &[&["authSource=us", "ers&replicaSet=rs"]];
        for manner in [Manner::Plain, Manner::Noisy, Manner::Truncated] {
            let options = found(CLUSTER, &[serve(manner, texts)]).unwrap();
            let tcp = |host: &str, port| Address::Tcp(host.into(), port);
            assert_eq!(options.addresses, [tcp("a.example.com", 1), tcp("b.example.com", 27_017)]);
            assert_eq!((options.auth_source.as_str(), options.replica_set.as_deref()), ("users", Some("rs")));
            assert!(options.tls.is_some());
        }
        assert_eq!(found(CLUSTER, &[serve(Manner::Plain, &[])]).unwrap().auth_source, "db");
    }

    #[test]
    fn the_next_server_is_asked_and_failures_say_why() {
        let (good, bad) = (serve(Manner::Plain, &[]), serve(Manner::Fails, &[]));
        assert_eq!(found(CLUSTER, &[bad, good]).unwrap().addresses.len(), 2);
        assert_eq!(found(CLUSTER, &[serve(Manner::Silent, &[]), good]).unwrap().addresses.len(), 2);
        let why = found(CLUSTER, &[bad]).unwrap_err();
        assert!(why.contains("_mongodb._tcp.cluster.example.com") && why.contains("SERVFAIL"), "{why}");
        let why = found(CLUSTER, &[serve(Manner::NoSuchName, &[])]).unwrap_err();
        assert!(why.contains("has no SRV records"), "{why}");
        let why = found("mongodb+srv://cluster.example.org/", &[good]).unwrap_err();
        assert!(why.contains("not within .example.org"), "{why}");
        let why = found(CLUSTER, &[serve(Manner::Plain, &[&["tls=false"]])]).unwrap_err();
        assert!(why.contains("only authSource"), "{why}");
    }

    #[test]
    fn servers_of_the_system() {
        let file = "# x\nsearch a\nnameserver 10.0.0.1\n nameserver  ::1 \nnameserver fe80::1%eth0\n";
        let expected = ["10.0.0.1:53", "[::1]:53"].map(|text| text.parse().unwrap());
        assert_eq!(configured(file), expected);
        assert_eq!(configured(""), ["127.0.0.1:53".parse().unwrap()]);
        assert_eq!(
            listed("127.0.0.1:5, ::1").unwrap(),
            ["127.0.0.1:5", "[::1]:53"].map(|t| t.parse().unwrap())
        );
        assert!(listed("localhost").is_err());
    }

    mod hostile {
        use super::super::*;
        use proptest::prelude::*;

        proptest! {
            #[test]
            fn answers_that_lie_are_borne(
                place in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
                junk in prop::collection::vec(any::<u8>(), 0..100),
            ) {
                let mut question = MessageBuilder::new_vec().question();
                question.push((Name::<Vec<u8>>::vec_from_str("_mongodb._tcp.c.example.com").unwrap(), Rtype::SRV)).unwrap();
                let question = question.finish();
                let mut bytes = super::answer(&question, &[&["a=b"]], super::Manner::Plain);
                let place = place.index(bytes.len());
                bytes[place] = byte;
                bytes.truncate(cut.index(bytes.len() + 1));
                for bytes in [&bytes, &junk] {
                    let message = Message::from_octets(question.clone()).unwrap();
            let _ = (read_services(bytes), read_texts(bytes), answers(bytes, &message));
                }
            }
        }
    }
}
