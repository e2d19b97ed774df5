//! Where load and servers run: servers of this host ([`servers`]), worker processes and agents ([`protocol`]), other hosts by
//! ssh and a relay ([`remote`]), and pods ([`kubernetes`]). Each uses those before it only.

pub mod collected;
pub mod kubernetes;
pub mod protocol;
pub mod remote;
pub mod servers;
