//! The identity of one life of an object. A text comes out as it went in, byte for byte, and has one form in memory.

use std::fmt;
use std::sync::Arc;

/// A UUID as API servers write it: 32 lower-case hexadecimal digits, with hyphens at these positions.
const LENGTH: usize = 36;
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The identity of one life of an object: the same key with another uid is another object.
///
/// A UUID as API servers write it takes 24 bytes and no allocation; any other text is allocated once, and
/// shared by clones. Read it with `to_string`, `Display`, or by comparing it with a text.
///
/// ```
/// # use informer_core::face as actix_informer;
/// use actix_informer::object::Uid;
/// let uid = Uid::new("5c1b9c0e-7a1d-4d6e-9a52-0123456789ab").expect("not empty");
/// assert_eq!(uid, "5c1b9c0e-7a1d-4d6e-9a52-0123456789ab");
/// assert_eq!(uid.to_string(), "5c1b9c0e-7a1d-4d6e-9a52-0123456789ab");
/// assert_eq!(Uid::new("any text").expect("not empty"), "any text");
/// assert!(Uid::new("").is_none());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Form);

const _: () =
    assert!(size_of::<Option<Uid>>() == 24, "a uid takes no more room than a text of its own would");

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Form {
    Uuid([u8; 16]),
    Text(Arc<str>),
}

impl Uid {
    /// Takes any non-empty text; `None` for the empty one, which stands for "no uid".
    pub fn new(text: &str) -> Option<Self> {
        let form = || uuid(text.as_bytes()).map_or_else(|| Form::Text(text.into()), Form::Uuid);
        (!text.is_empty()).then(|| Self(form()))
    }
}

fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != LENGTH || HYPHENS.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let mut digits = text.iter().enumerate().filter(|(at, _)| !HYPHENS.contains(at)).map(|(_, digit)| digit);
    let mut digit = || match digits.next()? {
        digit @ b'0'..=b'9' => Some(digit - b'0'),
        digit @ b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        *byte = (digit()? << 4) | digit()?;
    }
    Some(bytes)
}

fn text_of(bytes: [u8; 16]) -> [u8; LENGTH] {
    let mut text = [b'-'; LENGTH];
    let places = text.iter_mut().enumerate().filter(|(at, _)| !HYPHENS.contains(at));
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    for ((_, place), digit) in places.zip(digits) {
        *place = DIGITS[usize::from(digit)];
    }
    text
}

impl PartialEq<str> for Uid {
    fn eq(&self, other: &str) -> bool {
        match &self.0 {
            Form::Uuid(bytes) => text_of(*bytes) == other.as_bytes(),
            Form::Text(text) => **text == *other,
        }
    }
}

impl PartialEq<&str> for Uid {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl PartialEq<String> for Uid {
    fn eq(&self, other: &String) -> bool {
        *self == **other
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Uuid(bytes) => {
                f.write_str(str::from_utf8(&text_of(*bytes)).expect("ASCII digits and hyphens"))
            }
            Form::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uid({self})")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::hash_map::DefaultHasher;
    use std::hash::{Hash, Hasher};

    use proptest::prelude::*;

    use super::*;

    fn hash_of(uid: &Uid) -> u64 {
        let mut hasher = DefaultHasher::new();
        uid.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn a_uuid_as_servers_write_it_is_kept_as_a_number_and_every_other_text_as_it_is() {
        let written = "5c1b9c0e-7a1d-4d6e-9a52-0123456789ab";
        assert!(matches!(Uid::new(written), Some(Uid(Form::Uuid(_)))));
        for other in [
            "5C1B9C0E-7A1D-4D6E-9A52-0123456789AB",
            "5c1b9c0e7a1d4d6e9a520123456789ab",
            "5c1b9c0e-7a1d-4d6e-9a52-0123456789a",
            "5c1b9c0e-7a1d-4d6e-9a52-0123456789abc",
            "5c1b9c0e-7a1d-4d6e-9a520-123456789ab",
            "5c1b9c0e-7a1d-4d6e-9a52-0123456789ag",
            "5c1b9c0e-7a1d-4d6e-9a52-0123456789\u{e9}",
            "5c1b9c0e-7a1d-4d6e-9a52-0123456789-b",
            "life-1",
        ] {
            let uid = Uid::new(other).expect("not empty");
            assert!(matches!(uid.0, Form::Text(_)), "{other}");
            assert_eq!(uid.to_string(), other);
            assert_ne!(uid, written);
        }
        assert_eq!(Uid::new(""), None);
    }

    proptest! {
        #[test]
        fn a_uid_is_its_text(
            (one, other) in ("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-fA-F-]{34,38}|.{1,8}",
                "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|.{1,8}"),
        ) {
            let (uid, same, another) = (Uid::new(&one).unwrap(), Uid::new(&one).unwrap(), Uid::new(&other).unwrap());
            prop_assert_eq!(uid.to_string(), one.clone());
            prop_assert!(uid == one && uid == *one.as_str());
            prop_assert_eq!(&uid, &same);
            prop_assert_eq!(hash_of(&uid), hash_of(&same));
            prop_assert_eq!(uid == another, one == other);
            prop_assert_eq!(uid == other, one == other);
        }
    }
}
