//! Finds the brackets in 64 bytes of JSON at once, without a loop over the bytes, as simdjson does. Each comparison returns a set
//! of positions: 64 bits, one for each byte. For example (the first byte is on the left, in the drawing only):
//!
//! ```text
//!   bytes            {  "  a  \  "  }  "  ,  "
//!   quotes           .  1  .  .  1  .  1  .  1
//!   backslashes      .  .  .  1  .  .  .  .  .
//!   escaped          .  .  .  .  1  .  .  .  .    behind a backslash that is not escaped itself
//!   quotes & !escaped.  1  .  .  .  .  1  .  1    the quotes that begin and end strings
//!   in_string        .  1  1  1  1  1  .  .  1    prefix xor: an odd number of such quotes so far
//!   closing          .  .  .  .  .  .  .  .  .    the `}` is in the string: `}` & !in_string
//! ```
//!
//! [`StringState`] carries an open string or backslash into the next block.
//!
//! 1. Bit `n` of a set is byte `n`. A short piece is filled with spaces, which set no bit.
//! 2. JSON has no backslash outside of strings. Such a one hides a quote as in a string, and the decoder refuses the text.

use wide::u8x16;

pub(super) const BLOCK_BYTES: usize = u64::BITS as usize;

/// What the bytes so far leave open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StringState {
    in_string: bool,
    next_is_escaped: bool,
}

/// Brackets outside of strings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) opening: u64,
    pub(super) closing: u64,
}

impl Block {
    pub(super) fn new(piece: &[u8], strings: &mut StringState) -> Self {
        Self::found::<false>(piece, strings).0
    }

    /// Also the commas outside of strings.
    pub(super) fn with_commas(piece: &[u8], strings: &mut StringState) -> (Self, u64) {
        Self::found::<true>(piece, strings)
    }

    fn found<const COMMAS: bool>(piece: &[u8], strings: &mut StringState) -> (Self, u64) {
        let mut padded = [b' '; BLOCK_BYTES];
        let bytes = piece.try_into().unwrap_or_else(|_| {
            padded[..piece.len()].copy_from_slice(piece);
            &padded
        });
        let mut positions = Positions::default();
        for (number, sixteen) in bytes.chunks_exact(16).enumerate() {
            positions.add::<COMMAS>(sixteen.try_into().expect("chunks of sixteen"), number as u32 * 16);
        }
        let escaped = escaped_positions(positions.backslashes, strings.next_is_escaped);
        let begins_in_string = if strings.in_string { u64::MAX } else { 0 };
        let in_string = prefix_xor(positions.quotes & !escaped) ^ begins_in_string;
        // A backslash that escapes may be the last byte. An empty piece changes nothing.
        if let Some(last) = piece.len().checked_sub(1) {
            strings.next_is_escaped = is_set(positions.backslashes & !escaped, last);
        }
        // The spaces after a short piece begin and end no string, so its last bit is right, too.
        strings.in_string = is_set(in_string, BLOCK_BYTES - 1);
        let block = Self { opening: positions.opening & !in_string, closing: positions.closing & !in_string };
        (block, positions.commas & !in_string)
    }
}

/// Also inside strings.
#[derive(Default)]
struct Positions {
    quotes: u64,
    backslashes: u64,
    opening: u64,
    closing: u64,
    commas: u64,
}

impl Positions {
    /// The sixteen bytes begin at byte `at` of the block.
    fn add<const COMMAS: bool>(&mut self, sixteen: [u8; 16], at: u32) {
        let bytes = u8x16::new(sixteen);
        // `[` and `{` differ in one bit, and so do `]` and `}`. With this bit set, both look like `{` or `}`; no other byte does.
        let folded = bytes | u8x16::splat(b'[' ^ b'{');
        let equal = |bytes: u8x16, byte| u64::from(bytes.cmp_eq(u8x16::splat(byte)).move_mask() as u16) << at;
        self.quotes |= equal(bytes, b'"');
        self.backslashes |= equal(bytes, b'\\');
        self.opening |= equal(folded, b'{');
        self.closing |= equal(folded, b'}');
        if COMMAS {
            self.commas |= equal(bytes, b',');
        }
    }
}

/// The positions after a backslash that is not escaped itself. Most blocks have none.
fn escaped_positions(backslashes: u64, first_is_escaped: bool) -> u64 {
    let mut escaped = u64::from(first_is_escaped);
    let mut escaping = backslashes & !escaped;
    while escaping != 0 {
        let lowest = escaping & escaping.wrapping_neg();
        // The shift drops the position after the last bit: the caller carries it on.
        let behind_it = lowest << 1;
        escaped |= behind_it;
        // An escaped backslash does not escape.
        escaping &= !lowest & !behind_it;
    }
    escaped
}

/// Bit `n` is set when an odd number of the bits `0..=n` are set.
fn prefix_xor(bits: u64) -> u64 {
    [1, 2, 4, 8, 16, 32].iter().fold(bits, |bits, shift| bits ^ (bits << shift))
}

fn is_set(bits: u64, at: usize) -> bool {
    bits >> at & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Finds the same brackets with a loop over the bytes.
    fn naive(bytes: &[u8], strings: &mut StringState) -> (u64, u64, u64) {
        let (mut opening, mut closing, mut commas) = (0, 0, 0);
        for (at, byte) in bytes.iter().enumerate() {
            let escaped = std::mem::take(&mut strings.next_is_escaped);
            match byte {
                b'\\' => strings.next_is_escaped = !escaped,
                b'"' if !escaped => strings.in_string = !strings.in_string,
                b'{' | b'[' if !strings.in_string => opening |= 1 << at,
                b'}' | b']' if !strings.in_string => closing |= 1 << at,
                b',' if !strings.in_string => commas |= 1 << at,
                _ => {}
            }
        }
        (opening, closing, commas)
    }

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            Just(b'"'),
            Just(b'\\'),
            Just(b'{'),
            Just(b'}'),
            Just(b'['),
            Just(b']'),
            Just(b','),
            any::<u8>()
        ];
        prop::collection::vec(byte, 0..=BLOCK_BYTES)
    }

    proptest! {
        #[test]
        fn a_block_finds_what_reading_byte_by_byte_finds(pieces in prop::collection::vec(piece(), 1..6)) {
            let (mut fast, mut slow) = (StringState::default(), StringState::default());
            for piece in pieces {
                let (block, commas) = Block::with_commas(&piece, &mut fast);
                prop_assert_eq!((block.opening, block.closing, commas), naive(&piece, &mut slow));
                prop_assert_eq!(fast, slow);
            }
        }
    }
}
