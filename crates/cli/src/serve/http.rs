//! A small HTTP/1.1 server: one request for a connection, few threads, and a deadline for everything a client may be slow at.
//! Heads are parsed by `httparse`.

use dyno_types::limits::{CLIENTS, REQUEST_BODY_BYTES, REQUEST_FIELDS, REQUEST_HEAD_BYTES};
use dyno_types::percent;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Time that a client may take to ask.
const ASKING: Duration = Duration::from_secs(5);

/// Time that a client may take to take the answer.
const TAKING: Duration = Duration::from_secs(30);

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// `GET`, `HEAD`, `POST` ...
    pub method: String,
    /// The path as it was sent, without the query.
    pub path: String,
    /// The query, decoded.
    pub query: Vec<(String, String)>,
    /// Fields of the head, names in lower case.
    pub fields: Vec<(String, String)>,
    /// Bytes after the head.
    pub body: Vec<u8>,
}

impl Request {
    /// A field that is there once; `None` if it is not there, or several times.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut all = self.fields.iter().filter(|(key, _)| key == name);
        match (all.next(), all.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }

    /// All values of a key of the query.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.query.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The first value of a key of the query.
    pub fn one(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status.
    pub status: u16,
    /// Type of the body.
    pub kind: &'static str,
    /// Further fields.
    pub fields: Vec<(&'static str, String)>,
    /// The body.
    pub body: Arc<str>,
}

impl Response {
    /// Text of a type.
    pub fn new(status: u16, kind: &'static str, body: impl Into<Arc<str>>) -> Self {
        Response { status, kind, fields: Vec::new(), body: body.into() }
    }

    /// A page.
    pub fn html(status: u16, body: impl Into<Arc<str>>) -> Self {
        Response::new(status, "text/html; charset=utf-8", body)
    }

    /// Plain words.
    pub fn plain_text(status: u16, text: &str) -> Self {
        Response::new(status, "text/plain; charset=utf-8", format!("{text}\n"))
    }

    /// Somewhere else on this server.
    pub fn see(place: &str) -> Self {
        let mut response = Response::plain_text(303, "see there");
        response.fields.push(("Location", place.to_owned()));
        response
    }
}

/// Fields of every answer: nothing is kept, framed, guessed, or told to others.
const ALWAYS: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: same-origin\r\n\
    X-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n\
    Connection: close\r\n";

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        303 => "See Other",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

/// Function that answers a request.
pub type RequestHandler = dyn Fn(&Request) -> Response + Send + Sync;

/// Counts clients under way.
struct ConnectionPermit(Arc<AtomicUsize>);

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Listens, and answers from threads of its own until the process ends.
pub fn listen(place: SocketAddr, answer: Arc<RequestHandler>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(place)?;
    let address = listener.local_addr()?;
    std::thread::Builder::new().name("dyno-serve".into()).spawn(move || accept(&listener, &answer))?;
    Ok(address)
}

fn accept(listener: &TcpListener, answer: &Arc<RequestHandler>) {
    let clients = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Out of descriptors, most likely.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        if clients.fetch_add(1, Ordering::SeqCst) >= CLIENTS {
            let _permit = ConnectionPermit(clients.clone());
            // One write into an empty socket buffer does not wait.
            let _ = stream.set_nonblocking(true);
            let _ = (&stream).write_all(
                b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
            continue;
        }
        let (answer, permit) = (answer.clone(), ConnectionPermit(clients.clone()));
        // A thread that cannot be started drops its permit and its client.
        let _ = std::thread::Builder::new().name("dyno-client".into()).spawn(move || {
            let _permit = permit;
            // A client that does not take its answer is its own loss.
            let _ = serve(&stream, &answer);
        });
    }
}

pub fn serve(stream: &TcpStream, answer: &Arc<RequestHandler>) -> io::Result<()> {
    let (head_only, response) = match request(stream)? {
        Ok(request) => {
            let made = catch_unwind(AssertUnwindSafe(|| answer(&request)));
            let failed = |_| Response::plain_text(500, "this page could not be made");
            (request.method == "HEAD", made.unwrap_or_else(failed))
        }
        Err(Some(refused)) => (false, refused),
        Err(None) => return Ok(()),
    };
    let mut head = format!(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{ALWAYS}",
        response.status,
        reason(response.status),
        response.kind,
        response.body.len()
    );
    for (name, value) in &response.fields {
        // Characters that could begin another field are left out.
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let deadline = Instant::now() + TAKING;
    send(stream, head.as_bytes(), deadline)?;
    if !head_only {
        send(stream, response.body.as_bytes(), deadline)?;
    }
    stream.shutdown(Shutdown::Write)
}

fn send(mut stream: &TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => bytes = &bytes[n..],
        }
    }
    Ok(())
}

/// A request, or why there is none: with an answer, or a client that has gone.
type RequestResult = Result<Request, Option<Response>>;

fn refused(status: u16, message: &str) -> RequestResult {
    Err(Some(Response::plain_text(status, message)))
}

fn request(stream: &TcpStream) -> io::Result<RequestResult> {
    let deadline = Instant::now() + ASKING;
    let mut received = Vec::new();
    loop {
        if received.len() > REQUEST_HEAD_BYTES {
            return Ok(refused(431, "the head of the request is too long"));
        }
        match parsed(&received) {
            Ok(Some((request, length))) => return body(stream, request, &received[length..], deadline),
            Ok(None) => {}
            Err(error) => return Ok(refused(400, &error.to_string())),
        }
        match more(stream, &mut received, deadline)? {
            Some(true) => {}
            Some(false) => return Ok(Err(None)),
            None => return Ok(refused(408, "the request took too long")),
        }
    }
}

/// Receives more: false at the end, `None` when the time is over.
fn more(mut stream: &TcpStream, into: &mut Vec<u8>, deadline: Instant) -> io::Result<Option<bool>> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(None);
    }
    stream.set_read_timeout(Some(left))?;
    let mut buffer = [0; 4096];
    match stream.read(&mut buffer) {
        Ok(0) => Ok(Some(false)),
        Ok(n) => {
            into.extend_from_slice(&buffer[..n]);
            Ok(Some(true))
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reasons for which the bytes are no request.
#[derive(Debug, thiserror::Error)]
enum NoRequest {
    /// The head is malformed.
    #[error(transparent)]
    Head(#[from] httparse::Error),
    /// It is meant for another server.
    #[error("only paths of this server are here")]
    Elsewhere,
    /// A field is of another encoding.
    #[error("a field that is no text")]
    NoText,
}

/// The head, if it is complete, and how long it is.
fn parsed(received: &[u8]) -> Result<Option<(Request, usize)>, NoRequest> {
    let mut fields = [httparse::EMPTY_HEADER; REQUEST_FIELDS];
    let mut head = httparse::Request::new(&mut fields);
    let length = match head.parse(received)? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let target = head.path.unwrap_or_default();
    if !target.starts_with('/') {
        return Err(NoRequest::Elsewhere);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: pairs(query),
        ..Request::default()
    };
    for field in head.headers.iter() {
        let value = std::str::from_utf8(field.value).map_err(|_| NoRequest::NoText)?;
        request.fields.push((field.name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(Some((request, length)))
}

fn body(
    stream: &TcpStream,
    mut request: Request,
    begun: &[u8],
    deadline: Instant,
) -> io::Result<RequestResult> {
    if request.fields.iter().any(|(name, _)| name == "transfer-encoding") {
        return Ok(refused(501, "a body must say its length"));
    }
    let length = match request.fields.iter().any(|(name, _)| name == "content-length") {
        true => request.field("content-length").and_then(|text| text.parse::<usize>().ok()),
        false => Some(0),
    };
    let Some(length) = length else { return Ok(refused(400, "Content-Length is no number")) };
    if length > REQUEST_BODY_BYTES {
        return Ok(refused(413, "the body of the request is too long"));
    }
    request.body = begun.to_vec();
    while request.body.len() < length {
        match more(stream, &mut request.body, deadline)? {
            Some(true) => {}
            Some(false) => return Ok(Err(None)),
            None => return Ok(refused(408, "the request took too long")),
        }
    }
    request.body.truncate(length);
    Ok(Ok(request))
}

/// `a=b&c=d`, decoded. What is no UTF-8 afterwards is left out.
fn pairs(text: &str) -> Vec<(String, String)> {
    let split = text.split('&').filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        Some((decoded(&key.replace('+', " "))?, decoded(&value.replace('+', " "))?))
    };
    split.filter_map(pair).collect()
}

/// `%41` becomes `A`; `None` where that gives no text, or a control character.
pub fn decoded(text: &str) -> Option<String> {
    String::from_utf8(percent::decode(text)?).ok().filter(|text| !text.chars().any(char::is_control))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // A server that refuses may have closed before all was sent.
        let _ = stream.write_all(request);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn what_is_no_request_is_refused_and_slow_clients_leave() {
        let answer = |request: &Request| match request.path.as_str() {
            "/panic" => panic!("as it was asked"),
            _ => {
                let mut response =
                    Response::plain_text(200, &format!("{:?} {:?}", request.query, request.body));
                response.fields.push(("X-Test", "a\r\nX-Evil: b".into()));
                response
            }
        };
        let address = listen("127.0.0.1:0".parse().unwrap(), Arc::new(answer)).unwrap();
        let good = ask(address, b"GET /x?a=%41+b&c HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(
            good.starts_with("HTTP/1.1 200 OK\r\n") && good.contains(r#"[("a", "A b"), ("c", "")] []"#),
            "{good}"
        );
        assert!(good.contains("X-Test: aX-Evil: b\r\n") && good.contains("nosniff"), "{good}");
        let head = ask(address, b"HEAD /x HTTP/1.1\r\n\r\n");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        let post = ask(address, b"POST /x HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi and more");
        assert!(post.contains("[104, 105]"), "{post}");
        for (request, status) in [
            (&b"GET http://elsewhere/ HTTP/1.1\r\n\r\n"[..], "400"),
            (b"\x00\x01\r\n\r\n", "400"),
            (b"POST /x HTTP/1.1\r\nContent-Length: 99999\r\n\r\n", "413"),
            (b"POST /x HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "400"),
            (b"POST /x HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"),
            (b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "501"),
            (b"GET /panic HTTP/1.1\r\n\r\n", "500"),
        ] {
            let answer = ask(address, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        }
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(REQUEST_HEAD_BYTES + 10));
        let answer = ask(address, long.as_bytes());
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
        // All seats are taken by clients that say nothing; after the deadline there is room again.
        let mut idle: Vec<TcpStream> =
            (0..CLIENTS + 4).map(|_| TcpStream::connect(address).unwrap()).collect();
        let turned_away = |answer: &str| answer.is_empty() || answer.starts_with("HTTP/1.1 503 ");
        // An earlier client may have given its permit back only now.
        let mut last = ask(address, b"GET / HTTP/1.1\r\n\r\n");
        for _ in 0..CLIENTS {
            if !turned_away(&last) {
                idle.push(TcpStream::connect(address).unwrap());
                last = ask(address, b"GET / HTTP/1.1\r\n\r\n");
            }
        }
        assert!(turned_away(&last), "{last}");
        std::thread::sleep(ASKING);
        let end = Instant::now() + 12 * ASKING;
        while !ask(address, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 ") {
            assert!(Instant::now() < end, "there is no room again");
            std::thread::sleep(Duration::from_millis(100));
        }
        drop(idle);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(20_000))]
        /// Whatever comes: no panic, a head within what was received, and what has been read once is read so again as more comes.
        #[test]
        fn requests_of_any_bytes(
            target in "[ -~]{0,40}",
            field in "[A-Za-z-]{0,9}: ?[ -~]{0,20}",
            at in 0_usize..120,
            other in proptest::prelude::any::<u8>(),
            more in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..20),
        ) {
            let mut received = format!("GET /{target} HTTP/1.1\r\n{field}\r\n\r\n").into_bytes();
            if let Some(byte) = received.get_mut(at) {
                *byte = other;
            }
            received.extend_from_slice(&more);
            if let Ok(Some((request, length))) = parsed(&received) {
                assert!(length <= received.len() && request.path.starts_with('/'));
                let again = parsed(&received[..length]).unwrap().unwrap();
                assert_eq!((again.0.path, again.0.query, again.1), (request.path, request.query, length));
            }
        }
    }

    #[test]
    fn texts_are_decoded_or_refused() {
        assert_eq!(decoded("a%2Fb%C3%A9").as_deref(), Some("a/b\u{e9}"));
        for bad in ["%", "%4", "%zz", "%ff", "%00", "%0a"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }
}
