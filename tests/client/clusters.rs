//! Sources of several clusters, and sources that would cover the same objects.
//!
//! Answers "does a source of Kubernetes declare which cluster its objects belong to, and which of them it covers?"

use actix_informer::client::{Client, Config, ResourceSource};
use informer_actors::informer::StartError;
use informer_actors::runtime::Runtime;
use informer_core::meta::SourceId;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::harness::*;
use crate::raw_server::*;

fn maps() -> ResourceSource<ConfigMap> {
    Client::new(Config::new("http://127.0.0.1:1").unwrap()).unwrap().resource::<ConfigMap>()
}

#[tokio::test]
async fn inf_82_a_source_of_a_cluster_gives_keys_that_name_it() {
    let items = list_of(&[config_map("one", 1), config_map("two", 2)], "2");
    let server = RawServer::start(move |mut connection: Connection| {
        let items = items.clone();
        async move {
            while connection.request().await.is_some() {
                connection.write(answer("200 OK", "", &items)).await;
            }
        }
    })
    .await;
    local(async {
        let source = made(config_maps(&server.url()).cluster("eu".parse().unwrap()));
        let page = list(&source, latest()).await.unwrap();
        assert!(page.items.len() == 2 && page.items.iter().all(|item| item.starts_with("eu|")), "{page:?}");
    })
    .await;
}

#[test]
fn inf_83_the_same_namespace_twice_or_all_and_one_of_them_is_refused() {
    let runtime = Runtime::threads().start().unwrap();
    let spec = |source: ResourceSource<ConfigMap>, name: &str| {
        source.source_id(SourceId::new(name)).source(&runtime).unwrap()
    };
    let twice = maps().namespaces(["a", "b", "a"]).informer(&runtime).unwrap().start().map(drop);
    assert!(matches!(twice, Err(StartError::SourceTwice { .. })), "{twice:?}");
    let pairs = [(None, Some("a")), (Some("a"), Some("a")), (Some("a"), None)];
    for (one, other) in pairs {
        let of =
            |namespace: Option<&str>| namespace.into_iter().fold(maps(), |maps, name| maps.namespace(name));
        let builder = maps().namespace("z").informer(&runtime).unwrap();
        let builder = builder.source_with(spec(of(one), "one")).source_with(spec(of(other), "other"));
        let refused = builder.start().map(drop);
        assert!(matches!(refused, Err(StartError::Overlapping { .. })), "{one:?} {other:?}: {refused:?}");
    }
    let shard = |name: &str| spec(maps().namespace("a").labels(format!("shard={name}")), name);
    let builder = maps().namespace("z").informer(&runtime).unwrap();
    assert!(builder.source_with(shard("1")).source_with(shard("2")).start().is_ok(), "shards are disjoint");
}
