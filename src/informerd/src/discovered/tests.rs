//! What the start asks the server for, and what follows from answers that are none.

use actix_informer::source::ErrorClass;
use informer_apiserver::ApiServer;

use super::*;
use crate::Config;
use actix_informer::client;

fn configured(kinds: &[&str]) -> Vec<InformerConfig> {
    let text: String = kinds.iter().map(|kind| format!("[[informer]]\nkind = {kind:?}\n")).collect();
    Config::parse("c.toml", &text).unwrap().informers
}

#[tokio::test]
async fn the_server_is_asked_once_for_all_kinds_however_many_of_them_it_does_not_have() {
    let server = ApiServer::builder().start().await.unwrap();
    let client = Client::new(client::Config::new(server.url()).unwrap()).unwrap();
    let (informers, notes) =
        discover(&client, &configured(&["Widget", "deploy", "Gadget"]), None).await.unwrap();
    assert_eq!(client.discovery().status().refreshes, 1);
    let found: Vec<_> = informers.iter().map(|informer| informer.kind.plural()).collect();
    assert_eq!(found, ["Widget", "deployments", "Gadget"]);
    assert!(notes[0].ends_with("; Widget is watched when there is one"), "{notes:?}");
    assert_eq!(notes.len(), 2);
}

#[test]
fn an_answer_that_is_no_discovery_document_is_a_failure_that_is_tried_again_and_no_missing_kind() {
    let page = DiscoveryError::Document { path: "/apis".to_owned(), reason: "it is no JSON".to_owned() };
    assert_eq!(failure(page).class(), ErrorClass::Retry);
    let category = DiscoveryError::Category { name: "all".to_owned(), resources: Vec::new() };
    assert!(matches!(failure(category), ListWatchError::NotFound(_)));
}
