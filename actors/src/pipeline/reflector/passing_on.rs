//! Passes on what a source brings, before the store gets it without bodies (`../../runtime/passing.rs`).
//!
//! 1. What a watch brings is passed on when it is delivered: in the order and the extent in which the store gets it.
//! 2. What a list brings is passed on page by page, so that a slow receiver delays the next request and not an answer.
//! 3. The receiver has what is ahead, and of other keys what is published. By both it is decided whether a state or a
//!    deletion is older than what the receiver has, whether another life of its key has ended, and what is gone when a
//!    list is whole.
//! 4. What is sent is ahead from then on, and no moment earlier: what an actor's end has dropped comes again. It stays
//!    ahead until this very state is published: after a rewind an older one is.

use std::collections::HashSet;
use std::mem;
use std::task::Poll;

use actix::dev::OneshotSender;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, poll};
use informer_core::delta::{Cause, ListPart, Replacement, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey, ResourceVersion, Undecodable};

use super::ReflectorSpec;
use super::happened::Happened;
use crate::pipeline::messages::Body;
use crate::pipeline::published::Published;
use crate::runtime::mailbox::answer;
use crate::runtime::{Held, PassedPart, PassesOn, ReceiverGone};

const SLICE: usize = 250;
/// So much is sent at once.
const SENT: usize = 100;
/// Of what is ahead, so much is looked at for each part that is sent: so half of it is on its way at most.
const LOOKED: usize = 2;

/// What came, as the store gets it. What a list brings is sent at the end of its page; in a rewind, all of it. An error, if
/// the receiver is gone.
pub(super) async fn came<S: Body>(
    spec: &ReflectorSpec<S>,
    under_way: &mut UnderWay<S>,
    is_rewind: bool,
    happened: Happened<S>,
) -> Happened<S> {
    let Some(mut passing_on) = PassingOn::of(spec, is_rewind) else { return happened };
    let gone = || ListWatchError::source("the receiver of what is passed on was dropped");
    match happened {
        Happened::Listed(Some(Ok(_))) if passing_on.pass.is_gone() => Happened::Listed(Some(Err(gone()))),
        Happened::Watched(stream, Some(Ok(parts))) if !parts.is_empty() && passing_on.pass.is_gone() => {
            Happened::Watched(stream, Some(Err(gone())))
        }
        Happened::Listed(Some(Ok(part))) => {
            passing_on.parts = mem::take(&mut under_way.page);
            let part = passing_on.listed(part);
            if matches!(part, ListPart::End { .. }) {
                passing_on.send().await;
            }
            under_way.page = passing_on.parts;
            Happened::Listed(Some(Ok(part)))
        }
        other => other,
    }
}

/// What a watch has brought, as the store gets it.
pub(super) async fn delta<S: Body>(spec: &ReflectorSpec<S>, parts: Vec<WatchPart<S>>) -> Vec<WatchPart<S>> {
    let Some(mut passing_on) = PassingOn::of(spec, false) else { return parts };
    let parts = parts.into_iter().map(|part| passing_on.watched(part)).collect();
    passing_on.send().await;
    parts
}

/// No list may be older: the receiver has had newer states.
pub(super) fn newest<S: Body>(spec: &ReflectorSpec<S>) -> Option<ResourceVersion> {
    spec.pass.as_ref()?.ahead().with(|ahead| ahead.newest())
}

/// Before the store gets a list: passes on what the list shows to be gone, and that it is whole. Returns what is to be
/// answered when the list is published.
pub(super) async fn ends<S: Body>(
    spec: &ReflectorSpec<S>,
    under_way: &mut UnderWay<S>,
    list: &Replacement<S>,
) -> Option<OneshotSender<()>> {
    PassingOn::of(spec, list.cause == Cause::Rewind)?.list_ends(list).await;
    let ((published, is_published), spec) = (answer(), spec.clone());
    let settling = async move {
        if is_published.await.is_ok() {
            settle(&spec).await;
        }
    };
    under_way.settling = Some(settling.boxed_local());
    Some(published)
}

/// Of one session.
pub(super) struct UnderWay<S> {
    /// To be sent at the end of the page.
    pub(super) page: Vec<Outgoing<S>>,
    /// Until the last list is published, and nothing of it is ahead any more.
    pub(super) settling: Option<LocalBoxFuture<'static, ()>>,
}

impl<S> UnderWay<S> {
    pub(super) const fn new() -> Self {
        Self { page: Vec::new(), settling: None }
    }
}

/// Something to be sent, and what it means for what is ahead.
pub(super) struct Outgoing<S> {
    part: PassedPart<S>,
    means: Means<S>,
}

enum Means<S> {
    Has(Held<S>),
    Gone(Held<S>),
    /// The receiver has this object of before, whose present state does not decode.
    Rewound(Object<S>, Undecodable),
    Whole(ResourceVersion),
}

/// Where one source passes on what it brings.
struct PassingOn<'a, S: Body> {
    spec: &'a ReflectorSpec<S>,
    pass: &'a dyn PassesOn<S>,
    is_rewind: bool,
    parts: Vec<Outgoing<S>>,
}

impl<'a, S: Body> PassingOn<'a, S> {
    /// `None` if it keeps what it brings.
    fn of(spec: &'a ReflectorSpec<S>, is_rewind: bool) -> Option<Self> {
        Some(Self { spec, pass: &**spec.pass.as_ref()?, is_rewind, parts: Vec::new() })
    }

    fn listed(&mut self, part: ListPart<S>) -> ListPart<S> {
        match part {
            ListPart::Objects(objects) => {
                ListPart::Objects(objects.into_iter().map(|object| self.applied(object, true)).collect())
            }
            ListPart::Undecodable(undecodable) => {
                self.unread(&undecodable);
                ListPart::Undecodable(undecodable)
            }
            other => other,
        }
    }

    fn watched(&mut self, part: WatchPart<S>) -> WatchPart<S> {
        match part {
            WatchPart::Applied(object) => WatchPart::Applied(self.applied(object, false)),
            WatchPart::Fetched(object) => WatchPart::Fetched(self.applied(object, false)),
            WatchPart::Deleted(last) => {
                let kept = self.pass.without_body(&last).unwrap_or_else(|| last.clone());
                self.gone(PassedPart::Deleted(last), Held::Object(kept.clone()));
                WatchPart::Deleted(kept)
            }
            WatchPart::Undecodable(undecodable) => {
                self.unread(&undecodable);
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

    /// The object of this key that the receiver has. Until a list after a rewind is published, the store has the former
    /// history.
    fn has(&self, key: &ObjectKey) -> Option<Held<S>> {
        let (ahead, is_former) = self.pass.ahead().with(|ahead| (ahead.object(key), ahead.is_rewound()));
        let held = if is_former { Held::Former } else { Held::Object };
        ahead.or_else(|| self.spec.shared.published.get(key).map(held))
    }

    /// Whether the receiver has a state of this key of which this version is an older one; of `life`, if it is given.
    fn has_newer(&self, key: &ObjectKey, version: &ResourceVersion, life: Option<&Object<S>>) -> bool {
        let unread = self.pass.ahead().with(|ahead| ahead.unread(key));
        let is_newer = match self.has(key) {
            Some(Held::Object(has)) => {
                life.is_none_or(|life| has.is_same_life_as(life)) && has.version() > version
            }
            _ => false,
        };
        !self.is_rewind && (is_newer || unread.is_some_and(|unread| unread > *version))
    }

    /// An object without a body is known: the receiver has it. A list is as new as all that was sent, unless the server was
    /// restored: so what it has counts. A watch may be behind a single object that was asked for.
    fn applied(&mut self, object: Object<S>, is_listed: bool) -> Object<S> {
        let Some(kept) = self.pass.without_body(&object) else { return object };
        match self.has(object.key()) {
            Some(Held::Object(has)) if !self.is_rewind && has.is_same_as(&object) => return kept,
            Some(Held::Object(has)) if !is_listed && has.version() > object.version() => return kept,
            Some(Held::Object(former) | Held::Former(former)) if !former.is_same_life_as(&object) => {
                self.push(PassedPart::Deleted(former.clone()), Means::Gone(Held::Object(former)));
            }
            _ => {}
        }
        self.push(PassedPart::Applied(object), Means::Has(Held::Object(kept.clone())));
        kept
    }

    fn unread(&mut self, undecodable: &Undecodable) {
        let key = &undecodable.key;
        if self.has_newer(key, &undecodable.version, None) {
            return;
        }
        let means = match self.has(key).filter(|_| self.is_rewind) {
            Some(Held::Object(former) | Held::Former(former)) => Means::Rewound(former, undecodable.clone()),
            _ => Means::Has(Held::Unread(undecodable.clone())),
        };
        self.push(PassedPart::Undecodable(undecodable.clone()), means);
    }

    /// By a watch. A deletion that is older than what the receiver has of this life came late.
    fn gone(&mut self, part: PassedPart<S>, gone: Held<S>) {
        let life = match &gone {
            Held::Object(last) => Some(last),
            _ => None,
        };
        if !self.has_newer(gone.key(), gone.version(), life) {
            self.push(part, Means::Gone(gone));
        }
    }

    fn push(&mut self, part: PassedPart<S>, means: Means<S>) {
        self.parts.push(Outgoing { part, means });
    }

    /// What is ahead comes first: while this waits, it may be published, and then it would be in neither.
    async fn list_ends(mut self, list: &Replacement<S>) {
        let mut listed: HashSet<&ObjectKey> = HashSet::with_capacity(list.objects.len());
        let undecodable = list.undecodable.iter().map(|undecodable| &undecodable.key);
        for (number, key) in list.objects.iter().map(Object::key).chain(undecodable).enumerate() {
            listed.insert(key);
            turn(number).await;
        }
        let mut behind = None;
        loop {
            let ahead = self.pass.ahead().with(|ahead| ahead.behind(behind.as_ref(), SLICE));
            let Some(last) = ahead.last() else { break };
            behind = Some(last.place());
            for held in ahead.into_iter().filter(|held| !listed.contains(held.key())) {
                self.push_gone(held, list);
            }
            self.send_if_full().await;
            tokio::task::yield_now().await;
        }
        let before = self.spec.shared.published.snapshot();
        for (number, object) in before.iter().enumerate() {
            if !listed.contains(object.key()) {
                self.push_gone(Held::Object(object.clone()), list);
                self.send_if_full().await;
            }
            turn(number).await;
        }
        for (number, undecodable) in before.undecodable().enumerate() {
            if !listed.contains(&undecodable.key) && before.get(&undecodable.key).is_none() {
                self.push_gone(Held::Unread(undecodable.clone()), list);
                self.send_if_full().await;
            }
            turn(number).await;
        }
        self.push(PassedPart::Listed(list.version.clone()), Means::Whole(list.version.clone()));
        self.send().await;
    }

    /// Of a newer state than the list the watch brings the end, if it has one.
    fn push_gone(&mut self, held: Held<S>, list: &Replacement<S>) {
        if *held.version() > list.version && !self.is_rewind {
            return;
        }
        let part = match held.clone() {
            Held::Object(object) | Held::Former(object) => PassedPart::Deleted(object),
            Held::Unread(undecodable) => PassedPart::DeletedUndecodable(undecodable),
        };
        self.push(part, Means::Gone(held));
    }

    async fn send_if_full(&mut self) {
        if self.parts.len() >= SLICE {
            self.send().await;
        }
    }

    /// Nobody misses anything if the receiver is gone: it is so for ever, and the source fails by the next part.
    async fn send(&mut self) {
        let mut rest = mem::take(&mut self.parts).into_iter();
        loop {
            let (parts, means): (Vec<_>, Vec<_>) =
                rest.by_ref().take(SENT).map(|Outgoing { part, means }| (part, means)).unzip();
            if parts.is_empty() {
                return;
            }
            let mut sending = self.pass.send(parts);
            let sent = match poll!(&mut sending) {
                Poll::Ready(sent) => sent,
                Poll::Pending => {
                    let _shown = Waiting::new(self.spec);
                    sending.await
                }
            };
            if sent == Err(ReceiverGone) {
                return;
            }
            let count = means.len();
            let looked = self.pass.ahead().with(|ahead| {
                for means in means {
                    match means {
                        Means::Has(held) => {
                            if !self.is_rewind {
                                ahead.reach(held.version(), false);
                            }
                            ahead.note(held);
                        }
                        Means::Rewound(former, undecodable) => {
                            ahead.note(Held::Former(former));
                            ahead.note(Held::Unread(undecodable));
                        }
                        Means::Gone(held) => ahead.forget(&held),
                        Means::Whole(version) => ahead.reach(&version, self.is_rewind),
                    }
                }
                ahead.next_looked(LOOKED * count + 1)
            });
            forget_published(self.pass, &self.spec.shared.published, looked);
            if rest.len() > 0 {
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Of these that were ahead.
fn forget_published<S>(pass: &dyn PassesOn<S>, published: &Published<S>, ahead: Vec<Held<S>>) {
    let snapshot = published.snapshot();
    for held in ahead {
        let is_published = match &held {
            Held::Object(object) => {
                snapshot.get(object.key()).is_some_and(|stored| stored.is_same_as(object))
            }
            Held::Former(_) => false,
            Held::Unread(undecodable) => snapshot
                .undecodable_of(&undecodable.key)
                .is_some_and(|stored| stored.version == undecodable.version),
        };
        if is_published {
            pass.ahead().with(|ahead| ahead.settle(&held));
        }
    }
}

async fn settle<S: Body>(spec: &ReflectorSpec<S>) {
    let (Some(pass), mut behind) = (&spec.pass, None) else { return };
    pass.ahead().with(|ahead| ahead.end_rewind());
    loop {
        let next = pass.ahead().with(|ahead| ahead.behind(behind.as_ref(), SLICE));
        let Some(last) = next.last() else { break };
        behind = Some(last.place());
        forget_published(&**pass, &spec.shared.published, next);
        tokio::task::yield_now().await;
    }
}

/// The status says that the source waits, until this is dropped.
struct Waiting<'a, S: Body>(&'a ReflectorSpec<S>);

impl<'a, S: Body> Waiting<'a, S> {
    fn new(spec: &'a ReflectorSpec<S>) -> Self {
        let this = Self(spec);
        this.show(true);
        this
    }

    fn show(&self, waits: bool) {
        self.0.shared.board.update_source(&self.0.source, |status| {
            status.waits_for_receiver = waits;
            true
        });
    }
}

impl<S: Body> Drop for Waiting<'_, S> {
    fn drop(&mut self) {
        self.show(false);
    }
}

async fn turn(number: usize) {
    if number % SLICE == SLICE - 1 {
        tokio::task::yield_now().await;
    }
}
