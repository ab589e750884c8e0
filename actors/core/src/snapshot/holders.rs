//! Which sources hold an object, and how often it was rewound. Two objects of a key are equal if life, version and
//! count of rewinds are, whatever their addresses.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::meta::{Object, SourceId};
use crate::tree::{Item, Sources};

pub(crate) struct Held<S> {
    object: Object<S>,
    /// `None`: never rewound, and held only by the source that brought it. Many objects share one.
    more: Option<Arc<More>>,
    fingerprint: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct More {
    /// The map's count of rewinds when a source of the object was last rewound, or when this life came in.
    rewinds: u32,
    /// Empty: only the source that brought it.
    holders: Vec<SourceId>,
}

/// The last [`More`] that was made, for reuse.
pub(super) type Recent = Option<Arc<More>>;

impl<S> Held<S> {
    pub(super) fn new(object: Object<S>, source: &SourceId, rewinds: u32, recent: &mut Recent) -> Self {
        let holders = if object.source() == source { Vec::new() } else { vec![source.clone()] };
        Self::with(object, rewinds, holders, recent)
    }

    /// The holders stay.
    pub(super) fn followed_by(
        &self,
        object: Object<S>,
        source: &SourceId,
        rewinds: u32,
        recent: &mut Recent,
    ) -> Self {
        if self.holders() == std::slice::from_ref(source) {
            return Self::new(object, source, rewinds, recent);
        }
        let mut holders = self.holders().to_vec();
        if !holders.contains(source) {
            holders.push(source.clone());
        }
        Self::with(object, rewinds, holders, recent)
    }

    pub(super) fn without(&self, source: &SourceId, recent: &mut Recent) -> Option<Self> {
        let others = self.holders().iter().filter(|holder| *holder != source);
        let others: Vec<SourceId> = others.cloned().collect();
        (!others.is_empty()).then(|| Self::with(self.object.clone(), self.rewinds(), others, recent))
    }

    fn with(object: Object<S>, rewinds: u32, mut holders: Vec<SourceId>, recent: &mut Recent) -> Self {
        if matches!(holders.as_slice(), [only] if only == object.source()) {
            holders.clear();
        }
        let (more, fingerprint) = (More { rewinds, holders }, fingerprint_of(object.key().name()));
        if more.rewinds == 0 && more.holders.is_empty() {
            return Self { object, more: None, fingerprint };
        }
        if recent.as_deref() != Some(&more) {
            *recent = Some(Arc::new(more));
        }
        Self { object, more: recent.clone(), fingerprint }
    }

    pub(crate) fn object(&self) -> &Object<S> {
        &self.object
    }

    pub(super) fn into_object(self) -> Object<S> {
        self.object
    }

    pub(crate) fn rewinds(&self) -> u32 {
        self.more.as_ref().map_or(0, |more| more.rewinds)
    }

    pub(crate) fn holders(&self) -> &[SourceId] {
        match &self.more {
            Some(more) if !more.holders.is_empty() => &more.holders,
            _ => std::slice::from_ref(self.object.source()),
        }
    }

    pub(crate) fn is_held_by(&self, source: &SourceId) -> bool {
        self.holders().contains(source)
    }

    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.rewinds() == other.rewinds()
            && (self.object.ptr_eq(&other.object) || self.object.is_same_as(&other.object))
    }
}

/// Eight bytes at a time. A collision costs one comparison.
fn fingerprint_of(name: &str) -> u32 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(ODD);
    let (words, rest) = name.as_bytes().as_chunks::<8>();
    let hash = words.iter().fold(name.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let rest = rest.iter().rfold(0, |word, byte| (word << 8) | u64::from(*byte));
    (mix(hash, rest) >> 32) as u32
}

impl<S> Item for Held<S> {
    type Name = Arc<str>;
    type Query<'q> = &'q str;

    fn name(&self) -> &Arc<str> {
        self.object.key().shared_name()
    }

    fn order(name: &Arc<str>, query: &str) -> Ordering {
        (**name).cmp(query)
    }

    fn compare(one: &Self, other: &Self) -> Ordering {
        one.name().cmp(other.name())
    }

    fn fingerprint_of(name: &str) -> Option<u32> {
        Some(fingerprint_of(name))
    }

    fn fingerprint(&self) -> Option<u32> {
        Some(self.fingerprint)
    }

    fn sources(&self) -> Sources {
        self.holders().iter().map(Sources::of).fold(Sources::NONE, Sources::and)
    }
}

crate::clone_of!([S] Held<S> { object, more, fingerprint });
