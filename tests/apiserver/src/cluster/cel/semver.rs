//! Versions of the form `1.2.3-rc.1+build`.
//!
//! Answers: which version does a text mean, and which of two is the later one? The error texts are those of the
//! library that a real server uses, so no other library is used here.
use std::cmp::Ordering;

/// A version; its build metadata is ignored in comparisons.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(super) major: u64,
    pub(super) minor: u64,
    pub(super) patch: u64,
    before: Vec<Part>,
}

/// A part of what stands before a release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
}

impl Version {
    /// Reads a version.
    ///
    /// # Errors Why it is not a version.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts.as_slice() else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (major, minor) = (number(major, "Major")?, number(minor, "Minor")?);
        let (rest, build) = rest.split_once('+').map_or((*rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, before) =
            rest.split_once('-').map_or((rest, None), |(patch, before)| (patch, Some(before)));
        let patch = number(patch, "Patch")?;
        let before = before.map(|before| before.split('.').map(part).collect::<Result<Vec<_>, _>>());
        for build in build.into_iter().flat_map(|build| build.split('.')) {
            if build.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !build.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-') {
                return Err(format!("Invalid character(s) found in build meta data {build:?}"));
            }
        }
        Ok(Self { major, minor, patch, before: before.transpose()?.unwrap_or_default() })
    }

    /// Reads a version that may begin with `v`, be short, or have leading zeros.
    ///
    /// # Errors Why it is not a version even then.
    pub(super) fn read_leniently(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::read(&parts.join("."))
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.before.is_empty(), other.before.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.before.cmp(&other.before),
            }
        })
    }
}

fn without_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let bare = part.trim_start_matches('0');
    if bare.starts_with(|letter: char| letter.is_ascii_digit()) {
        bare.to_owned()
    } else {
        format!("0{bare}")
    }
}

fn number(text: &str, which: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {} number {text:?}", which.to_lowercase()));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{which} number must not contain leading zeroes {text:?}"));
    }
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {text:?}: value out of range"))
}

fn part(text: &str) -> Result<Part, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {text:?}"));
        }
        let number = text.parse();
        return number.map(Part::Number).map_err(|_| "Prerelease number is too large".to_owned());
    }
    if text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-') {
        return Ok(Part::Text(text.to_owned()));
    }
    Err(format!("Invalid character(s) found in prerelease {text:?}"))
}
