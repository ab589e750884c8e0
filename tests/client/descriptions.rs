//! What is described before anything is asked: which part, under which name, and what is refused.
//!
//! Answers "is a wrong description an error at once?" without any server: nothing here sends a request.

use std::error::Error as _;
use std::time::Duration;

use actix_informer::Error;
use actix_informer::client::{Client, Config, Error as ClientError, ResourceSource};
use actix_informer::representation::MetadataOnly;
use informer_actors::runtime::Runtime;
use informer_core::meta::ObjectKey;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube_core::discovery::{ApiResource, Scope};
use kube_core::gvk::GroupVersionKind;

fn client() -> Client {
    Client::new(Config::new("http://127.0.0.1:1").unwrap()).unwrap()
}

fn maps() -> ResourceSource<ConfigMap> {
    client().resource()
}

#[test]
fn inf_84_a_selector_or_namespace_that_no_server_understands_is_refused_before_any_request() {
    let runtime = Runtime::threads().start().unwrap();
    let refused = |source: ResourceSource<ConfigMap>| {
        let of_source = source.clone().namespaces(["a"]).source(&runtime).map(drop);
        assert!(of_source.is_err(), "{source:?}");
        source.informer(&runtime).map(drop).unwrap_err()
    };
    for (source, text) in [
        (
            maps().labels("app in shop"),
            "label selector \"app in shop\" cannot be parsed: \"(\" is missing behind \"app in\"",
        ),
        (
            maps().fields("metadata.name"),
            "field selector \"metadata.name\" cannot be parsed: \"metadata.name\" has no \"=\" and no \"!=\"",
        ),
    ] {
        let error = refused(source);
        assert!(matches!(error, ClientError::Selector { .. }), "{error:?}");
        assert_eq!(error.to_string(), text);
    }
    for source in [maps().namespace(""), maps().namespaces(["a", ""]), maps().namespace("a/b")] {
        let error = refused(source);
        assert!(matches!(error, ClientError::Name { what: "namespace", .. }), "{error:?}");
    }
    let several = maps().namespaces(["a", "b"]).source(&runtime).map(drop);
    assert!(matches!(several, Err(ClientError::Unsupported(_))), "{several:?}");
    assert!(client().resource::<Node>().informer(&runtime).is_ok());
}

// INF-84: given a description with a selector that no server can parse, or an empty namespace, when an
// informer or a source is made of it, then it is refused with an error that quotes it and says what is wrong,
// before any request; a namespace of a kind without namespaces does not compile, and of a kind that is known
// only at run time it is refused before any request, if the kind is one of Kubernetes' own or discovery has
// said so.
// - a refused before any request:
//   `inf_84_a_selector_or_namespace_that_no_server_understands_is_refused_before_any_request`
// - b grammars are the servers': `equal_label_selectors_have_one_normal_form`
// - c of dynamic kinds
#[test]
fn inf_84_a_namespace_of_a_dynamic_kind_without_namespaces_is_refused_before_any_request() {
    let runtime = Runtime::threads().start().unwrap();
    let nodes = || client().dynamic(&ApiResource::erase::<Node>(&()));
    let zones = ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Zone"));
    let zones = || client().dynamic(&zones);
    for (source, text) in [
        (nodes().namespace("a"), "nodes are cluster-scoped: leave out the namespace \"a\""),
        (nodes().namespaces(["b", "c"]), "nodes are cluster-scoped: leave out the namespace \"b\""),
        (
            zones().discovered(&Scope::Cluster).namespace("a"),
            "zones.example.org are cluster-scoped: leave out the namespace \"a\"",
        ),
    ] {
        let error = source.informer(&runtime).map(drop).unwrap_err();
        assert!(matches!(error, ClientError::ClusterScoped { .. }), "{error:?}");
        assert_eq!(error.to_string(), text);
    }
    for source in [nodes(), zones().namespace("a"), zones().discovered(&Scope::Namespaced).namespace("a")] {
        assert!(source.informer(&runtime).is_ok());
    }
}

// INF-85: given descriptions of different parts of one kind, when nobody names their informers, then the
// names differ and say which part is seen; equal descriptions have equal names, however their selectors are
// written.
#[test]
fn inf_85_an_informer_is_named_after_the_part_that_it_sees() {
    let runtime = Runtime::threads().start().unwrap();
    for (source, name) in [
        (maps(), "configmaps"),
        (maps().namespace("web"), "configmaps/ns=web"),
        (maps().namespaces(["web", "shop"]), "configmaps/ns=shop+web"),
        (maps().namespaces(["a", "b", "c", "d", "e", "f"]), "configmaps/ns=a+b+c+d+2 more"),
        (maps().labels("b=2, a"), "configmaps/labels=a,b=2"),
        (maps().labels("a,b==2"), "configmaps/labels=a,b=2"),
        (maps().labels("").fields(""), "configmaps"),
        (maps().namespace("web").fields("metadata.name=x"), "configmaps/ns=web,fields=metadata.name=x"),
        (maps().cluster("eu".parse().unwrap()), "configmaps/cluster=eu"),
        (maps().namespace("web").name("mine"), "mine"),
    ] {
        assert_eq!(source.informer_name(), name);
        assert_eq!(source.informer(&runtime).unwrap().start().unwrap().name(), name);
    }
    assert_eq!(maps().keep_as(MetadataOnly::<ConfigMap>::new()).informer_name(), "configmaps/metadata");
    let deployments = client().resource::<Deployment>();
    assert_eq!(deployments.namespace("a").informer_name(), "deployments.apps/ns=a");
}

/// Fails at the step of this number, and is `Ok` beyond the last.
async fn setup(fails_at: usize) -> Result<(), Error> {
    let step = |number: usize, fails: &'static str, holds: &'static str| {
        if number == fails_at { fails } else { holds }
    };
    let config = Config::new(step(0, "ftp://nowhere", "http://127.0.0.1:1"))?;
    let client = Client::new(config)?;
    let runtime = Runtime::threads().start()?;
    let maps = client.resource::<ConfigMap>().labels(step(1, "a b", "a"));
    let maps = maps.name(step(2, "", "maps")).informer(&runtime)?.start()?;
    let _key: ObjectKey = step(3, "a/b/c", "a/b").parse()?;
    let _found = maps
        .lister()
        .by_index(step(4, "none", "none"), "x")
        .or_else(|error| if fails_at == 4 { Err(error) } else { Ok(Vec::new()) })?;
    if fails_at == 5 {
        maps.synced_within(Duration::ZERO).await?;
    }
    if fails_at == 6 {
        maps.lister().wait_for(&"7".parse()?, Duration::ZERO).await?;
    }
    maps.shutdown(Duration::from_secs(10)).await;
    if fails_at == 7 {
        let _never = maps.for_each(|_| async {})?;
    }
    runtime.shutdown(Duration::from_secs(10)).await?;
    Ok(())
}

// INF-86: given a program whose functions return `actix_informer::Error`, when any step of a setup fails,
// then `?` carries its error, with the same text and the same causes.
#[tokio::test]
async fn inf_86_one_error_carries_those_of_every_step_of_a_setup() {
    let mut told = Vec::new();
    for fails_at in 0..8 {
        let error = setup(fails_at).await.unwrap_err();
        let inner: &(dyn std::error::Error + 'static) = match &error {
            Error::Client(inner) => inner,
            Error::Start(inner) => inner,
            Error::Key(inner) => inner,
            Error::UnknownIndex(inner) => inner,
            Error::Wait(inner) => inner,
            Error::WaitFor(inner) => inner,
            Error::Subscribe(inner) => inner,
            other => panic!("step {fails_at}: {other:?}"),
        };
        assert_eq!(error.to_string(), inner.to_string(), "the text is the step's");
        assert_eq!(error.source().map(ToString::to_string), inner.source().map(ToString::to_string));
        told.push(error.to_string());
    }
    told.sort();
    told.dedup();
    assert_eq!(told.len(), 8, "each step has words of its own: {told:#?}");
    setup(8).await.unwrap();
}
