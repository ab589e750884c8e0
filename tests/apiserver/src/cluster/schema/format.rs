//! The string formats a schema can ask for.
//!
//! Answers: does this text have that format? An unknown format always matches.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine;

/// Whether `text` is of the format.
pub(crate) fn holds(format: &str, text: &str) -> bool {
    match format {
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "date-time" | "datetime" => {
            text.as_bytes().get(10).is_some_and(|letter| letter.eq_ignore_ascii_case(&b't'))
                && text.parse::<jiff::Timestamp>().is_ok()
        }
        "byte" => !text.is_empty() && base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => cidr(text),
        "mac" => [':', '-'].into_iter().any(|between| mac(text, between)),
        "uuid" => uuid(text, None),
        "uuid3" => uuid(text, Some('3')),
        "uuid4" => uuid(text, Some('4')),
        "uuid5" => uuid(text, Some('5')),
        "email" => text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && hostname(host)),
        "hostname" => hostname(text),
        "uri" => uri(text),
        "hexcolor" => hex(text.strip_prefix('#').unwrap_or(text), &[3, 6]),
        "bsonobjectid" => hex(text, &[24]),
        "duration" => duration(text),
        "k8s-short-name" => label(text),
        "k8s-long-name" => !text.is_empty() && text.len() <= 253 && text.split('.').all(label),
        _ => true,
    }
}

fn cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn mac(text: &str, between: char) -> bool {
    let parts: Vec<&str> = text.split(between).collect();
    matches!(parts.len(), 6 | 8 | 20) && parts.iter().all(|part| hex(part, &[2]))
}

fn hex(text: &str, lengths: &[usize]) -> bool {
    lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn uuid(text: &str, version: Option<char>) -> bool {
    let plain: String = text.chars().filter(|letter| *letter != '-').collect();
    let variant = |letter: char| version.is_none_or(|version| version == '3' || "89abAB".contains(letter));
    let versioned =
        plain.chars().nth(12).is_some_and(|letter| version.is_none_or(|version| letter == version));
    hex(&plain, &[32]) && versioned && plain.chars().nth(16).is_some_and(variant)
}

fn label(text: &str) -> bool {
    let edge =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
}

fn hostname(text: &str) -> bool {
    !text.is_empty() && text.len() <= 255 && text.split('.').all(|part| label(&part.to_ascii_lowercase()))
}

fn uri(text: &str) -> bool {
    let scheme = |scheme: &str| scheme.bytes().next().is_some_and(|first| first.is_ascii_alphabetic());
    text.starts_with('/')
        || text.split_once(':').is_some_and(|(before, after)| scheme(before) && !after.is_empty())
}

/// Go's durations (`1h30m`), and a number with a unit in words (`22 ns`).
fn duration(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    if text == "0" {
        return true;
    }
    let mut rest = text;
    while !rest.is_empty() {
        let digits =
            rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let after = rest[digits..].trim_start();
        let unit = ["ns", "us", "µs", "ms", "s", "m", "h", "days", "day", "d", "weeks", "week", "w"]
            .into_iter()
            .filter(|unit| after.starts_with(unit))
            .max_by_key(|unit| unit.len());
        match unit {
            Some(unit) if digits > 0 => rest = &after[unit.len()..],
            _ => return false,
        }
    }
    !text.is_empty()
}
