//! The ranges of an Accept header, best first.
//!
//! Answers: what does this header ask for, in which order? `accept.rs` knows what is offered.
//! 1. The order is that of a real server: higher quality first, exact media types before those with a star, and a sort
//!    by insertion, which matters because that order is not a total order.
//! 2. A range that cannot be read is left out, a quality that cannot be read counts as 0. Quality 0 does not forbid
//!    anything.

/// One range of the header.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Range<'a> {
    kind: &'a str,
    sub: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

/// The type to which a range wants the answer converted: its parameters `as`, `g` and `v`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    pub(crate) kind: &'a str,
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
}

impl<'a> Range<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';');
        let media = parts.next().unwrap_or_default();
        let (kind, sub) = media.split_once('/').unwrap_or((media, ""));
        let kind = kind.trim_matches(' ');
        let sub = if sub.is_empty() && kind == "*" { "*" } else { sub };
        if sub.is_empty() || sub.contains('/') {
            return None;
        }
        let sub = sub.trim_matches(' ');
        let mut range = Self { kind, sub, quality: 1.0, parameters: Vec::new() };
        for part in parts {
            let Some((name, value)) = part.split_once('=') else { continue };
            match name.trim_matches(' ') {
                _ if value.is_empty() || value.contains('=') => {}
                "q" => range.quality = value.parse().unwrap_or_default(),
                name => range.parameters.push((name, value.trim_matches(' '))),
            }
        }
        Some(range)
    }

    fn precedes(&self, other: &Self) -> bool {
        self.quality > other.quality
            || (self.kind != "*" && other.kind == "*")
            || (self.sub != "*" && other.sub == "*")
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// Whether this media type is in the range.
    pub(crate) fn takes(&self, media_type: &str) -> bool {
        let (kind, sub) = media_type.split_once('/').unwrap_or((media_type, ""));
        match (self.kind, self.sub) {
            ("*", "*") => true,
            (own, "*") => own == kind,
            own => own == (kind, sub),
        }
    }

    /// Whether the range asks for no stream, or for one that there is.
    pub(crate) fn streams(&self, streams: bool) -> bool {
        self.parameter("stream").is_none_or(|stream| streams && stream == "watch")
    }

    /// Whether the range asks for no version of options, or for this one.
    pub(crate) fn of_version(&self, version: &str) -> bool {
        self.parameter("sv").is_none_or(|asked| asked == version)
    }

    /// What the range wants the answer converted to.
    pub(crate) fn target(&self) -> Option<Target<'a>> {
        let [kind, group, version] = ["as", "g", "v"].map(|name| self.parameter(name));
        kind.or(group).or(version)?;
        let [kind, group, version] = [kind, group, version].map(Option::unwrap_or_default);
        Some(Target { kind, group, version })
    }
}

/// The ranges of a header, best first.
pub(crate) fn ranges(header: &str) -> Vec<Range<'_>> {
    let mut ranges: Vec<Range<'_>> = Vec::new();
    for range in header.split(',').filter_map(|part| Range::read(part.trim_matches(' '))) {
        let mut at = ranges.len();
        while at > 0 && range.precedes(&ranges[at - 1]) {
            at -= 1;
        }
        ranges.insert(at, range);
    }
    ranges
}

#[test]
fn ranges_are_sorted_as_a_real_server_sorts_them() {
    let order = |header| -> Vec<String> {
        ranges(header).iter().map(|range| format!("{}/{}", range.kind, range.sub)).collect()
    };
    assert_eq!(order("a/b;q=0.1, */*, a/*, c/d"), ["c/d", "a/*", "*/*", "a/b"]);
    assert_eq!(order("*, a, a/b/c, b/c;q=x"), ["b/c", "*/*"]);
    let range = &ranges("a/b;as=Table;v=v1; g = meta ;x=1=2")[0];
    assert_eq!(range.target(), Some(Target { kind: "Table", group: "meta", version: "v1" }));
    assert_eq!(range.parameter("x"), None);
    assert!(range.takes("a/b") && !range.takes("a/c"));
}
