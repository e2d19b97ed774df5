//! Free ports of this host.

use dyno_types::rng::Stream;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A free loopback port below those that the kernel gives to outgoing connections: one of them could take a port of
/// that range between this look and the server's start.
pub fn free_port() -> io::Result<u16> {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let mut draws = Stream::from_bits(since ^ (u64::from(std::process::id()) << 32));
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    for _ in 0..1_000 {
        // Ports up to 22,000, so that a cluster's bus port (10,000 higher) is below that range too.
        let port = 10_000 + ((draws.next_u64().wrapping_add(call)) % 12_000) as u16;
        let bus = TcpListener::bind(("127.0.0.1", port + 10_000));
        if let (Ok(_), Ok(_)) = (TcpListener::bind(("127.0.0.1", port)), bus) {
            return Ok(port);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, "no free loopback port from 10000 to 22000"))
}
