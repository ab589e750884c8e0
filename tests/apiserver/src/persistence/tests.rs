//! The log at any length: whatever is cut off or damaged, reading gives a state that the store had.
//!
//! They answer: is a prefix of the log a prefix of the commits, for every byte? `crashes.rs` asks the same of all files.
mod crashes;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::record::{Frames, Record, frame};
use crate::cluster::delete::DeleteOptions;
use crate::cluster::patch::PatchKind;
use crate::cluster::store::{Call, Cluster, Settings};

pub(super) type View = BTreeMap<String, Vec<u8>>;

pub(super) fn settings() -> Settings {
    Settings {
        first_revision: 1_000,
        event_window: 100,
        watch_queue: 50,
        seed: 1,
        managed_fields: false,
        validation: true,
    }
}

pub(super) fn view(cluster: &Cluster) -> View {
    let mut view = View::new();
    for change in cluster.as_changes() {
        let super::Committed::Change(resource, event) = change else { continue };
        let object = event.new.as_ref().expect("a stored object");
        view.insert(format!("{resource} {}", event.key), object.body.to_vec());
    }
    view
}

/// The log of a run of writes, and the state after each record, with the length of the log there.
fn written(writes: &[(u8, u8)]) -> (Vec<u8>, Vec<(usize, View)>) {
    let mut cluster = Cluster::new(settings(), 0);
    cluster.record_changes();
    let mut log = Vec::new();
    frame(&mut log, [Record::Reserved(cluster.revision() + 50)]);
    frame(&mut log, cluster.as_changes().iter().map(super::Committed::record));
    let mut states = vec![(log.len(), view(&cluster))];
    let kind = cluster.registry.find("", "v1", "configmaps").expect("a built-in kind").clone();
    for (name, what) in writes {
        let name = format!("m{name}");
        let call = Call::plain(&kind, "default", &name, 0);
        // A refused write changes nothing; that is fine here.
        match what {
            0 => drop(cluster.delete(&call, &DeleteOptions::default())),
            1 => drop(cluster.create(&call, json!({"metadata": {"name": name}}))),
            other => {
                let patch = json!({"data": {"k": other.to_string()}}).to_string();
                drop(cluster.patch(&call, PatchKind::Merge, patch.as_bytes()));
            }
        }
        let changes = cluster.take_committed();
        if !changes.is_empty() {
            frame(&mut log, changes.iter().map(super::Committed::record));
            states.push((log.len(), view(&cluster)));
        }
    }
    (log, states)
}

fn recovered(log: &[u8]) -> Cluster {
    let mut cluster = Cluster::new(settings(), 0);
    cluster.recover(Frames::of(log).flatten());
    cluster
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_cut_off_at_any_byte_is_the_state_after_its_last_whole_record(
        writes in proptest::collection::vec((0..3u8, 0..5u8), 1..6),
    ) {
        let (log, states) = written(&writes);
        let first = states[0].0;
        for cut in first..=log.len() {
            let whole = states.iter().rev().find(|(length, _)| *length <= cut).expect("the first fits");
            let cluster = recovered(&log[..cut]);
            prop_assert_eq!(&view(&cluster), &whole.1, "cut at {}", cut);
            prop_assert!(cluster.revision() >= 1_050, "no version below the reserve is issued again");
        }
    }

    #[test]
    fn a_damaged_byte_ends_the_log_before_its_record(
        writes in proptest::collection::vec((0..3u8, 0..5u8), 1..6),
        at in any::<prop::sample::Index>(),
        flip in 1..=255u8,
    ) {
        let (mut log, states) = written(&writes);
        let first = states[0].0;
        prop_assume!(log.len() > first);
        let at = first + at.index(log.len() - first);
        log[at] ^= flip;
        let whole = states.iter().rev().find(|(length, _)| *length <= at).expect("the first fits");
        prop_assert_eq!(&view(&recovered(&log)), &whole.1);
    }
}

#[test]
fn a_log_without_a_whole_record_is_an_empty_store_of_this_version() {
    for log in [&b""[..], b"\x10", b"\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0[]"] {
        let cluster = recovered(log);
        assert_eq!(view(&cluster), view(&Cluster::new(settings(), 0)));
    }
}

#[test]
fn custom_objects_come_back_with_their_definition_and_go_with_it() {
    let mut cluster = Cluster::new(settings(), 0);
    cluster.record_changes();
    let definitions = "customresourcedefinitions";
    let kind =
        cluster.registry.find("apiextensions.k8s.io", "v1", definitions).expect("a built-in kind").clone();
    let definition = json!({"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com",
        "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList", "singular": "widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let call = Call::plain(&kind, "", "widgets.example.com", 0);
    cluster.create(&call, definition).expect("a sound definition");
    let widgets = cluster.registry.find("example.com", "v1", "widgets").expect("served at once").clone();
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    cluster.create(&Call::plain(&widgets, "default", "w", 0), widget).expect("a sound object");
    let mut log = Vec::new();
    frame(&mut log, cluster.as_changes().iter().map(super::Committed::record));
    let back = recovered(&log);
    assert_eq!(view(&back), view(&cluster));
    assert!(back.registry.find("example.com", "v1", "widgets").is_some());
    cluster.take_committed();
    cluster.withdraw(&call).expect("it is there");
    frame(&mut log, cluster.take_committed().iter().map(super::Committed::record));
    let gone = recovered(&log);
    assert_eq!(view(&gone), view(&cluster));
    assert!(gone.registry.find("example.com", "v1", "widgets").is_none());
}
