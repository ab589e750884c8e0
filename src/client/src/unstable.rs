//! Inner parts of the client, for fuzz targets, benchmarks and the tests of `actix-informer`. Nothing here is promised.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use informer_actors::runtime::DecodePool;
use informer_core::list_watch_error::ListWatchError;
use kube_core::response::Status;

pub use crate::list_watch::KubeListWatch;
pub use crate::request::RequestKind;
pub use crate::streams::{Channels, Event, Frames, LogLines, MAX_FRAME};
pub use crate::transport::{Body, Connection, Duplex, Transport};
pub use crate::wire::{Frame, ListHead, SplitError, Splitter};

use crate::error::status;
#[cfg(feature = "protobuf")]
use crate::representation::Encoded;
use crate::representation::Representation;
use crate::wire::{MetaScan, WireKind};
use crate::{Error, PluginError, ResourceSource};

/// What a scan of an object's JSON finds.
///
/// ```
/// use actix_informer::unstable::meta_scan;
/// let found = meta_scan(br#"{"kind":"Pod","metadata":{"name":"web-0","namespace":"a","resourceVersion":"7"},"spec"#);
/// assert_eq!(found.key()?.to_string(), "a/web-0");
/// assert_eq!(found.version()?.to_string(), "7");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn meta_scan(json: &[u8]) -> MetaScan<'_> {
    WireKind::Json.identify(json)
}

/// An object in protobuf, in its envelope. `None` if it is of no known kind.
#[cfg(feature = "protobuf")]
pub fn protobuf(object: &[u8]) -> Option<Encoded<'_>> {
    let wire = WireKind::of_kept(object);
    (wire != WireKind::Json).then(|| Encoded::new(wire, object))
}

/// The status of an answer with this HTTP code, this text of its Retry-After header, and this body.
pub fn status_of_answer(code: u16, retry_after: Option<&str>, body: &[u8]) -> Status {
    status::of_texts(code, retry_after, body)
}

/// The status that the object of an ERROR event is.
pub fn status_of_frame(object: &str) -> Status {
    status::of_frame(object)
}

/// How long the server of this status asks to wait.
pub fn wait_of_status(status: &Status) -> Option<Duration> {
    status::wait_of(status)
}

/// The error of a list or watch that was refused with this status; `initial_events` is true for a watch-list.
pub fn error_of_status(status: Status, initial_events: bool) -> ListWatchError {
    status::into_error(status, initial_events)
}

/// What a credential plugin printed, as Debug shows it: without its secrets.
///
/// # Errors
/// When it is not an `ExecCredential` of this version that can be used.
pub fn plugin_answer(output: &[u8], api_version: &str) -> Result<String, PluginError> {
    crate::identity::exec::parse(output, api_version).map(|credentials| format!("{credentials:?}"))
}

/// The proxy that an environment with these variables asks for on the way to this endpoint, without user and
/// password.
///
/// # Errors
/// When the endpoint or the proxy cannot be used.
pub fn proxy_of_environment(variables: &[(&str, &str)], endpoint: &str) -> Result<Option<String>, Error> {
    crate::proxy::environment::proxy_of(variables, endpoint)
}

/// Each call of the result makes one source. It must happen on the thread that will use the source, inside a
/// `LocalSet`.
///
/// # Errors
/// As [`ResourceSource::source`].
pub fn list_watches<K, R: Representation>(
    source: ResourceSource<K, R>,
    pool: DecodePool,
) -> Result<impl Fn() -> KubeListWatch<R> + Send + Sync + 'static, Error> {
    let backend = Arc::clone(source.backend());
    source.list_watches(pool, move || backend.transport())
}

/// The same over a transport of one's own.
///
/// # Errors
/// As [`ResourceSource::source`].
pub fn list_watches_over<K, R: Representation>(
    source: ResourceSource<K, R>,
    pool: DecodePool,
    transport: impl Fn() -> Rc<dyn Transport> + Send + Sync + 'static,
) -> Result<impl Fn() -> KubeListWatch<R> + Send + Sync + 'static, Error> {
    source.list_watches(pool, transport)
}

/// The pure parts of discovery: what is made of bytes, without a server.
pub mod discovery {
    use crate::discovery::documents::{self, Root, legacy};
    use crate::discovery::model::ServerResources;

    /// What a server serves whose root was answered with these bytes, in either form.
    ///
    /// # Errors
    /// Why they are no discovery document.
    pub fn discovered(body: &[u8]) -> Result<ServerResources, String> {
        match documents::root(body).map_err(|error| error.to_string())? {
            Root::Aggregated(groups, failed) => Ok(ServerResources { groups, failed }),
            Root::Legacy(groups) => Ok(ServerResources { groups, failed: Vec::new() }),
        }
    }

    /// How many resources the list of one version has.
    ///
    /// # Errors
    /// Why they are no such list.
    pub fn listed(body: &[u8]) -> Result<usize, String> {
        legacy::resources(body, ("apps", "v1")).map(|found| found.len()).map_err(|error| error.to_string())
    }

    /// The same after it was written to a cache on disk and read again.
    pub fn written_and_read(served: &ServerResources) -> Option<ServerResources> {
        let mut groups = legacy::groups(&legacy::written_groups(&served.groups)).ok()?;
        for (group, written) in groups.iter_mut().zip(&served.groups) {
            for (version, written) in group.versions.iter_mut().zip(&written.versions) {
                let list = legacy::written_resources(&group.name, written);
                version.resources = legacy::resources(&list, (&group.name, &version.name)).ok()?;
            }
        }
        Some(ServerResources { groups, failed: served.failed.clone() })
    }

    /// The full name of the resource that a name means, or the error.
    ///
    /// # Errors
    /// The text that a caller of discovery gets.
    pub fn resolved(served: &ServerResources, name: &str) -> Result<String, String> {
        served.find(name).map(|found| found.resource.full_name()).map_err(|error| error.to_string())
    }
}
