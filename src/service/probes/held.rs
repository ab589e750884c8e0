//! The connections that the probes hold, and which of them has to go for a new one.
//!
//! Answers "who makes room?" The newest connection is always taken: it may be the kubelet's. Invariants:
//! 1. One peer holds at most 16 connections; its next one ends its oldest.
//! 2. All hold at most 64 together; the next one ends the oldest of the peer that holds most.
//! 3. A peer is an address; of IPv6 the first half of it, since who has one address there has all of them.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

use tokio::task::AbortHandle;

/// Probes come one at a time; this is for several people who look by hand, or one with an impatient script.
const OF_ONE_PEER: usize = 16;
const OF_ALL: usize = 64;

/// What is held, oldest first.
#[derive(Debug, Default)]
pub(super) struct Held(VecDeque<(IpAddr, AbortHandle)>);

impl Held {
    /// Takes a new connection; ends another one where that is needed. Linear in what is held.
    pub(super) fn hold(&mut self, peer: IpAddr, connection: AbortHandle) {
        self.0.retain(|(_, held)| !held.is_finished());
        let peer = peer_of(peer);
        if let Some(at) = victim(&self.0.iter().map(|(peer, _)| *peer).collect::<Vec<_>>(), peer)
            && let Some((_, old)) = self.0.remove(at)
        {
            old.abort();
        }
        self.0.push_back((peer, connection));
    }
}

/// Which of the held connections, given by their peers and oldest first, makes room for one more of `new`.
fn victim(held: &[IpAddr], new: IpAddr) -> Option<usize> {
    let count = |peer: IpAddr| held.iter().filter(|held| **held == peer).count();
    if count(new) >= OF_ONE_PEER {
        return held.iter().position(|peer| *peer == new);
    }
    if held.len() < OF_ALL {
        return None;
    }
    // Of peers that hold equally many, the one whose connection is the oldest: `rev`, since the last of equals wins.
    let most = held.iter().rev().max_by_key(|peer| count(**peer));
    most.and_then(|most| held.iter().position(|peer| peer == most))
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
    fn a_peer_that_holds_its_share_loses_its_own_oldest_and_nobody_elses() {
        let mut held = vec![peer(9)];
        held.extend([peer(1); OF_ONE_PEER]);
        assert_eq!(victim(&held, peer(1)), Some(1));
        assert_eq!(victim(&held, peer(2)), None);
    }

    #[test]
    fn when_all_are_held_the_oldest_of_who_holds_most_goes() {
        let held: Vec<_> = (0..OF_ALL).map(|at| peer(u8::try_from(at / 8).unwrap())).collect();
        assert_eq!(victim(&held, peer(99)), Some(0), "all hold equally many: the oldest");
        let mut held: Vec<_> = (0..OF_ALL - 2).map(|at| peer(u8::try_from(at).unwrap())).collect();
        held.extend([peer(200), peer(200)]);
        assert_eq!(victim(&held, peer(99)), Some(OF_ALL - 2), "who holds one is spared");
    }

    #[test]
    fn addresses_of_one_network_of_ipv6_are_one_peer_and_mapped_ones_are_ipv4() {
        let of = |text: &str| peer_of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), peer(1));
    }
}
