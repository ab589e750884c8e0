//! Finds out what the configured kinds are, by the server's discovery.
//!
//! Answers "which resource does this name mean on this server?" at the start, and for a kind that the server does not
//! serve yet, whenever its informer tries again. Invariants:
//! 1. The start asks the server once for all kinds, and waits at most [`LIMIT`]. If it does not answer, the built-in table
//!    serves, and stderr says so. The name of a category, such as `all`, is refused with the kinds it stands for.
//! 2. A kind that nobody knows is followed as soon as the server serves it: until then its informer is `Gone`, with the
//!    reason. If it is gone later, its name is looked up again: it may be served in another version.
//! 3. A kind that turns out to hold secrets is followed like any other that does.
//! 4. No resource is followed twice: of two names of one resource the second is refused at the start, or, where the server
//!    could not be asked, its informer is `Gone`.
//!
//! Read next: `follow.rs`, which starts the informers.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use informer_actors::list_watch::{KnownObjects, ListStream, ListWatch, SourceSpec, WatchStream};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey, SourceId};
use informer_core::reflector::ReflectorConfig;
use informer_core::request::{ListRequest, WatchRequest};

use super::config::InformerConfig;
use super::describe::{LateKind, Values};
use super::error::Error;
use super::kept::{KeptBody, described};
use super::kinds::WatchedKind;
use crate::client::discovery::{Found, ServerResources};
use crate::client::{Client, DiscoveryError};
use crate::runtime::Runtime;

/// How long the start waits for the server.
const LIMIT: Duration = Duration::from_secs(5);

/// The informers with their kinds as the server knows them, and what is to be said about that.
pub(super) async fn discover(
    client: &Client,
    configured: &[InformerConfig],
    limit: Option<Duration>,
) -> Result<(Vec<InformerConfig>, Vec<String>), Error> {
    let limit = limit.map_or(LIMIT, |limit| limit.min(LIMIT));
    let mut informers = configured.to_vec();
    if informers.iter().all(|informer| informer.kind.asked().is_none()) {
        return Ok((informers, Vec::new()));
    }
    let server = match tokio::time::timeout(limit, client.discovery().resources()).await {
        Ok(Ok(server)) => server,
        Ok(Err(error)) => return Ok((informers, vec![without_discovery(&error.to_string())])),
        Err(_) => return Ok((informers, vec![without_discovery(&format!("no answer within {limit:?}"))])),
    };
    let mut notes: Vec<String> = server.complete().err().map(|error| error.to_string()).into_iter().collect();
    for informer in &mut informers {
        let Some(asked) = informer.kind.asked() else { continue };
        match server.find(asked) {
            Ok(Found { resource, also }) => {
                let chosen = resource.name();
                notes.extend(
                    also.iter().map(|also| format!("{asked} is {chosen}; it could also mean {also}")),
                );
                informer.kind = informer.kind.discovered(&resource.api, resource.is_namespaced());
            }
            // It will not mean one kind later either.
            Err(error @ DiscoveryError::Category { .. }) => return Err(Error::Category(error)),
            Err(error) => {
                notes.push(format!("{error}; {} is watched when there is one", informer.kind.name()))
            }
        }
    }
    let is_earlier = |at: usize, informer: &InformerConfig| {
        informers[..at].iter().any(|other| other.kind.same_resource(&informer.kind))
    };
    match informers.iter().enumerate().find(|(at, informer)| is_earlier(*at, informer)) {
        Some((_, informer)) => Err(watched_twice(&informer.kind)),
        None => Ok((informers, notes)),
    }
}

fn watched_twice(kind: &WatchedKind) -> Error {
    Error::WatchedTwice { resource: kind.plural().to_owned() }
}

fn without_discovery(why: &str) -> String {
    format!("the kinds are taken from the built-in table, because the server could not be asked: {why}")
}

/// The sources of a kind that only the server knows: one for each namespace.
pub(super) fn sources(
    (client, runtime): (&Client, &Runtime),
    (informers, at): (&[InformerConfig], usize),
    late: &Arc<LateKind>,
) -> Vec<SourceSpec<KeptBody>> {
    let config = &informers[at];
    // Of two that only the server knows, the first follows what both mean.
    let comes_before = |(other, informer): &(usize, &InformerConfig)| {
        *other < at || (*other > at && informer.kind.resource().is_some())
    };
    let before = informers.iter().enumerate().filter(comes_before);
    let before: Arc<[WatchedKind]> = before.map(|(_, informer)| informer.kind.clone()).collect();
    let others = informers.iter().enumerate().filter(|(other, _)| *other != at);
    let others: Arc<[WatchedKind]> = others.map(|(_, informer)| informer.kind.clone()).collect();
    let namespaces: Vec<Option<String>> = match config.namespaces.as_slice() {
        [] => vec![None],
        some => some.iter().cloned().map(Some).collect(),
    };
    let of = |namespace: Option<String>| {
        let id = namespace.as_deref().map_or_else(SourceId::default, SourceId::new);
        let awaited = Awaited {
            client: client.clone(),
            runtime: runtime.clone(),
            config: config.clone(),
            before: Arc::clone(&before),
            others: Arc::clone(&others),
            namespace,
            late: Arc::clone(late),
        };
        let connect = move || -> Box<dyn ListWatch<KeptBody>> {
            Box::new(Late { awaited: awaited.clone(), source: Rc::default() })
        };
        let mut settings = ReflectorConfig::new(config.kind.name());
        config.early.apply(&mut settings);
        SourceSpec::new(id, Arc::new(connect), settings)
    };
    namespaces.into_iter().map(of).collect()
}

/// A resource that the server may serve later.
#[derive(Clone)]
struct Awaited {
    client: Client,
    runtime: Runtime,
    config: InformerConfig,
    /// The kinds that come before it, should it turn out to be one of them.
    before: Arc<[WatchedKind]>,
    /// The other kinds: one of the same name needs its group.
    others: Arc<[WatchedKind]>,
    namespace: Option<String>,
    late: Arc<LateKind>,
}

type Source = Rc<dyn ListWatch<KeptBody>>;

impl Awaited {
    async fn source(self) -> Result<Source, ListWatchError> {
        let asked = self.config.kind.asked().unwrap_or_default();
        let found = self.client.resource_named(asked).await.map_err(missing)?;
        let kind = self.config.kind.discovered(found.api_resource(), found.is_namespaced());
        let server = self.client.discovery().resources().await.map_err(missing)?;
        if self.before.iter().any(|before| is_meant(before, &kind, &server)) {
            return Err(ListWatchError::NotFound(watched_twice(&kind).to_string().into()));
        }
        let config = InformerConfig { kind, ..self.config };
        let resource = found.api_resource();
        let is_ambiguous = self.others.iter().any(|other| has_name(other, &resource.kind, &server));
        let name = match is_ambiguous && !resource.group.is_empty() {
            true => format!("{}.{}", resource.kind, resource.group),
            false => resource.kind.clone(),
        };
        self.late.found(name, Values::of(&config));
        let mut source = described(&self.client, &config, found.api_resource());
        if let Some(namespace) = self.namespace {
            source = source.namespace(namespace);
        }
        let refused = |error: crate::client::Error| ListWatchError::NotFound(error.to_string().into());
        let spec = source.source(&self.runtime).map_err(refused)?;
        Ok((spec.connect)().into())
    }
}

/// Whether a watched kind is that resource.
fn is_meant(kind: &WatchedKind, resource: &WatchedKind, server: &ServerResources) -> bool {
    let asked = kind.asked().filter(|_| kind.resource().is_none());
    match asked.map(|asked| server.find(asked)) {
        None => kind.same_resource(resource),
        Some(found) => found.is_ok_and(|Found { resource: found, .. }| {
            kind.discovered(&found.api, found.is_namespaced()).same_resource(resource)
        }),
    }
}

/// Whether a watched kind has this name, or will have it: one that only the server knows is called as the server says.
fn has_name(kind: &WatchedKind, name: &str, server: &ServerResources) -> bool {
    let asked = kind.asked().filter(|_| kind.resource().is_none());
    let found = asked.and_then(|asked| server.find(asked).ok());
    kind.name() == name || found.is_some_and(|Found { resource, .. }| resource.api.kind == name)
}

/// A name that the server does not know is a kind that is gone; anything else is tried again like any failed request.
fn missing(error: DiscoveryError) -> ListWatchError {
    let message: Arc<str> = error.to_string().into();
    match error {
        DiscoveryError::Request(cause) if cause.is_forbidden() => ListWatchError::Denied(message),
        DiscoveryError::Request(cause) => ListWatchError::Source { message, source: Some(cause) },
        DiscoveryError::Document { .. } | DiscoveryError::Panicked(_) => ListWatchError::source(message),
        _ => ListWatchError::NotFound(message),
    }
}

/// Finds its resource when it is asked for something, and then passes everything to the source of that, until that is
/// gone.
struct Late {
    awaited: Awaited,
    source: Rc<RefCell<Option<Source>>>,
}

impl Late {
    fn source(&self) -> impl Future<Output = Result<Source, ListWatchError>> + use<> {
        let (awaited, found) = (self.awaited.clone(), Rc::clone(&self.source));
        async move {
            let known = found.borrow().clone();
            if let Some(source) = known {
                return Ok(source);
            }
            let source = awaited.source().await?;
            found.replace(Some(Rc::clone(&source)));
            Ok(source)
        }
    }

    /// What to do with each answer: after a 404 its name is looked up again, in what the server serves then.
    fn unless_gone<T>(&self) -> impl Fn(&Result<T, ListWatchError>) + use<T> {
        let (client, found) = (self.awaited.client.clone(), Rc::clone(&self.source));
        move |answer| {
            if matches!(answer, Err(ListWatchError::NotFound(_))) {
                found.replace(None);
                client.discovery().invalidate();
            }
        }
    }
}

impl ListWatch<KeptBody> for Late {
    fn list(&self, request: ListRequest, known: KnownObjects<KeptBody>) -> ListStream<KeptBody> {
        let (source, unless_gone) = (self.source(), self.unless_gone());
        let opened =
            async move { source.await.map(|source| source.list(request, known).inspect(unless_gone)) };
        opened.map(or_error).flatten_stream().boxed_local()
    }

    fn watch(&self, request: WatchRequest, known: KnownObjects<KeptBody>) -> WatchStream<KeptBody> {
        let (source, unless_gone) = (self.source(), self.unless_gone());
        let opened =
            async move { source.await.map(|source| source.watch(request, known).inspect(unless_gone)) };
        opened.map(or_error).flatten_stream().boxed_local()
    }

    fn get(
        &self,
        key: ObjectKey,
    ) -> LocalBoxFuture<'static, Result<Option<Object<KeptBody>>, ListWatchError>> {
        let (source, unless_gone) = (self.source(), self.unless_gone());
        async move { source.await?.get(key).inspect(unless_gone).await }.boxed_local()
    }

    fn explain_nothing(&self) -> LocalBoxFuture<'static, Option<Arc<str>>> {
        let source = self.source.borrow().clone();
        source.map_or_else(|| std::future::ready(None).boxed_local(), |source| source.explain_nothing())
    }
}

/// The stream, or one that ends with the error.
fn or_error<T: 'static>(
    opened: Result<impl Stream<Item = Result<T, ListWatchError>> + 'static, ListWatchError>,
) -> stream::LocalBoxStream<'static, Result<T, ListWatchError>> {
    match opened {
        Ok(stream) => stream.boxed_local(),
        Err(error) => stream::once(std::future::ready(Err(error))).boxed_local(),
    }
}

#[cfg(test)]
mod tests;
