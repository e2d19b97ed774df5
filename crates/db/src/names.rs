//! Addresses of hosts that members name during a run. Names are looked up on threads of their own: a load thread never waits
//! for a resolver.

use dyno_types::Endpoint;
use dyno_types::sync::held;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Pause before a name that led nowhere is looked up again.
const PAUSE: Duration = Duration::from_secs(5);

/// State of a name.
#[derive(Clone, Copy, Debug)]
enum NameLookup {
    Begun,
    Found(SocketAddr),
    Failed(Instant),
}

/// Names and what became of them.
#[derive(Clone, Debug, Default)]
pub struct Names(Arc<Mutex<BTreeMap<String, NameLookup>>>);

impl Names {
    /// The endpoint of `host:port` as members name each other; unresolved as long as the name leads nowhere.
    pub fn resolve_endpoint(&self, name: &str) -> Endpoint {
        let (host, port) = name.rsplit_once(':').unwrap_or((name, "27017"));
        let host = host.trim_matches(['[', ']']);
        let address = match (port.parse(), host.parse::<IpAddr>()) {
            (Ok(port), Ok(ip)) => Some(SocketAddr::new(ip, port)),
            (Ok(port), Err(_)) => self.look_up(name, host, port),
            (Err(_), _) => None,
        };
        let found = |address| Endpoint::Tcp { host: host.to_owned(), address };
        address.map_or_else(|| Endpoint::unresolved_host(host), found)
    }

    /// Returns whether a name is being looked up.
    pub fn is_under_way(&self, name: &str) -> bool {
        matches!(held(&self.0).get(name), Some(NameLookup::Begun))
    }

    fn look_up(&self, name: &str, host: &str, port: u16) -> Option<SocketAddr> {
        let mut names = held(&self.0);
        match names.get(name) {
            Some(NameLookup::Found(address)) => return Some(*address),
            Some(NameLookup::Begun) => return None,
            Some(NameLookup::Failed(at)) if at.elapsed() < PAUSE => return None,
            Some(NameLookup::Failed(_)) | None => {}
        }
        names.insert(name.to_owned(), NameLookup::Begun);
        let (all, name, host) = (self.0.clone(), name.to_owned(), host.to_owned());
        std::thread::spawn(move || {
            let found = (host.as_str(), port).to_socket_addrs();
            // IPv4 first, as before a run.
            let found = found.ok().and_then(|all| all.min_by_key(SocketAddr::is_ipv6));
            let result = found.map_or_else(|| NameLookup::Failed(Instant::now()), NameLookup::Found);
            held(&all).insert(name, result);
        });
        None
    }
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
        assert_eq!(address(&names.resolve_endpoint("127.0.0.1:5")), "127.0.0.1:5".parse().unwrap());
        assert_eq!(address(&names.resolve_endpoint("[::1]:5")), "[::1]:5".parse().unwrap());
        assert!(!names.is_under_way("localhost:7"));
        assert!(names.resolve_endpoint("localhost:7").is_unresolved());
        assert!(names.resolve_endpoint("nowhere.invalid:7").is_unresolved());
        let begun = Instant::now();
        while names.resolve_endpoint("localhost:7").is_unresolved()
            && begun.elapsed() < Duration::from_secs(30)
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(address(&names.resolve_endpoint("localhost:7")).port(), 7);
        assert!(!names.is_under_way("localhost:7"));
        assert!(names.resolve_endpoint("nowhere.invalid:7").is_unresolved());
    }
}
