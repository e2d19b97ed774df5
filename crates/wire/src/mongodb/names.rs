//! Addresses of hosts that members name during a run. Names are looked up on threads of their own: a load thread never waits
//! for a resolver.

use dyno_types::Endpoint;
use dyno_types::sync::held;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Pause before a name that led nowhere is looked up again.
const PAUSE: Duration = Duration::from_secs(5);

/// State of a name.
#[derive(Clone, Copy, Debug)]
enum Lookup {
    Begun,
    Found(SocketAddr),
    Failed(Instant),
}

/// Names and what became of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Arc<Mutex<BTreeMap<String, Lookup>>>);

impl Names {
    /// The endpoint of `host:port` as members name each other; [`is_unresolved`] as long as the name leads nowhere.
    pub fn endpoint(&self, name: &str) -> Endpoint {
        let (host, port) = name.rsplit_once(':').unwrap_or((name, "27017"));
        let host = host.trim_matches(['[', ']']);
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let address = match (port.parse(), host.parse::<IpAddr>()) {
            (Ok(port), Ok(ip)) => SocketAddr::new(ip, port),
            (Ok(port), Err(_)) => self.look_up(name, host, port).unwrap_or(nowhere),
            (Err(_), _) => nowhere,
        };
        Endpoint::Tcp { host: host.to_owned(), address }
    }

    fn look_up(&self, name: &str, host: &str, port: u16) -> Option<SocketAddr> {
        let mut names = held(&self.0);
        match names.get(name) {
            Some(Lookup::Found(address)) => return Some(*address),
            Some(Lookup::Begun) => return None,
            Some(Lookup::Failed(at)) if at.elapsed() < PAUSE => return None,
            Some(Lookup::Failed(_)) | None => {}
        }
        names.insert(name.to_owned(), Lookup::Begun);
        let (all, name, host) = (self.0.clone(), name.to_owned(), host.to_owned());
        std::thread::spawn(move || {
            let found = (host.as_str(), port).to_socket_addrs();
            // IPv4 first, as before a run.
            let found = found.ok().and_then(|all| all.min_by_key(SocketAddr::is_ipv6));
            let result = found.map_or_else(|| Lookup::Failed(Instant::now()), Lookup::Found);
            held(&all).insert(name, result);
        });
        None
    }
}

/// Returns whether the name of an endpoint has led nowhere yet.
pub(super) fn is_unresolved(endpoint: &Endpoint) -> bool {
    matches!(endpoint, Endpoint::Tcp { address, .. } if address.port() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(endpoint: &Endpoint) -> SocketAddr {
        match endpoint {
            Endpoint::Tcp { address, .. } => *address,
            Endpoint::Unix(path) => panic!("{}", path.display()),
        }
    }

    #[test]
    fn names_are_looked_up_beside_the_load() {
        let names = Names::default();
        assert_eq!(address(&names.endpoint("127.0.0.1:5")), "127.0.0.1:5".parse().unwrap());
        assert_eq!(address(&names.endpoint("[::1]:5")), "[::1]:5".parse().unwrap());
        assert!(is_unresolved(&names.endpoint("localhost:7")));
        assert!(is_unresolved(&names.endpoint("nowhere.invalid:7")));
        let begun = Instant::now();
        while is_unresolved(&names.endpoint("localhost:7")) && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(address(&names.endpoint("localhost:7")).port(), 7);
        assert!(is_unresolved(&names.endpoint("nowhere.invalid:7")));
    }
}
