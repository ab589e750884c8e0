//! Fuzz targets for complete lists and watches of pods in protobuf, from bytes to texts, without a network.
//!
//! Answers "does everything that was accepted have one meaning?" The text of an object decodes to the same pod as its
//! bytes, and, where the in-memory server's own reader accepts the list, has the value that it reads.

use std::rc::Rc;
use std::time::Duration;

use actix_informer::client::{Client, Config};
use actix_informer::object::Object;
use actix_informer::representation::{Lazy, LazyBody};
use actix_informer::unstable::{Frame, KubeListWatch, Splitter, Transport, list_watches_over, protobuf};
use bytes::Bytes;
use futures_util::StreamExt;
use informer_actors::list_watch::{KnownObjects, ListWatch};
use informer_actors::runtime::DecodePool;
use informer_apiserver::fuzzing::protobuf_answer;
use informer_core::delta::{ListPart, WatchPart};
use informer_core::meta::ResourceVersion;
use informer_core::request::{AskedVersion, ListRequest, WatchRequest};
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use crate::decode::{FixedBody, run};

const LIMIT: usize = 4096;

fn source(body: &Bytes, chunk: usize) -> KubeListWatch<Lazy<Pod>> {
    let client = Config::new("http://nowhere.example").and_then(Client::new).expect("a valid URL");
    let body = body.clone();
    let content_type = "application/vnd.kubernetes.protobuf";
    let transport =
        move || -> Rc<dyn Transport> { Rc::new(FixedBody { body: body.clone(), chunk, content_type }) };
    let pods = client.resource::<Pod>().lazy().protobuf().frame_limit(LIMIT);
    list_watches_over(pods, DecodePool::inline(), transport).expect("a valid path")()
}

/// What is read of a body in one way is read in each.
fn check(object: &Object<LazyBody<Pod>>) -> Option<Value> {
    let text: Value = serde_json::from_str(&object.text()).expect("a text is JSON");
    let name = text.pointer("/metadata/name").and_then(Value::as_str);
    let decoded = object.decode().ok();
    if let Some(name) = name {
        assert!(String::from_utf8_lossy(object.key().name().as_bytes()) == name, "the text has another name");
        assert_eq!(decoded, serde_json::from_value(text.clone()).ok(), "{text}");
    }
    let paths = ["metadata.labels", "spec.containers[*].image", "spec.nodeName", "status.phase"];
    for path in paths {
        let path: actix_informer::object::FieldPath = path.parse().expect("a path");
        if name.is_some() {
            let found = object.read(|object| object.values_at(&path));
            assert_eq!(found, path.values_of(&text).expect("a value"), "{path} of {text}");
        }
    }
    name.is_some().then(|| text.clone())
}

/// A list that is accepted has one part for each item, in whatever pieces it comes.
pub fn protobuf_list(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    let request = || ListRequest { version: AskedVersion::Latest, limit: None, token: None, name: None };
    let mut answers = Vec::new();
    for chunk in [data.len().max(1), 97, 3] {
        let parts: Vec<_> = run(source(&body, chunk).list(request(), KnownObjects::nothing()).collect());
        let (mut texts, mut found, mut ended) = (Vec::new(), 0, false);
        for part in parts {
            assert!(!ended, "a part behind the end");
            match part {
                Ok(ListPart::Objects(objects)) => {
                    found += objects.len();
                    texts.extend(objects.iter().map(check));
                }
                Ok(ListPart::Undecodable(_) | ListPart::Unreadable(_)) => found += 1,
                Ok(ListPart::End { .. }) => ended = true,
                Ok(_) => unreachable!("a part of a new kind"),
                Err(_) => break,
            }
        }
        answers.push(ended.then_some((found, texts)));
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "the pieces decide");
    let Some(Some((found, texts))) = answers.pop() else { return };
    // An envelope that says "v1" and "Pod".
    let pods = protobuf(b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod").expect("a known kind").wire();
    let (mut splitter, mut items) = (Splitter::list(pods, LIMIT), Vec::new());
    splitter.push(&body, &mut items).expect("the list was accepted");
    assert_eq!(found, items.len());
    let is_whole = texts.len() == found && !items.iter().any(|item| matches!(item, Frame::Oversize { .. }));
    let Some(theirs) = protobuf_answer(data).filter(|_| is_whole) else { return };
    let theirs = theirs["items"].as_array().cloned().unwrap_or_default();
    for (text, theirs) in texts.into_iter().zip(theirs) {
        let Some(mut text) = text else { continue };
        let members = text.as_object_mut().expect("an object");
        members.retain(|name, _| !["kind", "apiVersion"].contains(&name.as_str()));
        if let Some(metadata) = theirs.get("metadata")
            && metadata.get("managedFields").is_none()
        {
            assert_eq!(text, theirs, "left: ours, right: the server's reader");
        }
    }
}

/// Each event up to an error gives one part, whatever the pieces are.
pub fn protobuf_watch(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    let version = AskedVersion::From(ResourceVersion::from_number(1).expect("a version"));
    let request = || WatchRequest {
        version: version.clone(),
        initial_events: false,
        timeout: Duration::from_secs(300),
    };
    let mut answers = Vec::new();
    for chunk in [data.len().max(1), 97, 3] {
        let batches: Vec<_> = run(source(&body, chunk).watch(request(), KnownObjects::nothing()).collect());
        let failed = batches.last().is_some_and(Result::is_err);
        let mut texts = Vec::new();
        for part in batches.into_iter().filter_map(Result::ok).flatten() {
            texts.push(match part {
                WatchPart::Applied(object) | WatchPart::Deleted(object) => check(&object),
                _ => None,
            });
        }
        answers.push((failed, texts));
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "the pieces decide");
}
