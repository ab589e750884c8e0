//! Finds the end of one JSON value, or of one line, whose bytes arrive in chunks. In bytes that are not JSON it may find any end.
//!
//! 1. The first byte that it receives must be the first byte of the value.
//! 2. The end does not depend on the chunks.

use memchr::{memchr, memchr2};

use super::block::{BLOCK_BYTES, Block, StringState};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ValueScanner {
    /// Open brackets.
    depth: u64,
    position: Position,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Position {
    #[default]
    Start,
    Scalar,
    String {
        /// By a backslash.
        next_is_escaped: bool,
    },
    /// An object or array.
    Container(StringState),
    Line,
}

impl ValueScanner {
    pub(super) fn line() -> Self {
        Self { depth: 0, position: Position::Line }
    }

    /// How many of `bytes` belong to the value, if it ends in them.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        match self.position {
            Position::Start => {
                let (first, rest) = bytes.split_first()?;
                self.position = match first {
                    b'"' => Position::String { next_is_escaped: false },
                    b'{' | b'[' => Position::Container(StringState::default()),
                    _ => Position::Scalar,
                };
                self.depth = 1;
                self.advance(rest).map(|length| length + 1)
            }
            Position::Scalar => bytes.iter().position(|byte| ends_scalar(*byte)),
            Position::String { next_is_escaped } => self.string(bytes, next_is_escaped),
            Position::Container(strings) => self.container(bytes, strings),
            Position::Line => memchr(b'\n', bytes),
        }
    }

    fn string(&mut self, bytes: &[u8], first_is_escaped: bool) -> Option<usize> {
        let mut at = usize::from(first_is_escaped && !bytes.is_empty());
        let mut next_is_escaped = first_is_escaped && bytes.is_empty();
        while let Some(found) = memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
            at += found + 1;
            if bytes[at - 1] == b'"' {
                return Some(at);
            }
            // The byte after a backslash is skipped, perhaps in the next chunk.
            next_is_escaped = at == bytes.len();
            at += 1;
        }
        self.position = Position::String { next_is_escaped };
        None
    }

    fn container(&mut self, bytes: &[u8], mut strings: StringState) -> Option<usize> {
        for (number, piece) in bytes.chunks(BLOCK_BYTES).enumerate() {
            let block = Block::new(piece, &mut strings);
            // With fewer closing brackets than are open, the value cannot end here, whatever their order.
            if u64::from(block.closing.count_ones()) < self.depth {
                self.depth += u64::from(block.opening.count_ones());
                self.depth -= u64::from(block.closing.count_ones());
            } else if let Some(end) = self.end_in_block(&block) {
                return Some(number * BLOCK_BYTES + end);
            }
        }
        self.position = Position::Container(strings);
        None
    }

    /// The length up to the bracket that closes the value.
    fn end_in_block(&mut self, block: &Block) -> Option<usize> {
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
            // Removes the lowest bit.
            brackets &= brackets - 1;
        }
        None
    }
}

fn ends_scalar(byte: u8) -> bool {
    matches!(byte, b',' | b']' | b'}' | b':' | b' ' | b'\t' | b'\r' | b'\n')
}
