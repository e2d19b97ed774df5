//! Clocks of network cards that stamp what they receive: linux/net_tstamp.h, linux/ethtool.h and
//! Documentation/networking/timestamping.rst. A card's clock (PTP hardware clock) is mapped to the monotonic clock like the wall
//! clock, by readings of both that are taken together.

use super::wall_clock::ClockReading;
use dyno_types::{Endpoint, RefusalCode, Refused};
use rustix::time::{DynamicClockId, clock_gettime_dynamic};
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// `ETHTOOL_GET_TS_INFO` of linux/ethtool.h.
const GET_TS_INFO: u32 = 0x41;
/// `HWTSTAMP_FILTER_ALL` of linux/net_tstamp.h: the card stamps whatever it receives.
const EVERY_PACKET: i32 = 1;

/// `struct ethtool_ts_info` of linux/ethtool.h.
#[repr(C)]
#[derive(Default)]
struct EthtoolTimestamping {
    command: u32,
    so_timestamping: u32,
    clock: i32,
    tx_types: u32,
    tx_reserved: [u32; 3],
    rx_filters: u32,
    rx_reserved: [u32; 3],
}

/// A card's clock.
#[derive(Debug)]
pub struct CardClock {
    device: File,
}

impl CardClock {
    /// One that cannot be read: a file is no clock.
    #[cfg(test)]
    pub(super) fn of_nothing() -> Self {
        CardClock { device: File::open("/dev/null").unwrap() }
    }

    /// Both clocks now.
    pub(super) fn read(&self) -> ClockReading {
        ClockReading::read_with(|| clock_gettime_dynamic(DynamicClockId::Dynamic(self.device.as_fd())).ok())
    }
}

/// The clocks of the cards on which replies arrive, by this host's address there.
#[derive(Clone, Debug, Default)]
pub struct NicClocks(pub(super) Vec<(IpAddr, Arc<CardClock>)>);

impl NicClocks {
    /// The clocks of all cards by which these endpoints are reached. No packet is sent, and no card is set up.
    pub fn clocks_towards(endpoints: &[Endpoint]) -> Result<Self, Refused> {
        let mut cards: Vec<(IpAddr, Arc<CardClock>)> = Vec::new();
        for endpoint in endpoints {
            let refused = |why: &dyn std::fmt::Display| {
                Refused::new(
                    RefusalCode::Unsupported,
                    "--stamps",
                    format!(
                        "--stamps hardware: {endpoint}: {why}; use --stamps kernel, or a card that stamps \
                         every packet (ethtool -T)"
                    ),
                )
            };
            let Endpoint::Tcp { address, .. } = endpoint else {
                return Err(refused(&"a Unix socket has no network card"));
            };
            let own = own_address(*address).map_err(|e| refused(&e))?;
            if cards.iter().all(|(known, _)| *known != own) {
                let name = interface_of(own).map_err(|e| refused(&e))?;
                cards.push((own, Arc::new(open(&name).map_err(|e| refused(&e))?)));
            }
        }
        Ok(NicClocks(cards))
    }
}

/// The address of this host from which another is reached.
fn own_address(address: SocketAddr) -> io::Result<IpAddr> {
    let any: SocketAddr = if address.is_ipv6() { ([0u16; 8], 0).into() } else { ([0u8; 4], 0).into() };
    // Connecting a datagram socket only chooses the route.
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    Ok(socket.local_addr()?.ip())
}

fn interface_of(own: IpAddr) -> io::Result<String> {
    let all = if_addrs::get_if_addrs()?;
    let found = all.into_iter().find(|interface| interface.ip() == own);
    found.map(|interface| interface.name).ok_or_else(|| io::Error::other(format!("no interface has {own}")))
}

/// An interface whose card does not stamp every packet by a clock that can be read.
#[derive(Debug, thiserror::Error)]
enum CardError {
    #[error("{name} tells nothing of its clock: {source}")]
    ClockUnknown { name: String, source: io::Error },
    #[error("{0} has no clock of its own")]
    NoClock(String),
    #[error("{name} tells nothing of its stamps: {source}")]
    StampsUnknown { name: String, source: io::Error },
    #[error(
        "{name} does not stamp every packet (rx_filter {rx_filter}): let it by hwstamp_ctl -i {name} -r 1"
    )]
    NotEveryPacket { name: String, rx_filter: i32 },
    #[error("{path}: {source}")]
    Device { path: String, source: io::Error },
}

/// The clock of an interface whose card stamps every packet.
fn open(interface: &str) -> Result<CardClock, CardError> {
    let name = || interface.to_owned();
    let mut info = EthtoolTimestamping { command: GET_TS_INFO, ..EthtoolTimestamping::default() };
    ask(interface, libc::SIOCETHTOOL, &mut info)
        .map_err(|source| CardError::ClockUnknown { name: name(), source })?;
    if info.so_timestamping & libc::SOF_TIMESTAMPING_RX_HARDWARE == 0 || info.clock < 0 {
        return Err(CardError::NoClock(name()));
    }
    let mut config = libc::hwtstamp_config { flags: 0, tx_type: 0, rx_filter: 0 };
    ask(interface, libc::SIOCGHWTSTAMP, &mut config)
        .map_err(|source| CardError::StampsUnknown { name: name(), source })?;
    if config.rx_filter != EVERY_PACKET {
        return Err(CardError::NotEveryPacket { name: name(), rx_filter: config.rx_filter });
    }
    let path = format!("/dev/ptp{}", info.clock);
    match File::open(&path) {
        Ok(device) => Ok(CardClock { device }),
        Err(source) => Err(CardError::Device { path, source }),
    }
}

/// Asks the driver of an interface; `about` is what the request takes and gives.
#[expect(unsafe_code, reason = "rustix has no requests about interfaces")]
fn ask<T>(name: &str, request: libc::c_ulong, about: &mut T) -> io::Result<()> {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).or_else(|_| UdpSocket::bind(("::1", 0)))?;
    // SAFETY: all-zero is a valid ifreq.
    let mut call: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = call.ifr_name.len() - 1;
    if name.len() > room {
        return Err(io::Error::other("the interface's name is too long"));
    }
    call.ifr_name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as libc::c_char);
    call.ifr_ifru.ifru_data = (about as *mut T).cast();
    // SAFETY: the descriptor is open, the request names a zero-terminated interface, and `about` is the live structure that
    // both requests used here read and write.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &raw mut call) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_is_the_kernel_s() {
        assert_eq!(size_of::<EthtoolTimestamping>(), 44);
    }

    #[test]
    fn a_card_without_a_clock_is_refused_with_its_name() {
        let to = |address: &str| Endpoint::Tcp { host: "x".into(), address: address.parse().unwrap() };
        let why = NicClocks::clocks_towards(&[to("127.0.0.1:6379")]).unwrap_err().to_string();
        assert!(why.contains("lo has no clock of its own") && why.contains("--stamps kernel"), "{why}");
        let why = NicClocks::clocks_towards(&[Endpoint::Unix("/tmp/x".into())]).unwrap_err().to_string();
        assert!(why.contains("Unix socket"), "{why}");
        // The driver of the loopback answers: what is asked is understood.
        let mut info = EthtoolTimestamping { command: GET_TS_INFO, ..EthtoolTimestamping::default() };
        ask("lo", libc::SIOCETHTOOL, &mut info).unwrap();
        assert_eq!(info.clock, -1);
        assert_ne!(info.so_timestamping & libc::SOF_TIMESTAMPING_RX_SOFTWARE, 0);
        assert!(open("none0").unwrap_err().to_string().contains("none0"));
    }

    #[test]
    fn a_clock_that_does_not_answer_maps_nothing() {
        let card = CardClock::of_nothing();
        let mut wall = super::super::wall_clock::WallClock::default();
        assert_eq!(wall.arrived_ns(1_000, || card.read()), None);
    }
}
