//! The small operator of the examples on both servers: how long it is, and that it never gets stuck.
//!
//! Answers "is a child that is deleted at the moment at which it was made always made again?"

#![expect(clippy::unwrap_used, reason = "an operator that fails has failed the test")]

use actix_informer::client::api::{Api, conditions};
use actix_informer::prelude::*;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::small_operator::{Page, PageSpec, PageStatus, demo, start};
use crate::stage::{LONG, Stage};

/// How often the child is deleted.
const DELETIONS: usize = 300;

#[test]
fn opr_21_the_small_operator_has_at_most_seventy_lines_of_its_own() {
    let text = include_str!("../../examples/small_operator.rs");
    let own = text.split("/// An in-memory cluster and its users").next().unwrap();
    let code = own.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with("//"));
    let lines = code.count();
    assert!((40..=70).contains(&lines), "{lines} lines");
}

// OPR-21: given the small operator, when its child is deleted at the moment at which it was made, 300 times
// in a row, then it is made again each time; the operator has at most 70 lines of its own.
// - a it is made again each time
// - b at most 70 lines: `opr_21_the_small_operator_has_at_most_seventy_lines_of_its_own`
pub(crate) async fn opr_21_a_child_that_is_deleted_the_moment_it_was_made_is_made_again_300_times(
    stage: Stage,
) {
    let client = stage.server.client();
    let definition: CustomResourceDefinition = serde_json::from_value(demo::definition()).unwrap();
    let definitions = client.api::<CustomResourceDefinition>();
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    definitions.until("pages.example.org", conditions::crd_established(), LONG).await.unwrap();
    let controller = start(&client, &stage.runtime).unwrap();

    let maps: Api<ConfigMap> = client.api().namespaced(&*stage.namespace);
    let version = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut watch = maps.watch(&WatchParams::default(), &version).unwrap();
    let pages = client.api::<Page>().namespaced(&*stage.namespace);
    pages
        .create(&PostParams::default(), &Page::new("home", PageSpec { text: "hello".into() }))
        .await
        .unwrap();
    let mut deleted = 0;
    while deleted < DELETIONS {
        let event = tokio::time::timeout(LONG, watch.next()).await;
        let event =
            event.unwrap_or_else(|_| panic!("stuck after {deleted} deletions: {}", controller.status()));
        if let WatchEvent::Added(map) = event.unwrap().unwrap()
            && map.metadata.name.as_deref() == Some("home")
        {
            maps.delete("home", &DeleteParams::default()).await.unwrap();
            deleted += 1;
        }
    }
    maps.until("home", conditions::present(), LONG).await.unwrap();
    let is_published = |page: Option<&Page>| {
        let status = page.and_then(|page| page.status.as_ref());
        status.is_some_and(|status: &PageStatus| status.conditions.iter().any(|one| one.status == "True"))
    };
    pages.until("home", is_published, LONG).await.unwrap();
    pages.delete("home", &DeleteParams::default()).await.unwrap();
    pages.until("home", conditions::absent(), LONG).await.unwrap();
}
