//! Bodies in pieces.

use bytes::Bytes;

use super::super::reader::put_bytes;
use super::*;
use crate::wire::{Frame, ListHead, SplitError, Splitter};

fn pods() -> WireKind {
    WireKind::Protobuf(ProtobufKind::of("v1", "Pod").expect("built in"))
}

pub(super) fn list(head: &Value, items: &[Value]) -> Vec<u8> {
    let (api_version, kind) =
        (&head["apiVersion"], format!("{}List", head["kind"].as_str().expect("a kind")));
    let metadata = json!({"resourceVersion": "41", "continue": "token"});
    written(&json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "items": items}))
}

pub(super) fn split(
    bytes: &[u8],
    cuts: &[usize],
    limit: usize,
) -> (Vec<Frame>, Result<ListHead, SplitError>) {
    let mut bounds: Vec<_> = cuts.iter().map(|cut| (*cut).min(bytes.len())).chain([0, bytes.len()]).collect();
    bounds.sort_unstable();
    let (mut splitter, mut frames) = (Splitter::list(pods(), limit), Vec::new());
    for pair in bounds.windows(2) {
        let piece = Bytes::copy_from_slice(&bytes[pair[0]..pair[1]]);
        if let Err(error) = splitter.push(&piece, &mut frames) {
            return (frames, Err(error));
        }
    }
    (frames, splitter.finish())
}

#[test]
fn a_list_gives_the_same_items_with_any_two_cuts_and_each_prefix_is_truncated() {
    let pods = [pod(), json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "b"}})];
    let bytes = list(&pod(), &pods);
    let expected: Vec<_> = pods.iter().map(|pod| Frame::Whole(item(pod).into())).collect();
    // Behind the list stand two empty fields.
    let end = bytes.len() - 4;
    for first in 0..=bytes.len() {
        for second in (first..=bytes.len()).step_by(7) {
            let (frames, head) = split(&bytes, &[first, second], usize::MAX);
            let head = head.expect("a whole list");
            assert_eq!((frames, head.kind.as_deref()), (expected.clone(), Some("PodList")));
            assert_eq!((head.version.as_deref(), head.token.as_deref()), (Some("41"), Some("token")));
        }
        let (_, cut_off) = split(&bytes[..first], &[], usize::MAX);
        assert!(cut_off.is_ok() == (first >= end && first % 2 == end % 2), "{first} of {end}: {cut_off:?}");
    }
}

#[test]
fn a_message_that_is_no_list_has_no_items() {
    let (_, head) = split(&written(&pod()), &[], usize::MAX);
    assert!(!head.is_ok_and(|head| head.has_items), "a pod's specification is no item");
}

#[test]
fn a_list_whose_token_or_item_cannot_be_read_is_refused() {
    let list_of = |token: &[u8], rest: &[u8]| {
        let (mut metadata, mut bytes) = (Vec::new(), Vec::new());
        put_bytes(&mut metadata, 2, b"41");
        put_bytes(&mut metadata, 3, token);
        enveloped(("v1", "PodList"), &mut bytes, |out| {
            put_bytes(out, 1, &metadata);
            out.extend_from_slice(rest);
        });
        split(&bytes, &[], usize::MAX).1
    };
    assert!(list_of(b"token", b"").is_ok_and(|head| head.token.as_deref() == Some("token")));
    assert!(list_of(b"", b"").is_ok_and(|head| head.token.is_none()), "the last page");
    assert!(list_of(b"\xff", b"").is_err(), "without its token it would be the last page");
    assert!(list_of(b"", &[2 << 3, 0]).is_err(), "an item that is a number");
}

#[test]
fn of_an_item_above_the_limit_the_first_bytes_are_kept_and_name_it() {
    let mut large = pod();
    large["metadata"]["annotations"]["large"] = "x".repeat(5_000).into();
    let bytes = list(&pod(), &[pod(), large, pod()]);
    for cuts in [&[][..], &[100], &[700, 900]] {
        let (frames, head) = split(&bytes, cuts, 1_000);
        assert!(head.is_ok());
        let [Frame::Whole(_), Frame::Oversize { head, size }, Frame::Whole(_)] = &frames[..] else {
            panic!("{frames:?}")
        };
        assert!(*size > 5_000 && head.len() == 1_000);
        assert_eq!(identify(head).key().expect("a name").to_string(), "shop/web-0");
    }
}

#[test]
fn the_events_of_a_watch_do_not_depend_on_the_pieces() {
    let frames: Vec<Vec<u8>> = [0_usize, 1, 300, 70_000].map(|length| vec![b'x'; length]).to_vec();
    let length = |frame: &Vec<u8>| u32::try_from(frame.len()).expect("short").to_be_bytes();
    let body: Vec<u8> = frames.iter().flat_map(|frame| [&length(frame)[..], frame].concat()).collect();
    for piece in [1, 3, 5, 1_000, 100_000] {
        let (mut splitter, mut found) = (Splitter::watch(pods(), 1 << 20), Vec::new());
        for piece in body.chunks(piece) {
            splitter.push(&Bytes::copy_from_slice(piece), &mut found).expect("any bytes are events");
        }
        let expected: Vec<_> = frames.iter().map(|frame| Frame::Whole(frame.clone().into())).collect();
        assert_eq!(found, expected, "{piece}");
        assert!(!splitter.is_closed() && splitter.finish().is_ok());
    }
    let mut splitter = Splitter::watch(pods(), 4);
    splitter.push(&Bytes::from_static(&[0, 0, 0, 9, 1]), &mut Vec::new()).expect("a part of an event");
    assert_eq!(splitter.finish(), Err(SplitError::HalfEvent(1)));
}

proptest! {
    #[test]
    fn any_pieces_give_the_same_list(
        choices in choices(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        limit in prop::sample::select(vec![64, usize::MAX]),
    ) {
        let objects: Vec<_> = (0..4).map(|n| any_object(n, &choices)).collect();
        let items: Vec<_> = objects.iter().map(|_| objects[0].clone()).collect();
        let bytes = list(&objects[0], &items);
        let cuts: Vec<_> = cuts.into_iter().map(|cut| cut.index(bytes.len())).collect();
        prop_assert_eq!(split(&bytes, &cuts, limit), split(&bytes, &[], limit));
    }
}
