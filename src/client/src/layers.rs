//! The layers that every request passes between its caller and the connection.
//!
//! The order from the caller: the headers (`authorize`), `measure`, `deadline` (of the whole request),
//! `retry`, `limit`, `warn` (`warning.rs`), `authorize`, `deadline` (of the answer). A leader's client
//! (`LeaderElection::guard`, `ForTerm::for_term`) asks its [`Guards`] before the first layer and after the
//! last.
//!
//! 1. A request that waits for a retry holds no place among those under way, and takes a new turn in the
//!    rate.
//! 2. A leader's request belongs to the term that lasts when its caller begins it, on the caller's thread. It
//!    is refused when that term has ended, even if the next one has begun.
//! 3. The clock is read again directly before the first byte of a leader's request: a process that was paused
//!    sends nothing after its lease has ended.
//! 4. A refused request has reached nobody. One whose first byte may have been written is never refused.

use std::cell::Cell;
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
use traffic::{Asked, Sending, code_of};
pub use traffic::{ClientFigures, MethodFigures, RequestFigures, SIZE_BOUNDS, Sizes, Traffic};

mod authorize;
mod deadline;
mod limit;
mod measure;
mod retry;
mod traffic;

pub(crate) struct LayerSettings {
    pub(crate) traffic: Arc<Traffic>,
    headers: Arc<Headers>,
    limits: Limits,
    warnings: Arc<Warnings>,
    max_retries: u32,
    timeout: Option<Duration>,
    answer: AnswerLimits,
}

impl LayerSettings {
    pub(crate) fn new(config: &Config, traffic: Traffic) -> Result<Self, Error> {
        let requests = &config.requests;
        Ok(Self {
            traffic: Arc::new(traffic),
            headers: Arc::new(Headers::new(config)?),
            limits: Limits::new(requests.in_flight, requests.rate),
            warnings: Arc::new(Warnings::new(requests.on_warning.clone())),
            max_retries: requests.max_retries,
            timeout: requests.timeout,
            answer: config.limits,
        })
    }

    pub(crate) fn without_limits(&self) -> Self {
        let (headers, warnings) = (Arc::clone(&self.headers), Arc::clone(&self.warnings));
        let (traffic, limits) = (Arc::clone(&self.traffic), Limits::new(usize::MAX, None));
        let Self { max_retries, timeout, answer, .. } = *self;
        Self { traffic, headers, limits, warnings, max_retries, timeout, answer }
    }
}

/// For one thread.
pub(crate) struct Layers(Rc<Inner>);

struct Inner {
    settings: Arc<LayerSettings>,
    /// `None` if the transport authenticates by itself.
    identities: Option<Arc<Identities>>,
    guards: Guards,
    transport: Rc<dyn Transport>,
    /// Owns these connections, kept so that others on this thread find them.
    _base: Option<Rc<Layers>>,
}

impl Layers {
    pub(crate) fn new(
        settings: Arc<LayerSettings>,
        identities: Option<Arc<Identities>>,
        transport: Rc<dyn Transport>,
    ) -> Self {
        Self(Rc::new(Inner { settings, identities, guards: Guards::default(), transport, _base: None }))
    }

    pub(crate) fn guarded(self: Rc<Self>, settings: Arc<LayerSettings>, guards: Guards) -> Self {
        let (identities, transport) = (self.0.identities.clone(), Rc::clone(&self.0.transport));
        Self(Rc::new(Inner { settings, identities, guards, transport, _base: Some(self) }))
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
        let asked = Asked::of(&request, kind);
        let refused = Cell::new(None);
        let attempt = async |request| {
            if let Some(code) = refused.take() {
                self.settings.traffic.sent_again(&asked, code);
            }
            let answer = self.send_once(request, kind, ends, &asked).await;
            refused.set(Some(code_of(&answer)));
            answer
        };
        // Pinned in place: a future that is passed by value is stored twice and copied.
        let sending = pin!(retry::send(request, kind, retries, ends.map(|(at, _)| at), attempt));
        let sending = pin!(deadline::whole(ends, sending));
        measure::send(span, sending).await
    }

    async fn send_once(
        &self,
        request: Request<Bytes>,
        kind: RequestKind,
        ends: Option<(Instant, Duration)>,
        asked: &Asked,
    ) -> Result<Response<Body>, TransportError> {
        let traffic = &self.settings.traffic;
        let began = Instant::now();
        let place = self.settings.limits.enter(kind, ends.map(|(at, _)| at)).await?;
        traffic.waited(asked, began.elapsed());
        let path = request.uri().clone();
        let attempt = async |request: Request<Bytes>| {
            let deadlines = Deadlines::new(kind, is_slow(&request), ends, &self.settings.answer);
            let counted = Sending::new(traffic, asked, request.body().len());
            let sending = pin!(async {
                // Otherwise a refused request could take a connection, which would then be closed.
                SendCheck::ask_of(&request)?;
                self.transport.send(request, kind).await
            });
            let answer = deadline::send(&*self.transport, kind, deadlines, sending).await;
            counted.ended(&answer);
            answer
        };
        // Outside the answer's deadline: a plugin may ask a person.
        let answer = match &self.identities {
            Some(identities) => authorize::send(identities, request, attempt).await?,
            None => attempt(request).await?,
        };
        self.settings.warnings.report(path.path(), answer.headers());
        Ok(place.until_read(answer, (traffic, asked)))
    }
}

/// Says whether requests of a client may begin. Asking is cheap and does not block.
pub trait SendGuard: Send + Sync {
    /// The lease that has to be held, as `namespace/name`.
    fn lease(&self) -> &Arc<str>;

    /// The same guard, bound to the current term: it says no when that term has ended, even if the next one
    /// has begun. `None` if nothing may begin now.
    fn bound(&self) -> Option<Arc<dyn SendGuard>>;

    /// Whether a request may begin now, by a clock that also runs while the machine is suspended.
    fn may_begin(&self) -> bool;
}

/// The newest first; each is asked.
#[derive(Clone, Default)]
pub(crate) struct Guards(Vec<Arc<dyn SendGuard>>);

impl Guards {
    pub(crate) fn and(&self, guard: Arc<dyn SendGuard>) -> Self {
        Self(std::iter::once(guard).chain(self.0.iter().cloned()).collect())
    }

    /// Binds the request to the current terms; fails when a lease is not held. A check that it already
    /// carries is asked first.
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
        let traffic = Traffic::new("a", Arc::downgrade(&connections.identities));
        let settings = Arc::new(LayerSettings::new(&config, traffic).unwrap());
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
