//! A scraper: HTTP/1.1 over plain TCP with one bound on time and one on size.

use super::error::ScrapeError;
use super::parse::parse;
use crate::sample::{Sample, SampleError, Source};
use dyno_types::secret::mask_text;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Time that one scrape may take, connecting included.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longest answer, bytes.
const ANSWER: usize = 16 << 20;

/// Longest head of an answer, bytes.
const HEAD: usize = 64 << 10;

/// Address of an exporter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    host: String,
    port: u16,
    path: String,
}

/// A text that is not the URL of an exporter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} {problem}; expected http://host:port/metrics")]
pub struct UrlError {
    /// The text; secrets are masked.
    pub text: String,
    /// Error.
    #[source]
    pub problem: UrlProblem,
}

/// Error in a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlProblem {
    /// The scheme is `https`.
    #[error("needs TLS, which the scraper does not speak")]
    Tls,
    /// Another scheme, or none.
    #[error("is no http URL")]
    Scheme,
    /// A user, or a password.
    #[error("has a login, which the scraper does not use")]
    Login,
    /// A port that is no number up to 65,535.
    #[error("has no valid port")]
    Port,
    /// No host, or a host with blanks.
    #[error("has no host or has blanks")]
    Host,
}

impl Url {
    /// `http://host[:port][/path]`; without a path `/metrics`.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let bad = |problem| UrlError { text: mask_text(text), problem };
        if text.starts_with("https:") {
            return Err(bad(UrlProblem::Tls));
        }
        let rest = text.strip_prefix("http://").ok_or_else(|| bad(UrlProblem::Scheme))?;
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (place, path) = rest.split_at(at);
        if place.contains('@') {
            return Err(bad(UrlProblem::Login));
        }
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| bad(UrlProblem::Port))?)
            }
            _ => (place, 80),
        };
        let bare = |c: char| c.is_control() || c.is_whitespace();
        if host.is_empty() || text.contains(bare) {
            return Err(bad(UrlProblem::Host));
        }
        let path = match path {
            "" | "/" => "/metrics".to_owned(),
            path if path.starts_with('?') => format!("/metrics{path}"),
            path => path.to_owned(),
        };
        Ok(Url { host: host.to_owned(), port, path })
    }

    /// Fetches what is there.
    pub fn get(&self) -> io::Result<Vec<u8>> {
        let deadline = Instant::now() + PATIENCE;
        let mut stream = self.connect(deadline)?;
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: dyno/{}\r\nAccept: text/plain;version=0.0.4\r\n\
             Connection: close\r\n\r\n",
            self.path,
            self.host,
            self.port,
            env!("CARGO_PKG_VERSION")
        );
        stream.set_write_timeout(Some(left(deadline)?))?;
        stream.write_all(request.as_bytes())?;
        let mut received = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match body(&received)? {
                ScrapeProgress::Whole(body) => return Ok(body),
                ScrapeProgress::UntilClosed(_) | ScrapeProgress::More => {}
            }
            stream.set_read_timeout(Some(left(deadline)?))?;
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) if received.len() + n > ANSWER => {
                    return Err(other("the answer is longer than 16 MiB"));
                }
                Ok(n) => received.extend_from_slice(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(late());
                }
                Err(e) => return Err(e),
            }
        }
        match body(&received)? {
            ScrapeProgress::Whole(body) | ScrapeProgress::UntilClosed(body) => Ok(body),
            ScrapeProgress::More => Err(other("the answer ends early")),
        }
    }

    fn connect(&self, deadline: Instant) -> io::Result<TcpStream> {
        let host = self.host.trim_matches(['[', ']']);
        let mut failure = other("the name has no address");
        for address in (host, self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left(deadline)?) {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

fn other(message: &str) -> io::Error {
    io::Error::other(message.to_owned())
}

fn late() -> io::Error {
    other("no answer within 2 s")
}

/// Time left, never zero.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(late()) } else { Ok(left) }
}

/// Progress of an answer.
enum ScrapeProgress {
    /// Everything.
    Whole(Vec<u8>),
    /// Received part of an answer that ends with the connection.
    UntilClosed(Vec<u8>),
    /// Not yet.
    More,
}

/// The body of an answer that has come as far as this, if it is whole.
pub fn answer_body(received: &[u8]) -> io::Result<Option<Vec<u8>>> {
    Ok(match body(received)? {
        ScrapeProgress::Whole(body) => Some(body),
        ScrapeProgress::UntilClosed(_) | ScrapeProgress::More => None,
    })
}

fn body(received: &[u8]) -> io::Result<ScrapeProgress> {
    let Some(end) = received.windows(4).position(|w| w == b"\r\n\r\n") else {
        return if received.len() > HEAD {
            Err(other("what answers does not speak HTTP"))
        } else {
            Ok(ScrapeProgress::More)
        };
    };
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    let rest = &received[end + 4..];
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    let code = status.strip_prefix("HTTP/1.").and_then(|s| s.split(' ').nth(1));
    match code {
        Some("200") => {}
        Some(_) => return Err(other(&format!("it answers {status}"))),
        None => return Err(other("what answers does not speak HTTP")),
    }
    let header = |name: &str| {
        let found =
            lines.clone().filter_map(|l| l.split_once(':')).find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim().to_owned())
    };
    if header("transfer-encoding").is_some_and(|e| e.eq_ignore_ascii_case("chunked")) {
        return chunks(rest);
    }
    match header("content-length").map(|n| n.parse::<usize>()) {
        None => Ok(ScrapeProgress::UntilClosed(rest.to_vec())),
        Some(Ok(n)) if n <= ANSWER => {
            Ok(rest.get(..n).map_or(ScrapeProgress::More, |b| ScrapeProgress::Whole(b.to_vec())))
        }
        Some(_) => Err(other("the answer is longer than 16 MiB, or does not say how long it is")),
    }
}

fn chunks(mut rest: &[u8]) -> io::Result<ScrapeProgress> {
    let mut whole = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|w| w == b"\r\n") else { return Ok(ScrapeProgress::More) };
        let size = std::str::from_utf8(&rest[..end]).ok().and_then(|line| {
            let digits = line.split(';').next()?.trim();
            usize::from_str_radix(digits, 16).ok().filter(|n| *n <= ANSWER)
        });
        let size = size.ok_or_else(|| other("the answer's chunks have no valid size"))?;
        if size == 0 {
            return Ok(ScrapeProgress::Whole(whole));
        }
        let from = end + 2;
        let Some(chunk) = rest.get(from..from + size) else { return Ok(ScrapeProgress::More) };
        whole.extend_from_slice(chunk);
        rest = rest.get(from + size + 2..).unwrap_or_default();
    }
}

/// Reads what an exporter says now.
fn scrape(url: &Url, into: &mut Sample) -> Result<(), ScrapeError> {
    let text = String::from_utf8(url.get()?)?;
    Ok(parse(&text, into)?)
}

/// An exporter, scraped at every tick.
#[derive(Clone, Debug)]
pub struct PrometheusSource {
    name: String,
    url: Url,
}

impl PrometheusSource {
    /// A source called `name`.
    pub fn new(name: &str, url: Url) -> Self {
        PrometheusSource { name: name.to_owned(), url }
    }
}

impl Source for PrometheusSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn sample(&mut self, into: &mut Sample) -> Result<(), SampleError> {
        scrape(&self.url, into).map_err(|source| {
            let Url { host, port, path } = &self.url;
            SampleError::Scrape { url: mask_text(&format!("http://{host}:{port}{path}")), source }
        })
    }

    fn waits(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Serves one connection with `answer`; the URL.
    fn serving(answer: &'static [u8], close: bool) -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let n = stream.read(&mut request).unwrap();
            assert!(request[..n].starts_with(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:"));
            stream.write_all(answer).unwrap();
            if !close {
                std::thread::sleep(Duration::from_secs(5));
            }
        });
        Url::parse(&format!("http://127.0.0.1:{port}")).unwrap()
    }

    fn scraped(answer: &'static [u8], close: bool) -> Result<Sample, SampleError> {
        let mut sample = Sample::default();
        PrometheusSource::new("x", serving(answer, close)).sample(&mut sample)?;
        Ok(sample)
    }

    #[test]
    fn lengths_chunks_and_closed_connections() {
        let length = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\na 1\n";
        assert_eq!(scraped(length, false).unwrap().get("a"), Some(1.0));
        let chunked =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na \r\n2;x=y\r\n2\n\r\n0\r\n\r\n";
        assert_eq!(scraped(chunked, false).unwrap().get("a"), Some(2.0));
        assert_eq!(scraped(b"HTTP/1.0 200 OK\r\n\r\na 3\n", true).unwrap().get("a"), Some(3.0));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let said = |answer, close| scraped(answer, close).unwrap_err().to_string();
        assert!(said(b"HTTP/1.1 404 Not Found\r\n\r\n", true).ends_with("it answers HTTP/1.1 404 Not Found"));
        assert!(said(b"-ERR unknown command\r\n\r\n", true).contains("does not speak HTTP"));
        assert!(said(b"HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\na 1\n", true).contains("ends early"));
        assert!(said(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n", true).contains("16 MiB"));
        assert!(said(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", false).contains("within 2 s"));
        assert!(said(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n<htm>", true).contains("line 1 is not"));
    }

    #[test]
    fn urls() {
        let url = |text: &str| Url::parse(text).map(|u| (u.host, u.port, u.path));
        let expected = |host: &str, port, path: &str| Ok((host.to_owned(), port, path.to_owned()));
        assert_eq!(url("http://h:9121"), expected("h", 9121, "/metrics"));
        assert_eq!(url("http://h/a?b=c"), expected("h", 80, "/a?b=c"));
        assert_eq!(url("http://[::1]:1/"), expected("[::1]", 1, "/metrics"));
        assert_eq!(url("http://[::1]"), expected("[::1]", 80, "/metrics"));
        let login = url("http://u:hidden@h/m?token=hidden").unwrap_err().to_string();
        assert!(login.contains("http://u:***@h/m?token=***"), "{login}");
        let nothing = Url::parse("http://127.0.0.1:1/m?token=hidden").unwrap();
        let unread =
            PrometheusSource::new("x", nothing).sample(&mut Sample::default()).unwrap_err().to_string();
        assert!(unread.starts_with("http://127.0.0.1:1/m?token=***: "), "{unread}");
        for text in ["https://h", "h:9121", "http://", "http://h:x", "http://u:p@h", "http://h/a b"] {
            assert!(url(text).is_err(), "{text}");
        }
    }
}
