//! Controllers over scripted servers, in simulated time.
//!
//! Answers "is each promise of a controller kept?": the scenarios CTL. `World` has texts, which are reconciled, and numbers,
//! which belong to them: the number `a/one-x` to the text `a/one`. Read next: the modules below, by subject.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Context, Handler, ResponseFuture};
use futures_util::FutureExt;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::reflector::ReflectorConfig;

use super::{Controller, ControllerBuilder, Outcome, Reconcile, ReconcileError, Request};
use informer_actors::informer::Informer;
use informer_actors::inner::{Faults, locked};
use informer_actors::list_watch::SourceSpec;
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;

mod drops;
mod ending;
mod failures;
mod feeding;
mod looks;
mod own_writes;
mod places;
mod surviving;
mod third_reading;

/// A value that a test and the code that it starts share.
type Cell<T> = Arc<Mutex<T>>;

fn cell<T>(value: T) -> Cell<T> {
    Arc::new(Mutex::new(value))
}

type Answer = Result<Outcome, ReconcileError>;

const DONE: Answer = Ok(Outcome::Done);
const LONG: Duration = Duration::from_secs(3_600);

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Two servers, their informers, and what was reconciled.
#[derive(Clone)]
struct World {
    runtime: Runtime,
    texts: Server<String>,
    numbers: Server<u32>,
    informer: Informer<String>,
    children: Informer<u32>,
    log: Log,
}

/// What was reconciled, a line each, and the keys that are being reconciled.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<(Vec<String>, BTreeSet<ObjectKey>)>>);

/// A reconcile under way: no other one of its key begins meanwhile.
struct UnderWay(Log, ObjectKey);

impl Log {
    fn line(&self, line: impl Into<String>) {
        locked(&self.0).0.push(line.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut locked(&self.0).0)
    }

    fn enter(&self, key: &ObjectKey) -> UnderWay {
        assert!(locked(&self.0).1.insert(key.clone()), "{key} is reconciled twice at once");
        UnderWay(self.clone(), key.clone())
    }

    fn under_way(&self) -> usize {
        locked(&self.0).1.len()
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        locked(&self.0.0).1.remove(&self.1);
    }
}

/// An actor whose answer takes this long. It drops the request at once, and logs it; once more at the end, if it was told to
/// stop meanwhile.
struct Takes(Log, Duration);

impl Actor for Takes {
    type Context = Context<Self>;
}

impl Handler<Reconcile<String>> for Takes {
    type Result = ResponseFuture<Answer>;

    fn handle(&mut self, Reconcile(request): Reconcile<String>, _: &mut Context<Self>) -> Self::Result {
        let (under_way, takes, log) = (self.0.enter(request.key()), self.1, self.0.clone());
        let (shown, stopping) = (shown(&request), request.stopping());
        log.line(shown.clone());
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            if stopping.now_or_never().is_some() {
                log.line(format!("{shown} late"));
            }
            drop(under_way);
            DONE
        })
    }
}

/// What the request shows: `a/one=1`, `a/one gone, was 1`, `a/one left, was 1`, `a/one gone`.
fn shown(request: &Request<String>) -> String {
    let key = request.key();
    match (request.object(), request.deleted()) {
        (Some(object), None) => format!("{key}={}", object.body()),
        (Some(object), Some(last)) => format!("{key}={}, was {}", object.body(), last.body()),
        (None, Some(last)) => format!("{key} gone, was {}", last.body()),
        (None, None) => match request.left() {
            Some(last) => format!("{key} left, was {}", last.body()),
            None => format!("{key} gone"),
        },
    }
}

fn meta(key: &str, version: &ResourceVersion) -> Meta {
    Meta::new(key.parse().expect("a key"), version.clone(), SourceId::default())
}

fn key(key: &str) -> ObjectKey {
    key.parse().expect("a key")
}

/// The text to which a number belongs.
fn text_of(number: &Object<u32>) -> Option<ObjectKey> {
    let (name, _) = number.key().name().split_once('-')?;
    Some(number.key().sibling(name))
}

fn run<F: Future<Output = ()>>(scenario: impl FnOnce(World) -> F) {
    run_with(Faults::default(), scenario);
}

fn run_with<F: Future<Output = ()>>(faults: Faults, scenario: impl FnOnce(World) -> F) {
    Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
        let (texts, numbers) = (Server::new(), Server::new());
        let (text_source, number_source) = (texts.clone(), numbers.clone());
        let informer = Informer::builder(&runtime, "texts").source(move || text_source.clone());
        let children = Informer::builder(&runtime, "numbers").source(move || number_source.clone());
        let informer = informer.start().expect("a sound spec");
        let children = children.start().expect("a sound spec");
        scenario(World { runtime, texts, numbers, informer, children, log: Log::default() }).await;
    });
}

impl World {
    fn builder(&self) -> ControllerBuilder<String> {
        Controller::builder(&self.informer)
    }

    /// A controller that logs what it is shown.
    fn logging(&self, builder: ControllerBuilder<String>) -> Controller<String> {
        let log = self.log.clone();
        let logged = move |request: Request<String>| {
            let _under_way = log.enter(request.key());
            log.line(shown(&request));
            async { DONE }
        };
        builder.reconcile(logged).start().expect("it starts")
    }

    /// A controller that also logs why.
    fn explaining(&self, builder: ControllerBuilder<String>) -> Controller<String> {
        let log = self.log.clone();
        let logged = move |request: Request<String>| {
            log.line(format!("{} [{}]", shown(&request), request.causes()));
            async { DONE }
        };
        builder.reconcile(logged).start().expect("it starts")
    }

    fn apply(&self, key: &str, body: &str) -> ResourceVersion {
        self.texts.apply(key, body.to_owned())
    }

    /// What was reconciled, once nothing happens any more.
    async fn lines(&self) -> Vec<String> {
        tokio::time::sleep(Duration::from_millis(100)).await;
        self.log.take()
    }
}
