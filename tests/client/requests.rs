//! The requests of an informer, read from their request lines.
//!
//! Answers "does each request contain what it should?" for the pages of a list, a watch-list, a watch and the next
//! watch. Requests are answered in turn from a queue; when it is empty, a watch stays open. The rewind question finds
//! nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer_actors::runtime::Runtime;
use informer_core::backoff::BackoffPolicy;
use informer_core::reflector::ReflectorConfig;

use crate::harness::*;
use crate::raw_server::*;
use crate::scripted::*;

/// A server with its answers, and the paths that were requested.
struct Asked {
    server: RawServer,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Asked {
    async fn start(answers: Vec<String>) -> Self {
        let (answers, paths) = (Arc::new(Mutex::new(VecDeque::from(answers))), Arc::default());
        let asked = Arc::clone(&paths);
        let server = RawServer::start(move |mut connection: Connection| {
            let (answers, asked) = (Arc::clone(&answers), Arc::<Mutex<Vec<String>>>::clone(&asked));
            async move {
                while let Some(request) = connection.request().await {
                    let path = request.split(' ').nth(1).unwrap().to_owned();
                    let is_question = path.contains("metadata.name%3D");
                    asked.lock().unwrap().push(path);
                    if is_question {
                        connection.write(good_list(&[], 1_000_000)).await;
                        continue;
                    }
                    let next = answers.lock().unwrap().pop_front();
                    let Some(next) = next else {
                        connection.write(CHUNKED).await;
                        return connection.gone().await;
                    };
                    connection.write(next).await;
                }
            }
        })
        .await;
        Self { server, paths }
    }

    fn paths(&self) -> Vec<String> {
        self.paths.lock().unwrap().clone()
    }

    /// Waits until this many watches have reached the server: an informer counts a watch when it asks for it.
    async fn watched(&self, times: usize) {
        while self.paths().iter().filter(|path| path.contains("watch=true")).count() < times {
            tokio::task::yield_now().await;
        }
    }
}

/// A page that names where the next one begins.
fn page(items: &[&str], token: &str) -> String {
    let items: Vec<_> = items.iter().map(|item| object(item)).collect();
    let body = list_of(&items, "9").replace(r#""9""#, &format!(r#""9","continue":"{token}""#));
    answer("200 OK", "content-type: application/json\r\n", &body)
}

/// Waits of a millisecond; watch-lists first.
fn quick(settings: &mut ReflectorConfig) {
    let moment = Duration::from_millis(1);
    settings.backoff = BackoffPolicy { base: moment, cap: moment };
    settings.short_watch = Duration::ZERO;
    settings.reconnect_interval = moment;
}

/// The parameters of a query, without the random timeout.
fn members(path: &str) -> Vec<&str> {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    query.split('&').filter(|member| !member.starts_with("timeoutSeconds=")).collect()
}

// WL-17: given a namespace, label and field selectors set on the source (it has no other list options), when
// watch-list, LIST, WATCH, GET and the rewind question are asked, then each request carries them, every page
// and every reconnect too.
// - a watch-list, LIST and WATCH carry them, every page, every reconnect and the rewind question too
// - b so does a GET: `the_server_evaluates_selectors_in_lists_watches_and_gets`
#[tokio::test]
async fn wl_17_namespace_and_selectors_stand_in_each_page_each_watch_and_each_question() {
    let api = Asked::start(vec![
        answer("422 Unprocessable Entity", "", "no watch-lists"),
        page(&["one@1"], "second"),
        good_list(&["two@2"], 9),
        format!("{CHUNKED}{LAST_CHUNK}"),
        format!("{CHUNKED}{}{LAST_CHUNK}", chunk(&added("three@10"))),
    ])
    .await;
    let source =
        config_maps(&api.server.url()).namespace("a").labels("app in (x,y)").fields("metadata.name!=z");
    let runtime: Runtime = threads();
    let maps = source.settings(quick).informer(&runtime).unwrap().start().unwrap();
    published(&maps, 10).await;
    api.watched(4).await;
    ends(maps).await;

    let paths = api.paths();
    let selected = ["labelSelector=app%20in%20%28x%2Cy%29", "fieldSelector=metadata.name%21%3Dz"];
    for path in &paths {
        assert!(path.starts_with("/api/v1/namespaces/a/configmaps?"), "{path}");
        assert!(selected.iter().all(|selector| path.contains(selector)), "{path}");
    }
    let has = |member: &str| paths.iter().filter(|path| members(path).contains(&member)).count();
    assert_eq!(has("sendInitialEvents=true"), 1, "{paths:#?}");
    assert_eq!(has("continue=second"), 1, "{paths:#?}");
    assert!(has("watch=true") >= 4, "{paths:#?}");
    assert_eq!(has("watch=true"), has("allowWatchBookmarks=true"), "{paths:#?}");
    assert!(paths.iter().any(|path| path.contains("%2Cmetadata.name%3D")), "the rewind question: {paths:#?}");
}

// REF-04: given page size 4, published version 10 and a second page answered 410 (with or without a fresh
// continue token), when relisting, then nothing of the first page is published, the fresh token is not used
// (its pages are of another version), and the next request, with no wait, is one full list at "" without
// limit or token.
// - a nothing of the first page is published
// - b the next request, with no wait, is one list at "" without limit or token
// - c a fresh token is not used
#[tokio::test]
async fn ref_04_a_page_that_expires_is_followed_by_one_whole_list_with_and_without_a_fresh_token() {
    for fresh in ["", r#""metadata":{"continue":"fresh","resourceVersion":"20"},"#] {
        let expired = format!(
            r#"{{"kind":"Status","apiVersion":"v1",{fresh}"status":"Failure","code":410,"reason":"Expired","message":"old"}}"#
        );
        let api = Asked::start(vec![
            page(&["one@1", "gone@2"], "second"),
            answer("410 Gone", "content-type: application/json\r\n", &expired),
            good_list(&["one@1", "two@3"], 20),
        ])
        .await;
        let maps = follows(config_maps(&api.server.url()), &threads()).start().unwrap();
        let first = reached(&maps, |status| status.synced).await;
        assert_eq!(
            (held(&maps), first.sources[0].counters.failures),
            (vec!["one@1".to_owned(), "two@3".into()], 0)
        );
        ends(maps).await;
        let paths = api.paths();
        let members: Vec<_> = paths[..3].iter().map(|path| members(path)).collect();
        let expected =
            [vec!["limit=500", "resourceVersion=0"], vec!["limit=500", "continue=second"], vec![""]];
        assert_eq!(members, expected, "{fresh}");
    }
}
