//! A proxy before each node of a cluster: TLS towards the client, plain towards the node. It writes down every command
//! that went in and every reply that went out; what passes between nodes (replication) it passes on unread.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::ServerConnection;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Replies by (command, what it was): `value` or the first word of an error; `cut` where the node went away first.
#[derive(Default)]
pub struct Ledger(Mutex<BTreeMap<(String, String), u64>>);

impl Ledger {
    /// Forgets everything.
    pub fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    fn count(&self, command: String, what: String) {
        *self.0.lock().unwrap().entry((command, what)).or_default() += 1;
    }

    /// Replies to records' commands by what they were.
    pub fn records(&self) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for ((command, what), count) in &*self.0.lock().unwrap() {
            if ["HMGET", "HGETALL", "HMSET"].contains(&command.as_str()) {
                *sums.entry(what.clone()).or_default() += count;
            }
        }
        sums
    }
}

/// How proxies present themselves.
pub fn identity(certificate: &Path, key: &Path) -> Arc<rustls::ServerConfig> {
    let chain = CertificateDer::pem_file_iter(certificate).unwrap().collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap())
}

/// Listens at `port` for the node at `node` until the process ends.
pub fn listen(port: u16, node: u16, identity: Arc<rustls::ServerConfig>, ledger: Arc<Ledger>) {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (identity, ledger) = (identity.clone(), ledger.clone());
            std::thread::spawn(move || {
                // A node that is gone: the client finds its connection closed.
                let Ok(server) = TcpStream::connect(("127.0.0.1", node)) else { return };
                let mut tls = ServerConnection::new(identity).unwrap();
                // A full copy of the data goes to a replica at once.
                tls.set_buffer_limit(None);
                // Errors are those of a peer that went away.
                let _ = Connection::new(client, server, tls, ledger).run();
            });
        }
    });
}

/// One connection through the proxy.
struct Connection {
    client: TcpStream,
    server: TcpStream,
    tls: ServerConnection,
    to_server: Vec<u8>,
    book: Book,
}

impl Connection {
    fn new(client: TcpStream, server: TcpStream, tls: ServerConnection, ledger: Arc<Ledger>) -> Self {
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
            stream.set_nonblocking(true).unwrap();
        }
        let book = Book { ledger, ..Book::default() };
        Connection { client, server, tls, to_server: Vec::new(), book }
    }

    fn run(mut self) -> io::Result<()> {
        loop {
            self.wait()?;
            if !self.read_client()? {
                return Ok(());
            }
            write_some(&mut self.server, &mut self.to_server)?;
            let open = self.read_server();
            self.write_client()?;
            if !open {
                return self.close();
            }
        }
    }

    fn wait(&self) -> io::Result<()> {
        let write_if = |wanted: bool| if wanted { PollFlags::OUT } else { PollFlags::empty() };
        let mut fds = [
            PollFd::new(&self.client, PollFlags::IN | write_if(self.tls.wants_write())),
            PollFd::new(&self.server, PollFlags::IN | write_if(!self.to_server.is_empty())),
        ];
        poll(&mut fds, Some(&Timespec { tv_sec: 60, tv_nsec: 0 }))?;
        Ok(())
    }

    /// False once the client has closed.
    fn read_client(&mut self) -> io::Result<bool> {
        let mut open = true;
        loop {
            match self.tls.read_tls(&mut self.client) {
                Ok(0) => open = false,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            let state = self.tls.process_new_packets().map_err(io::Error::other)?;
            let mut plain = vec![0; state.plaintext_bytes_to_read()];
            self.tls.reader().read_exact(&mut plain)?;
            self.book.asked(&plain);
            self.to_server.extend_from_slice(&plain);
            if !open || state.peer_has_closed() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// False once the node has closed, or died.
    fn read_server(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        loop {
            match self.server.read(&mut buffer) {
                Ok(0) => return false,
                Ok(n) => {
                    self.book.answered(&buffer[..n]);
                    self.tls.writer().write_all(&buffer[..n]).unwrap();
                }
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }

    fn write_client(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.client) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Hands over what is left, so that every reply in the book has reached the client, and closes without a reset.
    fn close(mut self) -> io::Result<()> {
        self.client.set_nonblocking(false)?;
        self.client.set_read_timeout(Some(Duration::from_secs(5)))?;
        self.tls.send_close_notify();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.client)?;
        }
        self.client.shutdown(Shutdown::Write)?;
        let mut rest = [0; 4096];
        while self.tls.read_tls(&mut self.client)? > 0 {
            let state = self.tls.process_new_packets().map_err(io::Error::other)?;
            let n = state.plaintext_bytes_to_read().min(rest.len());
            self.tls.reader().read_exact(&mut rest[..n])?;
            self.book.asked(&rest[..n]);
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        for command in self.book.waiting.drain(..) {
            self.book.ledger.count(command, "cut".into());
        }
    }
}

fn write_some(to: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(n) => drop(bytes.drain(..n)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            // The node is gone: reading says so, after what it has said before.
            Err(_) => {
                bytes.clear();
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Reads both directions of a connection.
#[derive(Default)]
struct Book {
    ledger: Arc<Ledger>,
    requests: Vec<u8>,
    replies: Vec<u8>,
    waiting: VecDeque<String>,
    /// A replica's connection.
    unread: bool,
}

impl Book {
    fn asked(&mut self, bytes: &[u8]) {
        if self.unread {
            return;
        }
        self.requests.extend_from_slice(bytes);
        while let Some(end) = message(&self.requests) {
            let name = self.requests[..end].split(|&b| b == b'\n').nth(2).unwrap_or_default();
            let name = String::from_utf8_lossy(name).trim().to_ascii_uppercase();
            self.unread |= ["PSYNC", "REPLCONF"].contains(&name.as_str());
            self.waiting.push_back(name);
            self.requests.drain(..end);
        }
        if self.unread {
            self.waiting.clear();
        }
    }

    fn answered(&mut self, bytes: &[u8]) {
        if self.unread {
            return;
        }
        self.replies.extend_from_slice(bytes);
        while let Some(end) = message(&self.replies) {
            let what = match self.replies[0] {
                b'-' => {
                    let word = self.replies[1..end].split(|b| b" \r".contains(b)).next().unwrap_or_default();
                    String::from_utf8_lossy(word).into_owned()
                }
                _ => "value".to_owned(),
            };
            let command = self.waiting.pop_front().expect("a reply to a command");
            self.ledger.count(command, what);
            self.replies.drain(..end);
        }
    }
}

/// The length of the RESP2 message at the start of `bytes`, once it is complete.
fn message(bytes: &[u8]) -> Option<usize> {
    let line = bytes.windows(2).position(|w| w == b"\r\n")?;
    let number = || std::str::from_utf8(&bytes[1..line]).unwrap().parse::<i64>().unwrap();
    let mut at = line + 2;
    match bytes[0] {
        b'$' if number() >= 0 => at += number() as usize + 2,
        b'*' => {
            for _ in 0..number() {
                at += message(bytes.get(at..)?)?;
            }
        }
        _ => {}
    }
    (at <= bytes.len()).then_some(at)
}
