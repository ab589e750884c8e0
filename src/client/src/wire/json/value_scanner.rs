//! Finds the end of one JSON value, or of one line, whose bytes arrive in chunks.
//!
//! Answers "does it end in these bytes, and where?" Between chunks it remembers only how many brackets are open
//! and whether it is inside a string. It checks nothing else: in bytes that are not JSON it may find any end.
//! Invariants:
//! 1. The first byte that it is given is the first byte of the value.
//! 2. Its state is two machine words, so a copy costs nothing.
//! 3. Every way of cutting the bytes into chunks gives the same end.
//!
//! Objects and arrays are read in blocks of 64 bytes (`block.rs`). In most blocks it only counts brackets and looks at
//! no single byte.
//!
//! Read next: `block.rs`; `split.rs` and `cursor.rs`, which use it.

use memchr::{memchr, memchr2};

use super::block::{BLOCK_BYTES, Block, StringState};

/// How much of a value has been read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ValueScanner {
    /// How many brackets are open, if the value is an object or an array.
    depth: u64,
    position: Position,
}

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Position {
    /// The next byte is the first of the value.
    #[default]
    Start,
    /// The value is a number, `true`, `false` or `null`.
    Scalar,
    /// The value is a string.
    String {
        /// The next byte is escaped by a backslash before it.
        next_is_escaped: bool,
    },
    /// The value is an object or an array.
    Container(StringState),
    /// It is a line, whatever it holds.
    Line,
}

impl ValueScanner {
    /// Of a line: it ends before its newline.
    pub(super) fn line() -> Self {
        Self { depth: 0, position: Position::Line }
    }

    /// Reads `bytes`; returns how many of them belong to the value if it ends in them, and `None` if it does not.
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
            // A backslash: the byte behind it is skipped, here or at the start of the next chunk.
            next_is_escaped = at == bytes.len();
            at += 1;
        }
        self.position = Position::String { next_is_escaped };
        None
    }

    fn container(&mut self, bytes: &[u8], mut strings: StringState) -> Option<usize> {
        for (number, piece) in bytes.chunks(BLOCK_BYTES).enumerate() {
            let block = Block::new(piece, &mut strings);
            // A block with fewer closing brackets than are open cannot end the value, whatever their order.
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

    /// Follows the brackets of one block one by one; returns the length up to the bracket that closes the value.
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
            // Removes the lowest bit, which has been handled.
            brackets &= brackets - 1;
        }
        None
    }
}

/// Whether this byte ends a number, `true`, `false` or `null`.
fn ends_scalar(byte: u8) -> bool {
    matches!(byte, b',' | b']' | b'}' | b':' | b' ' | b'\t' | b'\r' | b'\n')
}
