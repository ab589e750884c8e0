//! Serves the probes of a kubelet over HTTP: `/livez` (also `/healthz`) and `/readyz`; with the feature `metrics` also
//! `/metrics`.
//!
//! A [`Probed`] (a [`Runtime`](crate::runtime::Runtime), an operator, or a program's own state) says whether a restart of the
//! process would help, and whether it can do its work.
//! 1. An answer is one word. Reasons and states quote servers and name kinds: they are returned only with `?verbose`, and only to
//!    clients on this machine.
//! 2. Open connections cannot block the probes: a request must be sent within seconds, a connection serves one request, a peer
//!    with too many connections loses its oldest one, and there are at most 64.
//! 3. The probes have their own thread: they answer while everything else is blocked.

use std::convert::Infallible;
use std::future::ready;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_http::{HttpService, KeepAlive, Request};
use actix_service::{Service as _, ServiceFactory as _, fn_service};
use tokio::sync::oneshot;

use connections::Connections;
#[doc(hidden)]
pub use reasons::{detail, given_up, stalled, stuck_threads};

mod connections;
mod extras;
mod reasons;

/// For the head of a request: a kubelet sends it at once, and waits 1 s by default.
const HEAD_DEADLINE: Duration = Duration::from_secs(2);
const CONNECTION_DEADLINE: Duration = Duration::from_secs(5);
/// After a failed accept: the system has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What probes ask. Each method is called for each request, on the thread of the probes: it must not block.
pub trait Probed: Send + Sync + 'static {
    /// Why the process should be restarted; empty if a restart would not help. An unreachable cluster is no
    /// reason.
    fn unhealthy(&self) -> Vec<String>;

    /// What is missing until it can do its work, each with the reason; empty if nothing is.
    fn unready(&self) -> Vec<String>;

    /// How everything is doing, a line each, also when all is well: what `/readyz?verbose` shows besides.
    fn details(&self) -> Vec<String> {
        Vec::new()
    }
}

impl<T: Probed + ?Sized> Probed for Arc<T> {
    fn unhealthy(&self) -> Vec<String> {
        (**self).unhealthy()
    }

    fn unready(&self) -> Vec<String> {
        (**self).unready()
    }

    fn details(&self) -> Vec<String> {
        (**self).details()
    }
}

/// The probes cannot be served on this address.
#[derive(Debug, thiserror::Error)]
#[error("probes cannot listen on {address}: {source}")]
#[non_exhaustive]
pub struct ProbesError {
    /// The address.
    pub address: SocketAddr,
    /// Why.
    pub source: std::io::Error,
}

/// A bound address. Bind it before anything else is started: then a taken port ends the program at once.
///
/// ```
/// use actix_informer::probes::ProbeSocket;
/// use actix_informer::runtime::Runtime;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = Runtime::threads().start()?;
/// let socket = ProbeSocket::bind("127.0.0.1:0".parse()?)?; // in a pod: 0.0.0.0:8081
/// println!("http://{}/readyz?verbose", socket.address());
/// let probes = socket.serve(runtime.clone())?; // ready when every informer of the runtime is synced
/// drop(probes); // they are served until here
/// # Ok(()) }
/// ```
pub struct ProbeSocket {
    /// `None` after the end of the operator of which it was a part.
    listener: Mutex<Option<TcpListener>>,
    address: SocketAddr,
    extras: Extras,
}

/// Served beside the probes.
#[derive(Clone, Default)]
struct Extras {
    metrics: Option<Written>,
    page: Option<Shown>,
}

/// The page's answer to this path and query (`true`: of a POST): content type and body.
type Shown = Arc<dyn Fn(&str, bool) -> Option<(&'static str, String)> + Send + Sync>;

/// The metrics in the form that the header `Accept` asks for: content type and text.
type Written = Arc<dyn Fn(Option<&str>) -> Result<(&'static str, String), std::fmt::Error> + Send + Sync>;

informer_core::debug_as!(ProbeSocket, self, address = self.address);

impl ProbeSocket {
    /// Binds the address; with port 0 the system chooses one. Nobody is answered before [`Self::serve`].
    ///
    /// # Errors
    /// When the system refuses the address.
    pub fn bind(address: SocketAddr) -> Result<Self, ProbesError> {
        let failed = |source| ProbesError { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener: Mutex::new(Some(listener)), address, extras: Extras::default() })
    }

    /// Also serves the metrics of this registry, at `/metrics`: in the OpenMetrics text format if the scraper
    /// asks for it, or else in the older one of Prometheus. Everybody who can connect can read them: choose
    /// the address so. The metrics name kinds, queues, controllers and the API server; no object. They are
    /// written on the thread of the probes: a collector of the program's own must not block.
    ///
    /// ```
    /// use actix_informer::metrics::Metrics;
    /// use actix_informer::prelude::*;
    /// use actix_informer::probes::ProbeSocket;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let runtime = Runtime::threads().start()?;
    /// let socket = ProbeSocket::bind("127.0.0.1:0".parse()?)?.metrics(Metrics::of(&runtime).registry());
    /// let probes = socket.serve(runtime.clone())?;
    /// # drop(probes);
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "metrics")]
    pub fn metrics(self, registry: prometheus_client::registry::Registry) -> Self {
        let metrics: Written = Arc::new(move |accept| crate::metrics::text_of(&registry, accept));
        Self { extras: Extras { metrics: Some(metrics), ..self.extras }, ..self }
    }

    /// Also serves a page that shows the actors at work, at `/`, to clients on this machine alone: also
    /// through `kubectl port-forward`.
    ///
    /// ```
    /// use actix_informer::page::Page;
    /// use actix_informer::prelude::*;
    /// use actix_informer::probes::ProbeSocket;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let runtime = Runtime::threads().start()?;
    /// let socket = ProbeSocket::bind("127.0.0.1:0".parse()?)?.page(Page::of(&runtime, "my operator"));
    /// println!("open http://{}/", socket.address());
    /// let probes = socket.serve(runtime.clone())?;
    /// # drop(probes);
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "page")]
    pub fn page(self, page: crate::page::Page) -> Self {
        let shown: Shown = Arc::new(move |target, is_post| {
            let answer = if is_post { page.answer_post(target) } else { page.answer(target) };
            answer.map(|answer| (answer.content_type, answer.body))
        });
        Self { extras: Extras { page: Some(shown), ..self.extras }, ..self }
    }

    /// The address with its port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn try_clone(&self) -> Result<Self, ProbesError> {
        let failed = |source| ProbesError { address: self.address, source };
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        let listener = listener.as_ref().ok_or_else(closed).and_then(TcpListener::try_clone);
        let (listener, extras) = (Mutex::new(Some(listener.map_err(failed)?)), self.extras.clone());
        Ok(Self { listener, address: self.address, extras })
    }

    /// The address is free when all other handles are closed, too.
    pub(crate) fn close(&self) {
        drop(self.listener.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Serves the probes on this socket, until what is returned is dropped.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub fn serve(self, probed: impl Probed) -> Result<Probes, ProbesError> {
        let Self { listener, address, extras } = self;
        let failed = |source| ProbesError { address, source };
        let listener = listener.into_inner().unwrap_or_else(PoisonError::into_inner);
        let listener = listener.ok_or_else(closed).map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let (serves, over) = oneshot::channel();
        let serving = move || {
            let _serves: oneshot::Sender<Infallible> = serves;
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                tokio::select! {
                    biased;
                    _ = stopped => {}
                    () = answer_all(listener, Rc::new((probed, extras))) => {}
                }
            });
        };
        std::thread::Builder::new().name("probes".to_owned()).spawn(serving).map_err(failed)?;
        Ok(Probes { address, stop, over })
    }
}

/// Probes that are served until this is dropped.
#[derive(Debug)]
#[must_use = "the probes are not served any more once this is dropped"]
pub struct Probes {
    address: SocketAddr,
    /// Its drop ends the thread.
    stop: oneshot::Sender<Infallible>,
    /// Ends when the socket and every connection are closed.
    over: oneshot::Receiver<Infallible>,
}

impl Probes {
    /// The address with its port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Probes {
    pub(crate) async fn end(self) {
        let Self { stop, over, .. } = self;
        drop(stop);
        drop(over.await);
    }
}

fn closed() -> std::io::Error {
    std::io::Error::other("the socket was closed")
}

async fn answer_all(listener: TcpListener, served: Rc<(impl Probed, Extras)>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            return tracing::error!(target: "actix_informer::probes", %error, "the probes cannot be served");
        }
    };
    let one = move |request: Request| {
        let (probed, extras) = &*served;
        let answer = extras::answer(extras, &request);
        ready(Ok::<_, Infallible>(answer.unwrap_or_else(|| reasons::answer(probed, &request))))
    };
    let http = HttpService::build()
        .client_request_timeout(HEAD_DEADLINE)
        .client_disconnect_timeout(HEAD_DEADLINE)
        .keep_alive(KeepAlive::Disabled)
        .on_connect_ext(|stream: &tokio::net::TcpStream, data| {
            data.insert(reasons::CameTo(stream.local_addr().ok()));
        })
        .h1(fn_service(one))
        .tcp();
    let Ok(http) = http.new_service(()).await else {
        return tracing::error!(target: "actix_informer::probes", "the probes cannot be served");
    };
    let http = Rc::new(http);
    let mut connections = Connections::default();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let http = Rc::clone(&http);
                // A peer without an answer sends its request again.
                let served =
                    async move { drop(tokio::time::timeout(CONNECTION_DEADLINE, http.call(stream)).await) };
                connections.add(peer.ip(), tokio::task::spawn_local(served).abort_handle());
            }
            Err(error) => {
                tracing::debug!(target: "actix_informer::probes", %error, pause = ?ACCEPT_PAUSE,
                    "a connection to the probes could not be accepted; trying again after a pause");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
