//! Controllers: a function that brings each object, and what belongs to it, into the wanted state.
//!
//! Owners come from references ([`Owns`]), own writes from the answers of the API server ([`OwnWrites`]).
//!
//! ```
//! use actix_informer::controller::{Controller, Outcome, ReconcileError, Request, predicates};
//! use actix_informer::prelude::*;
//! use k8s_openapi::api::apps::v1::Deployment;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use serde_json::json;
//! use std::time::Duration;
//!
//! /// Each deployment gets a config map with its number of replicas.
//! async fn reconcile(client: Client, request: Request<Deployment>) -> Result<Outcome, ReconcileError> {
//!     let Some(deployment) = request.object() else { return Ok(Outcome::Done) }; // what it owns is deleted with it
//!     let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
//!     let map = json!({
//!         "apiVersion": "v1", "kind": "ConfigMap",
//!         "metadata": {"name": request.key().name(), "ownerReferences": [deployment.controller_owner_ref(&())]},
//!         "data": {"replicas": replicas.to_string()},
//!     });
//!     let maps = client.api::<ConfigMap>().namespaced(request.key().namespace().unwrap_or_default());
//!     let apply = PatchParams::apply("replicas-to-maps").force();
//!     let written = maps.patch(request.key().name(), &apply, &Patch::Apply(map)).await?;
//!     request.written(&written); // not again before the cache has it
//!     Ok(Outcome::RequeueAfter(Duration::from_secs(600)))
//! }
//! # use actix_informer::kube_core::Resource;
//!
//! fn start(
//!     client: Client,
//!     deployments: &Informer<Deployment>,
//!     maps: &Informer<ConfigMap>,
//! ) -> Result<Controller<Deployment>, actix_informer::Error> {
//!     let controller = Controller::builder(deployments)
//!         .owns(maps)
//!         .filter(predicates::generation_changed())
//!         .workers(8)
//!         .time_limit(Duration::from_secs(30))
//!         .reconcile(move |request| reconcile(client.clone(), request))
//!         .start()?;
//!     Ok(controller)
//! }
//! ```

pub use informer_operator::controller::{
    AnyController, Causes, Controller, ControllerBuilder, ControllerEnd, ControllerState, ControllerStatus,
    Counts, EventKind, Failure, HANGS_AFTER, KeptFigures, MOST_ANSWERED, MOST_CAUSES, MOST_DELETED,
    MOST_RESTING, MOST_WITH_CAUSES, MOST_WRITES, Outcome, ReadyController, Reason, Reconcile, ReconcileError,
    Request, Selected, StartControllerError, Trigger,
};

#[cfg(feature = "client")]
pub use informer_operator::controller::kubernetes::{OwnWrites, Owns, owner};

#[cfg(feature = "client")]
pub mod predicates;
