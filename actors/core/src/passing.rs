//! What one receiver gets of what a source brings, where the store keeps the same objects without bodies.
//!
//! 1. The receiver has what is ahead of the store, and of other keys what the store has published. By both it is decided
//!    whether a state or a deletion is older than what the receiver has, whether another life of its key has ended, and
//!    what is gone when a list is whole.
//! 2. What is sent is ahead from then on, and no moment earlier: what an actor's end has dropped comes again. It stays
//!    ahead until exactly this state is published; after a rewind the store may show an older one.
//! 3. A step looks at as much of what is ahead as the caller says.
//!
//! `deciding.rs`: what is sent of what comes. Here: what the receiver has, and what a whole list shows to be gone.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

use crate::meta::{Object, ObjectKey, ResourceVersion, Undecodable};
use crate::snapshot::Snapshot;

mod deciding;
#[cfg(test)]
mod tests;

pub use deciding::Deciding;

/// For each part that is sent, so many entries are looked at: what is published leaves faster than new ones come.
const LOOKED: usize = 2;

/// What a source has brought. `S` is the body: a `Passed`.
#[derive(Debug)]
#[non_exhaustive]
pub enum PassedPart<S> {
    /// The object is there, in this state. It may come again.
    Applied(Object<S>),
    /// The object of this uid is gone. It has a body if the server has sent its last state.
    Deleted(Object<S>),
    /// An object is there that does not decode.
    Undecodable(Undecodable),
    /// An object is gone whose last state does not decode.
    DeletedUndecodable(Undecodable),
    /// A whole list of this version has been passed on. What is gone was passed on before it. Objects that the receiver has
    /// from before the informer began are gone if they were not passed on before the first `Listed`.
    Listed(ResourceVersion),
}

/// What the receiver has, and the store not yet: what of a list was sent that is not whole, and what is still on its way to
/// the store. By it nothing is sent twice after a list that failed, and what is gone since is told.
pub struct Ahead<S> {
    held: BTreeMap<Place, Held<S>>,
    /// The last one that was looked at.
    looked: Option<Place>,
    /// Of everything that was sent since the server was last restored.
    newest: Option<ResourceVersion>,
    /// Something of a list after a rewind was sent, and no whole list is published since: the store has the former history.
    is_rewound: bool,
}

/// An undecodable state has its own place, because the receiver keeps the object that it had.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    key: ObjectKey,
    is_undecodable: bool,
}

/// What the receiver has of one key.
enum Held<S> {
    Object(Object<S>),
    /// A state of the history before a rewind. Any present state is newer, whatever its version.
    Former(Object<S>),
    Unread(Undecodable),
}

/// Something to be sent, and what the receiver has then.
pub struct Outgoing<S> {
    /// What is sent.
    pub part: PassedPart<S>,
    /// For [`Ahead::sent`], when it is sent.
    pub means: Means<S>,
}

/// What the receiver has when a part is sent.
pub struct Means<S>(Meant<S>);

enum Meant<S> {
    Has(Held<S>),
    /// It was gone at this version.
    Gone(Held<S>, ResourceVersion),
    /// The receiver has this object of before a rewind, whose present state does not decode.
    Rewound(Object<S>, Undecodable),
    Whole(ResourceVersion),
}

/// A whole list, or one that goes on.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// Whether it has this key.
    pub lists: &'a dyn Fn(&ObjectKey) -> bool,
    /// Its version.
    pub version: &'a ResourceVersion,
    /// It is the first one since the server was restored.
    pub is_rewind: bool,
}

impl<S> Ahead<S> {
    /// Of a receiver that has nothing.
    #[expect(clippy::new_without_default, reason = "its users say when it begins")]
    pub const fn new() -> Self {
        Self { held: BTreeMap::new(), looked: None, newest: None, is_rewound: false }
    }

    /// Something of a list after a rewind was sent, and no whole list is published since: an equal version in the store proves
    /// nothing.
    pub fn is_rewound(&self) -> bool {
        self.is_rewound
    }

    /// The newest version that was sent: a server that answers with an older one was restored.
    pub fn newest(&self) -> Option<&ResourceVersion> {
        self.newest.as_ref()
    }

    /// The list that was sent last is published.
    pub fn list_published(&mut self) {
        self.is_rewound = false;
    }

    /// These parts were sent, in this order. What of what is ahead is published leaves it, little by little.
    pub fn sent(
        &mut self,
        means: impl IntoIterator<Item = Means<S>>,
        is_rewind: bool,
        published: &Snapshot<S>,
    ) {
        self.is_rewound |= is_rewind;
        let mut count = 0;
        for Means(meant) in means {
            count += 1;
            match &meant {
                Meant::Has(_) | Meant::Gone(..) if is_rewind => {}
                Meant::Has(held) => self.reach(held.version()),
                Meant::Gone(_, at) => self.reach(at),
                Meant::Rewound(..) | Meant::Whole(_) => {}
            }
            match meant {
                Meant::Has(held) => self.note(held),
                Meant::Rewound(former, undecodable) => {
                    self.note(Held::Former(former));
                    self.note(Held::Unread(undecodable));
                }
                Meant::Gone(gone, _) => self.forget(&gone),
                Meant::Whole(version) if is_rewind => self.newest = Some(version),
                Meant::Whole(version) => self.reach(&version),
            }
        }
        let looked = self.looked.take();
        self.looked = self.settle_behind(looked.as_ref(), LOOKED * count + 1, published);
    }

    /// Of at most so many behind this place, those that are published leave; returns the place of the last one.
    pub fn settle_behind(
        &mut self,
        behind: Option<&Place>,
        most: usize,
        published: &Snapshot<S>,
    ) -> Option<Place> {
        let (mut settled, mut last) = (Vec::new(), None);
        for (place, held) in self.behind(behind).take(most) {
            if !self.is_rewound && held.is_published(published) {
                settled.push(place.clone());
            }
            last = Some(place);
        }
        let last = last.cloned();
        for place in settled {
            self.held.remove(&place);
        }
        last
    }

    /// Of at most so many behind this place, those that a whole list shows to be gone; and the place of the last one.
    pub fn gone_behind(
        &self,
        behind: Option<&Place>,
        most: usize,
        list: Shown<'_>,
    ) -> (Vec<Outgoing<S>>, Option<Place>) {
        let (mut gone, mut last) = (Vec::new(), None);
        for (place, held) in self.behind(behind).take(most) {
            if !(list.lists)(&place.key) {
                gone.push(gone_by(held.clone(), list));
            }
            last = Some(place);
        }
        (gone, last.cloned())
    }

    fn behind(&self, place: Option<&Place>) -> impl Iterator<Item = (&Place, &Held<S>)> {
        let from = place.map_or(Bound::Unbounded, Bound::Excluded);
        self.held.range((from, Bound::Unbounded))
    }

    fn object(&self, key: &ObjectKey) -> Option<&Held<S>> {
        self.held.get(&Place::object(key))
    }

    fn unread(&self, key: &ObjectKey) -> Option<&ResourceVersion> {
        self.held.get(&Place::undecodable(key)).map(Held::version)
    }

    fn reach(&mut self, version: &ResourceVersion) {
        if self.newest.as_ref().is_none_or(|newest| newest < version) {
            self.newest = Some(version.clone());
        }
    }

    fn note(&mut self, held: Held<S>) {
        if let Held::Object(object) = &held {
            self.held.remove(&Place::undecodable(object.key()));
        }
        self.held.insert(held.place(), held);
    }

    /// What is gone; of an object only this life of it.
    fn forget(&mut self, gone: &Held<S>) {
        let (place, unread) = (Place::object(gone.key()), Place::undecodable(gone.key()));
        let is_gone = match (self.held.get(&place), gone) {
            (Some(Held::Object(has) | Held::Former(has)), Held::Object(gone) | Held::Former(gone)) => {
                has.is_same_life_as(gone)
            }
            _ => true,
        };
        if is_gone {
            self.held.remove(&place);
        }
        if self.held.get(&unread).is_some_and(|unread| unread.version() <= gone.version()) {
            self.held.remove(&unread);
        }
    }
}

/// What a whole list shows to be gone of what is published: one answer for each that is looked at.
pub fn gone_of_published<'a, S>(
    published: &'a Snapshot<S>,
    list: Shown<'a>,
) -> impl Iterator<Item = Option<Outgoing<S>>> + use<'a, S> {
    let objects = published.iter().map(move |object| {
        let is_gone = !(list.lists)(object.key());
        is_gone.then(|| gone_by(Held::Object(object.clone()), list))
    });
    let undecodable = published.undecodable().map(move |undecodable| {
        let key = &undecodable.key;
        let is_gone = !(list.lists)(key) && !published.contains(key);
        is_gone.then(|| gone_by(Held::Unread(undecodable.clone()), list))
    });
    objects.chain(undecodable)
}

fn gone_by<S>(held: Held<S>, list: Shown<'_>) -> Outgoing<S> {
    let part = match held.clone() {
        Held::Object(object) | Held::Former(object) => PassedPart::Deleted(object),
        Held::Unread(undecodable) => PassedPart::DeletedUndecodable(undecodable),
    };
    Outgoing { part, means: Means(Meant::Gone(held, list.version.clone())) }
}

impl<S> Outgoing<S> {
    /// The end of a whole list of this version: everything of it was sent, and what is gone.
    pub fn listed(version: &ResourceVersion) -> Self {
        let means = Means(Meant::Whole(version.clone()));
        Self { part: PassedPart::Listed(version.clone()), means }
    }
}

impl Place {
    fn object(key: &ObjectKey) -> Self {
        Self { key: key.clone(), is_undecodable: false }
    }

    fn undecodable(key: &ObjectKey) -> Self {
        Self { key: key.clone(), is_undecodable: true }
    }
}

impl<S> Held<S> {
    fn key(&self) -> &ObjectKey {
        match self {
            Self::Object(object) | Self::Former(object) => object.key(),
            Self::Unread(undecodable) => &undecodable.key,
        }
    }

    fn version(&self) -> &ResourceVersion {
        match self {
            Self::Object(object) | Self::Former(object) => object.version(),
            Self::Unread(undecodable) => &undecodable.version,
        }
    }

    fn place(&self) -> Place {
        Place { key: self.key().clone(), is_undecodable: matches!(self, Self::Unread(_)) }
    }

    fn is_published(&self, published: &Snapshot<S>) -> bool {
        match self {
            Self::Object(object) => {
                published.get(object.key()).is_some_and(|stored| stored.is_same_as(object))
            }
            Self::Former(_) => false,
            Self::Unread(undecodable) => published
                .undecodable_of(&undecodable.key)
                .is_some_and(|stored| stored.version == undecodable.version),
        }
    }
}

impl<S> Clone for Held<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Object(object) => Self::Object(object.clone()),
            Self::Former(object) => Self::Former(object.clone()),
            Self::Unread(undecodable) => Self::Unread(undecodable.clone()),
        }
    }
}

crate::debug_as!([S] Ahead<S>, self, objects = self.held.len());
crate::debug_as!([S] Outgoing<S>, self, means = self.means);
crate::debug_as!([S] Means<S>, self);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shown({})", self.version)
    }
}
