//! Serves one's own metrics: a small HTTP server that knows one page.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
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
pub struct Exporter {
    address: SocketAddr,
    page: Arc<Mutex<String>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Listens on `HOST:PORT` (0: any free port).
    pub fn listen(place: &str) -> io::Result<Self> {
        let mut addresses = place.to_socket_addrs()?;
        let address = addresses.next().ok_or_else(|| io::Error::other("the name has no address"))?;
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let (page, over) = (Arc::new(Mutex::new(String::new())), Arc::new(AtomicBool::new(false)));
        let thread = {
            let (page, over) = (page.clone(), over.clone());
            std::thread::Builder::new()
                .name("dyno-metrics".into())
                .spawn(move || accept(&listener, &page, &over))?
        };
        Ok(Exporter { address, page, over, thread: Some(thread) })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the text that clients get from now on.
    pub fn publish(&self, text: String) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

impl Drop for Exporter {
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

fn accept(listener: &TcpListener, page: &Arc<Mutex<String>>, over: &AtomicBool) {
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
        let (page, mine) = (page.clone(), clients.clone());
        let spawned = std::thread::Builder::new().name("dyno-metrics".into()).spawn(move || {
            // A client that does not take its answer is its own loss.
            let _ = answer(stream, &page);
            mine.fetch_sub(1, Ordering::SeqCst);
        });
        if spawned.is_err() {
            clients.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn answer(mut stream: TcpStream, page: &Mutex<String>) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let Some(request) = request(&mut stream)? else { return Ok(()) };
    let mut words = request.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => {
            ("200 OK", page.lock().unwrap_or_else(PoisonError::into_inner).clone())
        }
        ("GET" | "HEAD", "/") => ("200 OK", "dyno: see /metrics\n".to_owned()),
        ("GET" | "HEAD", _) => ("404 Not Found", "only /metrics is here\n".to_owned()),
        _ => ("405 Method Not Allowed", "only GET\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// The first line of a request, once its head is complete; `None` if it never is.
fn request(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let deadline = Instant::now() + PATIENCE;
    let (mut received, mut buffer) = (Vec::new(), [0; 1024]);
    loop {
        if received.windows(4).any(|w| w == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&received).into_owned();
            return Ok(text.lines().next().map(str::to_owned));
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
        let exporter = Exporter::listen("127.0.0.1:0").unwrap();
        let url = Url::parse(&format!("http://{}", exporter.address())).unwrap();
        let mut source = PrometheusSource::new("x", url);
        for value in [1.0, 2.0] {
            exporter.publish(format!("a {value}\n"));
            let mut sample = Sample::default();
            source.sample(&mut sample).unwrap();
            assert_eq!(sample.get("a"), Some(value));
        }
        let address = exporter.address();
        assert!(ask(address, "GET /x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask(address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(!ask(address, "HEAD /metrics HTTP/1.1\r\n\r\n").contains("a 2"));
        assert_eq!(ask(address, &"x".repeat(REQUEST + 2_000)), "");
        drop(exporter);
        assert!(TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_err());
    }
}
