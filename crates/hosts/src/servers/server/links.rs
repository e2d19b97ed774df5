//! Faults of the way to a server that the kernel does: packets that are dropped, delayed, or have to wait.

use crate::servers::server::Server;
use crate::servers::server::faults::ServerFault;
use dyno_localhost::error::LocalError;
use dyno_localhost::packet_filter;
use dyno_localhost::packet_filter::Ports;
use dyno_localhost::shaping;
use dyno_localhost::shaping::Shape;
use dyno_localhost::undo::Undo;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

impl Server {
    /// Before anything is started: whether the kernel does what the faults need.
    pub(super) fn make_links_ready(&mut self) -> Result<(), LocalError> {
        if self.preparation.loss || self.preparation.narrow && self.is_reached_from_elsewhere() {
            let tried = packet_filter::try_out(&self.machine);
            self.preparation.loss = self.preparation.loss && tried.is_ok();
            self.preparation.narrow =
                self.preparation.narrow && (tried.is_ok() || !self.is_reached_from_elsewhere());
            tried.or_else(|error| self.lack(error))?;
        }
        if self.preparation.narrow {
            let tried = shaping::try_at(&self.machine, self.address(), Shape::Narrow(1_000_000));
            self.preparation.narrow = tried.is_ok();
            tried.or_else(|error| self.lack(error))?;
        }
        if self.preparation.slow {
            let tried = shaping::try_at(&self.machine, self.address(), Shape::Slow(1_000_000));
            self.preparation.slow = tried.is_ok();
            tried.or_else(|error| self.lack(error))?;
        }
        Ok(())
    }

    fn address(&self) -> IpAddr {
        self.spec.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    fn is_reached_from_elsewhere(&self) -> bool {
        !self.address().is_loopback()
    }

    fn ports(&self, which: Range<usize>) -> Ports {
        let ports = self.members[which].iter().map(|member| member.node.port).collect();
        Ports { ports, everywhere: self.is_reached_from_elsewhere() }
    }

    /// Does it; what undoes it goes to `noted` before it is done.
    pub(super) fn inject_link_fault(
        &mut self,
        which: Range<usize>,
        fault: &ServerFault,
        noted: &mut Vec<u64>,
    ) -> Result<String, LocalError> {
        let ports = self.ports(which);
        let of = ports.ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        let place = if ports.everywhere { "on all devices" } else { "on the loopback" };
        match fault {
            ServerFault::Lose(_) if !self.preparation.loss => Err(self.lacking("nftables")),
            ServerFault::Narrow(_) if !self.preparation.narrow => Err(self.lacking("token bucket filter")),
            ServerFault::Slow(_) if !self.preparation.slow => Err(self.lacking("netem")),
            ServerFault::Lose(percent) => {
                let table = self.table(noted)?;
                packet_filter::drop_packets(&self.machine, &table, &ports, *percent)?;
                Ok(format!("nftables, table inet {table}: packets to and from port {of} {place}"))
            }
            ServerFault::Narrow(bytes_per_s) => {
                let devices = self.shape(&ports, Shape::Narrow(*bytes_per_s), noted)?;
                let bucket = shaping::bucket_size(*bytes_per_s);
                let mut message = format!(
                    "token bucket filter (tc) of {bucket} bytes on {}: packets to and from port {of}",
                    devices.join(" and ")
                );
                if ports.everywhere {
                    let table = self.table(noted)?;
                    packet_filter::limit_rate(&self.machine, &table, &ports, (*bytes_per_s, bucket))?;
                    message +=
                        &format!("; what comes from other hosts by nftables' limit, table inet {table}");
                }
                Ok(message)
            }
            ServerFault::Slow(ns) => {
                let devices = self.shape(&ports, Shape::Slow(*ns), noted)?;
                let side =
                    if ports.everywhere { "to it on the loopback, from it on others" } else { "to it" };
                Ok(format!("netem (tc) on {}: packets of port {of}, {side}", devices.join(" and ")))
            }
            _ => Err(LocalError::Failed("no fault of a way".into())),
        }
    }

    /// The name of a table that is about to be made.
    fn table(&mut self, noted: &mut Vec<u64>) -> Result<String, LocalError> {
        let name = packet_filter::name(&self.machine);
        noted.push(self.journal.note_action(Undo::Table { name: name.clone() })?);
        Ok(name)
    }

    /// Shapes every device that packets to and from the servers take.
    fn shape(
        &mut self,
        ports: &Ports,
        shape: Shape,
        noted: &mut Vec<u64>,
    ) -> Result<Vec<String>, LocalError> {
        let address = self.address();
        let devices = shaping::devices_to(&self.machine, address)?;
        devices.iter().try_for_each(|device| shaping::is_free(&self.machine, device))?;
        for device in &devices {
            let handle = shaping::root_handle();
            let undo = Undo::Device { name: device.clone(), handle: handle.clone() };
            noted.push(self.journal.note_action(undo)?);
            shaping::shape_device(&self.machine, (device, &handle), &ports.ports, address.is_ipv6(), shape)?;
        }
        Ok(devices)
    }

    /// Returns what the tables of a fault have counted.
    pub(super) fn dropped(&self, noted: &[u64]) -> Result<String, LocalError> {
        let mut words = Vec::new();
        for undo in noted.iter().filter_map(|id| self.journal.noted_entry(*id)) {
            if let Undo::Table { name } = undo {
                let counted = packet_filter::count_packets(&self.machine, name)?;
                words.push(format!("{} of {} packets dropped", counted.dropped, counted.seen));
            }
        }
        Ok(words.join("; "))
    }
}
