//! What decoding allocates.
//!
//! Answers "does cut or unreadable input cost memory?" The counting allocator counts per thread, so tests beside these
//! do not disturb them; bytes are counted, never time.

use actix_informer::client::frames::{Frame, LineSplitter};
use actix_informer::representation::{Prune, Representation, Typed};
use allocation_counter::measure;
use bytes::Bytes;
use k8s_openapi::api::core::v1::Pod;

#[test]
fn a_pod_with_ten_megabytes_of_managed_fields_costs_less_than_a_hundred_kilobytes() {
    let field =
        r#"{"manager":"m\"","operation":"Update","fieldsV1":{"f:metadata":{"f:labels":{"f:a":{}}}}},"#;
    let fields = field.repeat((10 << 20) / field.len());
    let pod = format!(
        r#"{{"metadata":{{"name":"a","managedFields":[{}],"uid":"u"}},"spec":{{"containers":[{{"name":"c"}}]}}}}"#,
        fields.trim_end_matches(',')
    );
    assert!(pod.len() > 10_000_000);
    let typed = Typed::<Pod>::new();
    let mut kept = None;
    let used = measure(|| kept = typed.keep(&pod, &Prune::default()).ok());
    let kept = kept.unwrap();
    assert_eq!((kept.metadata.uid.as_deref(), kept.spec.unwrap().containers.len()), (Some("u"), 1));
    assert!(used.bytes_total < 100_000, "{} bytes in {} allocations", used.bytes_total, used.count_total);
}

#[test]
fn ref_45_an_endless_line_holds_no_more_than_the_limit_and_leaves_nothing_behind() {
    const LIMIT: usize = 1 << 20;
    let piece = Bytes::from(vec![b'x'; 32 << 10]);
    let used = measure(|| {
        let (mut lines, mut found) = (LineSplitter::new(LIMIT), Vec::new());
        for _ in 0..1024 {
            lines.push(&piece, &mut found);
        }
        lines.push(&Bytes::from_static(b"\n"), &mut found);
        assert!(matches!(&found[..], [Frame::Oversize { size, .. }] if *size == 32 << 20));
    });
    assert!(used.bytes_max < 3 * LIMIT as u64, "{}", used.bytes_max);
    assert_eq!(used.bytes_current, 0);
}
