//! What is sent of what a list or a watch brings. A page is decided part by part, and sent when it is whole: the store may
//! publish in between.

use super::{Ahead, Held, Means, Meant, Outgoing, PassedPart};
use crate::delta::{ListPart, WatchPart};
use crate::meta::{Object, ObjectKey, ResourceVersion, Undecodable};
use crate::snapshot::Snapshot;

/// Decides what is sent of what comes.
pub struct Deciding<'a, S> {
    /// What the receiver has and the store not.
    pub ahead: &'a Ahead<S>,
    /// What the store has.
    pub published: &'a Snapshot<S>,
    /// A list after the server was restored comes.
    pub is_rewind: bool,
    /// The same object as the store keeps it; `None` if it has no body.
    pub without_body: &'a dyn Fn(&Object<S>) -> Option<Object<S>>,
    /// In order.
    pub outgoing: &'a mut Vec<Outgoing<S>>,
    /// What is not sent, for the caller to drop: a body may run code of others then.
    pub left: &'a mut Vec<Object<S>>,
}

impl<S> Deciding<'_, S> {
    /// A piece of a list, as the store gets it.
    pub fn listed(&mut self, part: ListPart<S>) -> ListPart<S> {
        match part {
            ListPart::Objects(objects) => {
                ListPart::Objects(objects.into_iter().map(|object| self.applied(object, true)).collect())
            }
            ListPart::Undecodable(undecodable) => {
                self.undecodable(&undecodable);
                ListPart::Undecodable(undecodable)
            }
            other => other,
        }
    }

    /// A piece of a watch, as the store gets it.
    pub fn watched(&mut self, part: WatchPart<S>) -> WatchPart<S> {
        match part {
            WatchPart::Applied(object) => WatchPart::Applied(self.applied(object, false)),
            WatchPart::Fetched(object) => WatchPart::Fetched(self.applied(object, false)),
            WatchPart::Deleted(last) => {
                let kept = (self.without_body)(&last).unwrap_or_else(|| last.clone());
                self.gone(PassedPart::Deleted(last), Held::Object(kept.clone()));
                WatchPart::Deleted(kept)
            }
            WatchPart::Undecodable(undecodable) => {
                self.undecodable(&undecodable);
                WatchPart::Undecodable(undecodable)
            }
            WatchPart::DeletedUndecodable(undecodable) => {
                let part = PassedPart::DeletedUndecodable(undecodable.clone());
                self.gone(part, Held::Unread(undecodable.clone()));
                WatchPart::DeletedUndecodable(undecodable)
            }
            other => other,
        }
    }

    /// The object of this key that the receiver has. All that was sent of the present history is at most the newest.
    fn has(&self, key: &ObjectKey) -> Option<Held<S>> {
        let of_store = |object: Object<S>| match self.ahead.is_rewound
            || self.ahead.newest().is_none_or(|newest| newest < object.version())
        {
            true => Held::Former(object),
            false => Held::Object(object),
        };
        self.ahead.object(key).cloned().or_else(|| self.published.get(key).cloned().map(of_store))
    }

    /// Whether the receiver has a state of this key of which this version is an older one; of `life`, if it is given.
    fn has_newer(&self, key: &ObjectKey, version: &ResourceVersion, life: Option<&Object<S>>) -> bool {
        let is_newer = match self.has(key) {
            Some(Held::Object(has)) => {
                life.is_none_or(|life| has.is_same_life_as(life)) && has.version() > version
            }
            _ => false,
        };
        !self.is_rewind && (is_newer || self.ahead.unread(key).is_some_and(|unread| unread > version))
    }

    /// An object without a body is known: the receiver has it. A list is as new as all that was sent, unless the server was
    /// restored: so the state in the list counts. A watch may be behind a single object that was asked for.
    fn applied(&mut self, object: Object<S>, is_listed: bool) -> Object<S> {
        let Some(kept) = (self.without_body)(&object) else { return object };
        if let Some(Held::Object(has)) = self.has(object.key())
            && ((!self.is_rewind && has.is_same_as(&object))
                || (!is_listed && has.version() > object.version()))
        {
            self.left.push(object);
            return kept;
        }
        self.end_another_life(&object);
        self.push(PassedPart::Applied(object), Meant::Has(Held::Object(kept.clone())));
        kept
    }

    fn undecodable(&mut self, undecodable: &Undecodable) {
        let (key, version) = (&undecodable.key, &undecodable.version);
        let stored = || self.published.undecodable_of(key).map(|stored| &stored.version);
        let is_told = self.ahead.unread(key).or_else(stored) == Some(version);
        if (is_told && !self.is_rewind && !self.ahead.is_rewound) || self.has_newer(key, version, None) {
            return;
        }
        let meant = match self.has(key).filter(|_| self.is_rewind) {
            Some(Held::Object(former) | Held::Former(former)) => Meant::Rewound(former, undecodable.clone()),
            _ => Meant::Has(Held::Unread(undecodable.clone())),
        };
        self.push(PassedPart::Undecodable(undecodable.clone()), meant);
    }

    /// By a watch. A deletion that is older than what the receiver has of this life came late.
    fn gone(&mut self, part: PassedPart<S>, gone: Held<S>) {
        let life = match &gone {
            Held::Object(last) => Some(last),
            _ => None,
        };
        if self.has_newer(gone.key(), gone.version(), life) {
            return;
        }
        if let Held::Object(last) = &gone {
            self.end_another_life(last);
        }
        let at = gone.version().clone();
        self.push(part, Meant::Gone(gone, at));
    }

    /// The receiver may have an older life of this key, of whose end nothing has come.
    fn end_another_life(&mut self, of: &Object<S>) {
        let former = match self.has(of.key()) {
            Some(Held::Object(has)) if self.is_rewind || has.version() < of.version() => has,
            Some(Held::Former(has)) => has,
            _ => return,
        };
        if !former.is_same_life_as(of) {
            let at = of.version().clone();
            self.push(PassedPart::Deleted(former.clone()), Meant::Gone(Held::Object(former), at));
        }
    }

    fn push(&mut self, part: PassedPart<S>, meant: Meant<S>) {
        self.outgoing.push(Outgoing { part, means: Means(meant) });
    }
}

crate::debug_as!([S] Deciding<'_, S>, self, is_rewind = self.is_rewind);
