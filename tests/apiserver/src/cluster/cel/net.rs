//! URLs, IP addresses and networks in rules.
//!
//! Answers: what are the parts of an address, and does this network hold that one? Addresses are read as Go's `netip`
//! does: no leading zeros, no zones, no IPv4 written as IPv6.
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cel::ExecutionError;
use cel::common::types::{CelMap, CelMapKey, STRING_TYPE, Type};
use cel::common::value::{CowVal, Val};

use super::functions::{Given, Library, failed, give, number, of, text, truth, value, word, words};
use super::url::Url;

value!(Link(Url), "kubernetes.URL");
value!(Ip(IpAddr), "net.IP");
value!(Cidr((IpAddr, u8)), "net.CIDR");

fn url() -> Type {
    Link::cel_type().to_owned()
}

fn ip() -> Type {
    Ip::cel_type().to_owned()
}

fn cidr() -> Type {
    Cidr::cel_type().to_owned()
}

pub(super) fn add(library: &mut Library) {
    library.global("isURL", &[STRING_TYPE], |given| truth(Url::read(text(&given, 0)?).is_ok()));
    library.global("url", &[STRING_TYPE], |given| {
        let read = Url::read(text(&given, 0)?);
        give(Link(
            read.map_err(|why| failed(format!("URL parse error during conversion from string: {why}")))?,
        ))
    });
    library.member("getScheme", &[url()], |given| word(&of::<Link>(&given, 0)?.0.scheme));
    library.member("getHost", &[url()], |given| word(&of::<Link>(&given, 0)?.0.host));
    library.member("getHostname", &[url()], |given| word(of::<Link>(&given, 0)?.0.hostname()));
    library.member("getPort", &[url()], |given| word(of::<Link>(&given, 0)?.0.port()));
    library.member("getEscapedPath", &[url()], |given| word(&of::<Link>(&given, 0)?.0.escaped_path));
    library.member("getQuery", &[url()], query);
    addresses(library);
    networks(library);
}

fn query<'b, 'v>(given: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let mut members = HashMap::<String, Vec<String>>::new();
    for (name, value) in of::<Link>(&given, 0)?.0.query() {
        members.entry(name).or_default().push(value);
    }
    let member = |(name, values)| (CelMapKey::from(name), Box::new(words(values)) as Box<dyn Val>);
    give(CelMap::from(members.into_iter().map(member).collect::<HashMap<_, _>>()))
}

fn addresses(library: &mut Library) {
    library.global("isIP", &[STRING_TYPE], |given| truth(address(text(&given, 0)?).is_ok()));
    library.global("ip", &[STRING_TYPE], |given| give(Ip(address(text(&given, 0)?)?)));
    library.global("ip.isCanonical", &[STRING_TYPE], |given| {
        truth(address(text(&given, 0)?)?.to_string() == text(&given, 0)?)
    });
    library.global("string", &[ip()], |given| word(&of::<Ip>(&given, 0)?.0.to_string()));
    library.member("family", &[ip()], |given| number(if of::<Ip>(&given, 0)?.0.is_ipv4() { 4 } else { 6 }));
    library.member("isUnspecified", &[ip()], |given| truth(of::<Ip>(&given, 0)?.0.is_unspecified()));
    library.member("isLoopback", &[ip()], |given| truth(of::<Ip>(&given, 0)?.0.is_loopback()));
    library.member("isLinkLocalMulticast", &[ip()], |given| {
        truth(is_link_local_multicast(of::<Ip>(&given, 0)?.0))
    });
    library.member("isLinkLocalUnicast", &[ip()], |given| truth(is_link_local(of::<Ip>(&given, 0)?.0)));
    library.member("isGlobalUnicast", &[ip()], |given| truth(is_global(of::<Ip>(&given, 0)?.0)));
}

fn networks(library: &mut Library) {
    library.global("isCIDR", &[STRING_TYPE], |given| truth(network(text(&given, 0)?).is_ok()));
    library.global("cidr", &[STRING_TYPE], |given| give(Cidr(network(text(&given, 0)?)?)));
    library.global("string", &[cidr()], |given| {
        let (address, bits) = of::<Cidr>(&given, 0)?.0;
        word(&format!("{address}/{bits}"))
    });
    library.member("containsIP", &[cidr(), STRING_TYPE], |given| {
        holds(&given, address(text(&given, 1)?).map_err(|_| failed("no such overload"))?, None)
    });
    library.member("containsIP", &[cidr(), ip()], |given| holds(&given, of::<Ip>(&given, 1)?.0, None));
    library.member("containsCIDR", &[cidr(), STRING_TYPE], |given| {
        let (address, bits) = network(text(&given, 1)?).map_err(|_| failed("no such overload"))?;
        holds(&given, address, Some(bits))
    });
    library.member("containsCIDR", &[cidr(), cidr()], |given| {
        let (address, bits) = of::<Cidr>(&given, 1)?.0;
        holds(&given, address, Some(bits))
    });
    library.member("ip", &[cidr()], |given| give(Ip(of::<Cidr>(&given, 0)?.0.0)));
    library.member("prefixLength", &[cidr()], |given| number(of::<Cidr>(&given, 0)?.0.1.into()));
    library.member("masked", &[cidr()], |given| {
        let (address, bits) = of::<Cidr>(&given, 0)?.0;
        give(Cidr((masked(address, bits), bits)))
    });
}

fn address(text: &str) -> Result<IpAddr, ExecutionError> {
    let (bare, zone) = text.split_once('%').unwrap_or((text, ""));
    let unread = || {
        failed(format!(
            "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): unable to parse IP"
        ))
    };
    let address: IpAddr = bare.parse().map_err(|_| unread())?;
    match address {
        IpAddr::V6(_) if !zone.is_empty() => {
            Err(failed(format!("IP address {text:?} with zone value is not allowed")))
        }
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            Err(failed(format!("IPv4-mapped IPv6 address {text:?} is not allowed")))
        }
        _ if text.contains('%') => Err(unread()),
        address => Ok(address),
    }
}

fn network(text: &str) -> Result<(IpAddr, u8), ExecutionError> {
    const FAILED: &str = "network address parse error during conversion from string";
    let refused = |why: &str| failed(format!("{FAILED}: {FAILED}: netip.ParsePrefix({text:?}): {why}"));
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| refused("no '/'"))?;
    let address: IpAddr =
        address.parse().map_err(|_| refused(&format!("ParseAddr({address:?}): unable to parse IP")))?;
    let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (bits.len() > 1 && bits.starts_with('0')) {
        return Err(refused(&format!("bad bits after slash: {bits:?}")));
    }
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.parse::<u8>().ok().filter(|bits| *bits <= most);
    let bits = bits.ok_or_else(|| refused("prefix length out of range"))?;
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            Err(failed(format!("{FAILED}: IPv4-mapped IPv6 address {text:?} is not allowed")))
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
fn holds<'b, 'v>(given: &[CowVal<'_, '_>], address: IpAddr, bits: Option<u8>) -> Given<'b, 'v> {
    let (own, own_bits) = of::<Cidr>(given, 0)?.0;
    truth(
        own.is_ipv4() == address.is_ipv4()
            && masked(own, own_bits) == masked(address, own_bits)
            && bits.is_none_or(|bits| own_bits <= bits),
    )
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
