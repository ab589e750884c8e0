//! Passes on what a source brings, before the store gets it without bodies (`../../runtime/passing.rs`).
//!
//! 1. Before a list, everything that the source has brought is published. So the published snapshot says what the receiver
//!    has: a list passes on that another life of a key, or a key that it does not have, is gone.
//! 2. What is gone is passed on before the store gets the list. After a restart in between, it is passed on again.

use std::collections::HashSet;
use std::sync::Arc;
use std::task::Poll;

use futures_util::poll;
use informer_core::delta::{ListPart, Replacement, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey};
use informer_core::reflector::Effect;

use super::ReflectorSpec;
use super::happened::Happened;
use crate::pipeline::messages::{Body, Flush};
use crate::runtime::mailbox::{Closed, ask};
use crate::runtime::{PassedPart, PassesOn, ReceiverGone};

const SLICE: usize = 250;
const WAITS: &str = "the receiver of what is passed on has not taken the last parts";
const GONE: &str = "the receiver of what is passed on was dropped";

/// Where one source passes on what it brings.
pub(super) struct PassingOn<'a, S: Body> {
    spec: &'a ReflectorSpec<S>,
    pass: &'a dyn PassesOn<S>,
    parts: Vec<PassedPart<S>>,
}

impl<'a, S: Body> PassingOn<'a, S> {
    /// `None` if it keeps what it brings.
    pub(super) fn of(spec: &'a ReflectorSpec<S>) -> Option<Self> {
        Some(Self { spec, pass: &**spec.pass.as_ref()?, parts: Vec::new() })
    }

    /// Before a list, also one by a watch.
    pub(super) async fn begins(self, effect: &Effect<S>) -> Result<(), Closed> {
        let is_list = match effect {
            Effect::List { request, .. } => request.token.is_none(),
            Effect::Watch { request, .. } => request.initial_events,
            _ => false,
        };
        if is_list { ask(&self.spec.fifo, Flush).await } else { Ok(()) }
    }

    /// What came, as the store gets it. An error if the receiver is gone.
    pub(super) async fn pass_on(mut self, happened: Happened<S>, is_list: bool) -> Happened<S> {
        match happened {
            Happened::Listed(Some(Ok(part))) => {
                let part = match part {
                    ListPart::Objects(objects) => ListPart::Objects(
                        objects.into_iter().map(|object| self.applied(object, true)).collect(),
                    ),
                    ListPart::Undecodable(undecodable) => {
                        self.parts.push(PassedPart::Undecodable(undecodable.clone()));
                        ListPart::Undecodable(undecodable)
                    }
                    other => other,
                };
                Happened::Listed(Some(self.sent().await.map(|()| part)))
            }
            Happened::Watched(stream, Some(Ok(parts))) => {
                let parts = parts.into_iter().map(|part| self.watched(part, is_list)).collect();
                Happened::Watched(stream, Some(self.sent().await.map(|()| parts)))
            }
            other => other,
        }
    }

    /// An object that was asked for alone, as the store gets it.
    pub(super) async fn pass_on_one(mut self, object: Object<S>) -> Result<Object<S>, ListWatchError> {
        let kept = self.applied(object, false);
        self.sent().await.map(|()| kept)
    }

    /// What the list shows to be gone, and that it is whole.
    pub(super) async fn list_ends(mut self, list: &Replacement<S>) -> Result<(), ListWatchError> {
        let mut listed: HashSet<&ObjectKey> = HashSet::with_capacity(list.objects.len());
        let undecodable = list.undecodable.iter().map(|undecodable| &undecodable.key);
        for (number, key) in list.objects.iter().map(Object::key).chain(undecodable).enumerate() {
            listed.insert(key);
            turn(number).await;
        }
        let before = self.spec.shared.published.snapshot();
        for (number, object) in before.iter().enumerate() {
            if !listed.contains(object.key()) {
                self.parts.push(PassedPart::Deleted(object.clone()));
                self.sent_if_full().await?;
            }
            turn(number).await;
        }
        for (number, undecodable) in before.undecodable().enumerate() {
            if !listed.contains(&undecodable.key) && before.get(&undecodable.key).is_none() {
                self.parts.push(PassedPart::DeletedUndecodable(undecodable.clone()));
                self.sent_if_full().await?;
            }
            turn(number).await;
        }
        self.parts.push(PassedPart::Listed(list.version.clone()));
        self.sent().await
    }

    fn watched(&mut self, part: WatchPart<S>, is_list: bool) -> WatchPart<S> {
        match part {
            WatchPart::Applied(object) => WatchPart::Applied(self.applied(object, is_list)),
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
    fn applied(&mut self, object: Object<S>, is_list: bool) -> Object<S> {
        let Some(kept) = self.pass.without_body(&object) else { return object };
        let former = is_list.then(|| self.spec.shared.published.get(object.key())).flatten();
        self.parts.extend(former.filter(|former| !former.is_same_life_as(&object)).map(PassedPart::Deleted));
        self.parts.push(PassedPart::Applied(object));
        kept
    }

    async fn sent_if_full(&mut self) -> Result<(), ListWatchError> {
        if self.parts.len() < SLICE {
            return Ok(());
        }
        self.sent().await
    }

    async fn sent(&mut self) -> Result<(), ListWatchError> {
        let parts = std::mem::take(&mut self.parts);
        if parts.is_empty() {
            return Ok(());
        }
        let mut sending = self.pass.send(parts);
        let sent = match poll!(&mut sending) {
            Poll::Ready(sent) => sent,
            Poll::Pending => {
                self.show(Some(WAITS));
                let sent = sending.await;
                self.show(None);
                sent
            }
        };
        sent.map_err(|ReceiverGone| ListWatchError::source(GONE))
    }

    fn show(&self, hint: Option<&str>) {
        self.spec.shared.board.update_source(&self.spec.source, |status| {
            status.hint = hint.map(Arc::from);
            true
        });
    }
}

async fn turn(number: usize) {
    if number % SLICE == SLICE - 1 {
        tokio::task::yield_now().await;
    }
}
