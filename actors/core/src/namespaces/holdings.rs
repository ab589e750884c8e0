//! What is known of the namespaces of a cluster-wide source.
//!
//! 1. A namespace counts as listed only when a list that kept it is published, and while it is asked for since.
//! 2. What a list keeps counts as held already before its delivery: who leaves the source must not take it away.

use super::Names;

/// The namespaces of one cluster-wide source. It outlives the source's reflector.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holdings {
    asked: Names,
    listed: Option<Names>,
    held: Names,
    is_settled: bool,
}

impl Holdings {
    /// The first list keeps these.
    pub fn new(asked: Names) -> Self {
        Self { asked, ..Self::default() }
    }

    /// What the next list keeps.
    pub fn asked(&self) -> &Names {
        &self.asked
    }

    /// The namespaces of which the source has published all objects; `None` before its first list.
    pub fn listed(&self) -> Option<&Names> {
        self.listed.as_ref()
    }

    /// The namespaces of which the store may have objects by the source, now or when what was delivered is published.
    pub fn held(&self) -> &Names {
        &self.held
    }

    /// Whether the store has all that is asked for of the source, and nothing else.
    pub fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// Others are asked for.
    pub fn handle_asked(&mut self, asked: Names) {
        self.listed = self.listed.take().map(|listed| intersection(&listed, &asked));
        (self.asked, self.is_settled) = (asked, false);
    }

    /// A list that keeps these is about to be delivered.
    pub fn handle_delivery(&mut self, kept: &Names) {
        self.held = Names::new(self.held.union(kept).cloned().collect());
    }

    /// The store has exactly the objects of these. Returns whether that settles what was asked for.
    pub fn handle_settled(&mut self, kept: &Names) -> bool {
        let was_settled = self.is_settled;
        (self.listed, self.held) = (Some(intersection(kept, &self.asked)), Names::clone(kept));
        self.is_settled = *kept == self.asked;
        self.is_settled && !was_settled
    }
}

fn intersection(one: &Names, other: &Names) -> Names {
    if one == other {
        return Names::clone(one);
    }
    Names::new(one.intersection(other).cloned().collect())
}
