//! IPv6 addresses and networks that are not in canonical form.
//!
//! Answers: what is the warning for this address or network? An invalid one, or one with leading zeros, is refused
//! elsewhere.
//! 1. The canonical form is that of RFC 5952.
use std::net::Ipv6Addr;

/// The warning for an address.
pub(super) fn of_address(place: &str, text: &str) -> Option<String> {
    let canonical = text.parse::<Ipv6Addr>().ok()?.to_string();
    (canonical != text).then(|| {
        format!("{place}: IPv6 address {text:?} should be in RFC 5952 canonical format ({canonical:?})")
    })
}

/// The warning for a network.
pub(super) fn of_network(place: &str, text: &str) -> Option<String> {
    let (address, length) = text.split_once('/')?;
    let canonical = format!("{}/{length}", address.parse::<Ipv6Addr>().ok()?);
    (canonical != text).then(|| {
        format!("{place}: IPv6 CIDR value {text:?} should be in RFC 5952 canonical format ({canonical:?})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_28_ipv6_that_is_not_canonical_gets_a_warning() {
        assert_eq!(of_address("f", "10.1.2.3"), None);
        assert_eq!(of_address("f", "fd00::1"), None);
        let of = of_address("f", "FD00::0:1").unwrap();
        assert_eq!(of, r#"f: IPv6 address "FD00::0:1" should be in RFC 5952 canonical format ("fd00::1")"#);
        assert_eq!(of_network("f", "10.0.0.0/8"), None);
        assert!(of_network("f", "FD00::/64").unwrap().ends_with(r#"canonical format ("fd00::/64")"#));
    }
}
