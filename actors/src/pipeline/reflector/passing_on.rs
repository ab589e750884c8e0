//! Passes on what a source brings, before the store gets it without bodies (`../../runtime/passing.rs`).
//!
//! 1. What a watch brings is passed on when it is delivered: in the order and the extent in which the store gets it.
//! 2. What a list brings is passed on page by page, so that a slow receiver delays the next request and not an answer.
//! 3. The receiver has what is published, and what is ahead of that. By both it is decided whether a state is older than
//!    what the receiver has, whether another life of its key has ended, and what is gone when a list is whole.
//! 4. What is sent is ahead from then on, and no moment earlier: what an actor's end has dropped comes again.

use std::collections::HashSet;
use std::mem;
use std::task::Poll;

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, poll};
use informer_core::delta::{ListPart, Replacement, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey, ResourceVersion};

use super::ReflectorSpec;
use super::happened::Happened;
use crate::pipeline::messages::Body;
use crate::pipeline::published::Published;
use crate::runtime::{PassedPart, PassesOn, ReceiverGone};

const SLICE: usize = 250;
/// Objects ahead that are looked at for each that is sent.
const LOOKED: usize = 2;

/// What came, as the store gets it. What a list brings is sent at the end of its page; in a rewind, all of it. An error, if
/// the receiver is gone.
pub(super) async fn came<S: Body>(
    spec: &ReflectorSpec<S>,
    page: &mut Vec<PassedPart<S>>,
    is_rewind: bool,
    happened: Happened<S>,
) -> Happened<S> {
    let Some(passing_on) = PassingOn::of(spec) else { return happened };
    let gone = || ListWatchError::source("the receiver of what is passed on was dropped");
    match happened {
        Happened::Listed(Some(Ok(_))) if passing_on.pass.is_gone() => Happened::Listed(Some(Err(gone()))),
        Happened::Watched(stream, Some(Ok(parts))) if !parts.is_empty() && passing_on.pass.is_gone() => {
            Happened::Watched(stream, Some(Err(gone())))
        }
        Happened::Listed(Some(Ok(part))) => {
            Happened::Listed(Some(Ok(passing_on.listed(part, page, is_rewind).await)))
        }
        other => other,
    }
}

/// What a watch has brought, as the store gets it.
pub(super) async fn delta<S: Body>(spec: &ReflectorSpec<S>, parts: Vec<WatchPart<S>>) -> Vec<WatchPart<S>> {
    match PassingOn::of(spec) {
        Some(passing_on) => passing_on.watched(parts).await,
        None => parts,
    }
}

/// Before the store gets a list: what the list shows to be gone, and that it is whole. The future settles what was ahead, when
/// the list is published.
pub(super) async fn ends<S: Body>(
    spec: &ReflectorSpec<S>,
    list: &Replacement<S>,
) -> Option<LocalBoxFuture<'static, ()>> {
    PassingOn::of(spec)?.list_ends(list).await;
    Some(settle(spec.clone(), list.version.clone()).boxed_local())
}

/// Where one source passes on what it brings.
struct PassingOn<'a, S: Body> {
    spec: &'a ReflectorSpec<S>,
    pass: &'a dyn PassesOn<S>,
    parts: Vec<PassedPart<S>>,
}

impl<'a, S: Body> PassingOn<'a, S> {
    /// `None` if it keeps what it brings.
    fn of(spec: &'a ReflectorSpec<S>) -> Option<Self> {
        Some(Self { spec, pass: &**spec.pass.as_ref()?, parts: Vec::new() })
    }

    async fn listed(
        mut self,
        part: ListPart<S>,
        page: &mut Vec<PassedPart<S>>,
        is_rewind: bool,
    ) -> ListPart<S> {
        self.parts = mem::take(page);
        let part = match part {
            ListPart::Objects(objects) => {
                let kept = objects.into_iter().map(|object| self.applied(object, is_rewind));
                ListPart::Objects(kept.collect())
            }
            ListPart::Undecodable(undecodable) => {
                self.parts.push(PassedPart::Undecodable(undecodable.clone()));
                ListPart::Undecodable(undecodable)
            }
            other => other,
        };
        if matches!(part, ListPart::End { .. }) {
            self.sent().await;
        } else {
            *page = self.parts;
        }
        part
    }

    async fn watched(mut self, parts: Vec<WatchPart<S>>) -> Vec<WatchPart<S>> {
        let parts = parts.into_iter().map(|part| self.part(part)).collect();
        self.sent().await;
        parts
    }

    async fn list_ends(mut self, list: &Replacement<S>) {
        let mut listed: HashSet<&ObjectKey> = HashSet::with_capacity(list.objects.len());
        let undecodable = list.undecodable.iter().map(|undecodable| &undecodable.key);
        for (number, key) in list.objects.iter().map(Object::key).chain(undecodable).enumerate() {
            listed.insert(key);
            turn(number).await;
        }
        let before = self.spec.shared.published.snapshot();
        for (number, object) in before.iter().enumerate() {
            if !listed.contains(object.key()) {
                self.gone(PassedPart::Deleted(object.clone())).await;
            }
            turn(number).await;
        }
        for (number, undecodable) in before.undecodable().enumerate() {
            if !listed.contains(&undecodable.key) && before.get(&undecodable.key).is_none() {
                self.gone(PassedPart::DeletedUndecodable(undecodable.clone())).await;
            }
            turn(number).await;
        }
        let mut behind = None;
        loop {
            let ahead = self.pass.ahead().with(|ahead| ahead.behind(behind.as_ref(), SLICE));
            let Some(last) = ahead.last() else { break };
            behind = Some(last.key().clone());
            for object in ahead {
                if !listed.contains(object.key()) {
                    self.gone(PassedPart::Deleted(object)).await;
                }
            }
            tokio::task::yield_now().await;
        }
        self.parts.push(PassedPart::Listed(list.version.clone()));
        self.sent().await;
    }

    fn part(&mut self, part: WatchPart<S>) -> WatchPart<S> {
        match part {
            WatchPart::Applied(object) => WatchPart::Applied(self.applied(object, false)),
            WatchPart::Fetched(object) => WatchPart::Fetched(self.applied(object, false)),
            WatchPart::Deleted(last) => {
                let kept = self.pass.without_body(&last).unwrap_or_else(|| last.clone());
                self.parts.push(PassedPart::Deleted(last));
                WatchPart::Deleted(kept)
            }
            WatchPart::Undecodable(undecodable) => {
                self.parts.push(PassedPart::Undecodable(undecodable.clone()));
                WatchPart::Undecodable(undecodable)
            }
            WatchPart::DeletedUndecodable(undecodable) => {
                self.parts.push(PassedPart::DeletedUndecodable(undecodable.clone()));
                WatchPart::DeletedUndecodable(undecodable)
            }
            other => other,
        }
    }

    /// An object without a body is known: the receiver has it.
    fn applied(&mut self, object: Object<S>, is_rewind: bool) -> Object<S> {
        let Some(kept) = self.pass.without_body(&object) else { return object };
        let ahead = self.pass.ahead().with(|ahead| ahead.get(object.key()));
        let has = ahead.or_else(|| self.spec.shared.published.get(object.key()));
        match has {
            Some(has) if has.is_same_life_as(&object) => {
                let is_old = has.is_same_as(&object) || has.version() > object.version();
                if is_old && !is_rewind {
                    return kept;
                }
            }
            Some(former) => self.parts.push(PassedPart::Deleted(former)),
            None => {}
        }
        self.parts.push(PassedPart::Applied(object));
        kept
    }

    async fn gone(&mut self, part: PassedPart<S>) {
        self.parts.push(part);
        if self.parts.len() >= SLICE {
            self.sent().await;
        }
    }

    /// Nobody misses anything if the receiver is gone: it is so for ever, and the source fails by the next part.
    async fn sent(&mut self) {
        let mut rest = mem::take(&mut self.parts).into_iter();
        loop {
            let parts: Vec<_> = rest.by_ref().take(SLICE).collect();
            if parts.is_empty() {
                return;
            }
            let ahead: Vec<_> = parts.iter().filter_map(|part| self.change_of(part)).collect();
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
            let count = ahead.len();
            for change in ahead {
                drop(self.pass.ahead().with(|ahead| match change {
                    AheadChange::Has(object) => ahead.note(object),
                    AheadChange::HasNot(key) => ahead.forget(&key),
                }));
            }
            let looked = self.pass.ahead().with(|ahead| ahead.next_looked(LOOKED * count + 1));
            forget_published(self.pass, &self.spec.shared.published, looked);
        }
    }

    fn change_of(&self, part: &PassedPart<S>) -> Option<AheadChange<S>> {
        match part {
            PassedPart::Applied(object) => self.pass.without_body(object).map(AheadChange::Has),
            PassedPart::Deleted(last) => Some(AheadChange::HasNot(last.key().clone())),
            PassedPart::DeletedUndecodable(undecodable) => Some(AheadChange::HasNot(undecodable.key.clone())),
            PassedPart::Undecodable(_) | PassedPart::Listed(_) => None,
        }
    }
}

/// What the receiver has from now on.
enum AheadChange<S> {
    Has(Object<S>),
    HasNot(ObjectKey),
}

/// Of these objects that were ahead.
fn forget_published<S>(pass: &dyn PassesOn<S>, published: &Published<S>, objects: Vec<Object<S>>) {
    for object in objects {
        let is_published = published
            .get(object.key())
            .is_some_and(|stored| stored.is_same_life_as(&object) && stored.version() >= object.version());
        if is_published {
            drop(pass.ahead().with(|ahead| ahead.forget(object.key())));
        }
    }
}

/// When this list is published, nothing of it is ahead any more.
async fn settle<S: Body>(spec: ReflectorSpec<S>, version: ResourceVersion) {
    let (Some(pass), published) = (&spec.pass, &spec.shared.published) else { return };
    loop {
        let reaching = published.reaching(&spec.source, &version);
        if published.snapshot().version(&spec.source).is_some_and(|at| *at >= version) {
            break;
        }
        reaching.await;
    }
    let mut behind: Option<ObjectKey> = None;
    loop {
        let next = pass.ahead().with(|ahead| ahead.behind(behind.as_ref(), SLICE));
        let Some(last) = next.last() else { break };
        behind = Some(last.key().clone());
        forget_published(&**pass, published, next);
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
