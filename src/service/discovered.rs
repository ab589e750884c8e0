//! Finds out what the configured kinds are, by the server's discovery.
//!
//! Answers "which resource does this name mean on this server?" at the start, and for a kind that the server does not
//! serve yet, whenever its informer tries again. Invariants:
//! 1. The start waits for the server at most [`LIMIT`]. If it does not answer, the built-in table serves, and stderr says
//!    so.
//! 2. A kind that nobody knows is followed as soon as the server serves it: until then its informer is `Gone`, with the
//!    reason.
//! 3. A kind that turns out to hold secrets is followed like any other that does.
//!
//! Read next: `follow.rs`, which starts the informers.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use informer_actors::list_watch::{KnownObjects, ListStream, ListWatch, SourceSpec, WatchStream};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey, SourceId};
use informer_core::reflector::ReflectorConfig;
use informer_core::request::{ListRequest, WatchRequest};

use super::config::InformerConfig;
use super::describe::Values;
use super::error::Error;
use super::kept::{KeptBody, described};
use crate::client::{Client, DiscoveryError};
use crate::runtime::Runtime;

/// How long the start waits for the server.
const LIMIT: Duration = Duration::from_secs(5);

/// The informers with their kinds as the server knows them, and what is to be said about that.
pub(super) async fn discover(
    client: &Client,
    configured: &[InformerConfig],
) -> Result<(Vec<InformerConfig>, Vec<String>), Error> {
    let mut informers = configured.to_vec();
    if informers.iter().all(|informer| informer.kind.asked().is_none()) {
        return Ok((informers, Vec::new()));
    }
    // Once for all: the names are then looked up in what is known.
    let mut notes: Vec<String> = match tokio::time::timeout(LIMIT, client.discovery().resources()).await {
        Ok(Ok(found)) => {
            found.complete().err().map(|incomplete| incomplete.to_string()).into_iter().collect()
        }
        Ok(Err(error)) => return Ok((informers, vec![without_discovery(&error.to_string())])),
        Err(_) => return Ok((informers, vec![without_discovery(&format!("no answer within {LIMIT:?}"))])),
    };
    for informer in &mut informers {
        let Some(asked) = informer.kind.asked() else { continue };
        match client.resource_named(asked).await {
            Ok(found) => {
                informer.kind = informer.kind.discovered(found.api_resource(), found.is_namespaced());
            }
            Err(error) => {
                notes.push(format!("{error}; {} is watched when there is one", informer.kind.name()))
            }
        }
    }
    let is_earlier = |at: usize, informer: &InformerConfig| {
        informers[..at].iter().any(|other| other.kind.same_resource(&informer.kind))
    };
    match informers.iter().enumerate().find(|(at, informer)| is_earlier(*at, informer)) {
        Some((_, informer)) => Err(Error::WatchedTwice { resource: informer.kind.plural().to_owned() }),
        None => Ok((informers, notes)),
    }
}

fn without_discovery(why: &str) -> String {
    format!("the kinds are taken from the built-in table, because the server could not be asked: {why}")
}

/// The sources of a kind that only the server knows: one for each namespace.
pub(super) fn sources(
    (client, runtime): (&Client, &Runtime),
    config: &InformerConfig,
    values: &Arc<OnceLock<Values>>,
) -> Vec<SourceSpec<KeptBody>> {
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
            namespace,
            values: Arc::clone(values),
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
    namespace: Option<String>,
    /// Set when the kind is known, before the first object of it.
    values: Arc<OnceLock<Values>>,
}

type Source = Rc<dyn ListWatch<KeptBody>>;

impl Awaited {
    async fn source(self) -> Result<Source, ListWatchError> {
        let asked = self.config.kind.asked().unwrap_or_default();
        let found = self.client.resource_named(asked).await.map_err(missing)?;
        let kind = self.config.kind.discovered(found.api_resource(), found.is_namespaced());
        let config = InformerConfig { kind, ..self.config };
        self.values.get_or_init(|| Values::of(&config));
        let mut source = described(&self.client, &config, found.api_resource());
        if let Some(namespace) = self.namespace {
            source = source.namespace(namespace);
        }
        let refused = |error: crate::client::Error| ListWatchError::NotFound(error.to_string().into());
        let spec = source.source(&self.runtime).map_err(refused)?;
        Ok((spec.connect)().into())
    }
}

/// A name that the server does not know is a kind that is gone; anything else is tried again like any failed request.
fn missing(error: DiscoveryError) -> ListWatchError {
    let message: Arc<str> = error.to_string().into();
    match error {
        DiscoveryError::Request(cause) if cause.is_forbidden() => ListWatchError::Denied(message),
        DiscoveryError::Request(cause) => ListWatchError::Source { message, source: Some(cause) },
        _ => ListWatchError::NotFound(message),
    }
}

/// Finds its resource when it is asked for something, and then passes everything to the source of that.
struct Late {
    awaited: Awaited,
    source: Rc<OnceCell<Source>>,
}

impl Late {
    fn source(&self) -> impl Future<Output = Result<Source, ListWatchError>> + use<> {
        let (awaited, known) = (self.awaited.clone(), Rc::clone(&self.source));
        async move {
            if let Some(source) = known.get() {
                return Ok(Rc::clone(source));
            }
            let source = awaited.source().await?;
            Ok(Rc::clone(known.get_or_init(|| source)))
        }
    }
}

impl ListWatch<KeptBody> for Late {
    fn list(&self, request: ListRequest, known: KnownObjects<KeptBody>) -> ListStream<KeptBody> {
        let source = self.source();
        let opened = async move { source.await.map(|source| source.list(request, known)) };
        opened.map(or_error).flatten_stream().boxed_local()
    }

    fn watch(&self, request: WatchRequest, known: KnownObjects<KeptBody>) -> WatchStream<KeptBody> {
        let source = self.source();
        let opened = async move { source.await.map(|source| source.watch(request, known)) };
        opened.map(or_error).flatten_stream().boxed_local()
    }

    fn get(
        &self,
        key: ObjectKey,
    ) -> LocalBoxFuture<'static, Result<Option<Object<KeptBody>>, ListWatchError>> {
        let source = self.source();
        async move { source.await?.get(key).await }.boxed_local()
    }
}

/// The stream, or one that ends with the error.
fn or_error<T: 'static>(
    opened: Result<stream::LocalBoxStream<'static, Result<T, ListWatchError>>, ListWatchError>,
) -> stream::LocalBoxStream<'static, Result<T, ListWatchError>> {
    opened.unwrap_or_else(|error| stream::once(std::future::ready(Err(error))).boxed_local())
}
