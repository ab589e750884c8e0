//! URLs, IP addresses and networks.
//!
//! Answers: what are the parts of an address, and does this network hold that one? Addresses are read as Go's `netip`
//! does: no leading zeros, no zones, no IPv4 written as IPv6.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Given, Library, no_overload, text};
use crate::cluster::cel::url::Url;
use crate::cluster::cel::value::{Key, Value};

pub(super) fn add(library: &mut Library) {
    library.globals(&[
        ("string_to_url", "url", "string", "url", |given| {
            let read = Url::read(text(&given[0]));
            let failed = |words| format!("URL parse error during conversion from string: {words}");
            read.map(|url| Value::Url(url.into())).map_err(failed)
        }),
        ("is_url_string", "isURL", "string", "bool", |given| {
            Ok(Value::Bool(Url::read(text(&given[0])).is_ok()))
        }),
        ("string_to_ip", "ip", "string", "ip", |given| address(text(&given[0])).map(Value::Ip)),
        ("is_ip", "isIP", "string", "bool", |given| Ok(Value::Bool(address(text(&given[0])).is_ok()))),
        ("ip_is_canonical", "ip.isCanonical", "string", "bool", |given| {
            Ok(Value::Bool(address(text(&given[0]))?.to_string() == text(&given[0])))
        }),
        ("string_to_cidr", "cidr", "string", "cidr", |given| {
            network(text(&given[0])).map(|(address, bits)| Value::Cidr(address, bits))
        }),
        ("is_cidr", "isCIDR", "string", "bool", |given| Ok(Value::Bool(network(text(&given[0])).is_ok()))),
    ]);
    library.members(&[
        ("url_get_scheme", "getScheme", "url", "string", |given| {
            of_url(given, |url| Value::text(&url.scheme))
        }),
        ("url_get_host", "getHost", "url", "string", |given| of_url(given, |url| Value::text(&url.host))),
        ("url_get_hostname", "getHostname", "url", "string", |given| {
            of_url(given, |url| Value::text(url.hostname()))
        }),
        ("url_get_port", "getPort", "url", "string", |given| of_url(given, |url| Value::text(url.port()))),
        ("url_get_escaped_path", "getEscapedPath", "url", "string", |given| {
            of_url(given, |url| Value::text(&url.escaped_path))
        }),
        ("url_get_query", "getQuery", "url", "map(string, list(string))", |given| of_url(given, query)),
        ("ip_family", "family", "ip", "int", |given| {
            of_ip(given, |ip| Value::Int(if ip.is_ipv4() { 4 } else { 6 }))
        }),
        ("ip_is_unspecified", "isUnspecified", "ip", "bool", |given| {
            of_ip(given, |ip| Value::Bool(ip.is_unspecified()))
        }),
        ("ip_is_loopback", "isLoopback", "ip", "bool", |given| {
            of_ip(given, |ip| Value::Bool(ip.is_loopback()))
        }),
        ("ip_is_link_local_multicast", "isLinkLocalMulticast", "ip", "bool", |given| {
            of_ip(given, |ip| Value::Bool(is_link_local_multicast(ip)))
        }),
        ("ip_is_link_local_unicast", "isLinkLocalUnicast", "ip", "bool", |given| {
            of_ip(given, |ip| Value::Bool(is_link_local(ip)))
        }),
        ("ip_is_global_unicast", "isGlobalUnicast", "ip", "bool", |given| {
            of_ip(given, |ip| Value::Bool(is_global(ip)))
        }),
    ]);
    networks(library);
}

fn networks(library: &mut Library) {
    library.members(&[
        ("cidr_contains_ip_string", "containsIP", "cidr, string", "bool", |given| {
            match address(text(&given[1])) {
                Ok(address) => Ok(Value::Bool(holds(&given[0], address, None))),
                Err(_) => no_overload(),
            }
        }),
        ("cidr_contains_ip_ip", "containsIP", "cidr, ip", "bool", |given| match given {
            [_, Value::Ip(address)] => Ok(Value::Bool(holds(&given[0], *address, None))),
            _ => no_overload(),
        }),
        ("cidr_contains_cidr_string", "containsCIDR", "cidr, string", "bool", |given| {
            match network(text(&given[1])) {
                Ok((address, bits)) => Ok(Value::Bool(holds(&given[0], address, Some(bits)))),
                Err(_) => no_overload(),
            }
        }),
        ("cidr_contains_cidr", "containsCIDR", "cidr, cidr", "bool", |given| match given {
            [_, Value::Cidr(address, bits)] => Ok(Value::Bool(holds(&given[0], *address, Some(*bits)))),
            _ => no_overload(),
        }),
        ("cidr_ip", "ip", "cidr", "ip", |given| of_cidr(given, |address, _| Value::Ip(address))),
        ("cidr_prefix_length", "prefixLength", "cidr", "int", |given| {
            of_cidr(given, |_, bits| Value::Int(i64::from(bits)))
        }),
        ("cidr_masked", "masked", "cidr", "cidr", |given| {
            of_cidr(given, |address, bits| Value::Cidr(masked(address, bits), bits))
        }),
    ]);
}

fn of_url(given: &[Value], of: fn(&Url) -> Value) -> Given {
    match given {
        [Value::Url(url)] => Ok(of(url)),
        _ => no_overload(),
    }
}

fn query(url: &Url) -> Value {
    let mut members = std::collections::BTreeMap::<Key, Vec<Value>>::new();
    for (name, value) in url.query() {
        members.entry(Key::text(&name)).or_default().push(Value::text(value));
    }
    let members = members.into_iter().map(|(key, values)| (key, values.into_iter().collect::<Value>()));
    Value::Map(std::sync::Arc::new(members.collect()))
}

fn of_ip(given: &[Value], of: fn(IpAddr) -> Value) -> Given {
    match given {
        [Value::Ip(address)] => Ok(of(*address)),
        _ => no_overload(),
    }
}

fn of_cidr(given: &[Value], of: fn(IpAddr, u8) -> Value) -> Given {
    match given {
        [Value::Cidr(address, bits)] => Ok(of(*address, *bits)),
        _ => no_overload(),
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    let (bare, zone) = text.split_once('%').unwrap_or((text, ""));
    let unread = || {
        format!(
            "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): unable to parse IP"
        )
    };
    let address: IpAddr = bare.parse().map_err(|_| unread())?;
    match address {
        IpAddr::V6(_) if !zone.is_empty() => {
            Err(format!("IP address {text:?} with zone value is not allowed"))
        }
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"))
        }
        _ if text.contains('%') => Err(unread()),
        address => Ok(address),
    }
}

fn network(text: &str) -> Result<(IpAddr, u8), String> {
    const FAILED: &str = "network address parse error during conversion from string";
    let failed = |why: &str| format!("{FAILED}: {FAILED}: netip.ParsePrefix({text:?}): {why}");
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| failed("no '/'"))?;
    let address: IpAddr =
        address.parse().map_err(|_| failed(&format!("ParseAddr({address:?}): unable to parse IP")))?;
    let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (bits.len() > 1 && bits.starts_with('0')) {
        return Err(failed(&format!("bad bits after slash: {bits:?}")));
    }
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.parse::<u8>().ok().filter(|bits| *bits <= most);
    let bits = bits.ok_or_else(|| failed("prefix length out of range"))?;
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            Err(format!("{FAILED}: IPv4-mapped IPv6 address {text:?} is not allowed"))
        }
        address => Ok((address, bits)),
    }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

/// Whether a network holds an address, or a network no larger than itself.
fn holds(network: &Value, address: IpAddr, bits: Option<u8>) -> bool {
    let Value::Cidr(own, own_bits) = network else { return false };
    own.is_ipv4() == address.is_ipv4()
        && masked(*own, *own_bits) == masked(address, *own_bits)
        && bits.is_none_or(|bits| *own_bits <= bits)
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_global(address: IpAddr) -> bool {
    let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(broadcast
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || is_link_local(address))
}
