//! Events that a recorder sends: what a server keeps of them, and what kubectl prints.
//!
//! Answers "does a real server accept each event, and does a person see it?"

#![expect(clippy::unwrap_used, reason = "a step that fails has failed the test")]

use actix_informer::client::api::{Api, ListParams, PostParams};
use actix_informer::events::{DropReason, EventText, EventType, Recorder, RecorderBuilder};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::api::events::v1::Event;
use kube_core::Resource;

use crate::kubectl::Kubectl;
use crate::server::Server;
use crate::stage::{LONG, Stage};
use crate::verbs::{map, maps};

fn builder(stage: &Stage) -> RecorderBuilder {
    Recorder::builder(&stage.server.client(), &stage.runtime, "example.com/price-operator").instance("one")
}

/// Of each event in a namespace: type, reason, note and count.
async fn events(stage: &Stage, namespace: &str) -> Vec<(String, String, String, i32)> {
    let events: Api<Event> = stage.server.client().api().namespaced(namespace);
    let mut listed = events.list(&ListParams::default()).await.unwrap().items;
    listed.retain(|event| event.reporting_controller.as_deref() == Some("example.com/price-operator"));
    let mut told: Vec<_> = listed
        .into_iter()
        .map(|event| {
            let count = event.series.map(|series| series.count).or(event.deprecated_count);
            (event.type_.unwrap(), event.reason.unwrap(), event.note.unwrap(), count.unwrap_or(1))
        })
        .collect();
    told.sort();
    told
}

/// Says something of each sort about an object, and repeats one three times.
async fn speak(recorder: &Recorder, prices: &ConfigMap) {
    recorder.event(
        prices,
        EventType::Normal,
        EventText { reason: "PricesRead", action: "Read", note: "12 prices" },
    );
    let missing = EventText { reason: "PriceMissing", action: "Read", note: "no price of apples" };
    recorder.about(prices).related(prices).event(EventType::Warning, missing);
    recorder.event(
        prices,
        EventType::Normal,
        EventText { reason: "Long", action: "Read", note: &"ä".repeat(1_000) },
    );
    for _ in 0..3 {
        recorder.event(
            prices,
            EventType::Normal,
            EventText { reason: "PricesSold", action: "Sell", note: "all are sold" },
        );
        recorder.flush(LONG).await.unwrap();
    }
}

pub(crate) async fn rec_01_and_rec_11_events_series_and_counts_are_kept_by_the_server_and_shown_by_kubectl(
    stage: Stage,
) {
    let prices = maps(&stage).create(&PostParams::default(), &map("prices", "v")).await.unwrap();
    let expected = || {
        let told = |kind: &str, reason: &str, note: &str, count| {
            (kind.to_owned(), reason.to_owned(), note.to_owned(), count)
        };
        [
            told("Normal", "Long", &"ä".repeat(512), 1),
            told("Normal", "PricesRead", "12 prices", 1),
            told("Normal", "PricesSold", "all are sold", 3),
            told("Warning", "PriceMissing", "no price of apples", 1),
        ]
    };
    for builder in [builder(&stage), builder(&stage).core_v1()] {
        let recorder = builder.start().unwrap();
        speak(&recorder, &prices).await;
        recorder.shutdown(LONG).await.unwrap();
        assert_eq!(events(&stage, &stage.namespace).await, expected());
        assert_eq!(recorder.figures().dropped, [].into());
        described(&stage, &prices).await;
        let all: Api<Event> = stage.server.client().api().namespaced(&*stage.namespace);
        for event in all.list(&ListParams::default()).await.unwrap() {
            let name = event.metadata.name.unwrap();
            all.delete(&name, &Default::default()).await.unwrap();
        }
    }
}

/// What a person sees.
async fn described(stage: &Stage, prices: &ConfigMap) {
    let Some(kubectl) = Kubectl::of(stage) else { return };
    let (namespace, name) = (&*stage.namespace, prices.metadata.name.as_deref().unwrap());
    let listed = kubectl.run(&["get", "events", "-n", namespace]).await.stdout;
    assert!(listed.contains("PriceMissing") && listed.contains("configmap/prices"), "{listed}");
    let described = kubectl.run(&["describe", "configmap", name, "-n", namespace]).await.stdout;
    for words in ["12 prices", "no price of apples", "(x3 over", "example.com/price-operator"] {
        assert!(described.contains(words), "{words}: {described}");
    }
}

pub(crate) async fn rec_07_and_rec_10_events_that_are_gone_are_created_anew_and_those_of_nodes_are_in_default(
    stage: Stage,
) {
    let prices = maps(&stage).create(&PostParams::default(), &map("prices", "v")).await.unwrap();
    let all: Api<Event> = stage.server.client().api().namespaced(&*stage.namespace);
    for builder in [builder(&stage), builder(&stage).core_v1()] {
        let recorder = builder.start().unwrap();
        recorder.event(
            &prices,
            EventType::Normal,
            EventText { reason: "PricesRead", action: "Read", note: "12 prices" },
        );
        recorder.flush(LONG).await.unwrap();
        let name = all.list(&ListParams::default()).await.unwrap().items.remove(0).metadata.name.unwrap();
        all.delete(&name, &Default::default()).await.unwrap();
        recorder.event(
            &prices,
            EventType::Normal,
            EventText { reason: "PricesRead", action: "Read", note: "12 prices" },
        );
        recorder.flush(LONG).await.unwrap();
        let told = events(&stage, &stage.namespace).await;
        assert_eq!((told.len(), told[0].3, recorder.figures().created), (1, 2, 2));
        all.delete(&name, &Default::default()).await.unwrap();

        let mut node = Node::default();
        node.meta_mut().name = Some("one-of-no-cluster".to_owned());
        recorder.event(
            &node,
            EventType::Normal,
            EventText { reason: "Seen", action: "Look", note: "it is there" },
        );
        recorder.shutdown(LONG).await.unwrap();
        assert_eq!(recorder.figures().dropped, [].into());
    }
    assert_eq!(events(&stage, "default").await.len(), 2);
}

pub(crate) async fn an_event_that_the_server_does_not_allow_is_counted_and_says_which_rule_is_missing(
    stage: Stage,
) {
    let client = match &*stage.server {
        Server::Memory(_) => {
            stage.server.in_memory().faults().deny("create", "events.events.k8s.io");
            stage.server.client()
        }
        Server::Real(_) => stage.server.powerless_client(),
    };
    let prices = maps(&stage).create(&PostParams::default(), &map("prices", "v")).await.unwrap();
    let recorder = Recorder::builder(&client, &stage.runtime, "price-operator").start().unwrap();
    recorder.event(
        &prices,
        EventType::Normal,
        EventText { reason: "PricesRead", action: "Read", note: "12 prices" },
    );
    recorder.shutdown(LONG).await.unwrap();
    let figures = recorder.figures();
    assert_eq!((figures.dropped(DropReason::Refused), figures.refused["Forbidden"]), (1, 1));
    let why = figures.last_error.unwrap().text;
    assert!(why.contains("create") && why.contains("events"), "{why}");
}
