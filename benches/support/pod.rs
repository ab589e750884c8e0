//! Pods as a production API server sends them, as JSON texts.
//!
//! Answers "on what is decoding measured?": 8.9 KB a pod, 44 % of it `managedFields`, in the server's own order of
//! fields, without white space. `pod.json` is the pattern. Pods of one application, 40 each, share its name, its
//! hashes and its values; a pod has its own name, uid, addresses, times and ids of containers, as random as real
//! ones. Invariants:
//! 1. The same number gives the same text, on every machine.
//! 2. Size and share of `managedFields` are what the figures say they are: [`Pattern::text`] checks it.

use std::io::Write as _;
use std::ops::Range;

/// The pattern; its line ends stand only between members.
const PATTERN: &str = include_str!("pod.json");
const BYTES: Range<usize> = 8_700..9_100;
const APPLICATION: usize = 40;
const NAMESPACE: usize = 200;
const WORDS: [&str; 32] = [
    "accounts", "audit", "billing", "carts", "catalog", "checkout", "claims", "consent", "courier", "credit",
    "devices", "events", "exports", "fraud", "gateway", "geo", "imports", "invoices", "ledger", "mailer",
    "metrics", "notify", "orders", "payments", "pricing", "profiles", "quotes", "reports", "returns",
    "search", "stock", "tickets",
];
const MANAGED_PER_CENT: Range<usize> = 40..50;

/// The first `count` pods.
pub(crate) fn pods(count: usize) -> Vec<String> {
    let pattern = Pattern::new();
    (0..count).map(|number| pattern.text(&Values::of(number), version(number), 0)).collect()
}

/// The version of a pod that has not changed yet.
pub(crate) fn version(number: usize) -> u64 {
    184_467_001 + number as u64
}

/// The pattern, cut where the values stand.
#[derive(Debug)]
pub(crate) struct Pattern(Vec<(String, Place)>);

#[derive(Debug, Clone, Copy)]
enum Place {
    Value(usize),
    Version,
    Restarts,
    End,
}

/// What a pod has for itself, in the order of [`PLACES`].
#[derive(Debug)]
pub(crate) struct Values {
    text: Box<str>,
    ends: [u16; PLACES.len()],
}

const PLACES: [&str; 17] = [
    "NAME",
    "NAMESPACE",
    "UID",
    "IP",
    "NODE",
    "HOST",
    "HOUR",
    "CONTAINER",
    "SIDECAR",
    "HASH",
    "OWNER",
    "DIGEST",
    "CHECKSUM",
    "RELEASE",
    "FLAGS",
    "TEAM",
    "APP",
];

impl Pattern {
    pub(crate) fn new() -> Self {
        let dense: String = PATTERN.lines().map(str::trim).collect();
        let mut pieces: Vec<(String, Place)> = vec![(String::new(), Place::End)];
        let mut texts = dense.split('@').peekable();
        while let Some(text) = texts.next() {
            let place = match text {
                "VERSION" => Some(Place::Version),
                "RESTARTS" => Some(Place::Restarts),
                name => PLACES.iter().position(|place| *place == name).map(Place::Value),
            };
            let (literal, end) = pieces.last_mut().expect("there is one");
            match place {
                Some(place) => {
                    *end = place;
                    pieces.push((String::new(), Place::End));
                }
                None => {
                    literal.push_str(text);
                    let is_before_place = texts
                        .peek()
                        .is_some_and(|next| ["VERSION", "RESTARTS"].contains(next) || PLACES.contains(next));
                    if texts.peek().is_some() && !is_before_place {
                        literal.push('@');
                    }
                }
            }
        }
        Self(pieces)
    }

    /// Appends a pod.
    pub(crate) fn write(&self, values: &Values, version: u64, restarts: u64, out: &mut Vec<u8>) {
        for (literal, place) in &self.0 {
            out.extend_from_slice(literal.as_bytes());
            match place {
                Place::Value(place) => out.extend_from_slice(values.value(*place).as_bytes()),
                Place::Version => write!(out, "{version}").expect("a Vec takes every text"),
                Place::Restarts => out.push(b'0' + (restarts % 10) as u8),
                Place::End => {}
            }
        }
    }

    /// A pod.
    pub(crate) fn text(&self, values: &Values, version: u64, restarts: u64) -> String {
        let mut out = Vec::with_capacity(BYTES.end);
        self.write(values, version, restarts, &mut out);
        let pod = String::from_utf8(out).expect("the pattern is a text");
        let managed = between(&pod, r#""managedFields":"#, r#"},"spec":"#);
        assert!(BYTES.contains(&pod.len()), "a pod of {} bytes", pod.len());
        assert!(MANAGED_PER_CENT.contains(&(managed * 100 / pod.len())), "{managed} bytes of managedFields");
        pod
    }
}

impl Values {
    /// Those of pod `number`.
    pub(crate) fn of(number: usize) -> Self {
        let (of_pod, of_app) = (Random::of(number, 1), Random::of(number / APPLICATION, 2));
        let team = WORDS[number / NAMESPACE % WORDS.len()];
        let app = format!("{}-{}", of_app.word(0), of_app.word(1));
        let (hash, node) = (of_app.hex(2, 10), of_pod.below(3, 2_000));
        let (month, day, hour) = (1 + of_pod.below(4, 12), 1 + of_pod.below(5, 28), of_pod.below(6, 24));
        let values = [
            format!("{app}-{hash}-{number:05}"),
            format!("{team}-{:04}", number / NAMESPACE),
            of_pod.uid(8),
            format!("10.{}.{}.{}", 64 + of_pod.below(0, 64), of_pod.below(1, 256), of_pod.below(2, 256)),
            format!("node-{node:04}"),
            format!("10.12.{}.{}", node / 250, 1 + node % 250),
            format!("2026-{month:02}-{day:02}T{hour:02}:{:02}:", of_pod.below(7, 60)),
            of_pod.hex(10, 64),
            of_pod.hex(14, 64),
            hash,
            of_app.uid(3),
            of_app.hex(5, 64),
            of_app.hex(9, 64),
            format!("{}.{}.{}", of_app.below(13, 9), of_app.below(14, 30), of_app.below(15, 10)),
            format!("{},{}-{}", of_app.word(16), of_app.word(17), of_app.word(18)),
            team.to_owned(),
            app,
        ];
        let mut text = String::new();
        let ends = values.map(|value| {
            text.push_str(&value);
            u16::try_from(text.len()).expect("the values are short")
        });
        Self { text: text.into(), ends }
    }

    fn value(&self, place: usize) -> &str {
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[begin.into()..self.ends[place].into()]
    }
}

/// The same values for the same owner of them.
struct Random(u64);

impl Random {
    fn of(number: usize, kind: u64) -> Self {
        Self(mixed(number as u64 ^ (kind << 56)))
    }

    fn value(&self, place: u64) -> u64 {
        mixed(self.0.wrapping_add(place))
    }

    fn below(&self, place: u64, limit: u64) -> u64 {
        self.value(place) % limit
    }

    fn word(&self, place: u64) -> &'static str {
        WORDS[self.below(place, WORDS.len() as u64) as usize]
    }

    /// Of up to 64 digits; uses this place and the next three.
    fn hex(&self, place: u64, digits: usize) -> String {
        let text: String = (place..place + 4).map(|place| format!("{:016x}", self.value(place))).collect();
        text[..digits].to_owned()
    }

    fn uid(&self, place: u64) -> String {
        let hex = self.hex(place, 32);
        format!("{}-{}-4{}-9{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
    }
}

/// The finalizer of splitmix64.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn between(text: &str, from: &str, to: &str) -> usize {
    let start = text.find(from).expect("the pattern has it") + from.len();
    text[start..].find(to).expect("the pattern has it")
}
