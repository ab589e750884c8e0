//! For unit tests of operators: objects of plain bodies, events, and caches without a server, a runtime or an async executor.
//!
//! [`Notify::added`](crate::subscription::Notify::added), `updated`, `deleted` and `missed` make events. For a whole operator on
//! simulated time use the feature `testing`.
//!
//! ```
//! use actix_informer::fake;
//! use actix_informer::prelude::*;
//! use k8s_openapi::api::core::v1::Pod;
//!
//! // What is tested: it reads a cache and handles an event.
//! fn of_app(pods: &Lister<Pod>, app: &str) -> usize {
//!     pods.snapshot().labelled(&LabelSelector::everything().equals("app", app).unwrap()).count()
//! }
//! fn is_urgent(event: &Notify<Pod>) -> bool {
//!     matches!(event, Notify::Deleted { .. })
//! }
//!
//! fn pod(name: &str, app: &str) -> Pod {
//!     let mut pod = Pod::default();
//!     pod.metadata.name = Some(name.to_owned());
//!     pod.metadata.namespace = Some("shop".to_owned());
//!     pod.metadata.labels = Some([("app".to_owned(), app.to_owned())].into());
//!     pod
//! }
//! let mut pods = fake::informer([pod("one", "cart"), pod("two", "pay")])?;
//! assert_eq!(of_app(&pods.lister(), "cart"), 1);
//!
//! let events = pods.apply(fake::object(pod("two", "cart"))?)?; // newer than every object that was made before
//! assert!(!is_urgent(&events[0]));
//! assert_eq!(of_app(&pods.lister(), "cart"), 2);
//! assert!(is_urgent(&Notify::deleted(fake::object(pod("two", "cart"))?, Cause::Watch)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use informer_actors::informer::{FakeInformer, NotNewer};

#[cfg(feature = "client")]
pub use self::bodies::{informer, object};

#[cfg(feature = "client")]
mod bodies {
    use std::sync::atomic::{AtomicU64, Ordering};

    use informer_actors::informer::{Body, FakeInformer};
    use informer_core::meta::{Meta, Object, ResourceVersion, SourceId, Uid};
    use kube_core::Resource;

    use informer_client::inner::key_of;

    use crate::object::{BodyError, meta_of};

    static NEXT: AtomicU64 = AtomicU64::new(1);

    /// The object that this body is. As [`from_body`](crate::object::from_body), but a body without
    /// `metadata.resourceVersion` gets a version that is above those of all such bodies before: of two
    /// objects that a test makes one after the other, the second is the newer one.
    ///
    /// # Errors
    /// [`BodyError`] when it has no name, or a version that is not one.
    pub fn object<K: Resource>(body: K) -> Result<Object<K>, BodyError> {
        let meta = match meta_of(&body) {
            Err(BodyError::NoVersion { .. }) => {
                let number = NEXT.fetch_add(1, Ordering::Relaxed);
                let version = ResourceVersion::from_number(number).expect("it begins at one and counts up");
                let uid = Uid::new(body.meta().uid.as_deref().unwrap_or_default());
                Meta::new(key_of(&body)?, version, SourceId::default()).uid(uid)
            }
            meta => meta?,
        };
        Ok(Object::new(meta, body))
    }

    /// A cache of these bodies, each made an object as by [`object`].
    ///
    /// # Errors
    /// As [`object`].
    pub fn informer<K: Resource + Body>(
        bodies: impl IntoIterator<Item = K>,
    ) -> Result<FakeInformer<K>, BodyError> {
        let objects: Vec<_> = bodies.into_iter().map(object).collect::<Result<_, _>>()?;
        Ok(FakeInformer::new(objects))
    }
}
