//! 64 bytes of JSON at once, as sets of positions.
//!
//! Answers "where in these bytes do brackets stand that are not inside a string?" without looking at one byte after
//! the other: each comparison gives 64 bits, one for each byte. Invariants:
//! 1. Bit `n` of a set is byte `n`; a piece that is shorter than 64 bytes has no bits behind its end.
//! 2. What a piece leaves open, a string or a backslash, is in [`Strings`] and meant for the next.
//! 3. Outside of strings JSON has no backslash; there it hides a quote like inside, and the decoder refuses the text.
//!
//! Read next: `nest.rs`, which counts the brackets.

use wide::u8x16;

/// How many bytes are read at once.
pub(super) const LANES: usize = u64::BITS as usize;

/// What the bytes so far have left open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Strings {
    /// The next byte is in a string.
    inside: bool,
    /// The next byte stands behind a backslash.
    escaped: bool,
}

/// The brackets of up to 64 bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) opening: u64,
    pub(super) closing: u64,
}

impl Block {
    /// Reads at most [`LANES`] bytes.
    pub(super) fn new(piece: &[u8], strings: &mut Strings) -> Self {
        let mut padded = [b' '; LANES];
        let bytes = piece.try_into().unwrap_or_else(|_| {
            padded[..piece.len()].copy_from_slice(piece);
            &padded
        });
        let mut found = Found::default();
        for (number, lanes) in bytes.chunks_exact(16).enumerate() {
            found.note(lanes.try_into().expect("chunks of sixteen"), number as u32 * 16);
        }
        let escaped = escaped(found.backslashes, strings.escaped);
        let inside = odd_ones_so_far(found.quotes & !escaped) ^ if strings.inside { u64::MAX } else { 0 };
        // A full piece ends behind the last bit, where the carry of `escaped` has been pushed out.
        strings.escaped = match piece.len() {
            LANES => found.backslashes & !escaped & (1 << (LANES - 1)) != 0,
            length => escaped & (1 << length) != 0,
        };
        strings.inside = inside & (1 << (LANES - 1)) != 0;
        Self { opening: found.opening & !inside, closing: found.closing & !inside }
    }
}

#[derive(Default)]
struct Found {
    quotes: u64,
    backslashes: u64,
    opening: u64,
    closing: u64,
}

impl Found {
    fn note(&mut self, lanes: [u8; 16], at: u32) {
        let bytes = u8x16::new(lanes);
        // `[` and `{` differ in one bit, and so do `]` and `}`; no other byte becomes one of them by it.
        let folded = bytes | u8x16::splat(b'[' ^ b'{');
        let equal = |bytes: u8x16, byte| u64::from(bytes.cmp_eq(u8x16::splat(byte)).move_mask() as u16) << at;
        self.quotes |= equal(bytes, b'"');
        self.backslashes |= equal(bytes, b'\\');
        self.opening |= equal(folded, b'{');
        self.closing |= equal(folded, b'}');
    }
}

/// The bytes that stand behind a backslash which is not itself escaped.
fn escaped(backslashes: u64, first: bool) -> u64 {
    let mut escaped = u64::from(first);
    let mut escaping = backslashes & !escaped;
    while escaping != 0 {
        let next = (escaping & escaping.wrapping_neg()) << 1;
        escaped |= next;
        escaping &= (escaping - 1) & !next;
    }
    escaped
}

/// Bit `n` is set when an odd number of the bits `0..=n` are.
fn odd_ones_so_far(bits: u64) -> u64 {
    [1, 2, 4, 8, 16, 32].iter().fold(bits, |bits, shift| bits ^ (bits << shift))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same, one byte after the other.
    fn naive(bytes: &[u8], strings: &mut Strings) -> (u64, u64) {
        let (mut opening, mut closing) = (0, 0);
        for (at, byte) in bytes.iter().enumerate() {
            let escaped = std::mem::take(&mut strings.escaped);
            match byte {
                b'\\' => strings.escaped = !escaped,
                b'"' if !escaped => strings.inside = !strings.inside,
                b'{' | b'[' if !strings.inside => opening |= 1 << at,
                b'}' | b']' if !strings.inside => closing |= 1 << at,
                _ => {}
            }
        }
        (opening, closing)
    }

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let byte =
            prop_oneof![Just(b'"'), Just(b'\\'), Just(b'{'), Just(b'}'), Just(b'['), Just(b']'), any::<u8>()];
        prop::collection::vec(byte, 0..=LANES)
    }

    proptest! {
        #[test]
        fn a_block_finds_what_reading_byte_by_byte_finds(pieces in prop::collection::vec(piece(), 1..6)) {
            let (mut fast, mut slow) = (Strings::default(), Strings::default());
            for piece in pieces {
                let block = Block::new(&piece, &mut fast);
                let (opening, closing) = naive(&piece, &mut slow);
                prop_assert_eq!((block.opening, block.closing), (opening, closing));
                prop_assert_eq!(fast, slow);
            }
        }
    }
}
