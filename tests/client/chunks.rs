//! Lists and watches cut at every byte, without a network.
//!
//! Answers "what is delivered after the first n bytes?" for every n of an answer of two kilobytes, ended in order or
//! broken off: of a list nothing counts before its document has closed; of a watch every whole line counts and nothing
//! else.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_informer::client::TransportError;
use actix_informer::representation::Typed;
use actix_informer::unstable::{self, Body, RequestKind, Transport};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};
use http::{Request, Response};
use informer_actors::list_watch::ListWatch;
use informer_actors::runtime::DecodePool;
use informer_core::list_watch_error::ErrorClass;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::harness::*;
use crate::scripted::{LONG, added, object, threads};

/// Answers every request with the same bytes, in pieces, and then ends or breaks off.
struct Fixed {
    body: Bytes,
    pieces: usize,
    breaks: bool,
}

impl Transport for Fixed {
    fn send(
        &self,
        _request: Request<Bytes>,
        _kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
        let mut chunks: Vec<_> =
            self.body.chunks(self.pieces).map(|piece| Ok(self.body.slice_ref(piece))).collect();
        if self.breaks {
            chunks.push(Err(TransportError::Truncated));
        }
        // Unfolded, since such a stream must not be polled after its end.
        let one = |mut rest: std::vec::IntoIter<_>| async { Some((rest.next()?, rest)) };
        let body = futures_util::stream::unfold(chunks.into_iter(), one).boxed_local();
        async move { Ok(Response::new(body)) }.boxed_local()
    }
}

/// A source over the first `end` bytes.
fn cut(whole: &Bytes, end: usize, breaks: bool) -> impl ListWatch<ConfigMap> {
    let (body, pieces) = (whole.slice(..end), 1 + end % 700);
    let over = move || -> Rc<dyn Transport> { Rc::new(Fixed { body: body.clone(), pieces, breaks }) };
    let maps = config_maps("http://nowhere.example");
    unstable::list_watches_over(maps, DecodePool::inline(), over).unwrap()()
}

#[tokio::test]
async fn the_end_of_a_list_cut_at_any_byte_is_reported_only_after_its_last_bracket_and_the_end_of_its_body() {
    let items: Vec<_> = (1..=15).map(|n| object(&format!("map-{n}@{n}"))).collect();
    let whole = Bytes::from(format!("{}\n", list_of(&items, "20")));
    assert!(whole.len() > 2000, "{}", whole.len());
    for breaks in [false, true] {
        for end in 0..=whole.len() {
            let answer = list(&cut(&whole, end, breaks), latest()).await;
            let closed = end >= whole.len() - 1 && !breaks;
            match answer {
                Ok(page) => assert_eq!((closed, page.items.len()), (true, 15), "cut at {end}"),
                Err(error) => {
                    assert!(!closed, "cut at {end}: {error}");
                    assert_eq!(error.class(), ErrorClass::Retry, "cut at {end}: {error}");
                }
            }
        }
    }
}

#[tokio::test]
async fn of_a_watch_cut_at_any_byte_every_whole_line_is_delivered_and_no_partial_one() {
    let lines: Vec<_> = (1..=15).map(|n| added(&format!("map-{n}@{n}"))).collect();
    let whole = Bytes::from(lines.concat());
    assert!(whole.len() > 2000, "{}", whole.len());
    for breaks in [false, true] {
        for end in 0..=whole.len() {
            let (received, ended) = watch(&cut(&whole, end, breaks), from("1")).await;
            let lines = whole[..end].iter().filter(|byte| **byte == b'\n').count();
            let expected: Vec<_> = (1..=lines).map(|n| format!("+a/map-{n}@{n}")).collect();
            assert_eq!((received, ended.is_err()), (expected, breaks), "cut at {end}");
        }
    }
}

#[tokio::test]
async fn a_list_with_one_wrong_byte_is_refused_or_has_all_its_items() {
    let items: Vec<_> = (1..=4).map(|n| object(&format!("map-{n}@{n}"))).collect();
    let whole = list_of(&items, "20");
    for at in 0..whole.len() {
        for wrong in [b'"', b'\\', b'{', b'}', b'[', b']', b',', b'x', 0, 0xff] {
            let mut bytes = whole.clone().into_bytes();
            bytes[at] = wrong;
            let bytes = Bytes::from(bytes);
            // It is refused, or has as many items as were sent: undecodable and unreadable ones count.
            let Ok(page) = list(&cut(&bytes, bytes.len(), false), latest()).await else { continue };
            assert_eq!(page.items.len(), 4, "{:?} at {at}", char::from(wrong));
        }
    }
}

/// How many objects of a watch of so many bytes the reader decodes on its own thread, and how many the pool.
async fn decoded_by_reader_and_pool(bytes: usize) -> [usize; 2] {
    let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let (reader, count) = (std::thread::current().id(), Arc::clone(&counts));
    let counting = Typed::<ConfigMap>::new().transform(move |map| {
        count[usize::from(std::thread::current().id() != reader)].fetch_add(1, Ordering::SeqCst);
        Ok(map)
    });
    let line = added("map@1");
    let padding = (bytes - line.len() * 10) / 10;
    let lines = (1..=10).map(|n| added(&format!("map@{n}")).replacen('{', &format!("{{{:padding$}", ""), 1));
    let body = Bytes::from(lines.collect::<String>());
    let over = move || -> Rc<dyn Transport> {
        Rc::new(Fixed { body: body.clone(), pieces: body.len(), breaks: false })
    };
    let runtime = threads();
    let maps = config_maps("http://nowhere.example").keep_as(counting);
    let source = unstable::list_watches_over(maps, runtime.decode_pool(), over).unwrap()();
    let (told, ended) = watch(&source, from("1")).await;
    assert_eq!(told.len(), 10);
    ended.unwrap();
    runtime.shutdown(LONG).await.unwrap();
    [counts[0].load(Ordering::SeqCst), counts[1].load(Ordering::SeqCst)]
}

#[tokio::test]
async fn objects_of_less_than_512_bytes_are_decoded_by_the_reader_and_wake_no_thread_of_the_pool() {
    assert_eq!(decoded_by_reader_and_pool(10 * 480).await, [10, 0]);
    assert_eq!(decoded_by_reader_and_pool(10 * 550).await, [0, 10], "however few there are");
}
