//! Which events a subscriber asked for: filters of objects and of changes. Invariants:
//! 1. An object that begins to pass is `Added`, one that stops is `Deleted` (cause [`Cause::LeftFilter`]), one that
//!    passes before and after is `Updated`.
//! 2. Its two states alone decide a change, so the answer is the same for a live change, a cursor and a gap.
//! 3. A predicate that panics counts as "yes": no object is missing for that reason.

use std::any::Any;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::Backlog;
use crate::delta::{Cause, Change};
use crate::meta::{Object, ObjectKey};

/// Runs on the informer's thread, several times for a state: it must not block, and must return the same answer for
/// it.
type ObjectPredicate<S> = Arc<dyn Fn(&Object<S>) -> bool + Send + Sync>;

type ChangePredicate<S> = Arc<dyn Fn(&Object<S>, &Object<S>) -> bool + Send + Sync>;

type OnPanic = Arc<dyn Fn(&ObjectKey, Box<dyn Any + Send>) + Send + Sync>;

/// Which updates are delivered: those that change something of interest. Cloning copies a pointer.
///
/// It drops `Updated` alone: every object is `Added` and `Deleted` as without it. A resync is judged like
/// every update, with the same state as old and new, as in controller-runtime: filters of values drop it.
///
/// ```
/// # use informer_core::face as actix_informer;
/// use actix_informer::subscription::ChangeFilter;
/// # use actix_informer::object::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
/// # let text = |version, body: &str| {
/// #     let version = ResourceVersion::from_number(version).expect("not zero");
/// #     Object::new(Meta::new(ObjectKey::cluster("text"), version, SourceId::default()), body.to_owned())
/// # };
/// let length_or_start = ChangeFilter::<String>::of(|text| text.len())
///     .or(ChangeFilter::<String>::between(|old, new| old.chars().next() != new.chars().next()));
/// assert!(!length_or_start.passes(&text(1, "one"), &text(2, "old")));
/// assert!(length_or_start.passes(&text(2, "old"), &text(3, "older")));
/// ```
pub struct ChangeFilter<S>(ChangePredicate<S>);

impl<S: 'static> ChangeFilter<S> {
    /// The updates that change this value: the one of the new state differs from that of the state before it.
    ///
    /// All updates that were dropped since the last delivered one left the value as it was. So the value of
    /// the state that was delivered last is always that of the newest state, once nothing waits: nothing is
    /// hidden, however much is coalesced. (A value that changes and changes back before it is delivered may
    /// be delivered or not.) That holds for one filter and for filters joined with [`Self::or`], not for
    /// several that have to pass all.
    pub fn of<V: PartialEq>(value: impl Fn(&Object<S>) -> V + Send + Sync + 'static) -> Self {
        Self::between(move |old, new| value(old) != value(new))
    }

    /// The updates for which this holds, given the old and the new state: those of one change of the store,
    /// or, over a gap (a list, a restart, what happened before a cursor got there), those at its two ends.
    ///
    /// The old state is the store's, which was not delivered if its update was dropped. So a condition such
    /// as "ten more than before" does not see what grows one by one: compare values with [`Self::of`] where
    /// possible, and borrow here where a value would have to be cloned (`|old, new| old.spec != new.spec`).
    pub fn between(is_change: impl Fn(&Object<S>, &Object<S>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_change))
    }

    /// Whether an update from `old` to `new` passes. It panics if the user's function does.
    pub fn passes(&self, old: &Object<S>, new: &Object<S>) -> bool {
        (self.0)(old, new)
    }

    /// What passes either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::between(move |old, new| self.passes(old, new) || other.passes(old, new))
    }
}

crate::clone_of!([S] ChangeFilter<S>);

crate::debug_as!([S] ChangeFilter<S>, self);

/// Everything that one subscriber asked for. Several filters all have to pass.
///
/// ```
/// # use informer_core::listener::Filter;
/// let long = Filter::<String>::default().objects(|text| text.len() > 100);
/// assert!(!long.is_empty() && Filter::<String>::default().is_empty());
/// ```
pub struct Filter<S> {
    objects: Vec<ObjectPredicate<S>>,
    changes: Vec<ChangeFilter<S>>,
    on_panic: Option<OnPanic>,
}

impl<S> Filter<S> {
    /// Also requires this of objects.
    #[must_use]
    pub fn objects(mut self, passes: impl Fn(&Object<S>) -> bool + Send + Sync + 'static) -> Self {
        self.objects.push(Arc::new(passes));
        self
    }

    /// Also requires updates to pass this.
    #[must_use]
    pub fn changes(mut self, changes: ChangeFilter<S>) -> Self {
        self.changes.push(changes);
        self
    }

    /// Calls `hear` for each panic of a predicate. Without it the payload is dropped.
    #[must_use]
    pub fn on_panic(
        mut self,
        hear: impl Fn(&ObjectKey, Box<dyn Any + Send>) + Send + Sync + 'static,
    ) -> Self {
        self.on_panic = Some(Arc::new(hear));
        self
    }

    /// Whether everything passes.
    pub const fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.changes.is_empty()
    }

    pub(super) fn judge<'c>(&self, change: &'c Change<S>) -> Judged<'c, S> {
        match change {
            Change::Added { object: subject, .. } | Change::Deleted { old: subject, .. } => {
                if self.passes(subject) { Judged::As(Cow::Borrowed(change)) } else { Judged::Nothing }
            }
            Change::Updated { old, object, cause } => match (self.passes(old), self.passes(object)) {
                (false, false) => Judged::Nothing,
                (false, true) => {
                    Judged::As(Cow::Owned(Change::Added { object: object.clone(), cause: *cause }))
                }
                (true, false) => Judged::As(Cow::Owned(Change::Deleted {
                    old: old.clone(),
                    last: old.clone(),
                    exact: false,
                    cause: Cause::LeftFilter,
                })),
                (true, true) if self.is_asked_for(old, object) => Judged::As(Cow::Borrowed(change)),
                (true, true) => Judged::Unasked,
            },
        }
    }

    fn passes(&self, object: &Object<S>) -> bool {
        self.objects.iter().all(|passes| self.guarded(object, || passes(object)))
    }

    fn is_asked_for(&self, old: &Object<S>, object: &Object<S>) -> bool {
        self.changes.iter().all(|changes| self.guarded(object, || (changes.0)(old, object)))
    }

    fn guarded(&self, object: &Object<S>, ask: impl FnOnce() -> bool) -> bool {
        catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|panic| {
            if let Some(hear) = &self.on_panic {
                hear(object.key(), panic);
            }
            true
        })
    }
}

impl<S> Default for Filter<S> {
    fn default() -> Self {
        Self { objects: Vec::new(), changes: Vec::new(), on_panic: None }
    }
}

crate::clone_of!([S] Filter<S> { objects, changes, on_panic });

crate::debug_as!([S] Filter<S>, self, objects = self.objects.len(), changes = self.changes.len());

pub(super) struct Filtering<S> {
    pub(super) filter: Arc<Filter<S>>,
    pub(super) dropped: u64,
}

pub(super) enum Judged<'c, S> {
    As(Cow<'c, Change<S>>),
    /// No event, but its object passes before and after: an event that waits may carry the newer state.
    Unasked,
    Nothing,
}

impl<S> Judged<'_, S> {
    pub(super) fn of<'c>(change: &'c Change<S>, filter: Option<&Filter<S>>) -> Judged<'c, S> {
        filter.map_or(Judged::As(Cow::Borrowed(change)), |filter| filter.judge(change))
    }
}

impl<S> Backlog<S> {
    pub(super) fn count_filtered(&mut self, changes: u64) {
        if let Some(filtering) = &mut self.filter {
            filtering.dropped += changes;
        }
    }

    /// A dropped change joins an event that waits.
    pub(super) fn uncount_filtered(&mut self) {
        if let Some(filtering) = &mut self.filter {
            filtering.dropped = filtering.dropped.saturating_sub(1);
        }
    }
}
