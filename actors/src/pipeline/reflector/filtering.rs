//! The intake of a session, the waits of its filter, and the notes of a take-over.
//!
//! A source may drop objects of other namespaces before it decodes them ([`KnownObjects::follows`]). The intake drops
//! the rest.
//!
//! [`KnownObjects::follows`]: crate::list_watch::KnownObjects::follows

use std::future::pending;
use std::sync::Arc;

use actix::dev::OneshotSender;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use informer_core::delta::WatchPart;
use informer_core::intake::Intake;
use informer_core::meta::{ClusterName, ResourceVersion, SourceId};
use informer_core::namespaces::Names;
use informer_core::namespaces::filter::{self, FilterMachine, Look};
use informer_core::reflector::Delivery;

use super::ReflectorSpec;
use crate::pipeline::messages::Body;
use crate::pipeline::namespace_filter::NamespaceFilter;
use crate::pipeline::shared::PipelineShared;
use crate::pipeline::sources::AskedFor;
use crate::runtime::mailbox::{Closed, answer};

pub(super) struct Filtering {
    pub(super) intake: Intake,
    filter: Option<Arc<NamespaceFilter>>,
    /// Whether the store has what is kept, and nothing else. An error means that the DeltaFifo has died.
    settling: Option<LocalBoxFuture<'static, Result<bool, Closed>>>,
}

impl Filtering {
    pub(super) fn new<S: Body>(of: &ReflectorSpec<S>) -> Self {
        let machine = |filter: &Arc<NamespaceFilter>| FilterMachine::new(filter.holdings().asked().clone());
        let intake = Intake { cluster: of.cluster.clone(), filter: of.filter.as_ref().map(machine) };
        Self { intake, filter: of.filter.clone(), settling: None }
    }

    fn machine(&mut self) -> Option<(&mut FilterMachine, &NamespaceFilter)> {
        self.intake.filter.as_mut().zip(self.filter.as_deref())
    }

    /// `is_list`: a list, or a watch-list, from its beginning.
    pub(super) fn begin(&mut self, is_list: bool) {
        if let Some((machine, filter)) = self.machine().filter(|_| is_list) {
            machine.handle_list(filter.holdings().asked().clone());
            self.settling = None;
        }
    }

    pub(super) fn kept(&self) -> Option<Names> {
        self.intake.filter.as_ref().map(|machine| machine.kept().clone())
    }

    /// To be answered when the list is published.
    pub(super) fn deliver(&mut self) -> Option<OneshotSender<()>> {
        let (machine, filter) = self.machine()?;
        filter.change(|holdings| holdings.handle_delivery(machine.kept()));
        machine.handle_delivery();
        let (sender, published) = answer();
        self.settling = Some(async { published.await.map(|()| true) }.boxed_local());
        Some(sender)
    }

    /// True if the source must be listed again. A search of the store begins when it has all up to `newest`.
    pub(super) fn look<S: Body>(&mut self, of: &ReflectorSpec<S>, newest: Option<&ResourceVersion>) -> bool {
        let Some((machine, filter)) = self.machine() else { return false };
        let asked = filter.holdings().asked().clone();
        match machine.look(&asked) {
            Look::Waits => {}
            Look::Agrees => {
                if filter.change(|holdings| holdings.handle_settled(machine.kept())) {
                    of.shared.board.sources_moved().raise();
                }
            }
            Look::List => return true,
            Look::Search(others) => {
                let (source, scope) = ((of.source.clone(), newest.cloned()), (of.cluster.clone(), others));
                self.settling = Some(is_clean(of.shared.clone(), source, scope).boxed_local());
            }
        }
        false
    }

    /// Ready when the store has what is kept, or when others are requested after `seen`; never without a filter.
    pub(super) async fn news(&mut self, seen: u64) -> Result<(), Closed> {
        let Some((machine, filter)) = self.intake.filter.as_mut().zip(self.filter.as_deref()) else {
            return pending().await;
        };
        let Some(wait) = &mut self.settling else {
            filter.changed.since(seen).await;
            return Ok(());
        };
        if machine.handle_settled(wait.await?) {
            filter.change(|holdings| holdings.handle_settled(machine.kept()));
        }
        self.settling = None;
        Ok(())
    }

    /// Read it before [`Self::look`].
    pub(super) fn count(&self) -> u64 {
        self.filter.as_ref().map_or(0, |filter| filter.changed.count())
    }
}

/// Waits until all deliveries are published. Then: whether no object of these namespaces is left, decoded or not.
async fn is_clean<S: Body>(
    shared: PipelineShared<S>,
    (source, newest): (SourceId, Option<ResourceVersion>),
    (cluster, namespaces): (Option<ClusterName>, Vec<Arc<str>>),
) -> Result<bool, Closed> {
    if let Some(newest) = newest {
        loop {
            let reached = shared.published.reaching(&source, &newest);
            if shared.published.snapshot().version(&source).is_some_and(|version| *version >= newest) {
                break;
            }
            reached.await;
        }
    }
    Ok(!filter::has_any(&shared.published.snapshot(), cluster.as_ref(), &namespaces))
}

// A source that takes over from others.
// 1. Its list reaches the newest version that its exchange delivered before the request, even by sources that
//    have left.
// 2. The store keeps for it what the others deliver after the request, so the request is noted first.

/// Returns the version that the list must reach.
pub(super) fn begin<S: Body>(of: &ReflectorSpec<S>, asked: AskedFor) -> Option<ResourceVersion> {
    of.shared.sources.begin_list(&of.source, asked)
}

/// A list after a rewind counts only when it is published: a source that lists before notices the rewind, too, even
/// if this list is lost with its actor.
pub(super) fn note<S: Body>(of: &ReflectorSpec<S>, delivery: &Delivery<S>) {
    let version = match delivery {
        Delivery::Replace(list) => Some(&list.version),
        Delivery::Delta(parts) => parts.iter().rev().find_map(WatchPart::reached),
        _ => None,
    };
    if let Some(version) = version {
        of.shared.sources.note_delivered(&of.source, version);
    }
}
