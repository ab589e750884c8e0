//! Objects that leave what a controller's informer follows and live on (operator B), over the in-memory API server.
//!
//! Answers "is nothing told as deleted that lives, and does no finalizer stay on what nobody follows?". Each reconcile leaves
//! a line: what the request shows, and what `finalizer` called.

#![expect(clippy::unwrap_used, reason = "a scene that cannot be set up has failed the test")]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_informer::controller::{Controller, ControllerBuilder, Outcome, ReconcileError, Request};
use actix_informer::informer::Informer;
use actix_informer::reconcile::{Finalize, finalizer};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::factory::{Cluster, run};
use crate::reconcile::MINE;
use crate::world::{LONG, until};

const SECOND: Duration = Duration::from_secs(1);

/// What was reconciled, and what happens on the server while an object is cleaned up, once.
#[derive(Clone, Default)]
struct Operator {
    lines: Arc<Mutex<Vec<String>>>,
    meanwhile: Arc<Mutex<Option<Value>>>,
}

impl Operator {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }

    /// Reconciles by `finalizer`.
    fn start(&self, cluster: &Cluster, builder: ControllerBuilder<ConfigMap>) -> Controller<ConfigMap> {
        let (operator, client, server) = (self.clone(), cluster.client.clone(), Arc::clone(&cluster.server));
        let reconcile = move |request: Request<ConfigMap>| {
            let (operator, client, server) = (operator.clone(), client.clone(), Arc::clone(&server));
            async move {
                let called = async |event: Finalize<ConfigMap>| {
                    let is_ending = match &event {
                        Finalize::Apply(map) | Finalize::CleanUp(map) => {
                            map.metadata.deletion_timestamp.is_some()
                        }
                    };
                    let meanwhile = operator.meanwhile.lock().unwrap().take();
                    if let Some(patch) = meanwhile {
                        server.merge_patch("configmaps", "default", "a", &patch).unwrap();
                    }
                    Ok::<_, ReconcileError>(format!("{event}{}", if is_ending { ", ending" } else { "" }))
                };
                let done: String = finalizer(&client, &request, MINE, called).await?;
                operator.lines.lock().unwrap().push(format!("{}: {done}", shown(&request)));
                Ok(Outcome::Done)
            }
        };
        builder.reconcile(reconcile).start().unwrap()
    }
}

/// Which state the request shows, of the three.
fn shown(request: &Request<ConfigMap>) -> String {
    let states = [("object", request.object()), ("deleted", request.deleted()), ("left", request.left())];
    let shown = states.iter().filter(|(_, state)| state.is_some()).map(|(name, _)| *name);
    shown.collect::<Vec<_>>().join(" and ")
}

fn labels(shop: &str) -> Value {
    json!({"metadata": {"labels": {"shop": shop}}})
}

impl Cluster {
    fn label(&self, name: &str, shop: &str) {
        self.server.merge_patch("configmaps", "default", name, &labels(shop)).unwrap();
    }

    fn create_map(&self, name: &str, metadata: Value) {
        let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        map["metadata"]["name"] = name.into();
        map["metadata"]["namespace"] = "default".into();
        self.server.create(map).unwrap();
    }

    fn in_shop(&self, name: &str) {
        self.create_map(name, labels("yes")["metadata"].clone());
    }

    /// The informer of what is in the shop, synced.
    async fn shop(&self) -> Informer<ConfigMap> {
        let factory = self.factory();
        let shop = factory.resource::<ConfigMap>().namespace("default").labels("shop=yes");
        let informer = factory.of(shop).unwrap();
        factory.start().unwrap();
        informer.synced_within(LONG).await.unwrap();
        informer
    }

    /// What was asked of the server about config maps since this was called last, but for lists and watches.
    fn asked(&self) -> Vec<String> {
        let requests = self.server.requests();
        self.server.clear_requests();
        let of_maps = requests.iter().filter(|one| one.resource == "configmaps");
        of_maps.map(|one| one.verb.to_string()).filter(|verb| !matches!(&**verb, "list" | "watch")).collect()
    }

    /// An operator that has applied the map `a` of the shop.
    async fn operated(&self) -> (Operator, Controller<ConfigMap>) {
        self.in_shop("a");
        let operator = Operator::default();
        let controller = operator.start(self, Controller::builder(&self.shop().await));
        sleep(10 * SECOND).await;
        operator.take();
        assert_eq!(self.finalizers("a").unwrap(), [MINE]);
        self.asked();
        (operator, controller)
    }
}

// OPR-26: given an object with a finalizer, when it leaves the selectors of its controller's informer, then
// it is cleaned up once and its finalizer is removed from the living object, whether the watch was there or
// not and whoever leads; if it was deleted, or another object has its name, or it is selected again, nothing
// is sent for it; of a namespace that is followed no more nothing is asked and its finalizers stay.
// - a it is cleaned up once and let go, and applied as a new one when it is back, on a real server, too
// - b also while the watch is broken, and while nobody leads:
//   `ctl_26_an_object_that_leaves_while_the_watch_is_broken_is_cleaned_up_after_the_next_list`
// - c by a selector of fields, too, whatever is written to it after:
//   `operator_b_an_object_that_leaves_a_selector_of_fields_is_let_go_whatever_is_written_to_it_after`
// - d one that was deleted costs one question and no write, and another life of the name keeps its finalizer:
//   `operator_b_of_an_object_that_was_deleted_the_server_is_asked_once_and_nothing_is_sent_for_it`
// - e one that is selected again, before it is asked for or while it is cleaned up, keeps its finalizer and
//   is applied: `operator_b_an_object_that_is_back_before_the_server_is_asked_is_not_cleaned_up`
// - f of a namespace that is followed no more nothing is asked, and the finalizers stay:
//   `operator_b_an_object_whose_namespace_is_followed_no_more_is_not_told_as_deleted_and_keeps_its_finalizer`
#[test]
fn opr_26_an_object_that_leaves_the_selector_is_not_told_as_deleted_and_is_cleaned_up_once_and_let_go() {
    run(|cluster| async move {
        let (operator, _controller) = cluster.operated().await;
        cluster.label("a", "no");
        sleep(60 * SECOND).await;
        assert_eq!(operator.take(), ["left: clean up default/a"]);
        assert_eq!(cluster.asked(), ["get", "patch"]);
        assert_eq!(cluster.finalizers("a").unwrap(), [""; 0], "it lives on");

        cluster.label("a", "yes");
        sleep(60 * SECOND).await;
        assert_eq!(operator.take().first().unwrap(), "object: apply default/a", "it is applied as a new one");
        assert_eq!(cluster.finalizers("a").unwrap(), [MINE]);
    });
}

#[test]
fn operator_b_of_an_object_that_was_deleted_the_server_is_asked_once_and_nothing_is_sent_for_it() {
    run(|cluster| async move {
        let (operator, _controller) = cluster.operated().await;
        cluster.server.delete("configmaps", "default", "a").unwrap();
        sleep(60 * SECOND).await;
        assert_eq!(operator.take(), ["object: clean up default/a, ending", "left: "]);
        assert_eq!(cluster.asked(), ["patch", "get"], "the finalizer is removed; the server is asked");

        cluster.in_shop("a");
        sleep(60 * SECOND).await;
        operator.take();
        cluster
            .server
            .merge_patch("configmaps", "default", "a", &json!({"metadata": {"finalizers": []}}))
            .unwrap();
        cluster.server.delete("configmaps", "default", "a").unwrap();
        cluster.create_map("a", json!({"finalizers": [MINE]}));
        sleep(60 * SECOND).await;
        assert_eq!(operator.take(), ["left: "]);
        assert_eq!(cluster.finalizers("a").unwrap(), [MINE], "another life of the name keeps its own");
    });
}

#[test]
fn operator_b_an_object_that_comes_back_while_it_is_cleaned_up_keeps_its_finalizer_and_is_applied_again() {
    run(|cluster| async move {
        let (operator, _controller) = cluster.operated().await;
        *operator.meanwhile.lock().unwrap() = Some(labels("yes"));
        cluster.label("a", "no");
        sleep(60 * SECOND).await;
        assert_eq!(operator.take(), ["left: clean up default/a", "object: apply default/a"]);
        assert_eq!(cluster.finalizers("a").unwrap(), [MINE]);
        assert_eq!(cluster.asked(), ["get", "patch", "get"], "the patch was refused");

        // Any other change meanwhile does not keep it.
        *operator.meanwhile.lock().unwrap() = Some(json!({"data": {"x": "1"}}));
        cluster.label("a", "no");
        sleep(60 * SECOND).await;
        assert_eq!(operator.take(), ["left: clean up default/a"]);
        assert_eq!(cluster.finalizers("a").unwrap(), [""; 0]);
    });
}

#[test]
fn operator_b_an_object_that_is_back_before_the_server_is_asked_is_not_cleaned_up() {
    run(|cluster| async move {
        let (operator, _controller) = cluster.operated().await;
        cluster.server.faults().deny("get", "configmaps");
        cluster.label("a", "no");
        sleep(5 * SECOND).await;
        assert_eq!(operator.take(), [""; 0], "nothing is done as long as the server does not say what is so");
        assert_eq!(cluster.finalizers("a").unwrap(), [MINE]);
        cluster.server.faults().freeze_watches(true);
        cluster.label("a", "yes");
        cluster.server.faults().allow("get", "configmaps");
        sleep(20 * SECOND).await;
        assert_eq!(operator.take(), ["left: "], "the cache does not show it, the server does");
        cluster.server.faults().freeze_watches(false);
        sleep(60 * SECOND).await;
        assert_eq!(operator.take(), ["object: apply default/a"]);
        assert_eq!(cluster.finalizers("a").unwrap(), [MINE]);
    });
}

#[test]
fn operator_b_an_object_that_leaves_while_nobody_leads_is_cleaned_up_by_the_next_leader() {
    run(|cluster| async move {
        let leads = Arc::new(AtomicBool::new(true));
        let (fence, operator) = (Arc::clone(&leads), Operator::default());
        let builder = Controller::builder(&cluster.shop().await);
        let builder = builder.fenced_by(move || fence.load(Relaxed).then_some(1));
        let controller = operator.start(&cluster, builder);
        cluster.in_shop("a");
        cluster.in_shop("b");
        sleep(10 * SECOND).await;
        leads.store(false, Relaxed);
        operator.take();
        cluster.label("a", "no");
        cluster.label("b", "no");
        sleep(60 * SECOND).await;
        cluster.label("b", "yes");
        sleep(60 * SECOND).await;
        assert_eq!((operator.take(), controller.status().kept.deleted), (vec![], 1));
        leads.store(true, Relaxed);
        sleep(60 * SECOND).await;
        let mut lines = operator.take();
        lines.sort();
        assert_eq!(lines, ["left: clean up default/a", "object: apply default/b"]);
        assert_eq!(cluster.finalizers("a").unwrap(), [""; 0]);
    });
}

// CTL-26: given an informer of which an object can be left out by a change of it, or whose namespaces change,
// when the informer has an object no more, then the reconcile is told that it has left, and not that it was
// deleted; an informer that no object can leave tells a deletion; a standby keeps the newest 4,096 of those
// that have left for the next leader, and no more.
// - a it has left and is not told as deleted, by an event and by a list
// - b also one whose namespace is followed no more:
//   `operator_b_an_object_whose_namespace_is_followed_no_more_is_not_told_as_deleted_and_keeps_its_finalizer`
// - c an informer that no object can leave tells a deletion:
//   `operator_b_an_informer_that_no_object_can_leave_tells_a_deletion_as_one_and_asks_nothing`
// - d until a reconcile that was given it is done, or it is back, or is gone:
//   `ctl_04_a_key_rests_exactly_as_long_as_nothing_new_has_come_and_its_last_state_is_kept_until_done`
// - e a standby keeps 4,096 of them, and forgets what is deleted:
//   `operator_b_a_standby_keeps_4096_objects_that_have_left_and_forgets_older_ones`
#[test]
fn ctl_26_an_object_that_leaves_while_the_watch_is_broken_is_cleaned_up_after_the_next_list() {
    run(|cluster| async move {
        let (operator, _controller) = cluster.operated().await;
        cluster.in_shop("b");
        sleep(10 * SECOND).await;
        operator.take();
        cluster.server.faults().freeze_watches(true);
        cluster.label("a", "no");
        cluster
            .server
            .merge_patch("configmaps", "default", "b", &json!({"metadata": {"finalizers": []}}))
            .unwrap();
        cluster.server.delete("configmaps", "default", "b").unwrap();
        cluster.asked();
        cluster.server.faults().compact();
        cluster.server.faults().end_watches();
        cluster.server.faults().freeze_watches(false);
        sleep(120 * SECOND).await;
        let mut lines = operator.take();
        lines.sort();
        assert_eq!(lines, ["left: ", "left: clean up default/a"], "a list does not say which of them lives");
        assert_eq!(cluster.finalizers("a").unwrap(), [""; 0]);
        let mut asked = cluster.asked();
        asked.sort();
        assert_eq!(asked, ["get", "get", "patch"]);
    });
}

#[test]
fn operator_b_an_informer_that_no_object_can_leave_tells_a_deletion_as_one_and_asks_nothing() {
    run(|cluster| async move {
        for fields in ["", "metadata.name=a,metadata.namespace=default"] {
            let factory = cluster.factory();
            let one = factory.resource::<ConfigMap>().namespace("default").fields(fields);
            let informer = factory.of(one).unwrap();
            factory.start().unwrap();
            let operator = Operator::default();
            let controller = operator.start(&cluster, Controller::builder(&informer));
            cluster.in_shop("a");
            sleep(10 * SECOND).await;
            cluster.asked();
            operator.take();
            cluster.server.delete("configmaps", "default", "a").unwrap();
            sleep(60 * SECOND).await;
            assert_eq!(operator.take(), ["object: clean up default/a, ending", "deleted: "], "{fields:?}");
            assert_eq!(cluster.asked(), ["patch"], "{fields:?}");
            controller.shut_down();
        }
    });
}

#[test]
fn operator_b_an_object_that_leaves_a_selector_of_fields_is_let_go_whatever_is_written_to_it_after() {
    run(|cluster| async move {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default",
            "finalizers": [MINE]}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
        cluster.server.create(pod).unwrap();
        let phase = |phase: &str| {
            let status = json!({"status": {"phase": phase}});
            cluster.server.merge_patch("pods/status", "default", "a", &status).unwrap();
        };
        phase("Running");
        let factory = cluster.factory();
        let running = factory.resource::<Pod>().namespace("default").fields("status.phase=Running");
        let informer = factory.of(running).unwrap();
        factory.start().unwrap();
        let (client, lines) = (cluster.client.clone(), Arc::new(Mutex::new(Vec::new())));
        let noted = Arc::clone(&lines);
        let reconcile = move |request: Request<Pod>| {
            let (client, noted) = (client.clone(), Arc::clone(&noted));
            async move {
                let called = async |event: Finalize<Pod>| Ok::<_, ReconcileError>(event.to_string());
                let done: String = finalizer(&client, &request, MINE, called).await?;
                noted.lock().unwrap().push(format!("{} {done}", request.left().is_some()));
                Ok(Outcome::Done)
            }
        };
        let controller = Controller::builder(&informer).reconcile(reconcile).start().unwrap();
        sleep(10 * SECOND).await;
        cluster.server.faults().deny("get", "pods");
        phase("Succeeded");
        sleep(5 * SECOND).await;
        cluster.server.merge_patch("pods", "default", "a", &labels("x")).unwrap();
        cluster.server.faults().allow("get", "pods");
        until(|| lines.lock().unwrap().len() == 2).await;
        sleep(SECOND).await;
        assert_eq!(*lines.lock().unwrap(), ["false apply default/a", "true clean up default/a"]);
        assert_eq!(cluster.server.get("pods", "default", "a").unwrap()["metadata"].get("finalizers"), None);
        assert!(controller.status().longest_running.is_none(), "no cache is waited for that leaves it out");
    });
}

#[test]
fn operator_b_an_object_whose_namespace_is_followed_no_more_is_not_told_as_deleted_and_keeps_its_finalizer() {
    run(|cluster| async move {
        let factory = cluster.factory();
        let informer = factory.of(factory.resource::<ConfigMap>().namespaces(["default"])).unwrap();
        factory.start().unwrap();
        let operator = Operator::default();
        let _controller = operator.start(&cluster, Controller::builder(&informer));
        cluster.in_shop("a");
        sleep(10 * SECOND).await;
        assert_eq!(cluster.finalizers("a").unwrap(), [MINE]);
        operator.take();
        cluster.asked();
        informer.set_namespaces(["web"]).unwrap();
        sleep(60 * SECOND).await;
        assert_eq!((operator.take(), cluster.asked()), (vec!["left: ".to_owned()], vec![]));
        assert_eq!(cluster.finalizers("a").unwrap(), [MINE]);
        informer.set_namespaces(["default"]).unwrap();
        sleep(60 * SECOND).await;
        assert_eq!(operator.take(), ["object: apply default/a"]);
    });
}
