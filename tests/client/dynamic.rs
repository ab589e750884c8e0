//! The requests for kinds that are known only at run time, with and without namespaces.
//!
//! Answers "is each request exactly the one that the API documents?", as client-go's golden requests of its dynamic
//! client.

use actix_informer::client::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use actix_informer::kube_core::DynamicObject;
use actix_informer::kube_core::discovery::{ApiResource, Scope};
use actix_informer::kube_core::gvk::GroupVersionKind;
use serde_json::{Value, json};

use crate::api::{client, recording};

const WIDGET: &str = r#"{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"a"},"items":[]}"#;

// DYN-01: given verbs on namespaced and cluster kinds with subresources, when called, then the exact method,
// path and query are produced.
// - a on namespaced and cluster kinds
// - b with subresources
#[tokio::test]
async fn dyn_01_each_verb_on_namespaced_and_cluster_kinds_and_their_subresources_sends_exactly_its_method_path_and_query()
 {
    let (server, asked) = recording("200 OK", WIDGET).await;
    let (widgets, nodes) =
        (GroupVersionKind::gvk("example.org", "v1", "Widget"), GroupVersionKind::gvk("", "v1", "Node"));
    let dynamic = |kind: &GroupVersionKind| client(&server).dynamic_api(&ApiResource::from_gvk(kind));
    let object: DynamicObject = serde_json::from_str(WIDGET).unwrap();
    let (post, merge) = (PostParams::default(), Patch::Merge(json!({})));
    let by_me = PatchParams::apply("me").force();
    let selected = ListParams::default().labels("app=web").fields("metadata.name=a").limit(3);
    for (api, path) in [
        (
            dynamic(&widgets).discovered(&Scope::Namespaced).namespaced("shop"),
            "/apis/example.org/v1/namespaces/shop/widgets",
        ),
        (dynamic(&widgets).discovered(&Scope::Cluster), "/apis/example.org/v1/widgets"),
        (dynamic(&nodes).discovered(&Scope::Cluster), "/api/v1/nodes"),
    ] {
        api.get("a").await.unwrap();
        api.list(&selected).await.unwrap();
        api.create(&post, &object).await.unwrap();
        api.replace("a", &post, &object).await.unwrap();
        api.patch("a", &PatchParams::default(), &merge).await.unwrap();
        api.patch("a", &by_me, &Patch::Apply(json!({}))).await.unwrap();
        api.delete("a", &DeleteParams::default()).await.unwrap();
        api.delete_collection(&DeleteParams::default(), &selected).await.unwrap();
        api.get_subresource::<Value>("status", "a").await.unwrap();
        api.replace_subresource::<_, Value>("status", "a", &post, &object).await.unwrap();
        api.patch_subresource::<_, Value>("scale", "a", &PatchParams::default(), &merge).await.unwrap();
        api.create_subresource::<_, Value>("approval", "a", &post, &object).await.unwrap();
        let lines: Vec<_> = asked.lock().unwrap().drain(..).map(|[line, ..]| line).collect();
        let selection = "fieldSelector=metadata.name%3Da&labelSelector=app%3Dweb";
        let expected = [
            format!("GET {path}/a"),
            format!("GET {path}?{selection}&limit=3"),
            format!("POST {path}"),
            format!("PUT {path}/a"),
            format!("PATCH {path}/a"),
            format!("PATCH {path}/a?force=true&fieldManager=me"),
            format!("DELETE {path}/a"),
            format!("DELETE {path}?{selection}"),
            format!("GET {path}/a/status"),
            format!("PUT {path}/a/status"),
            format!("PATCH {path}/a/scale"),
            format!("POST {path}/a/approval"),
        ];
        assert_eq!(lines, expected);
    }
}

#[tokio::test]
async fn a_namespace_that_is_missing_or_too_much_is_refused_before_anything_is_sent() {
    let (server, asked) = recording("200 OK", WIDGET).await;
    let widgets = ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Widget"));
    let api = client(&server).dynamic_api(&widgets);
    api.clone().discovered(&Scope::Namespaced).get("a").await.unwrap_err();
    let error = api.discovered(&Scope::Cluster).namespaced("shop").get("a").await.unwrap_err();
    assert_eq!(error.to_string(), "widgets.example.org are cluster-scoped: leave out the namespace \"shop\"");
    assert_eq!(asked.lock().unwrap().len(), 0);
}
