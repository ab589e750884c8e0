//! The priorities of keys in a work queue.
//!
//! Answers "which keys go first?". How the classes share is decided in `lines.rs`.

/// How urgent a key is. A key of a lower class waits while keys of higher classes do, but not for ever: while a key
/// of a class waits, at least one of nine keys that are handed out is of that class.
///
/// Ordered: `Low < Normal < High`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an array is kept by it, and who shows the classes shows them all"
)]
pub enum Priority {
    /// Work that can wait: the first list of an informer, and its resyncs.
    Low,
    /// Everything else.
    #[default]
    Normal,
    /// Work that a person or another system waits for.
    High,
}

impl Priority {
    /// All of them, the most urgent first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];
}
