//! Lists that are read page by page: what is asked for ahead, when it stops, and what follows an expired page (DYN-17).
//!
//! Answers "does reading a list by pages ask for no more than the reader has allowed?" against a server that records
//! each request. Both servers are in the end-to-end suite (`waiting.rs` there).

use std::fmt::Write as _;
use std::sync::Arc;

use actix_informer::client::api::{ListParams, WhenExpired};
use actix_informer::client::{Api, Client, Config, Error};
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::watch;

use crate::raw_server::*;

/// A server of pages, the query of each request, and how many there were.
struct Paged {
    server: RawServer,
    asked: watch::Receiver<Vec<String>>,
}

impl Paged {
    /// `answers` gives the answer to a request with this token.
    async fn start(answers: fn(Option<&str>, usize) -> String) -> Self {
        let (record, asked) = watch::channel(Vec::new());
        let record = Arc::new(record);
        let server = RawServer::start(move |mut connection: Connection| {
            let record = Arc::clone(&record);
            async move {
                while let Some(head) = connection.request().await {
                    let target = head.split(' ').nth(1).unwrap().to_owned();
                    let query = target.split_once('?').map(|(_, query)| query.to_owned()).unwrap_or_default();
                    let token = query.split('&').find_map(|pair| pair.strip_prefix("continue="));
                    let number = record.borrow().len();
                    let answer = answers(token, number);
                    record.send_modify(|asked| asked.push(query.clone()));
                    connection.write(answer).await;
                }
            }
        })
        .await;
        Self { server, asked }
    }

    fn maps(&self) -> Api<ConfigMap> {
        let client = Client::new(Config::new(self.server.url()).unwrap()).unwrap();
        client.api::<ConfigMap>().namespaced("a")
    }

    fn count(&self) -> usize {
        self.asked.borrow().len()
    }

    /// Waits until so many requests have reached it.
    async fn reached(&self, count: usize) {
        self.asked.clone().wait_for(|asked| asked.len() >= count).await.unwrap();
    }
}

/// A page of these maps; another one follows if there is a token.
fn page(names: &[&str], token: &str) -> String {
    let mut items = String::new();
    for name in names {
        let comma = if items.is_empty() { "" } else { "," };
        write!(items, r#"{comma}{{"metadata":{{"name":"{name}"}}}}"#).unwrap();
    }
    let body = format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"7","continue":"{token}"}},"items":[{items}]}}"#
    );
    answer("200 OK", "", &body)
}

/// The answer to a page that has expired.
fn expired(fresh: &str) -> String {
    let body = format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"metadata":{{"continue":"{fresh}"}}}}"#
    );
    answer("410 Gone", "", &body)
}

/// Pages of two maps without an end.
fn endless(_token: Option<&str>, number: usize) -> String {
    page(&["x", "y"], &format!("t{number}"))
}

fn name(map: ConfigMap) -> String {
    map.metadata.name.unwrap()
}

#[tokio::test]
async fn dyn_17_pages_are_asked_for_ahead_up_to_the_buffer_and_no_further() {
    for buffer in [0, 1, 3] {
        let paged = Paged::start(endless).await;
        let mut pages = paged.maps().pages(&ListParams::default().limit(2)).prefetch(buffer);
        for taken in 1..=20 {
            pages.next().await.unwrap().unwrap();
            assert!(paged.count() <= taken + buffer, "{} asked for, {taken} taken", paged.count());
        }
        if buffer > 0 {
            // The next one is under way although nobody waits for it.
            paged.reached(21).await;
        }
    }
}

// DYN-17: given a list that is read object by object, when an object does not decode, or the reader stops or
// is dropped, then nothing more is asked for; at most the buffer is asked for ahead.
// - a an object that does not decode ends it with an error that names the field:
//   `dyn_17_an_object_that_does_not_decode_ends_the_items_with_an_error_that_names_its_field`
// - b a reader that stops or is dropped asks for nothing more
// - c at most the buffer is asked for ahead:
//   `dyn_17_pages_are_asked_for_ahead_up_to_the_buffer_and_no_further`
// - d nothing is asked for after the last page or an error:
//   `dyn_17_nothing_is_asked_for_after_the_last_page_or_an_error`
// - e an expired page ends it with an error, goes on with the server's fresh token, or is one full list, as
//   the reader wants:
//   `an_expired_page_ends_the_pages_goes_on_with_the_fresh_token_or_is_one_full_list_as_its_reader_wants`
#[tokio::test]
async fn dyn_17_a_reader_that_stops_at_an_error_or_is_dropped_asks_for_nothing_more() {
    let paged = Paged::start(endless).await;
    let maps = paged.maps();
    let mut seen = 0;
    let items = maps.pages(&ListParams::default().limit(2)).prefetch(2).items();
    let stopped = items.map_err(|error| error.to_string()).try_for_each(|_| {
        seen += 1;
        std::future::ready(if seen == 3 { Err("enough".to_owned()) } else { Ok(()) })
    });
    assert_eq!(stopped.await, Err("enough".to_owned()));
    assert!(paged.count() <= 2 + 2, "the page of the third object, and the buffer");
    let mut dropped = maps.pages(&ListParams::default().limit(2)).items();
    dropped.next().await.unwrap().unwrap();
    drop(dropped);
    let before = paged.count();
    // Requests are in order on the server: after this one, none of the dropped readers can be under way.
    maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(paged.count(), before + 1);
}

#[tokio::test]
async fn dyn_17_an_object_that_does_not_decode_ends_the_items_with_an_error_that_names_its_field() {
    let paged = Paged::start(|token, number| match token {
        None => page(&["x"], "t"),
        Some(_) => page(&["y"], "more").replace("\"y\"", &format!("[{number}]")),
    })
    .await;
    let mut items = paged.maps().pages(&ListParams::default()).prefetch(3).items();
    assert_eq!(items.next().await.unwrap().map(name).unwrap(), "x");
    let error = items.next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Answer { .. }), "{error}");
    assert!(error.to_string().contains("items[0].metadata.name"), "{error}");
    assert!(items.next().await.is_none(), "nothing comes after it");
    assert_eq!(paged.count(), 2, "and nothing more is asked for");
}

/// The first page, an expired second one with a fresh token, and what follows either way.
fn expiring(token: Option<&str>, number: usize) -> String {
    match token {
        None if number == 0 => page(&["old"], "t"),
        None => page(&["new", "old"], ""),
        Some("fresh") => page(&["rest"], ""),
        Some(_) => expired("fresh"),
    }
}

#[tokio::test]
async fn an_expired_page_ends_the_pages_goes_on_with_the_fresh_token_or_is_one_full_list_as_its_reader_wants()
{
    let params = ListParams::default().limit(1).labels("a=b");
    for (when_expired, names, asked) in [
        (WhenExpired::End, &["old"][..], 2),
        (WhenExpired::Continue, &["old", "rest"], 3),
        (WhenExpired::ListAgain, &["old", "new", "old"], 3),
    ] {
        let paged = Paged::start(expiring).await;
        let mut pages = paged.maps().pages(&params).when_expired(when_expired);
        let (mut found, mut failed) = (Vec::new(), None);
        while let Some(page) = pages.next().await {
            match page {
                Ok(page) => found.extend(page.items.into_iter().map(name)),
                Err(error) => failed = Some(error),
            }
        }
        assert_eq!(
            (found, paged.count()),
            (names.iter().map(|name| (*name).to_owned()).collect(), asked),
            "{when_expired:?}"
        );
        assert_eq!(failed.is_some_and(|error| error.is_expired()), when_expired == WhenExpired::End);
        assert_eq!(pages.has_begun_again(), when_expired == WhenExpired::ListAgain);
        let queries = paged.asked.borrow().clone();
        assert!(queries.iter().all(|query| query.contains("labelSelector=a%3Db")), "{queries:?}");
        if when_expired == WhenExpired::ListAgain {
            assert!(!queries[2].contains("limit") && !queries[2].contains("continue"), "{queries:?}");
        }
    }
}

#[tokio::test]
async fn the_full_list_after_an_expired_page_keeps_the_version_that_was_asked_for() {
    let paged = Paged::start(expiring).await;
    let at = ListParams::default().at("5").matching(actix_informer::client::api::VersionMatch::NotOlderThan);
    let all = paged.maps().list_all(&at).await.unwrap();
    assert_eq!(all.items.into_iter().map(name).collect::<Vec<_>>(), ["new", "old"], "nothing twice");
    let queries = paged.asked.borrow().clone();
    assert!(queries[2].contains("resourceVersion=5"), "{queries:?}");
    assert!(queries[2].contains("resourceVersionMatch=NotOlderThan"), "{queries:?}");
}

#[tokio::test]
async fn a_server_whose_fresh_tokens_expire_as_well_is_not_asked_in_a_loop() {
    let paged = Paged::start(|token, _| match token {
        None => page(&["x"], "t"),
        Some(_) => expired("fresh"),
    })
    .await;
    let pages = paged.maps().pages(&ListParams::default()).when_expired(WhenExpired::Continue);
    let error = pages.try_collect::<Vec<_>>().await.unwrap_err();
    assert!(error.is_expired(), "{error}");
    assert_eq!(paged.count(), 3);
}
