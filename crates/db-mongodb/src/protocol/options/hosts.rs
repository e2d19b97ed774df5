//! Hosts of a connection string, and the name of its database.

use dyno_types::address::{Address, percent_decode};
use dyno_types::{RefusalCode, Refused};
use std::net::Ipv6Addr;

/// Port of a server whose port is not given.
const PORT: u16 = 27017;

/// Reads `host[:port][,...]`.
pub(super) fn addresses(hosts: &str) -> Result<Vec<Address>, Refused> {
    hosts.split(',').map(address).collect()
}

fn address(host: &str) -> Result<Address, Refused> {
    let bad = |why: &str| Refused::new(RefusalCode::BadValue, host, format!("host {host:?}: {why}"));
    if let Some(rest) = host.strip_prefix('[') {
        let (name, tail) = rest.split_once(']').ok_or_else(|| bad("no ] after the address"))?;
        let name = percent_decode(name)?;
        let (number, zone) = name.split_once('%').unwrap_or((&name, "none"));
        if number.parse::<Ipv6Addr>().is_err() || zone.is_empty() {
            return Err(bad("expected an IPv6 address in the brackets"));
        }
        let port = match tail.strip_prefix(':') {
            Some(text) => parse_port(text).ok_or_else(|| bad("a port is 1 to 65535"))?,
            None if tail.is_empty() => PORT,
            None => return Err(bad("expected :port or nothing after the ]")),
        };
        return Ok(Address::Tcp(name, port));
    }
    let (name, port) = match host.split_once(':') {
        Some((name, text)) => (name, parse_port(text).ok_or_else(|| bad("a port is 1 to 65535"))?),
        None => (host, PORT),
    };
    let name = percent_decode(name)?;
    if name.is_empty() {
        return Err(bad("a name or address is missing"));
    }
    if name.contains('/') {
        // A name without a slash is a host's, even if it ends in .sock.
        return match host.contains(':') || !name.ends_with(".sock") || name.contains('\0') {
            true => Err(bad("the path of a Unix socket ends in .sock, has no port, and its / are %2F")),
            false => Ok(Address::Unix(name.into())),
        };
    }
    if name.contains(|c: char| c.is_whitespace() || c.is_control() || "@:?#[]\\".contains(c)) {
        return Err(bad("a name has no spaces and none of @ : ? # [ ] \\"));
    }
    Ok(Address::Tcp(name, port))
}

fn parse_port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&port| is_number && port > 0)
}

/// Refuses a name that servers do not accept for a database.
pub(super) fn check_database(name: &str) -> Result<(), Refused> {
    if name.len() > 63 || name.contains(['/', '\\', ' ', '"', '$', '.', '\0']) {
        return Err(Refused::new(
            RefusalCode::BadValue,
            name,
            format!("database {name:?}: a name of up to 63 bytes without / \\ . \" $ and space"),
        ));
    }
    Ok(())
}
