//! Whole lists and watches of pods, from bytes to parts, without a network.
//!
//! Answers "is anything believed that was not said?" The bytes are the body of a successful answer. What stands in them
//! twice is left to `frames.rs`: here a line or an item is compared only where parsers cannot differ.

use std::rc::Rc;
use std::time::Duration;

use actix_informer::client::frames::{Frame, ListSplitter};
use actix_informer::client::transport::{Body, Lane, Transport};
use actix_informer::client::{Client, Config, KubeListWatch, TransportError};
use actix_informer::representation::Typed;
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};
use http::{Request, Response};
use informer_actors::list_watch::{Known, ListWatch};
use informer_actors::runtime::DecodePool;
use informer_core::delta::{ListPart, WatchPart};
use informer_core::meta::{ObjectKey, ResourceVersion};
use informer_core::request::{AskedVersion, ListRequest, WatchRequest};
use k8s_openapi::api::core::v1::Pod;
use serde::de::IgnoredAny;
use serde_json::Value;

const LIMIT: usize = 4096;
/// So long are the pieces in which a body arrives.
const PIECE: usize = 97;

struct Fixed(Bytes);

impl Transport for Fixed {
    fn send(
        &self,
        _request: Request<Bytes>,
        _lane: Lane,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
        let pieces: Vec<_> = self.0.chunks(PIECE).map(|piece| Ok(self.0.slice_ref(piece))).collect();
        let one = |mut rest: std::vec::IntoIter<_>| async { Some((rest.next()?, rest)) };
        let body = futures_util::stream::unfold(pieces.into_iter(), one).boxed_local();
        async move { Ok(Response::new(body)) }.boxed_local()
    }
}

fn source(body: &Bytes) -> KubeListWatch<Typed<Pod>> {
    let client = Config::new("http://nowhere.example").and_then(Client::new).expect("a sound URL");
    let body = body.clone();
    let over = move || -> Rc<dyn Transport> { Rc::new(Fixed(body.clone())) };
    let pods = client.resource::<Pod>().frame_limit(LIMIT);
    pods.list_watches_over(DecodePool::inline(), over).expect("a sound path")()
}

fn run<T>(work: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    }
    RUNTIME.with(|runtime| runtime.block_on(work))
}

/// A list that ends well has told of every item, and each of them is JSON; nothing comes behind its end or an error.
pub fn decode_list(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    let request = ListRequest { version: AskedVersion::Latest, limit: None, token: None, name: None };
    let parts: Vec<_> = run(source(&body).list(request, Known::nothing()).collect());
    let (mut told, mut ended) = (0, false);
    for part in parts {
        assert!(!ended, "something behind the end");
        match part {
            Ok(ListPart::Objects(objects)) => told += objects.len(),
            Ok(ListPart::SetAside(_) | ListPart::Unreadable(_)) => told += 1,
            Ok(ListPart::End { .. }) => ended = true,
            Ok(_) => unreachable!("a part of a new kind"),
            Err(_) => return,
        }
    }
    assert!(ended, "a list ends with its end or an error");
    let (mut splitter, mut items) = (ListSplitter::new(LIMIT), Vec::new());
    splitter.push(&body, &mut items).expect("a list that was taken");
    assert_eq!(told, items.len());
    for item in &items {
        if let Frame::Whole(bytes) = item {
            assert!(serde_json::from_slice::<IgnoredAny>(bytes).is_ok(), "an item that is no JSON was taken");
        }
    }
}

/// What was told of one line.
fn named(part: &WatchPart<Pod>) -> Option<(&ObjectKey, &ResourceVersion)> {
    match part {
        WatchPart::Applied(object) | WatchPart::Deleted(object) => Some((object.key(), object.version())),
        WatchPart::SetAside(aside) | WatchPart::DeletedUnread(aside) => Some((&aside.key, &aside.version)),
        _ => None,
    }
}

/// Each part is what its line says, in the order of the lines; each line up to an error has one.
pub fn decode_watch(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    let version = AskedVersion::From(ResourceVersion::from_number(1).expect("a version"));
    let request = WatchRequest { version, initial_events: false, timeout: Duration::from_secs(300) };
    let batches: Vec<_> = run(source(&body).watch(request, Known::nothing()).collect());
    let failed = batches.last().is_some_and(Result::is_err);
    let parts: Vec<_> = batches.into_iter().filter_map(Result::ok).flatten().collect();
    let end = body.iter().rposition(|byte| *byte == b'\n').unwrap_or_default();
    let lines: Vec<_> = body[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    if failed {
        assert!(parts.len() < lines.len(), "an error has a line of its own");
    } else {
        assert_eq!(parts.len(), lines.len());
    }
    for (part, line) in parts.iter().zip(lines) {
        if line.len() <= LIMIT {
            assert!(serde_json::from_slice::<IgnoredAny>(line).is_ok(), "{line:?} is no JSON and was told");
        }
        let Some((key, version)) = named(part).filter(|_| crate::is_plain(line)) else { continue };
        let Ok(value) = serde_json::from_slice::<Value>(line) else { continue };
        let text = |name: &str| value.pointer(&format!("/object/metadata/{name}")).and_then(Value::as_str);
        assert_eq!(Some(key.name()), text("name"));
        assert_eq!(Some(version.to_string().as_str()), text("resourceVersion"));
    }
}
