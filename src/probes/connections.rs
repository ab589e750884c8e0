//! Which open connection to the probes is closed for a new one.
//!
//! A new connection is always accepted: it may be the kubelet's. A peer with 16 connections loses its oldest one; at 64 the peer
//! with the most does. A peer is an IP address, or half of an IPv6 address: who has one of such a network usually has all.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

use tokio::task::AbortHandle;

/// A kubelet sends one probe at a time; the rest is for people and scripts.
const MAX_OF_ONE_PEER: usize = 16;
const MAX_OF_ALL: usize = 64;

/// Oldest first.
#[derive(Debug, Default)]
pub(super) struct Connections(VecDeque<(IpAddr, AbortHandle)>);

impl Connections {
    /// Linear in the number of connections.
    pub(super) fn add(&mut self, peer: IpAddr, connection: AbortHandle) {
        self.0.retain(|(_, open)| !open.is_finished());
        let peer = peer_of(peer);
        if let Some(at) = to_close(&self.0.iter().map(|(peer, _)| *peer).collect::<Vec<_>>(), peer)
            && let Some((_, old)) = self.0.remove(at)
        {
            old.abort();
        }
        self.0.push_back((peer, connection));
    }
}

/// `open`: the peers, oldest connection first.
fn to_close(open: &[IpAddr], new: IpAddr) -> Option<usize> {
    let count = |peer: IpAddr| open.iter().filter(|open| **open == peer).count();
    if count(new) >= MAX_OF_ONE_PEER {
        return open.iter().position(|peer| *peer == new);
    }
    if open.len() < MAX_OF_ALL {
        return None;
    }
    // Among equal peers the one with the oldest connection: `max_by_key` returns the last, hence `rev`.
    let most = open.iter().rev().max_by_key(|peer| count(**peer));
    most.and_then(|most| open.iter().position(|peer| peer == most))
}

fn peer_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    #[test]
    fn a_peer_at_its_limit_loses_its_own_oldest_connection_and_no_other_peer_loses_one() {
        let mut open = vec![peer(9)];
        open.extend([peer(1); MAX_OF_ONE_PEER]);
        assert_eq!(to_close(&open, peer(1)), Some(1));
        assert_eq!(to_close(&open, peer(2)), None);
    }

    #[test]
    fn at_the_limit_of_all_peers_the_oldest_connection_of_the_peer_with_the_most_is_closed() {
        let open: Vec<_> = (0..MAX_OF_ALL).map(|at| peer(u8::try_from(at / 8).unwrap())).collect();
        assert_eq!(to_close(&open, peer(99)), Some(0), "all have equally many: the oldest");
        let mut open: Vec<_> = (0..MAX_OF_ALL - 2).map(|at| peer(u8::try_from(at).unwrap())).collect();
        open.extend([peer(200), peer(200)]);
        assert_eq!(to_close(&open, peer(99)), Some(MAX_OF_ALL - 2), "a peer with one connection keeps it");
    }

    #[test]
    fn the_addresses_of_one_ipv6_network_are_one_peer_and_mapped_addresses_count_as_ipv4() {
        let of = |text: &str| peer_of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), peer(1));
    }
}
