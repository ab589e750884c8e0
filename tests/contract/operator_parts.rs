//! Parts of an operator that note what happens to them, and an election whose result the test sets.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer_operator::lifecycle::{PartContext, PartError, Task, task};
use tokio::sync::watch;

use crate::world::pass;

/// What happened to the parts, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, what: &str, part: &str) {
        self.0.lock().expect("no panic").push(format!("{what} {part}"));
    }

    /// What was noted since this was called last.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }

    /// How much was noted since then.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }

    /// A part that notes its start, its drain, which takes this long, and its end.
    pub(crate) fn part(
        &self,
        name: &'static str,
        drain: Duration,
    ) -> Task<impl Fn(PartContext) -> Running + use<>> {
        let log = self.clone();
        task(name, move |context: PartContext| {
            let log = log.clone();
            let running = async move {
                log.note("start", name);
                let mut dropped = Dropped(Some((log.clone(), name)));
                context.ready();
                context.stopping().await;
                log.note("drain", name);
                pass(drain).await;
                dropped.0 = None;
                log.note("end", name);
                Ok(())
            };
            Box::pin(running) as Running
        })
    }
}

pub(crate) type Running = std::pin::Pin<Box<dyn Future<Output = Result<(), PartError>> + Send>>;

/// Notes that a part was dropped before its end.
struct Dropped(Option<(Log, &'static str)>);

impl Drop for Dropped {
    fn drop(&mut self) {
        if let Some((log, name)) = self.0.take() {
            log.note("drop", name);
        }
    }
}

/// An election whose result the test sets.
pub(crate) fn election(log: &Log) -> (watch::Sender<bool>, Task<impl Fn(PartContext) -> Running + use<>>) {
    let (sender, leads) = watch::channel(false);
    let log = log.clone();
    let election = task("election", move |context: PartContext| {
        let (log, mut leads) = (log.clone(), leads.clone());
        let running = async move {
            log.note("start", "election");
            context.ready();
            loop {
                context.leads(*leads.borrow_and_update());
                tokio::select! {
                    biased;
                    _limit = context.stopping() => break,
                    changed = leads.changed() => changed.expect("the test holds the sender"),
                }
            }
            log.note("release", "lease");
            Ok(())
        };
        Box::pin(running) as Running
    });
    (sender, election)
}
