//! What decoding allocates, counted by the allocator of this test binary.
//!
//! Answers "does cut or unreadable input cost memory?" Bytes are counted, never time. The count covers the whole
//! process, so the tests of this file run one after another; no other subject may be tested here.

use std::sync::{Mutex, PoisonError};

use actix_informer::representation::{Encoded, Prune, Representation, Typed, WireKind};
use actix_informer::unstable::{Frame, Splitter};
use bytes::Bytes;
use k8s_openapi::api::core::v1::Pod;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

static TURN: Mutex<()> = Mutex::new(());

fn held(used: &Stats) -> usize {
    used.bytes_allocated.saturating_sub(used.bytes_deallocated)
}

#[test]
fn a_pod_with_ten_megabytes_of_managed_fields_costs_less_than_a_hundred_kilobytes() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let field =
        r#"{"manager":"m\"","operation":"Update","fieldsV1":{"f:metadata":{"f:labels":{"f:a":{}}}}},"#;
    let fields = field.repeat((10 << 20) / field.len());
    let pod = format!(
        r#"{{"metadata":{{"name":"a","managedFields":[{}],"uid":"u"}},"spec":{{"containers":[{{"name":"c"}}]}}}}"#,
        fields.trim_end_matches(',')
    );
    assert!(pod.len() > 10_000_000);
    let typed = Typed::<Pod>::new();
    let region = Region::new(ALLOCATOR);
    let kept = typed.keep(&Encoded::json(&pod), &Prune::default());
    let used = region.change();
    let kept = kept.unwrap();
    assert_eq!((kept.metadata.uid.as_deref(), kept.spec.unwrap().containers.len()), (Some("u"), 1));
    assert!(used.bytes_allocated < 100_000, "{used:?}");
}

#[test]
fn ref_45_an_endless_line_holds_no_more_than_the_limit_and_leaves_nothing_allocated() {
    const LIMIT: usize = 1 << 20;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let piece = Bytes::from(vec![b'x'; 32 << 10]);
    let region = Region::new(ALLOCATOR);
    let (mut lines, mut found) = (Splitter::watch(WireKind::Json, LIMIT), Vec::new());
    for _ in 0..1024 {
        lines.push(&piece, &mut found).unwrap();
        let held = held(&region.change());
        assert!(held < 2 * LIMIT + (64 << 10), "{held} bytes");
    }
    lines.push(&Bytes::from_static(b"\n"), &mut found).unwrap();
    assert!(matches!(&found[..], [Frame::Oversize { size, .. }] if *size == 32 << 20));
    found.clear();
    let held = held(&region.change());
    assert!(held < 64 << 10, "{held} bytes");
}
