//! OPR-01 to OPR-05, OPR-17 and OPR-19: finalizers and the status of an object, over the in-memory API server.
//!
//! Answers "is nothing done before the finalizer is there, and nothing forgotten before it goes?" for one pass at a time;
//! `reconcile_crashes.rs` ends passes anywhere.

#![expect(clippy::unwrap_used, reason = "a scene that cannot be set up has failed the test")]

use std::sync::Mutex;

use actix_informer::client::api::{Api, DeleteParams};
use actix_informer::object::from_body;
use actix_informer::reconcile::{
    Finalize, FinalizerError, Subject, WriteLog, WriteRecord, Written, finalizer, update_status,
};
use informer_core::meta::Object;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::children::{Site, SiteStatus, define_sites, site};
use crate::factory::{Cluster, run};

pub(crate) const MINE: &str = "example.org/mine";
const OTHER: &str = "example.org/other";

impl Cluster {
    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        self.client.api::<ConfigMap>().namespaced("default")
    }

    pub(crate) async fn seen(&self, name: &str) -> Object<ConfigMap> {
        from_body(self.maps().get(name).await.expect("it is there")).expect("a server's object")
    }

    fn make(&self, name: &str, finalizers: &[&str]) {
        let metadata = json!({"name": name, "namespace": "default", "finalizers": finalizers});
        self.server
            .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
            .expect("new");
    }

    fn change(&self, name: &str, patch: Value) {
        self.server.merge_patch("configmaps", "default", name, &patch).expect("it is there");
    }

    /// The finalizers on the server; `None` if the object is gone.
    pub(crate) fn finalizers(&self, name: &str) -> Option<Vec<String>> {
        let object = self.server.get("configmaps", "default", name).ok()?;
        let all = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        Some(all.iter().map(|name| name.as_str().expect("a text").to_owned()).collect())
    }

    /// What one pass over this state calls, with the finalizers that the server has at that moment.
    async fn pass(&self, object: &Object<ConfigMap>) -> Result<Option<String>, FinalizerError> {
        let reconcile = |event: Finalize<ConfigMap>| async move {
            Ok(Some(format!("{event} while {:?}", self.finalizers(object.key().name()))))
        };
        finalizer(&self.client, object, MINE, reconcile).await
    }
}

fn said(text: &str) -> Option<String> {
    Some(text.to_owned())
}

// OPR-01: given an object without the finalizer, when it is reconciled, then the finalizer is on the server
// before the first effect; an object that has it costs no request for it.
// - a the finalizer is there before the first effect
// - b the reconcile is given the state that has it
// - c an object that has it costs no request
#[test]
fn opr_01_the_finalizer_is_on_the_server_before_the_first_effect_and_is_added_once() {
    run(|cluster| async move {
        cluster.make("a", &[OTHER]);
        let fresh = cluster.seen("a").await;
        let both = r#"apply default/a while Some(["example.org/other", "example.org/mine"])"#;
        assert_eq!(cluster.pass(&fresh).await.unwrap(), said(both));
        let writes = cluster.server.requests().len();
        assert_eq!(cluster.pass(&cluster.seen("a").await).await.unwrap(), said(both));
        assert_eq!(cluster.server.requests().len(), writes + 1, "the look at it, and nothing else");

        let event = Mutex::new(None);
        cluster.make("b", &[]);
        let keep = |given: Finalize<ConfigMap>| {
            *event.lock().unwrap() = Some(given);
            async { Ok::<_, FinalizerError>(()) }
        };
        finalizer(&cluster.client, &cluster.seen("b").await, MINE, keep).await.unwrap();
        let Some(Finalize::Apply(given)) = event.into_inner().unwrap() else { panic!("it is applied") };
        assert!(given.is_same_as(&cluster.seen("b").await), "it is given the state that has the finalizer");
    });
}

// OPR-02: given an object that is being deleted, when it is reconciled, then it is cleaned up while it has
// the finalizer, then the finalizer is removed; without the finalizer nothing is done.
// - a it is cleaned up while it has the finalizer, which is removed then
// - b without the finalizer nothing is done
// - c an object that is gone is no error
#[test]
fn opr_02_an_object_that_is_deleted_is_cleaned_up_and_then_goes_and_is_left_alone_without_the_finalizer() {
    run(|cluster| async move {
        cluster.make("a", &[MINE]);
        cluster.maps().delete("a", &DeleteParams::default()).await.unwrap();
        let ending = cluster.seen("a").await;
        let held = r#"clean up default/a while Some(["example.org/mine"])"#;
        assert_eq!(cluster.pass(&ending).await.unwrap(), said(held));
        assert_eq!(cluster.finalizers("a"), None, "it is gone");
        assert_eq!(
            cluster.pass(&ending).await.unwrap(),
            said("clean up default/a while None"),
            "gone is fine"
        );

        cluster.make("b", &[OTHER]);
        cluster.maps().delete("b", &DeleteParams::default()).await.unwrap();
        assert_eq!(cluster.pass(&cluster.seen("b").await).await.unwrap(), None);
        assert_eq!(cluster.finalizers("b").unwrap(), [OTHER], "nothing is added to what is being deleted");
    });
}

#[test]
fn bugs_client_a_finalizer_that_is_there_twice_is_cleaned_up_once_and_removed_with_its_double() {
    run(|cluster| async move {
        cluster.make("a", &[MINE, OTHER, MINE]);
        let both =
            r#"apply default/a while Some(["example.org/mine", "example.org/other", "example.org/mine"])"#;
        assert_eq!(cluster.pass(&cluster.seen("a").await).await.unwrap(), said(both));
        cluster.maps().delete("a", &DeleteParams::default()).await.unwrap();
        assert!(cluster.pass(&cluster.seen("a").await).await.unwrap().is_some());
        assert_eq!(cluster.finalizers("a").unwrap(), [OTHER]);
        assert_eq!(cluster.pass(&cluster.seen("a").await).await.unwrap(), None, "nothing is left to do");
    });
}

// OPR-04: given an object that others change, when a finalizer is added or removed, then the patch tests uid,
// version and the entry, and touches that one entry, a conflict is decided anew on the newest state,
// finalizers of others stay, and another object of the name is left alone.
// - a the patch tests uid, version and the entry, and touches that one:
//   `opr_04_a_patch_touches_the_own_entry_only_and_tests_uid_and_version`
// - b a conflict is decided anew
// - c finalizers of others stay
// - d another object of the name is left alone
#[test]
fn opr_04_after_a_conflict_the_newest_state_decides_and_finalizers_of_others_stay() {
    run(|cluster| async move {
        cluster.make("a", &[]);
        let old = cluster.seen("a").await;
        cluster.change("a", json!({"data": {"x": "1"}, "metadata": {"finalizers": [OTHER]}}));
        assert!(cluster.pass(&old).await.unwrap().is_some());
        assert_eq!(cluster.finalizers("a").unwrap(), [OTHER, MINE]);

        cluster.maps().delete("a", &DeleteParams::default()).await.unwrap();
        assert_eq!(
            cluster.pass(&old).await.unwrap(),
            None,
            "it has the finalizer, and its deletion comes as an event"
        );
        let ending = cluster.seen("a").await;
        cluster.change("a", json!({"metadata": {"finalizers": [MINE, OTHER]}}));
        assert!(cluster.pass(&ending).await.unwrap().is_some());
        assert_eq!(cluster.finalizers("a").unwrap(), [OTHER], "it was removed at its new place");

        cluster.change("a", json!({"metadata": {"finalizers": []}}));
        cluster.make("a", &[MINE]);
        assert!(cluster.pass(&ending).await.unwrap().is_some());
        assert_eq!(cluster.finalizers("a").unwrap(), [MINE], "another object of the name keeps its own");
        cluster.maps().delete("a", &DeleteParams::default()).await.unwrap();
        cluster.change("a", json!({"metadata": {"finalizers": []}}));
        assert_eq!(cluster.pass(&old).await.unwrap(), None, "an object that is gone is not reconciled");
    });
}

/// What an informer that cuts the finalizers has of this object.
fn cut(mut object: ConfigMap) -> Object<ConfigMap> {
    object.metadata.finalizers = None;
    from_body(object).expect("a server's object")
}

// OPR-19: given an informer that cuts `metadata.finalizers` from its cache, when an object is reconciled,
// then finalizers of others stay, the own one is added once, an object that is being deleted is cleaned up,
// and a server that does not say which finalizers there are is a typed error.
// - a finalizers of others stay, and the own one is added once
// - b an object that is being deleted is cleaned up
// - c a typed error
// - d another life of the name, and an object that is gone, are left alone:
//   `opr_19_of_another_life_of_the_name_and_of_an_object_that_is_gone_nothing_is_touched`
#[test]
fn opr_19_a_cache_that_cuts_finalizers_costs_requests_and_no_finalizer_of_anybody() {
    run(|cluster| async move {
        let cached = async |name: &str| cut(cluster.maps().get(name).await.expect("it is there"));
        cluster.make("a", &[OTHER]);
        let applied = said(r#"apply default/a while Some(["example.org/other", "example.org/mine"])"#);
        assert_eq!(cluster.pass(&cached("a").await).await.unwrap(), applied);
        let (object, requests) = (cached("a").await, cluster.server.requests().len());
        assert_eq!(cluster.pass(&object).await.unwrap(), applied, "it is added once");
        assert_eq!(cluster.server.requests().len(), requests + 2, "a patch that is refused, and a look");

        cluster.maps().delete("a", &DeleteParams::default()).await.unwrap();
        let ending = cached("a").await;
        let held = said(r#"clean up default/a while Some(["example.org/other", "example.org/mine"])"#);
        assert_eq!(cluster.pass(&ending).await.unwrap(), held);
        assert_eq!(cluster.finalizers("a").unwrap(), [OTHER]);
        let requests = cluster.server.requests().len();
        assert_eq!(cluster.pass(&ending).await.unwrap(), None, "it is left alone");
        assert_eq!(cluster.server.requests().len(), requests + 1);

        cluster.server.faults().deny("get", "configmaps");
        let unread = cluster.pass(&ending).await.unwrap_err();
        assert!(matches!(unread, FinalizerError::Read { .. }), "{unread}");
    });
}

#[test]
fn opr_19_of_another_life_of_the_name_and_of_an_object_that_is_gone_nothing_is_touched() {
    run(|cluster| async move {
        cluster.make("a", &[MINE]);
        cluster.maps().delete("a", &DeleteParams::default()).await.unwrap();
        let ending = cut(cluster.maps().get("a").await.unwrap());
        cluster.change("a", json!({"metadata": {"finalizers": []}}));
        assert_eq!(cluster.pass(&ending).await.unwrap(), None, "it is gone");
        cluster.make("a", &[MINE]);
        cluster.maps().delete("a", &DeleteParams::default()).await.unwrap();
        assert_eq!(cluster.pass(&ending).await.unwrap(), None, "another object of the name");
        assert_eq!(cluster.finalizers("a").unwrap(), [MINE]);
    });
}

// OPR-05: given a clean-up that fails or a server that refuses, when an object is reconciled, then the
// finalizer stays, the reconcile's own error is given unchanged, and a refusal names the object and the step.
// - a the finalizer stays, and the error is given unchanged
// - b a refusal names the object and the step
#[test]
fn opr_05_a_clean_up_that_fails_keeps_the_finalizer_and_its_error_is_given_unchanged() {
    #[derive(Debug, PartialEq)]
    struct Busy;
    impl From<FinalizerError> for Busy {
        fn from(error: FinalizerError) -> Self {
            panic!("{error}")
        }
    }
    run(|cluster| async move {
        cluster.make("a", &[MINE]);
        cluster.maps().delete("a", &DeleteParams::default()).await.unwrap();
        let ending = cluster.seen("a").await;
        let failed: Result<(), _> = finalizer(&cluster.client, &ending, MINE, async |_| Err(Busy)).await;
        assert_eq!(failed, Err(Busy));
        assert_eq!(cluster.finalizers("a").unwrap(), [MINE]);

        cluster.server.faults().deny("patch", "configmaps");
        let refused = cluster.pass(&ending).await.unwrap_err().to_string();
        let words = r#"ConfigMap default/a: finalizer "example.org/mine" was not removed: "#;
        assert!(refused.starts_with(words), "{refused}");
        cluster.make("b", &[]);
        let refused = cluster.pass(&cluster.seen("b").await).await.unwrap_err().to_string();
        assert!(refused.starts_with(r#"ConfigMap default/b: finalizer "example.org/mine" was not added: "#));
    });
}

/// A subject that keeps what it is told.
struct Noting(Object<ConfigMap>, Mutex<Vec<WriteRecord>>);

impl WriteLog for Noting {
    fn record(&self, write: WriteRecord) {
        self.1.lock().unwrap().push(write);
    }
}

impl Subject<ConfigMap> for Noting {
    fn object(&self) -> Option<&Object<ConfigMap>> {
        Some(&self.0)
    }
}

#[test]
fn opr_14_the_change_of_a_finalizer_is_recorded_and_the_last_one_as_a_removal() {
    run(|cluster| async move {
        cluster.make("a", &[]);
        let subject = Noting(cluster.seen("a").await, Mutex::default());
        let nothing = async |_| Ok::<(), FinalizerError>(());
        finalizer(&cluster.client, &subject, MINE, nothing).await.unwrap();
        cluster.maps().delete("a", &DeleteParams::default()).await.unwrap();
        let newer = Noting(cluster.seen("a").await, subject.1);
        finalizer(&cluster.client, &newer, MINE, nothing).await.unwrap();
        let records = newer.1.into_inner().unwrap();
        let told: Vec<_> =
            records.iter().map(|write| (write.meta.key.to_string(), write.is_removed)).collect();
        assert_eq!(told, [("default/a".to_owned(), false), ("default/a".to_owned(), true)]);
        assert!(records[0].meta.version < records[1].meta.version);
    });
}

#[test]
fn a_finalizer_whose_answer_was_lost_counts_as_written_when_a_read_shows_it() {
    run(|cluster| async move {
        cluster.make("a", &[]);
        let subject = Noting(cluster.seen("a").await, Mutex::default());
        // The server has taken the patch; its sender does not know.
        cluster.change("a", json!({"metadata": {"finalizers": [MINE]}}));
        finalizer(&cluster.client, &subject, MINE, async |_| Ok::<(), FinalizerError>(())).await.unwrap();
        let newest = cluster.seen("a").await.version().clone();
        let records = subject.1.into_inner().unwrap();
        let told: Vec<_> = records.iter().map(|write| (&write.meta.version, write.is_removed)).collect();
        assert_eq!(told, [(&newest, false)]);
    });
}

// OPR-17: given a status, when it is updated, then an equal one sends nothing, a write has the version that
// was read, unknown fields of objects stay (of the elements of a changed list they do not), and an object
// that is gone is no error.
// - a an equal one sends nothing
// - b a newer state is a conflict
// - c unknown fields stay
// - d an object that is gone is no error
// - e the patch makes the one of the other:
//   `opr_17_the_patch_of_a_status_makes_the_one_of_the_other_and_is_nothing_where_they_are_equal`
#[test]
fn opr_17_a_status_is_written_only_if_it_differs_and_never_over_a_newer_state() {
    run(|cluster| async move {
        let cluster = &cluster;
        define_sites(&cluster.server);
        cluster.server.create(site("shop")).unwrap();
        let sites = cluster.client.api::<Site>().namespaced("default");
        let seen = async || from_body(sites.get("shop").await.unwrap()).unwrap();
        let first = seen().await;
        let ready = |status: &mut SiteStatus| status.ready = Some(true);
        let written = update_status(&cluster.client, &first, &first, ready).await.unwrap();
        assert!(
            matches!(&written, Written::Changed(site) if site.status.as_ref().unwrap().ready == Some(true))
        );

        let (second, requests) = (seen().await, cluster.server.requests().len());
        assert!(!update_status(&cluster.client, &second, &second, ready).await.unwrap().is_changed());
        assert_eq!(cluster.server.requests().len(), requests, "nothing was sent");

        let unready = |status: &mut SiteStatus| status.ready = Some(false);
        let late = update_status(&cluster.client, &first, &first, unready).await.unwrap_err();
        assert!(late.is_conflict(), "{late}");
        assert_eq!(seen().await.status.as_ref().unwrap().ready, Some(true));

        let foreign = json!({"status": {"unknown": "kept", "ready": null}});
        cluster.server.merge_patch("sites.example.org/status", "default", "shop", &foreign).unwrap();
        let third = seen().await;
        update_status(&cluster.client, &third, &third, ready).await.unwrap();
        let stored = cluster.server.get("sites.example.org", "default", "shop").unwrap();
        assert_eq!(stored["status"], json!({"ready": true, "unknown": "kept"}));

        sites.delete("shop", &DeleteParams::default()).await.unwrap();
        let gone = update_status(&cluster.client, &third, &third, unready).await.unwrap();
        assert!(matches!(gone, Written::Gone));
    });
}
