//! Seeded random numbers: uids and generated names come from here, so a seed repeats a run exactly.
//!
//! Answers: what is the next uid, the next name suffix? It reads no entropy; the builder provides a seed.
//! 1. Equal seeds give equal sequences.
//! 2. A uid is a well-formed version 4 UUID.
//!
//! Not for secrets: SplitMix64 is small and predictable, which is the point here.

/// The letters a generated name may end in: no vowels and nothing that looks like another letter.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound` (the slight bias of the remainder does not matter here).
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        let time = high >> 32;
        let middle = (high >> 16) & 0xffff;
        let version = (high & 0x0fff) | 0x4000;
        let variant = ((low >> 48) & 0x3fff) | 0x8000;
        format!("{time:08x}-{middle:04x}-{version:04x}-{variant:04x}-{:012x}", low & 0xffff_ffff_ffff)
    }

    /// Five characters for `generateName`.
    pub(crate) fn suffix(&mut self) -> String {
        (0..5).map(|_| char::from(ALPHABET[self.below(27) as usize])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_uids_of_version_four() {
        let (mut one, mut other) = (Rng::new(7), Rng::new(7));
        for _ in 0..100 {
            let uid = one.uid();
            assert_eq!(uid, other.uid());
            let parts: Vec<usize> = uid.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12]);
            assert_eq!(&uid[14..15], "4");
            assert!("89ab".contains(&uid[19..20]), "{uid}");
        }
    }
}
