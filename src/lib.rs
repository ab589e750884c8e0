//! Kubernetes informers as supervised actix actors.
//!
//! An informer keeps a local copy of one kind of object and delivers every change to its subscribers until it is stopped.
//! Reflector, DeltaFifo, Indexer, Processor and Listeners are actors; a Supervisor restarts those that fail. The `client` feature
//! adds Kubernetes as a source.
//!
//! A [`client::Client`] describes a resource ([`client::ResourceSource`]); the description returns the builder of an informer. A
//! source that is not Kubernetes implements [`source::ListWatch`] and begins with [`informer::Informer::builder`]. All errors
//! convert into [`Error`].
//!
//! ```
//! use actix_informer::prelude::*;
//! use k8s_openapi::api::core::v1::Pod;
//! use std::time::Duration;
//!
//! async fn pods_of_shop(client: Client, runtime: &Runtime) -> Result<usize, actix_informer::Error> {
//!     let shop = client.resource::<Pod>().namespace("default").labels("app=shop");
//!     let pods = shop.informer(runtime)?.start()?;
//!     pods.synced_within(Duration::from_secs(30)).await?; // the error says why it is not synced
//!     Ok(pods.lister().snapshot().len())
//! }
//! ```
//!
//! | you want to | module |
//! |---|---|
//! | follow, read and stop | [`informer`], [`object`] |
//! | receive changes | [`subscription`] |
//! | write an operator | [`controller`] |
//! | work on changed keys, and try failures again | [`work_queue`] |
//! | let one of several replicas work | [`leader_election`] |
//! | reach a cluster | [`client`], [`representation`] |
//! | share informers in a program | [`factory`] |
//! | read and write objects | [`client::api`] |
//! | reconcile: finalizers, children, conditions | [`reconcile`] |
//! | read one's own writes at once | [`overlay`] |
//! | tell people about objects | [`events`] |
//! | follow something that is not Kubernetes | [`source`] |
//! | choose threads, stop everything | [`runtime`] |
//! | start and stop all of an operator | [`operator`] |
//! | see how it is doing | [`status`] |
//! | see where the time goes for one object | [`path`] |
//! | answer a kubelet's probes | `probes`, with the feature of that name |
//! | see the actors at work in a browser | `page`, with the feature of that name |
//! | be measured by Prometheus | `metrics`, with the feature of that name |
//! | unit-test code that reads or is notified | [`fake`] |
//! | test an operator | `testing`, with the feature of that name |
//!
//! # Logs
//!
//! Everything is logged with `tracing` under the target `actix_informer`. The parts have targets below it: `informer` (lists,
//! watches, sources, subscriptions, restarts), `controller` (with a span `reconcile`), `work_queue`, `leader_election`,
//! `operator`, `events`, `client` (with a span `request`), `runtime` (threads), `probes`, `testing` and `informerd`. The filter
//! `info,actix_informer::client=debug` adds each request.
//!
//! The README has a complete program, `ARCHITECTURE.md` the design.

#[cfg(feature = "client")]
pub mod client;
pub mod controller;
mod error;
#[cfg(feature = "client")]
pub mod factory;
pub mod fake;
#[cfg(all(feature = "client", feature = "testing"))]
pub mod guide;
pub mod informer;
#[cfg(feature = "kube")]
mod kube_events;
#[cfg(feature = "metrics")]
pub mod metrics;
pub mod object;
pub mod operator;
#[cfg(feature = "page")]
pub mod page;
#[cfg(feature = "client")]
pub mod path;
pub mod prelude;
#[cfg(feature = "probes")]
#[doc(hidden)]
pub mod printable;
#[cfg(feature = "probes")]
pub mod probes;
#[cfg(feature = "signals")]
pub mod signals;
pub mod source;
pub mod status;
pub mod subscription;
#[cfg(feature = "testing")]
pub mod testing;
pub mod work_queue;

/// Compiles the README's examples.
#[cfg(all(doctest, feature = "client", feature = "testing"))]
#[doc = include_str!("../README.md")]
struct Readme;

pub use error::Error;
/// The `http` crate whose requests and responses [`client::Client::send`] takes and returns.
#[cfg(feature = "client")]
pub use http;
/// The `actix` crate whose actors can subscribe (`Handler<Notify<S>>`).
pub use informer_actors::actix;
pub use informer_actors::runtime;
#[cfg(feature = "unstable")]
#[doc(hidden)]
pub use informer_client::unstable;
#[cfg(feature = "client")]
pub use informer_client::{clusters, overlay, representation};
#[cfg(feature = "client")]
pub use informer_operator::election::kubernetes as leader_election;
#[cfg(feature = "client")]
pub use informer_operator::events::kubernetes as events;
#[cfg(feature = "client")]
pub use informer_operator::reconcile::kubernetes as reconcile;
/// The `k8s-openapi` crate whose types informers keep. The program chooses a feature of it, such as `v1_36`.
#[cfg(feature = "client")]
pub use k8s_openapi;
/// The `kube-core` crate whose `Resource` describes a kind, and whose `DynamicObject` and `PartialObjectMeta`
/// informers keep.
#[cfg(feature = "client")]
pub use kube_core;
