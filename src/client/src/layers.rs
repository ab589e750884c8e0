//! What happens to every request between its caller and the connections, one layer after another.
//!
//! Answers "what is added to a request, what does it wait for, and what is tried again?" Each layer is a plain async
//! function around the next one's `send`, in a file of its own (`warn` is `warning.rs`). From the caller to the connection:
//! the headers (`authorize`), `measure`, `deadline` (of the whole request), `retry`, `limit`, `warn`, `authorize`, `deadline`
//! (of the answer). The client of a leader, which `LeaderElection::guard` or `ForTerm::for_term` has made, asks its
//! [`Guards`] before the first and behind the last. Invariants:
//! 1. A request that waits for a retry holds no place among those under way, and takes a new turn in the rate.
//! 2. Dropping the answer's future or its body ends the request in all layers.
//! 3. The requests of informers pass the same layers, with no retries: the reflector decides what is asked again.
//! 4. A leader's request belongs to the term that lasts when its caller begins it, on the caller's thread. It is refused when
//!    that term has ended, also if the next one has begun.
//! 5. The clock is read when a leader's request is handed to the transport, after every wait and retry of the layers, and
//!    again when its connection is ready, last thing before its first byte: a process that was stopped before that sends
//!    nothing after its lease has ended, however long it took to connect.
//! 6. A refused request has reached nobody. One whose first byte may have been written is never refused: it goes on, and
//!    may arrive.
//!
//! A guarded client has the connections of the client that was guarded. Who knows the lease is asked by a trait,
//! [`SendGuard`]: the client knows no election. Read next: `layers/retry.rs`;
//! `transport.rs`, which asks before a byte; `backend.rs`, which makes the layers of a thread.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{Request, Response};
use tokio::time::Instant;

use super::config::Config;
use super::config::limits::Limits as AnswerLimits;
use super::error::{Error, TransportError};
use super::identity::Identities;
use super::request::{RequestKind, RequestOptions};
use super::transport::{Body, SendCheck, Transport};
use super::warning::Warnings;
use authorize::Headers;
use deadline::{Deadlines, is_slow};
use limit::Limits;
pub(crate) use measure::CallersSpan;

mod authorize;
mod deadline;
mod limit;
mod measure;
mod retry;

/// The settings of a client's layers, and what its threads share. Shared by all threads.
pub(crate) struct LayerSettings {
    headers: Arc<Headers>,
    limits: Limits,
    warnings: Arc<Warnings>,
    max_retries: u32,
    timeout: Option<Duration>,
    answer: AnswerLimits,
}

impl LayerSettings {
    /// # Errors
    /// When a header cannot be made of the configuration.
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let requests = &config.requests;
        Ok(Self {
            headers: Arc::new(Headers::new(config)?),
            limits: Limits::new(requests.in_flight, requests.rate),
            warnings: Arc::new(Warnings::new(requests.on_warning.clone())),
            max_retries: requests.max_retries,
            timeout: requests.timeout,
            answer: config.limits,
        })
    }

    /// The same without limits, for requests that must not wait behind others.
    pub(crate) fn without_limits(&self) -> Self {
        let (headers, warnings) = (Arc::clone(&self.headers), Arc::clone(&self.warnings));
        let Self { max_retries, timeout, answer, .. } = *self;
        Self { headers, limits: Limits::new(usize::MAX, None), warnings, max_retries, timeout, answer }
    }
}

/// A transport with all layers before it. Used by one thread.
pub(crate) struct Layers(Rc<Inner>);

struct Inner {
    settings: Arc<LayerSettings>,
    /// Nothing if the transport below authenticates by itself.
    identities: Option<Arc<Identities>>,
    guards: Guards,
    transport: Rc<dyn Transport>,
    /// The layers whose connections these are. Others on this thread find them as long as these are used.
    _base: Option<Rc<Layers>>,
}

impl Layers {
    /// `identities` gives each request its credentials.
    pub(crate) fn new(
        settings: Arc<LayerSettings>,
        identities: Option<Arc<Identities>>,
        transport: Rc<dyn Transport>,
    ) -> Self {
        Self(Rc::new(Inner { settings, identities, guards: Guards::default(), transport, _base: None }))
    }

    /// Layers over the same connections and identities, which ask these guards.
    pub(crate) fn guarded(self: Rc<Self>, settings: Arc<LayerSettings>, guards: Guards) -> Self {
        let (identities, transport) = (self.0.identities.clone(), Rc::clone(&self.0.transport));
        let (transport, _base) = (guards.before(transport), Some(self));
        Self(Rc::new(Inner { settings, identities, guards, transport, _base }))
    }
}

impl Transport for Layers {
    fn send(
        &self,
        request: Request<Bytes>,
        kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
        let inner = Rc::clone(&self.0);
        Box::pin(async move { inner.send(request, kind).await })
    }

    fn distrust(&self) {
        self.0.transport.distrust();
    }
}

impl Inner {
    async fn send(
        &self,
        mut request: Request<Bytes>,
        kind: RequestKind,
    ) -> Result<Response<Body>, TransportError> {
        // A request that came from another thread was begun there.
        if SendCheck::of(&request).is_none() {
            self.guards.begin(&mut request)?;
        }
        let options: RequestOptions = request.extensions().get().copied().unwrap_or_default();
        let timeout =
            options.timeout.or_else(|| self.settings.timeout.filter(|_| kind == RequestKind::Unary));
        let retries = options.max_retries.unwrap_or(self.settings.max_retries);
        // A time that an `Instant` cannot hold is never reached.
        let ends = timeout.and_then(|timeout| Some((Instant::now().checked_add(timeout)?, timeout)));
        self.settings.headers.add_to(request.headers_mut());
        let span = measure::span(&request, kind);
        let attempt = async |request| self.send_once(request, kind, ends).await;
        // Each layer polls the next one where it is: a future that is passed by value is there twice, and is copied.
        let sending = pin!(retry::send(request, kind, retries, ends.map(|(at, _)| at), attempt));
        let sending = pin!(deadline::whole(ends, sending));
        measure::send(span, sending).await
    }

    /// One attempt.
    async fn send_once(
        &self,
        request: Request<Bytes>,
        kind: RequestKind,
        ends: Option<(Instant, Duration)>,
    ) -> Result<Response<Body>, TransportError> {
        let place = self.settings.limits.enter(kind, ends.map(|(at, _)| at)).await?;
        let path = request.uri().clone();
        let attempt = async |request: Request<Bytes>| {
            let deadlines = Deadlines::new(kind, is_slow(&request), ends, &self.settings.answer);
            let sending = pin!(self.transport.send(request, kind));
            deadline::send(&*self.transport, kind, deadlines, sending).await
        };
        // Credentials have limits of their own, those of a plugin that asks a person.
        let answer = match &self.identities {
            Some(identities) => authorize::send(identities, request, attempt).await?,
            None => attempt(request).await?,
        };
        self.settings.warnings.report(path.path(), answer.headers());
        Ok(place.until_read(answer))
    }
}

/// Says whether requests of a client may begin. Asking is cheap and does not block.
pub trait SendGuard: Send + Sync {
    /// The lease that has to be held, as `namespace/name`.
    fn lease(&self) -> &Arc<str>;

    /// The same for the term that lasts now: it says no when that has ended, also if the next one has begun. `None` if nothing
    /// may begin now.
    fn bound(&self) -> Option<Arc<dyn SendGuard>>;

    /// Whether a request may begin now, by a clock that also runs while the machine is suspended.
    fn may_begin(&self) -> bool;
}

/// The guards of a client, the newest one first. Each is asked.
#[derive(Clone, Default)]
pub(crate) struct Guards(Vec<Arc<dyn SendGuard>>);

/// A transport that is given nothing that may not begin.
struct Asking(Rc<dyn Transport>);

impl Guards {
    /// These guards after one more.
    pub(crate) fn and(&self, guard: Arc<dyn SendGuard>) -> Self {
        Self(std::iter::once(guard).chain(self.0.iter().cloned()).collect())
    }

    /// The same transport, which asks what [`Self::begin`] has added to a request.
    fn before(&self, transport: Rc<dyn Transport>) -> Rc<dyn Transport> {
        if self.0.is_empty() { transport } else { Rc::new(Asking(transport)) }
    }

    /// A request begins: from here on it belongs to the terms that last now. A check that it carries already is
    /// asked before these guards.
    ///
    /// # Errors
    /// When a lease is not held.
    pub(crate) fn begin(&self, request: &mut Request<Bytes>) -> Result<(), TransportError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let before = SendCheck::of(request);
        let bound = |guard: &Arc<dyn SendGuard>| guard.bound().ok_or_else(|| refused(&**guard));
        let terms: Vec<_> = self.0.iter().map(bound).collect::<Result<_, _>>()?;
        request.extensions_mut().insert(SendCheck::new(move || {
            before.as_ref().map_or(Ok(()), SendCheck::ask)?;
            terms.iter().find(|term| !term.may_begin()).map_or(Ok(()), |ended| Err(refused(&**ended)))
        }));
        Ok(())
    }
}

fn refused(guard: &dyn SendGuard) -> TransportError {
    TransportError::NotLeading { lease: Arc::clone(guard.lease()) }
}

impl Transport for Asking {
    fn send(
        &self,
        request: Request<Bytes>,
        kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
        let below = Rc::clone(&self.0);
        Box::pin(async move {
            // Without this a refused request could take a connection, which is closed over it.
            SendCheck::ask_of(&request)?;
            below.send(request, kind).await
        })
    }

    fn timed_out(&self, kind: RequestKind) {
        self.0.timed_out(kind);
    }

    fn distrust(&self) {
        self.0.distrust();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use http::header;

    use super::super::client::Client;
    use super::super::connection_settings::ConnectionSettings;
    use super::*;

    /// Answers at once with the Authorization header that it was sent.
    struct Repeating;

    impl Transport for Repeating {
        fn send(
            &self,
            request: Request<Bytes>,
            _kind: RequestKind,
        ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
            let mut answer = Response::new(futures_util::stream::empty().boxed_local());
            answer.headers_mut().insert("sent", request.headers()[header::AUTHORIZATION].clone());
            Box::pin(async { Ok(answer) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn client_p7_a_plugin_may_take_longer_than_the_head_of_an_answer() {
        let folder = tempfile::tempdir().unwrap();
        let gate = folder.path().join("gate");
        assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
        let credential = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}"#;
        let script = format!("read x < {}; printf '%s' '{credential}'", gate.display());
        let kubeconfig = serde_json::json!({
            "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "users": [{"name": "a", "user": {"exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": "/bin/sh",
                "args": ["-c", script],
                "interactiveMode": "Never",
            }}}],
        });
        let config = Config::from_kubeconfig_text(&kubeconfig.to_string(), None).unwrap();
        let (connections, config) =
            ConnectionSettings::new(&config.plugin_limit(Duration::from_secs(120)), Client::to_issuer)
                .unwrap();
        let settings = Arc::new(LayerSettings::new(&config).unwrap());
        let layers = Layers::new(settings, Some(connections.identities), Rc::new(Repeating));
        let sending = layers.send(Request::new(Bytes::new()), RequestKind::Unary);
        let opening = async {
            // Longer than the head of an answer may take.
            tokio::time::sleep(Duration::from_secs(40)).await;
            std::thread::spawn(move || std::fs::write(gate, "opened\n").unwrap());
        };
        let (answer, ()) = tokio::join!(sending, opening);
        assert_eq!(answer.map(|answer| answer.headers()["sent"].clone()).unwrap(), "Bearer t");
    }
}
