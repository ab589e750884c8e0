//! Balances one JSON value across chunks.
//!
//! Answers "does the value end in these bytes, and where?", remembering between chunks only how deep it stands and
//! whether it is in a string. It checks nothing else. Invariants:
//! 1. The first byte it is ever given is the first byte of the value.
//! 2. Its state is three words: copying it costs nothing.
//!
//! Read next: `list.rs`.

use memchr::memchr2;

use crate::representation::ends_scalar;

/// How far into a value the bytes so far have led.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Nest {
    depth: u64,
    within: Within,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Start,
    Container,
    Text,
    Escape,
    Scalar,
}

impl Nest {
    /// Reads on; gives the length of the part that belongs to the value if it ends in `bytes`.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            match self.within {
                Within::Scalar => {
                    return bytes[at..].iter().position(|byte| ends_scalar(*byte)).map(|length| at + length);
                }
                Within::Escape => {
                    self.within = Within::Text;
                    at += 1;
                }
                Within::Text => {
                    at += memchr2(b'"', b'\\', &bytes[at..])? + 1;
                    if bytes[at - 1] == b'\\' {
                        self.within = Within::Escape;
                    } else if self.depth == 0 {
                        return Some(at);
                    } else {
                        self.within = Within::Container;
                    }
                }
                Within::Start | Within::Container => {
                    at += self.structure(&bytes[at..])?;
                    if self.depth == 0 && self.within == Within::Container {
                        return Some(at);
                    }
                }
            }
        }
        None
    }

    /// Moves past brackets up to a string, a scalar at the top, or the closing bracket; `None` if `bytes` end before.
    fn structure(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.within == Within::Start {
            match bytes[0] {
                b'"' => self.within = Within::Text,
                b'{' | b'[' => (self.within, self.depth) = (Within::Container, 1),
                _ => self.within = Within::Scalar,
            }
            return Some(1);
        }
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'"' => {
                    self.within = Within::Text;
                    return Some(at + 1);
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}
