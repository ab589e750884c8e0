//! LST-02 over a million objects: what an empty selector reads and allocates.
//!
//! Answers "does selecting everything cost anything per object but the visit?" Its kind panics when its labels are read.

use std::borrow::Cow;

use actix_informer::kube_core::{NamespaceResourceScope, Resource};
use actix_informer::object::{FieldSelector, LabelSelector, Select};
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::snapshot::Snapshot;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::COUNTING;

const OBJECTS: u64 = 1_000_000;

/// A kind whose metadata must not be read.
struct Unread;

impl Resource for Unread {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Unread".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "unread".into()
    }

    fn meta(&self) -> &ObjectMeta {
        panic!("the labels of an object were read");
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        panic!("the labels of an object were read");
    }
}

pub(crate) fn the_empty_selector_reads_no_label_of_a_million_objects() {
    let first = ObjectKey::namespaced("a", "first");
    let object = |number: u64| {
        let version = ResourceVersion::from_number(number).expect("not zero");
        Object::new(Meta::new(first.sibling(format!("{number:07}")), version, SourceId::default()), Unread)
    };
    let snapshot = Snapshot::of((1..=OBJECTS).map(object), []);
    let (labels, fields) = (LabelSelector::everything(), FieldSelector::everything());
    let before = COUNTING.stats().allocations;
    assert_eq!(snapshot.labelled(&labels).count() as u64, OBJECTS);
    assert_eq!(snapshot.selected(&labels, &fields).count() as u64, OBJECTS);
    assert_eq!(snapshot.keys().count() as u64, OBJECTS);
    let allocations = COUNTING.stats().allocations - before;
    assert!(allocations < 30, "{allocations} allocations");
}
