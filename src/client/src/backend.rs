//! How a client's requests are sent, and each thread's connections for them.
//!
//! All clones of a client share one set of connections on a thread. The set ends with the last source or
//! worker that uses it there. Clients of equal configurations have separate backends, because their
//! credentials renew independently.

use std::cell::RefCell;
use std::rc;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::Request;

use super::config::Config;
use super::connection_settings::ConnectionSettings;
use super::error::{Error, TransportError};
use super::identity::oidc::Issuers;
use super::layers::{Guards, LayerSettings, Layers, SendGuard, Traffic};
use super::transport::Transport;
use super::transport::awc::AwcTransport;
#[cfg(feature = "http2")]
use super::transport::hyper::HyperTransport;
#[cfg(feature = "testing")]
use super::transport::in_process::{self, InProcessTransport, Service};
#[cfg(feature = "kube")]
use super::transport::kube::{self, KubeTransport};

/// How a client's requests are sent, and the settings of the layers before that. Shared by all threads.
pub struct Backend {
    carrier: Carrier,
    settings: Arc<LayerSettings>,
    name: String,
    guards: Guards,
}

#[derive(Clone)]
enum Carrier {
    Own(Arc<ConnectionSettings>),
    /// A backend without guards.
    Guarded(Arc<Backend>),
    #[cfg(feature = "kube")]
    Kube(KubeTransport),
    #[cfg(feature = "testing")]
    InProcess(Service),
}

thread_local! {
    static IN_USE: RefCell<Vec<(Weak<Backend>, rc::Weak<Layers>)>> = const { RefCell::new(Vec::new()) };
}

impl Backend {
    /// Blocking: reads certificates.
    pub(crate) fn new(config: &Config, issuers: Issuers) -> Result<Arc<Self>, Error> {
        let (connections, config) = ConnectionSettings::new(config, issuers)?;
        let name = connections.endpoint.name();
        let traffic = Traffic::new(&name, Arc::downgrade(&connections.identities));
        let settings = Arc::new(LayerSettings::new(&config, traffic)?);
        let (carrier, guards) = (Carrier::Own(Arc::new(connections)), Guards::default());
        Ok(Arc::new(Self { carrier, settings, name, guards }))
    }

    pub(crate) fn guarded(self: &Arc<Self>, guard: Arc<dyn SendGuard>) -> Arc<Self> {
        let (settings, name) = (Arc::clone(&self.settings), self.name.clone());
        let carrier = match &self.carrier {
            Carrier::Guarded(base) => Carrier::Guarded(Arc::clone(base)),
            _ => Carrier::Guarded(Arc::clone(self)),
        };
        Arc::new(Self { carrier, settings, name, guards: self.guards.and(guard) })
    }

    /// The same backend without the client's limits, for the few requests of an election: its lease would
    /// expire if other requests had used up the rate.
    pub fn without_limits(&self) -> Arc<Self> {
        let (carrier, name, guards) = (self.carrier.clone(), self.name.clone(), self.guards.clone());
        Arc::new(Self { carrier, settings: Arc::new(self.settings.without_limits()), name, guards })
    }

    /// As [`Guards::begin`].
    pub(crate) fn begin(&self, request: &mut Request<Bytes>) -> Result<(), TransportError> {
        self.guards.begin(request)
    }

    #[cfg(feature = "kube")]
    pub(crate) fn kube(transport: KubeTransport) -> Arc<Self> {
        Self::without_configuration(Carrier::Kube(transport), kube::SERVER)
    }

    #[cfg(feature = "testing")]
    pub(crate) fn in_process(service: Service) -> Arc<Self> {
        Self::without_configuration(Carrier::InProcess(service), in_process::SERVER)
    }

    #[cfg(any(feature = "kube", feature = "testing"))]
    fn without_configuration(carrier: Carrier, name: &str) -> Arc<Self> {
        let config = Config::new("http://localhost").expect("a URL");
        let settings = LayerSettings::new(&config, Traffic::new(name, Weak::new()));
        let settings = Arc::new(settings.expect("the defaults are valid"));
        Arc::new(Self { carrier, settings, name: name.to_owned(), guards: Guards::default() })
    }

    /// `None` unless this crate connects to a host.
    #[cfg(feature = "disk-cache")]
    pub(crate) fn url(&self) -> Option<String> {
        match &self.carrier {
            Carrier::Own(connections) => connections.endpoint.url(),
            Carrier::Guarded(base) => base.url(),
            #[cfg(feature = "kube")]
            Carrier::Kube(_) => None,
            #[cfg(feature = "testing")]
            Carrier::InProcess(_) => None,
        }
    }

    /// What is counted of the requests of all clones of its client.
    pub fn traffic(&self) -> &Arc<Traffic> {
        &self.settings.traffic
    }

    /// For Debug and logs.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The layered transport of this thread. It is made now if no source on this thread uses it. Connects to
    /// nothing.
    pub fn transport(self: &Arc<Self>) -> Rc<dyn Transport> {
        self.layers_here()
    }

    fn layers_here(self: &Arc<Self>) -> Rc<Layers> {
        let this = Arc::downgrade(self);
        let known = IN_USE.with_borrow_mut(|in_use| {
            in_use.retain(|(_, layers)| layers.strong_count() > 0);
            let known = in_use.iter().find(|(backend, _)| backend.ptr_eq(&this));
            known.and_then(|(_, layers)| layers.upgrade())
        });
        known.unwrap_or_else(|| {
            // Not inside a borrow of `IN_USE`: the layers of a guarded backend look up those of its base.
            let layers = Rc::new(self.layers());
            IN_USE.with_borrow_mut(|in_use| in_use.push((this, Rc::downgrade(&layers))));
            layers
        })
    }

    fn layers(&self) -> Layers {
        let settings = Arc::clone(&self.settings);
        match &self.carrier {
            Carrier::Own(connections) => {
                Layers::new(settings, Some(Arc::clone(&connections.identities)), own_transport(connections))
            }
            Carrier::Guarded(base) => base.layers_here().guarded(settings, self.guards.clone()),
            #[cfg(feature = "kube")]
            Carrier::Kube(transport) => Layers::new(settings, None, Rc::new(transport.clone())),
            #[cfg(feature = "testing")]
            Carrier::InProcess(service) => {
                Layers::new(settings, None, Rc::new(InProcessTransport::new(Arc::clone(service))))
            }
        }
    }
}

fn own_transport(connections: &Arc<ConnectionSettings>) -> Rc<dyn Transport> {
    #[cfg(feature = "http2")]
    if connections.http2 {
        return Rc::new(HyperTransport::new(Arc::clone(connections)));
    }
    Rc::new(AwcTransport::new(Arc::clone(connections)))
}

informer_core::debug_as!(Backend, self, name = self.name());

#[cfg(test)]
mod tests {
    use super::super::client::Client;
    use super::*;

    fn backend() -> Arc<Backend> {
        let config = Config::new("http://127.0.0.1:1").expect("a URL");
        Backend::new(&config, Client::to_issuer).expect("a configuration")
    }

    #[test]
    fn sources_of_one_thread_and_one_backend_share_a_transport_which_ends_with_the_last() {
        let (one, other) = (backend(), backend());
        let first = one.transport();
        assert!(Rc::ptr_eq(&first, &one.transport()), "the same");
        assert!(!Rc::ptr_eq(&first, &other.transport()), "another backend");
        let watched = Rc::downgrade(&first);
        drop(first);
        assert!(watched.upgrade().is_none(), "nobody uses it any more");
        let _again = one.transport();
        assert_eq!(IN_USE.with_borrow(Vec::len), 1, "what is not in use is forgotten");
    }

    #[test]
    fn a_guarded_backend_that_comes_first_shares_its_connections_with_those_that_come_later() {
        let base = backend();
        let guarded = Backend {
            carrier: Carrier::Guarded(Arc::clone(&base)),
            settings: Arc::clone(&base.settings),
            name: base.name.clone(),
            guards: Guards::default(),
        };
        let _used = Arc::new(guarded).transport();
        let of_base = |(known, layers): &(Weak<Backend>, rc::Weak<Layers>)| {
            known.ptr_eq(&Arc::downgrade(&base)) && layers.strong_count() > 0
        };
        assert!(IN_USE.with_borrow(|in_use| in_use.iter().any(of_base)));
    }
}
