//! Balances one JSON value across chunks.
//!
//! Answers "does the value end in these bytes, and where?", remembering between chunks only how deep it stands and
//! whether it is in a string. It checks nothing else: of a value that is no JSON it may find any end. Invariants:
//! 1. The first byte it is ever given is the first byte of the value.
//! 2. Its state is two words: copying it costs nothing.
//! 3. However the bytes are cut into chunks, the end is the same.
//!
//! Containers are read 64 bytes at a time (`block.rs`); most blocks are done without looking at a single byte.
//!
//! Read next: `list.rs`.

use memchr::memchr2;

use super::block::{Block, LANES, Strings};
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
    Scalar,
    /// A string that is the value, and whether its next byte is escaped.
    Text {
        escaped: bool,
    },
    Container(Strings),
}

impl Nest {
    /// Reads on; gives the length of the part that belongs to the value if it ends in `bytes`.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        match self.within {
            Within::Start => {
                let (first, rest) = bytes.split_first()?;
                self.within = match first {
                    b'"' => Within::Text { escaped: false },
                    b'{' | b'[' => Within::Container(Strings::default()),
                    _ => Within::Scalar,
                };
                self.depth = 1;
                self.advance(rest).map(|length| length + 1)
            }
            Within::Scalar => bytes.iter().position(|byte| ends_scalar(*byte)),
            Within::Text { escaped } => self.text(bytes, escaped),
            Within::Container(strings) => self.container(bytes, strings),
        }
    }

    fn text(&mut self, bytes: &[u8], escaped: bool) -> Option<usize> {
        let mut at = usize::from(escaped && !bytes.is_empty());
        let mut open = escaped && bytes.is_empty();
        while let Some(found) = memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
            at += found + 1;
            if bytes[at - 1] == b'"' {
                return Some(at);
            }
            open = at == bytes.len();
            at += 1;
        }
        self.within = Within::Text { escaped: open };
        None
    }

    fn container(&mut self, bytes: &[u8], mut strings: Strings) -> Option<usize> {
        for (number, piece) in bytes.chunks(LANES).enumerate() {
            let block = Block::new(piece, &mut strings);
            // A block with fewer closing brackets than are open cannot end the value, in whatever order they stand.
            if u64::from(block.closing.count_ones()) < self.depth {
                self.depth += u64::from(block.opening.count_ones());
                self.depth -= u64::from(block.closing.count_ones());
            } else if let Some(end) = self.within_block(&block) {
                return Some(number * LANES + end);
            }
        }
        self.within = Within::Container(strings);
        None
    }

    /// Follows the brackets of one block one by one; gives the length up to the one that closes the value.
    fn within_block(&mut self, block: &Block) -> Option<usize> {
        let mut brackets = block.opening | block.closing;
        while brackets != 0 {
            let at = brackets.trailing_zeros();
            if block.opening >> at & 1 == 1 {
                self.depth += 1;
            } else {
                self.depth -= 1;
            }
            if self.depth == 0 {
                return Some(at as usize + 1);
            }
            brackets &= brackets - 1;
        }
        None
    }
}
