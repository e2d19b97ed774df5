//! Serves one's own metrics: a small HTTP server that knows one page, and answers only under names of its own.

use dyno_types::host_header::{is_loopback, parse_host};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time that a client may take to ask and to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longest request, bytes.
const REQUEST: usize = 8 << 10;

/// Clients that are answered at once; further ones are turned away.
const CLIENTS: usize = 8;

/// A server that runs until this is dropped.
pub struct MetricsServer {
    address: SocketAddr,
    page: Arc<Mutex<String>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens on `HOST:PORT` (0: any free port).
    pub fn listen_on(place: &str) -> io::Result<Self> {
        let mut addresses = place.to_socket_addrs()?;
        let address = addresses.next().ok_or_else(|| io::Error::other("the name has no address"))?;
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let names = Arc::new(AcceptedNames::of(place, address));
        let (page, over) = (Arc::new(Mutex::new(String::new())), Arc::new(AtomicBool::new(false)));
        let thread = {
            let (page, over) = (page.clone(), over.clone());
            std::thread::Builder::new()
                .name("dyno-metrics".into())
                .spawn(move || accept(&listener, &names, &page, &over))?
        };
        Ok(MetricsServer { address, page, over, thread: Some(thread) })
    }

    /// Returns the address that it listens on.
    pub fn listening_address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the text that clients get from now on.
    pub fn publish_text(&self, text: String) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the thread, which waits for a client.
        let woken = TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            // A panic there has been printed; there is nothing to add.
            let _ = thread.join();
        }
    }
}

/// Names under which it answers, beside the loopback's.
struct AcceptedNames {
    /// The host as it was asked for, the address, and the host's name where every address is listened on.
    own: Vec<String>,
    /// Every address of this host is listened on: a request may name any. No other site has an address for a name.
    any_address: bool,
}

impl AcceptedNames {
    fn of(place: &str, address: SocketAddr) -> AcceptedNames {
        let any_address = address.ip().is_unspecified();
        let typed = place.rsplit_once(':').map_or(place, |(host, _)| host).trim_matches(['[', ']']);
        let mut own = vec![typed.to_owned(), address.ip().to_string()];
        if any_address {
            let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            own.push(name.trim().to_owned());
        }
        own.retain(|name| !name.is_empty());
        AcceptedNames { own, any_address }
    }

    fn has(&self, field: Option<&str>) -> bool {
        // Browsers always say one.
        let Some(field) = field else { return true };
        let Some(name) = parse_host(field) else { return false };
        // A name without a dot is no other site's.
        let local = !name.is_empty() && !name.contains('.');
        is_loopback(name)
            || (self.any_address && local)
            || self.own.iter().any(|own| own.eq_ignore_ascii_case(name))
            || (self.any_address && name.parse::<IpAddr>().is_ok())
    }
}

fn accept(listener: &TcpListener, names: &Arc<AcceptedNames>, page: &Arc<Mutex<String>>, over: &AtomicBool) {
    let clients = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        if over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else {
            // Out of descriptors, most likely: the load comes first.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        if clients.load(Ordering::SeqCst) >= CLIENTS {
            continue;
        }
        clients.fetch_add(1, Ordering::SeqCst);
        let (names, page, mine) = (names.clone(), page.clone(), clients.clone());
        let spawned = std::thread::Builder::new().name("dyno-metrics".into()).spawn(move || {
            // A client that does not take its answer is its own loss.
            let _ = answer(stream, &names, &page);
            mine.fetch_sub(1, Ordering::SeqCst);
        });
        if spawned.is_err() {
            clients.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn answer(mut stream: TcpStream, names: &AcceptedNames, page: &Mutex<String>) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let Some(head) = request(&mut stream)? else { return Ok(()) };
    let named = head.lines().skip(1).find_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, body) = match (method, path) {
        _ if !names.has(named) => {
            let message = "this is not a name of this server: --metrics NAME:PORT says one\n";
            ("421 Misdirected Request", message.to_owned())
        }
        ("GET" | "HEAD", "/metrics") => {
            ("200 OK", page.lock().unwrap_or_else(PoisonError::into_inner).clone())
        }
        ("GET" | "HEAD", "/") => ("200 OK", "dyno: see /metrics\n".to_owned()),
        ("GET" | "HEAD", _) => ("404 Not Found", "only /metrics is here\n".to_owned()),
        _ => ("405 Method Not Allowed", "only GET\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// The head of a request, once it is complete; `None` if it never is.
fn request(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let deadline = Instant::now() + PATIENCE;
    let (mut received, mut buffer) = (Vec::new(), [0; 1024]);
    loop {
        if received.windows(4).any(|w| w == b"\r\n\r\n") {
            return Ok(Some(String::from_utf8_lossy(&received).into_owned()));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if received.len() > REQUEST || left.is_zero() {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer)? {
            0 => return Ok(None),
            n => received.extend_from_slice(&buffer[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prometheus::{PrometheusSource, Url};
    use crate::sample::{Sample, Source};

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // A connection that is cut because the request was too long may end with an error.
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn the_scraper_reads_what_is_published() {
        let exporter = MetricsServer::listen_on("127.0.0.1:0").unwrap();
        let url = Url::parse(&format!("http://{}", exporter.listening_address())).unwrap();
        let mut source = PrometheusSource::new("x", url);
        for value in [1.0, 2.0] {
            exporter.publish_text(format!("a {value}\n"));
            let mut sample = Sample::default();
            source.sample(&mut sample).unwrap();
            assert_eq!(sample.get("a"), Some(value));
        }
        let address = exporter.listening_address();
        let under =
            |name: &str| ask(address, &format!("GET /metrics HTTP/1.1\r\n{name}\r\n\r\n"))[9..12].to_owned();
        for own in ["Host: localhost", "host: 127.0.0.1:9", "HOST: [::1]:9", "X: y"] {
            assert_eq!(under(own), "200", "{own}");
        }
        for foreign in ["Host: evil.example", "Host: evil.example:80", "Host: ", "Host: 10.0.0.1"] {
            assert_eq!(under(foreign), "421", "{foreign}");
        }
        let everywhere = AcceptedNames::of("0.0.0.0:9", "0.0.0.0:9".parse().unwrap());
        assert!(["10.0.0.1:9", "dyno:9"].iter().all(|name| everywhere.has(Some(name))));
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let foreign = ["evil.example:9".to_owned(), format!("{}.evil.example", own.trim())];
        assert!(foreign.iter().all(|name| !everywhere.has(Some(name))), "{foreign:?}");
        assert!(AcceptedNames::of("bench.lab:9", "10.0.0.1:9".parse().unwrap()).has(Some("Bench.Lab:9")));
        assert!(ask(address, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(
            ask(address, "POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 405 ")
        );
        assert!(!ask(address, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").contains("a 2"));
        assert_eq!(ask(address, &"x".repeat(REQUEST + 2_000)), "");
        drop(exporter);
        assert!(TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_err());
    }
}
