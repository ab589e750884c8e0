//! Children of one kind that are added, removed and revived while their owner runs.
//!
//! 1. A key gets another child only after nothing of its former one exists.
//! 2. A revived child starts again from its spec, with a new mailbox and restart history.
//! 3. [`Children::remove`] also returns when the arbiter ends first.
//! 4. No child is started or dropped, and no owner called, under the lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::Addr;
use informer_core::restart::{RestartVerdict, Role};
use tokio_util::sync::CancellationToken;

use crate::runtime::locked::Guarded;
use crate::supervision::owner::{Child, ChildEvent, Mailbox};
use crate::supervision::parent::{ChildContext, Parent, StopOn};

pub(crate) struct Children<K, A: Child> {
    parent: Arc<Parent>,
    role: Role,
    entries: Arc<Guarded<BTreeMap<K, Entry<A>>>>,
}

struct Entry<A: Child> {
    name: Arc<str>,
    spec: A::Spec,
    /// Kept so that a restart finds the mailbox open.
    address: Addr<A>,
    stop: CancellationToken,
    /// Cancelled when nothing of the child exists any more.
    over: CancellationToken,
    is_given_up: bool,
}

informer_core::clone_of!([K, A: Child] Children<K, A> { parent, role, entries });

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotRevived {
    Unknown,
    NotGivenUp,
}

impl<K: Ord + Clone + Send + 'static, A: Child> Children<K, A> {
    pub(crate) fn new(parent: Arc<Parent>, role: Role) -> Self {
        Self { parent, role, entries: Arc::default() }
    }

    /// False if the key already has a child.
    pub(crate) fn add(&self, key: K, name: &str, spec: A::Spec) -> bool {
        let Mailbox(address, inbox) = Mailbox::new();
        let entry = Entry {
            name: name.into(),
            spec: spec.clone(),
            address,
            stop: self.parent.stop.child_token(),
            over: CancellationToken::new(),
            is_given_up: false,
        };
        let context = self.context(&entry);
        let over = entry.over.clone();
        let not_added = self.entries.with(|entries| {
            if entries.contains_key(&key) {
                return Some(entry);
            }
            entries.insert(key.clone(), entry);
            None
        });
        if not_added.is_some() {
            return false;
        }
        self.start(key, context, (inbox, spec), over);
        true
    }

    pub(crate) fn revive(&self, key: &K) -> Result<(), NotRevived> {
        let Mailbox(mut address, inbox) = Mailbox::new();
        let (context, spec, over) = self.entries.with(|entries| {
            let entry = entries.get_mut(key).ok_or(NotRevived::Unknown)?;
            if !entry.is_given_up {
                return Err(NotRevived::NotGivenUp);
            }
            entry.is_given_up = false;
            entry.over = CancellationToken::new();
            std::mem::swap(&mut entry.address, &mut address);
            Ok((self.context(entry), entry.spec.clone(), entry.over.clone()))
        })?;
        drop(address);
        context.notify_owner(ChildEvent::Revived);
        self.start(key.clone(), context, (inbox, spec), over);
        Ok(())
    }

    /// False if the key has no child.
    pub(crate) async fn remove(&self, key: &K) -> bool {
        let over = self.entries.with(|entries| {
            let entry = entries.get(key)?;
            entry.stop.cancel();
            Some(entry.over.clone())
        });
        let Some(over) = over else { return false };
        over.cancelled().await;
        let removed = self.entries.with(|entries| {
            // Another call may have removed it, and the key may have a new child.
            let is_same = entries.get(key).is_some_and(|entry| entry.stop.is_cancelled());
            is_same.then(|| entries.remove(key))
        });
        drop(removed);
        true
    }

    #[cfg(test)]
    pub(crate) fn address(&self, key: &K) -> Option<Addr<A>> {
        self.entries.with(|entries| entries.get(key).map(|entry| entry.address.clone()))
    }

    #[cfg(test)]
    pub(crate) fn keys(&self) -> Vec<K> {
        self.entries.with(|entries| entries.keys().cloned().collect())
    }

    fn context(&self, entry: &Entry<A>) -> ChildContext {
        let stop = StopOn::Token(entry.stop.clone());
        let context = self.parent.context(&entry.name, self.role);
        ChildContext { stop, ..context }
    }

    fn start(
        &self,
        key: K,
        context: ChildContext,
        (inbox, spec): (actix::dev::channel::AddressReceiver<A>, A::Spec),
        over: CancellationToken,
    ) {
        let entries = Arc::clone(&self.entries);
        context.start(inbox, spec, move |verdict| {
            let is_given_up = matches!(verdict, Some(RestartVerdict::GiveUp { .. }));
            entries.with(|entries| {
                if let Some(entry) = entries.get_mut(&key) {
                    entry.is_given_up = is_given_up;
                }
            });
            over.cancel();
        });
    }
}
