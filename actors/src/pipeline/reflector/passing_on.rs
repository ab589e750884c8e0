//! Passes on what a source brings, before the store gets it without bodies: `informer_core::passing` decides what is sent.
//!
//! 1. What a watch brings is passed on when it is delivered: in the order and the extent in which the store gets it.
//! 2. What a list brings is passed on page by page, so that a slow receiver delays the next request and not an answer.

use std::collections::HashSet;
use std::mem;
use std::task::Poll;

use actix::dev::OneshotSender;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, poll};
use informer_core::delta::{Cause, ListPart, Replacement, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey, ResourceVersion};
use informer_core::passing::{Deciding, Outgoing, Shown, gone_of_published};
use informer_core::reflector::ListWatchMachine;

use super::ReflectorSpec;
use super::happened::Happened;
use crate::pipeline::messages::Body;
use crate::runtime::mailbox::answer;
use crate::runtime::{PassesOn, ReceiverGone};

const SLICE: usize = 250;
/// So much is sent at once.
const SENT: usize = 100;

/// What came, as the store gets it. What a list brings is sent at the end of its page; in a rewind, all of it. An error, if
/// the receiver is gone.
pub(super) async fn came<S: Body>(
    spec: &ReflectorSpec<S>,
    under_way: &mut UnderWay<S>,
    machine: &ListWatchMachine<S>,
    happened: Happened<S>,
) -> Happened<S> {
    let is_rewind = machine.rewinding_to().is_some();
    let Some(mut passing_on) = PassingOn::of(spec, is_rewind) else { return happened };
    let gone = || ListWatchError::source("the receiver of what is passed on was dropped");
    match happened {
        Happened::Listed(Some(Ok(_))) if passing_on.pass.is_gone() => Happened::Listed(Some(Err(gone()))),
        Happened::Watched(stream, Some(Ok(parts))) if !parts.is_empty() && passing_on.pass.is_gone() => {
            Happened::Watched(stream, Some(Err(gone())))
        }
        Happened::Listed(Some(Ok(part))) => {
            passing_on.outgoing = mem::take(&mut under_way.page);
            let part = passing_on.decide(|deciding| deciding.listed(part));
            if is_rewind {
                // An answer for an earlier list says nothing about this one.
                under_way.settling = None;
            }
            if let ListPart::End { version, .. } = &part {
                if !is_rewind && machine.is_below(version) {
                    // The machine refuses it, and lists again.
                    passing_on.outgoing.clear();
                }
                passing_on.send().await;
            }
            under_way.page = passing_on.outgoing;
            Happened::Listed(Some(Ok(part)))
        }
        other => other,
    }
}

/// What a watch has brought, as the store gets it.
pub(super) async fn delta<S: Body>(spec: &ReflectorSpec<S>, parts: Vec<WatchPart<S>>) -> Vec<WatchPart<S>> {
    let Some(mut passing_on) = PassingOn::of(spec, false) else { return parts };
    let parts = passing_on.decide(|deciding| parts.into_iter().map(|part| deciding.watched(part)).collect());
    passing_on.send().await;
    parts
}

/// No list may be older: the receiver has had newer states.
pub(super) fn newest<S: Body>(spec: &ReflectorSpec<S>) -> Option<ResourceVersion> {
    spec.pass.as_ref()?.ahead().with(|ahead| ahead.newest().cloned())
}

/// Equal versions in the store prove nothing.
pub(super) fn is_rewound<S: Body>(spec: &ReflectorSpec<S>) -> bool {
    spec.pass.as_ref().is_some_and(|pass| pass.ahead().with(|ahead| ahead.is_rewound()))
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

/// Where one source passes on what it brings.
struct PassingOn<'a, S: Body> {
    spec: &'a ReflectorSpec<S>,
    pass: &'a dyn PassesOn<S>,
    is_rewind: bool,
    outgoing: Vec<Outgoing<S>>,
}

impl<'a, S: Body> PassingOn<'a, S> {
    /// `None` if it keeps what it brings.
    fn of(spec: &'a ReflectorSpec<S>, is_rewind: bool) -> Option<Self> {
        Some(Self { spec, pass: &**spec.pass.as_ref()?, is_rewind, outgoing: Vec::new() })
    }

    fn decide<T>(&mut self, decide: impl FnOnce(&mut Deciding<'_, S>) -> T) -> T {
        let published = self.spec.shared.published.snapshot();
        let without_body = |object: &Object<S>| self.pass.without_body(object);
        let mut left = Vec::new();
        self.pass.ahead().with(|ahead| {
            decide(&mut Deciding {
                ahead,
                published: &published,
                is_rewind: self.is_rewind,
                without_body: &without_body,
                outgoing: &mut self.outgoing,
                left: &mut left,
            })
        })
    }

    /// What is ahead is walked first: an entry that is published during a wait is then found in the snapshot taken later.
    async fn list_ends(mut self, list: &Replacement<S>) {
        let mut listed: HashSet<&ObjectKey> = HashSet::with_capacity(list.objects.len());
        let undecodable = list.undecodable.iter().map(|undecodable| &undecodable.key);
        for (number, key) in list.objects.iter().map(Object::key).chain(undecodable).enumerate() {
            listed.insert(key);
            turn(number).await;
        }
        let lists = |key: &ObjectKey| listed.contains(key);
        let shown = Shown { lists: &lists, version: &list.version, is_rewind: self.is_rewind };
        let mut behind = None;
        loop {
            let ahead = self.pass.ahead();
            let (gone, last) = ahead.with(|ahead| ahead.gone_behind(behind.as_ref(), SLICE, shown));
            if last.is_none() {
                break;
            }
            behind = last;
            self.outgoing.extend(gone);
            self.send_if_full().await;
            tokio::task::yield_now().await;
        }
        let before = self.spec.shared.published.snapshot();
        for (number, gone) in gone_of_published(&before, shown).enumerate() {
            self.outgoing.extend(gone);
            self.send_if_full().await;
            turn(number).await;
        }
        self.outgoing.push(Outgoing::listed(&list.version));
        self.send().await;
    }

    async fn send_if_full(&mut self) {
        if self.outgoing.len() >= SLICE {
            self.send().await;
        }
    }

    /// Nobody misses anything if the receiver is gone: it is so for ever, and the source fails by the next part.
    async fn send(&mut self) {
        let mut rest = mem::take(&mut self.outgoing).into_iter();
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
            let published = self.spec.shared.published.snapshot();
            self.pass.ahead().with(|ahead| ahead.sent(means, self.is_rewind, &published));
            if rest.len() > 0 {
                tokio::task::yield_now().await;
            }
        }
    }
}

async fn settle<S: Body>(spec: &ReflectorSpec<S>) {
    let (Some(pass), mut behind) = (&spec.pass, None) else { return };
    pass.ahead().with(|ahead| ahead.list_published());
    loop {
        let published = spec.shared.published.snapshot();
        behind = pass.ahead().with(|ahead| ahead.settle_behind(behind.as_ref(), SLICE, &published));
        if behind.is_none() {
            break;
        }
        drop(published);
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
