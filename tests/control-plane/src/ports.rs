//! Free ports on loopback that are still free after a restart.
//!
//! Question: which ports does a control plane listen on? It reserves nothing: a port is tried, then released.
//! 1. Ports lie below the range that the operating system assigns to outgoing connections. Otherwise a client that
//!    keeps dialling a stopped server can get the server's own port, connect to itself and keep the server from
//!    starting again.
//! 2. The ports of one set differ.
//!
//! Two test processes may still pick the same port; then `builder.rs` starts again.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    io,
    net::{Ipv4Addr, TcpListener},
};

const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;
const ATTEMPTS: u16 = 200;

/// The three ports of one control plane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) apiserver: u16,
}

impl Ports {
    /// Three ports that no process listens on just now.
    pub(crate) fn free() -> io::Result<Self> {
        // Held together until the end, so that they differ.
        let (etcd, _etcd) = free_port()?;
        let (etcd_peer, _etcd_peer) = free_port()?;
        let (apiserver, _apiserver) = free_port()?;
        Ok(Self { etcd, etcd_peer, apiserver })
    }
}

/// 64 bits that differ from call to call and from process to process.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(())
}

fn free_port() -> io::Result<(u16, TcpListener)> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..ATTEMPTS {
        let offset = u16::try_from(random() % u64::from(COUNT)).expect("a remainder below a u16 is a u16");
        match TcpListener::bind((Ipv4Addr::LOCALHOST, FIRST + offset)) {
            Ok(listener) => return Ok((FIRST + offset, listener)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_lie_below_those_for_outgoing_connections() {
        let ports = Ports::free().unwrap();
        let all = [ports.etcd, ports.etcd_peer, ports.apiserver];
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2], "{all:?}");
        assert!(all.iter().all(|port| (FIRST..32_768).contains(port)), "{all:?}");
    }
}
