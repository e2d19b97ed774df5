//! Sends what memtier tells a StatsD server and Graphite. The load does not wait for
//! them, and what they do not take is lost; Graphite is given up to 2 s before and behind each run.

use crate::memtier::Statsd;
use dyno_frontend::exit::Failure;
use dyno_frontend::terminal;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::time::Duration;

/// Longest time that Graphite may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// A StatsD server.
#[derive(Debug)]
pub(super) struct StatsdReceiver {
    socket: UdpSocket,
    graphite: SocketAddr,
    graphite_failed: bool,
}

impl StatsdReceiver {
    /// Looks the server up.
    pub(super) fn of(statsd: &Statsd) -> Result<StatsdReceiver, Failure> {
        let failed =
            |error: std::io::Error| Failure::usage(format!("--statsd-host {}: {error}", statsd.host));
        let mut all = (statsd.host.as_str(), statsd.port).to_socket_addrs().map_err(failed)?;
        let address = all
            .next()
            .ok_or_else(|| Failure::usage(format!("--statsd-host {}: it has no address", statsd.host)))?;
        let own = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(own).map_err(failed)?;
        socket.connect(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let graphite = SocketAddr::new(address.ip(), statsd.graphite_port);
        Ok(StatsdReceiver { socket, graphite, graphite_failed: false })
    }

    /// Sends packets. No server says whether they arrive.
    pub(super) fn send(&self, packets: &[String]) {
        for packet in packets {
            let _ = self.socket.send(packet.as_bytes());
        }
    }

    /// Sends an event; says once if Graphite does not take it.
    pub(super) fn event(&mut self, request: &str) {
        let sent = TcpStream::connect_timeout(&self.graphite, PATIENCE).and_then(|mut stream| {
            stream.set_write_timeout(Some(PATIENCE))?;
            stream.write_all(request.as_bytes())
        });
        if let Err(error) = sent
            && !std::mem::replace(&mut self.graphite_failed, true)
        {
            terminal::note(&format!("Graphite at {} takes no events: {error}", self.graphite));
        }
    }
}
