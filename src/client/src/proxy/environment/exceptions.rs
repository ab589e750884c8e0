//! The hosts that are reached without a proxy: loopback addresses and the entries of `NO_PROXY`, by the rules
//! of `golang.org/x/net/http/httpproxy`.
//!
//! | entry | excepts |
//! |---|---|
//! | `*` | everything |
//! | `10.0.0.0/8`, `fd00::/8` | addresses in this network |
//! | `10.0.0.1`, `10.0.0.1:6443`, `[::1]:443` | this address, on this port if there is one |
//! | `example.com`, `example.com:6443` | this name and all below it |
//! | `.example.com`, `*.example.com` | all below this name |
//!
//! Names are not resolved. Any other entry excepts nothing. Names that are not ASCII are not converted: write
//! `xn--...`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Default)]
pub(super) struct Exceptions(Vec<Entry>);

#[derive(Debug)]
enum Entry {
    Everything,
    Network {
        base: IpAddr,
        bits: u32,
    },
    Address {
        address: IpAddr,
        port: String,
    },
    Name {
        /// Begins with a dot.
        suffix: String,
        itself: bool,
        port: String,
    },
}

impl Exceptions {
    pub(super) fn read(list: &str) -> Self {
        Self(list.split(',').filter_map(|entry| Entry::read(&entry.trim().to_lowercase())).collect())
    }

    /// `host`: a name, or an address without brackets.
    pub(super) fn hold(&self, host: &str, port: u16) -> bool {
        let address = host.parse().ok().map(|address: IpAddr| address.to_canonical());
        if address.is_some_and(|address| address.is_loopback()) {
            return true;
        }
        let (host, port) = (host.to_ascii_lowercase(), port.to_string());
        self.0.iter().any(|entry| entry.holds(&host, address, &port))
    }
}

impl Entry {
    /// `text`: in lower case.
    fn read(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Everything);
        }
        if let Some(network) = network(text) {
            return Some(network);
        }
        let (host, port) = split_port(text).unwrap_or((text, ""));
        if let Ok(address) = host.parse::<IpAddr>() {
            return Some(Self::Address { address: address.to_canonical(), port: port.to_owned() });
        }
        let below = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
        let itself = !below.starts_with('.');
        let suffix = if itself { format!(".{below}") } else { below.to_owned() };
        (!host.is_empty()).then(|| Self::Name { suffix, itself, port: port.to_owned() })
    }

    fn holds(&self, host: &str, address: Option<IpAddr>, port: &str) -> bool {
        let is_port = |own: &str| own.is_empty() || own == port;
        match self {
            Self::Everything => true,
            Self::Network { base, bits } => {
                address.is_some_and(|address| masked(address, *bits) == Some(*base))
            }
            Self::Address { address: own, port } => address == Some(*own) && is_port(port),
            Self::Name { suffix, itself, port } => {
                let is_named = host.ends_with(&**suffix) || (*itself && host == &suffix[1..]);
                address.is_none() && is_named && is_port(port)
            }
        }
    }
}

/// An IPv4 address written as IPv6 becomes IPv4.
fn network(text: &str) -> Option<Entry> {
    let (address, bits) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    let bits: u32 = bits.parse().ok().filter(|_| is_number)?;
    let base = masked(address, bits)?;
    match (base, base.to_canonical()) {
        (IpAddr::V6(_), short @ IpAddr::V4(_)) => Some(Entry::Network { base: short, bits: bits - 96 }),
        _ => Some(Entry::Network { base, bits }),
    }
}

fn masked(address: IpAddr, bits: u32) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.checked_sub(bits)?).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    })
}

/// Go's `net.SplitHostPort`: `host:port` or `[host]:port`.
fn split_port(text: &str) -> Option<(&str, &str)> {
    let (host, port) = text.rsplit_once(':')?;
    let bare = match host.strip_prefix('[') {
        Some(inside) => inside.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    (!bare.contains(['[', ']']) && !port.contains(['[', ']'])).then_some((bare, port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hold(list: &str, host: &str, port: u16) -> bool {
        Exceptions::read(list).hold(host, port)
    }

    #[test]
    fn loopback_is_excepted_without_an_entry() {
        for host in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert!(hold("", host, 1), "{host}");
        }
        assert!(!hold("", "10.0.0.1", 1) && !hold("", "example.com", 1));
    }

    proptest! {
        #[test]
        fn an_address_is_in_its_own_network_and_in_no_network_that_differs_in_its_bits(
            address in any::<u32>(), bits in 0_u32..=32, other in any::<u32>(),
        ) {
            let text = |address: u32| Ipv4Addr::from_bits(address).to_string();
            let list = format!("{}/{bits}", text(address));
            let same = bits == 0 || (address ^ other) >> (32 - bits) == 0;
            let is_loopback = Ipv4Addr::from_bits(other).is_loopback();
            prop_assert!(hold(&list, &text(address), 1));
            prop_assert_eq!(hold(&list, &text(other), 1), same || is_loopback);
            let mapped = format!("::ffff:{}/{}", text(address), bits + 96);
            prop_assert_eq!(hold(&mapped, &text(other), 1), same || is_loopback);
        }

        #[test]
        fn no_list_makes_it_panic(list in "[\\[\\]:*./,a-c0-9 -]{0,40}", host in "[a-c.]{1,9}", port: u16) {
            let _ = hold(&list, &host, port);
        }
    }
}
