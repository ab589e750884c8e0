//! An object that leaves the selector of a controller's informer, on both servers.
//!
//! Answers "what does a real server tell of it, and is it let go?" The event is `DELETED` with the labels that the object had
//! before: nothing in it says that the object lives.

#![expect(clippy::unwrap_used, reason = "a helper that fails has failed the test")]

use std::sync::{Arc, Mutex};

use actix_informer::client::api::Api;
use actix_informer::controller::{Controller, Outcome, ReconcileError, Request};
use actix_informer::prelude::*;
use actix_informer::reconcile::{Finalize, finalizer};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::stage::{LONG, LOOK, Stage};

const MINE: &str = "example.org/mine";

struct Scene {
    maps: Api<ConfigMap>,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    async fn make(&self, name: &str) {
        let map = json!({"metadata": {"name": name, "labels": {"shop": "yes"}}});
        self.maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
        self.said(&format!("{name}: apply")).await;
    }

    async fn patch(&self, name: &str, metadata: Value) {
        let patch = Patch::Merge(json!({"metadata": metadata}));
        self.maps.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits for this line. Those that came since the call before are removed, and returned.
    async fn said(&self, line: &str) -> Vec<String> {
        let waited = async {
            while !self.lines.lock().unwrap().iter().any(|said| said == line) {
                sleep(LOOK).await;
            }
        };
        let is_said = timeout(LONG, waited).await;
        let lines = std::mem::take(&mut *self.lines.lock().unwrap());
        is_said.unwrap_or_else(|_| panic!("{line:?} is not among {lines:?}"));
        lines
    }
}

async fn reconciled(client: &Client, request: &Request<ConfigMap>) -> Result<String, ReconcileError> {
    let called = async |event: Finalize<ConfigMap>| {
        Ok::<_, ReconcileError>(match event {
            Finalize::Apply(_) => "apply".to_owned(),
            Finalize::CleanUp(map) if map.metadata.deletion_timestamp.is_none() => {
                "clean up, it lives".to_owned()
            }
            Finalize::CleanUp(_) => "clean up".to_owned(),
        })
    };
    let done: String = finalizer(client, request, MINE, called).await?;
    let shop = |map: &Object<ConfigMap>| map.metadata.labels.as_ref().unwrap()["shop"].clone();
    let left = request.left().map(|map| format!(" left with shop={}", shop(map)));
    let known = request.deleted().map(|_| " deleted".to_owned()).or(left);
    Ok(format!("{}{}: {done}", request.key().name(), known.unwrap_or_default()))
}

pub(crate) async fn operator_b_an_object_that_leaves_the_selector_is_cleaned_up_and_let_go(stage: Stage) {
    let client = stage.server.client();
    let scene = Scene { maps: client.api().namespaced(&*stage.namespace), lines: Arc::default() };
    let shop = client.resource::<ConfigMap>().namespace(&*stage.namespace).labels("shop=yes");
    let informer = shop.informer(&stage.runtime).unwrap().start().unwrap();
    let lines = Arc::clone(&scene.lines);
    let reconcile = move |request: Request<ConfigMap>| {
        let (client, lines) = (client.clone(), Arc::clone(&lines));
        async move {
            let line = reconciled(&client, &request).await?;
            lines.lock().unwrap().push(line);
            Ok(Outcome::Done)
        }
    };
    let controller = Controller::builder(&informer).reconcile(reconcile).start().unwrap();
    for name in ["leaves", "ends", "stays"] {
        scene.make(name).await;
    }
    scene.patch("leaves", json!({"labels": {"shop": "no"}})).await;
    let lines = scene.said("leaves left with shop=yes: clean up, it lives").await;
    assert!(lines.iter().all(|line| !line.contains("deleted")), "{lines:?}");
    let left = scene.maps.get("leaves").await.unwrap();
    assert_eq!(left.metadata.finalizers, None, "it is let go, and lives on");

    scene.maps.delete("ends", &DeleteParams::default()).await.unwrap();
    scene.said("ends left with shop=yes: ").await;
    assert!(scene.maps.get_opt("ends").await.unwrap().is_none());

    scene.patch("leaves", json!({"labels": {"shop": "yes"}})).await;
    scene.said("leaves: apply").await;
    scene.patch("stays", json!({"annotations": {"a": "b"}})).await;
    scene.said("stays: apply").await;
    for name in ["leaves", "stays"] {
        let map = scene.maps.get(name).await.unwrap();
        assert_eq!(map.metadata.finalizers.unwrap(), [MINE], "{name}");
    }
    let counts = controller.status().counts;
    assert_eq!((counts.errors, counts.panics), (0, 0));
    controller.shut_down();
    for name in ["leaves", "stays"] {
        scene.patch(name, json!({"finalizers": null})).await;
    }
}
