//! Fuzz targets for complete lists and watches of pods, from bytes to parts, without a network.
//!
//! Answers "does every part come from the bytes, and does every item and line give one?" The bytes are the body of a
//! successful answer. A line or an item is compared only where parsers cannot differ; `frames.rs` checks bytes in which
//! keys occur twice.

use std::rc::Rc;
use std::time::Duration;

use actix_informer::client::{Client, Config, TransportError};
use actix_informer::representation::{Typed, WireKind};
use actix_informer::unstable::{
    Body, Frame, KubeListWatch, RequestKind, Splitter, Transport, list_watches_over,
};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};
use http::{Request, Response};
use informer_actors::list_watch::{KnownObjects, ListWatch};
use informer_actors::runtime::DecodePool;
use informer_core::delta::{ListPart, WatchPart};
use informer_core::meta::{ObjectKey, ResourceVersion};
use informer_core::request::{AskedVersion, ListRequest, WatchRequest};
use k8s_openapi::api::core::v1::Pod;
use serde::de::IgnoredAny;
use serde_json::Value;

const LIMIT: usize = 4096;
/// The length of the chunks in which a body arrives.
const CHUNK: usize = 97;

/// Answers every request with this body, in pieces of this length.
pub(crate) struct FixedBody {
    pub(crate) body: Bytes,
    pub(crate) chunk: usize,
    pub(crate) content_type: &'static str,
}

impl Transport for FixedBody {
    fn send(
        &self,
        _request: Request<Bytes>,
        _kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
        let pieces = self.body.chunks(self.chunk);
        let pieces: Vec<_> = pieces.map(|piece| Ok(self.body.slice_ref(piece))).collect();
        let body = futures_util::stream::iter(pieces).boxed_local();
        let answer = Response::builder().header("content-type", self.content_type);
        async move { Ok(answer.body(body).expect("a valid header")) }.boxed_local()
    }
}

fn source(body: &Bytes) -> KubeListWatch<Typed<Pod>> {
    let client = Config::new("http://nowhere.example").and_then(Client::new).expect("a valid URL");
    let body = body.clone();
    let transport = move || -> Rc<dyn Transport> {
        Rc::new(FixedBody { body: body.clone(), chunk: CHUNK, content_type: "application/json" })
    };
    let pods = client.resource::<Pod>().frame_limit(LIMIT);
    list_watches_over(pods, DecodePool::inline(), transport).expect("a valid path")()
}

pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    }
    RUNTIME.with(|runtime| runtime.block_on(work))
}

/// A list with an end gives a part for every item, and each item is JSON; nothing comes behind its end or an error.
pub fn decode_list(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    let request = ListRequest { version: AskedVersion::Latest, limit: None, token: None, name: None };
    let parts: Vec<_> = run(source(&body).list(request, KnownObjects::nothing()).collect());
    let (mut found, mut ended) = (0, false);
    for part in parts {
        assert!(!ended, "a part behind the end");
        match part {
            Ok(ListPart::Objects(objects)) => found += objects.len(),
            Ok(ListPart::Undecodable(_) | ListPart::Unreadable(_)) => found += 1,
            Ok(ListPart::End { .. }) => ended = true,
            Ok(_) => unreachable!("a part of a new kind"),
            Err(_) => return,
        }
    }
    assert!(ended, "a list ends with its end or an error");
    let (mut splitter, mut items) = (Splitter::list(WireKind::Json, LIMIT), Vec::new());
    splitter.push(&body, &mut items).expect("the list was accepted");
    assert_eq!(found, items.len());
    for item in &items {
        if let Frame::Whole(bytes) = item {
            assert!(serde_json::from_slice::<IgnoredAny>(bytes).is_ok(), "an accepted item is not JSON");
        }
    }
}

/// The key and the version of a part, if it has them.
fn key_and_version(part: &WatchPart<Pod>) -> Option<(&ObjectKey, &ResourceVersion)> {
    match part {
        WatchPart::Applied(object) | WatchPart::Deleted(object) => Some((object.key(), object.version())),
        WatchPart::Undecodable(undecodable) | WatchPart::DeletedUndecodable(undecodable) => {
            Some((&undecodable.key, &undecodable.version))
        }
        _ => None,
    }
}

/// Each line up to an error gives one part, in the order of the lines, with the name and the version in the line.
pub fn decode_watch(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    let version = AskedVersion::From(ResourceVersion::from_number(1).expect("a version"));
    let request = WatchRequest { version, initial_events: false, timeout: Duration::from_secs(300) };
    let batches: Vec<_> = run(source(&body).watch(request, KnownObjects::nothing()).collect());
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
            assert!(
                serde_json::from_slice::<IgnoredAny>(line).is_ok(),
                "{line:?} is not JSON and was accepted"
            );
        }
        let Some((key, version)) = key_and_version(part).filter(|_| crate::is_plain(line)) else { continue };
        let Ok(value) = serde_json::from_slice::<Value>(line) else { continue };
        let text = |name: &str| value.pointer(&format!("/object/metadata/{name}")).and_then(Value::as_str);
        assert_eq!(Some(key.name()), text("name"));
        assert_eq!(Some(version.to_string().as_str()), text("resourceVersion"));
    }
}
