//! Tests of the page: what is wrong is said, figures agree with the report, objects and paths are found.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use super::Page;
use crate::client::Client;
use crate::client::api::PostParams;
use crate::prelude::*;
use crate::status::Reporting as _;
use crate::testing::ApiServer;

fn posted(page: &Page, target: &str) -> Value {
    let answer = page.answer_post(target).expect("the page has this path");
    serde_json::from_str(&answer.body).expect("JSON")
}

fn asked(page: &Page, target: &str) -> Value {
    let answer = page.answer(target).expect("the page has this path");
    serde_json::from_str(&answer.body).expect("JSON")
}

/// A server with these config maps, an informer of them, and the page.
fn run<F: Future<Output = ()>>(
    maps: usize,
    test: impl FnOnce(Runtime, Informer<ConfigMap>, Page, Client) -> F,
) {
    Runtime::simulated(7).run(|runtime| async move {
        let server = ApiServer::builder().seed(7).in_process(runtime.wall_time()).start().await;
        let server = server.expect("it starts");
        let client = Client::in_process(&runtime, server.service());
        let api = client.api::<ConfigMap>().namespaced("default");
        for number in 0..maps {
            let mut map = ConfigMap::default();
            map.metadata.name = Some(format!("map-{number:04}"));
            map.data = Some([("secret".to_owned(), "hunter2".to_owned())].into());
            api.create(&PostParams::default(), &map).await.expect("it is created");
        }
        let informer = client.resource::<ConfigMap>().namespace("default").informer(&runtime).expect("sound");
        let informer = informer.start().expect("it starts");
        let page = Page::of(&runtime, "a <shop>");
        test(runtime, informer, page, client).await;
    });
}

#[test]
fn its_figures_are_those_of_the_report_and_no_body_is_in_it() {
    run(3, |runtime, informer, page, _client| async move {
        let seen = informer.for_each(|_| async {}).expect("it subscribes");
        seen.synced_within(Duration::from_secs(60)).await.expect("it has received everything");
        let (state, report) = (asked(&page, "/state"), runtime.report());
        let (shown, status) = (&state["informers"][0], &report.informers[0].status);
        assert_eq!(shown["name"].as_str(), Some(&*status.name));
        assert_eq!(shown["objects"].as_u64(), Some(status.objects as u64));
        assert_eq!(shown["bytes"].as_u64(), Some(status.bytes as u64));
        assert_eq!(shown["watches"].as_u64(), Some(status.totals.counters.watches));
        let memory = &runtime.memory().informers[0];
        assert_eq!((memory.samples, memory.objects, memory.kept), (3, 3, None));
        assert_eq!(shown["memory"]["text"].as_u64(), Some(memory.text));
        let data = memory.fields.iter().find(|field| &*field.path == "data").expect("a map has data");
        assert_eq!(data.bytes, r#""data":{"secret":"hunter2"},"#.len() as u64);
        let text = runtime.memory().to_string();
        assert!(text.contains("configmaps") && text.contains("% less") && !text.contains("secret"), "{text}");
        let subscription = &report.informers[0].subscriptions[0];
        assert_eq!(shown["subscriptions"][0]["delivered"].as_u64(), Some(subscription.delivered));
        let sent: u64 = report.clients[0].requests.iter().map(|row| row.count).sum();
        assert_eq!(state["clients"][0]["sent"].as_u64(), Some(sent));
        assert_eq!(state["problems"], Value::Array(vec![]), "all is well");
        let everything =
            [asked(&page, "/objects?informer=configmaps%2Fns%3Ddefault"), state].map(|v| v.to_string());
        assert!(everything.iter().all(|text| !text.contains("hunter2")), "no body is shown");
    });
}

#[test]
fn what_is_wrong_comes_with_its_reason_since_when_and_what_to_do() {
    use crate::source::ListWatchError;
    use crate::testing::Server;
    use crate::work_queue::{Moment, RateLimiter, WorkQueue};

    /// Panics for each failure.
    struct Broken;

    impl RateLimiter<u32> for Broken {
        fn when(&mut self, _key: &u32, _moment: Moment) -> Duration {
            panic!("a bug")
        }

        fn forget(&mut self, _key: &u32) {}

        fn failures(&self, _key: &u32) -> u32 {
            0
        }
    }

    Runtime::simulated(7).run(|runtime| async move {
        let (server, page) = (Server::<String>::new(), Page::of(&runtime, "texts"));
        let queue = WorkQueue::builder(&runtime, "numbers").rate_limiter(Broken).start();
        assert!(queue.add_rate_limited(1).is_some(), "it comes again");
        server.apply("a/one", "text".to_owned());
        let source = server.clone();
        let texts =
            Informer::builder(&runtime, "texts").source(move || source.clone()).start().expect("sound");
        texts.synced_within(Duration::from_secs(60)).await.expect("it syncs");
        let panicking = texts.for_each(|_| async { panic!("a bug") }).expect("it subscribes");
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.refuse((0..50).map(|_| ListWatchError::Denied("no such user".into())));
        server.end_watches(None);
        tokio::time::sleep(Duration::from_secs(90)).await;
        let problems = asked(&page, "/state")["problems"].clone();
        let about = |words: &str| {
            let all = problems.as_array().expect("a list");
            let found =
                all.iter().find(|problem| problem["what"].as_str().is_some_and(|what| what.contains(words)));
            found.unwrap_or_else(|| panic!("nothing about {words:?} in {problems:#}")).clone()
        };
        let stale = about("The cache texts is out of date");
        assert!(stale["why"].as_str().is_some_and(|why| why.contains("no such user")), "{stale}");
        assert!(stale["since"].as_f64().is_some_and(|since| (60.0..91.0).contains(&since)), "{stale}");
        assert!(stale["todo"].as_str().is_some_and(|todo| !todo.is_empty()), "{stale}");
        assert!(about("has lost events: 1 by panics")["what"].is_string());
        let broken = about("Code that the work queue numbers calls has panicked");
        assert!(
            broken["why"].as_str().is_some_and(|why| why.starts_with("its rate limiter 1 times")),
            "{broken}"
        );
        drop(panicking);
    });
}

#[test]
fn objects_come_in_pages_and_are_found_by_a_part_of_their_key() {
    run(450, |_runtime, informer, page, _client| async move {
        informer.synced_within(Duration::from_secs(60)).await.expect("it syncs");
        let (mut behind, mut keys) = (String::new(), Vec::new());
        loop {
            let target = format!("/objects?informer=configmaps%2Fns%3Ddefault{behind}");
            let answer = asked(&page, &target);
            let of_page = answer["objects"].as_array().expect("a list").len();
            assert!(of_page <= 200);
            keys.extend(answer["objects"].as_array().into_iter().flatten().map(|one| one["key"].to_string()));
            let Some(more) = answer["more"].as_str() else { break };
            behind = format!("&behind={}", more.replace('/', "%2F"));
        }
        assert_eq!(keys.len(), 450);
        assert!(keys.is_sorted(), "in the order of their keys");
        let found = asked(&page, "/objects?informer=configmaps%2Fns%3Ddefault&text=map-044");
        assert_eq!(found["objects"].as_array().map(Vec::len), Some(10), "{found}");
        assert_eq!(asked(&page, "/objects?informer=other")["objects"], Value::Array(vec![]));
    });
}

#[test]
fn a_key_is_followed_from_the_page_and_its_path_is_shown() {
    run(1, |runtime, informer, page, client| async move {
        informer.synced_within(Duration::from_secs(60)).await.expect("it syncs");
        runtime.paths().sample(0);
        assert_eq!(
            asked(&page, "/path?key=default%2Fnew&follow=1")["followed"],
            false,
            "a GET changes nothing"
        );
        let asked_for = posted(&page, "/path?key=default%2Fnew&follow=1");
        assert_eq!(
            (&asked_for["followed"], &asked_for["marks"]),
            (&Value::Bool(true), &Value::Array(vec![]))
        );
        let mut map = ConfigMap::default();
        map.metadata.name = Some("new".to_owned());
        let api = client.api::<ConfigMap>().namespaced("default");
        api.create(&PostParams::default(), &map).await.expect("it is new");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let path = asked(&page, "/path?key=default%2Fnew");
        let hops: Vec<_> =
            path["marks"].as_array().into_iter().flatten().map(|mark| mark["hop"].clone()).collect();
        assert!(hops.iter().any(|hop| hop == "read") && hops.iter().any(|hop| hop == "published"), "{path}");
        assert_eq!(posted(&page, "/path?key=default%2Fnew&follow=0")["followed"], Value::Bool(false));
    });
}

#[test]
fn the_page_is_one_small_file_without_anything_from_elsewhere() {
    run(0, |_runtime, _informer, page, _client| async move {
        let html = page.answer("/").expect("it is there").body;
        assert!(html.len() < 150 << 10, "{} bytes", html.len());
        assert!(html.contains("<title>a &lt;shop&gt;</title>"), "the title is text");
        assert!(
            !html.contains("src=") && !html.contains("href=") && !html.contains("//cdn"),
            "all is in the file"
        );
    });
}
