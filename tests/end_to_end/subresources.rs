//! Subresources by `client::Api`: status, scale, and those of pods, service accounts and signing requests.
//!
//! Answers "does each change its own part of the object, and nothing else?"

#![expect(clippy::unwrap_used, reason = "a verb that fails has failed the test")]

use actix_informer::client::Api;
use actix_informer::client::api::{DeleteParams, Patch, PatchParams, PostParams};
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube_core::discovery::ApiResource;
use serde_json::{Value, json};

use crate::stage::Stage;

fn post() -> PostParams {
    PostParams::default()
}

async fn pods_with(stage: &Stage, name: &str) -> Api<Pod> {
    let pods = stage.server.client().api::<Pod>().namespaced(&*stage.namespace);
    let pod = serde_json::from_value(crate::api::pod(name)).unwrap();
    pods.create(&post(), &pod).await.unwrap();
    pods
}

pub(crate) async fn a_status_is_read_patched_and_replaced_without_the_rest_of_the_object(stage: Stage) {
    let pods = pods_with(&stage, "web").await;
    let running = Patch::Merge(json!({"metadata": {"labels": {"app": "x"}}, "status": {"phase": "Running"}}));
    let pod = pods.patch_status("web", &PatchParams::default(), &running).await.unwrap();
    assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Running"));
    let mut pod = pods.get_status("web").await.unwrap();
    pod.status.as_mut().unwrap().message = Some("all is well".to_owned());
    pod.spec.as_mut().unwrap().priority = Some(9);
    let stale = pod.clone();
    let pod = pods.replace_status("web", &post(), &pod).await.unwrap();
    assert_eq!(pod.status.unwrap().message.as_deref(), Some("all is well"));
    assert_eq!(pod.spec.unwrap().priority.unwrap_or_default(), 0, "the spec is not of the status");
    assert!(pods.replace_status("web", &post(), &stale).await.unwrap_err().is_conflict());
    let status: Value = pods.get_subresource("status", "web").await.unwrap();
    assert_eq!(status["status"]["phase"], "Running");
}

pub(crate) async fn a_scale_is_read_patched_and_replaced_by_type_and_by_resource(stage: Stage) {
    let client = stage.server.client();
    let deployments = client.api::<Deployment>().namespaced(&*stage.namespace);
    let labels = json!({"app": "web"});
    let template = json!({"metadata": {"labels": labels}, "spec": crate::api::pod("")["spec"]});
    let web = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    });
    deployments.create(&post(), &serde_json::from_value(web).unwrap()).await.unwrap();
    let mut scale = deployments.get_scale("web").await.unwrap();
    assert_eq!(scale.spec.as_ref().unwrap().replicas, Some(2));
    scale.spec.as_mut().unwrap().replicas = Some(3);
    let scale = deployments.replace_scale("web", &post(), &scale).await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(3));
    let by_resource =
        client.dynamic_api(&ApiResource::erase::<Deployment>(&())).namespaced(&*stage.namespace);
    let five = Patch::Merge(json!({"spec": {"replicas": 5}}));
    by_resource.patch_scale("web", &PatchParams::default(), &five).await.unwrap();
    assert_eq!(deployments.get("web").await.unwrap().spec.unwrap().replicas, Some(5));
}

pub(crate) async fn pods_are_bound_debugged_and_evicted(stage: Stage) {
    let pods = pods_with(&stage, "web").await;
    pods.bind("web", "node-1", &post()).await.unwrap();
    assert_eq!(pods.get("web").await.unwrap().spec.unwrap().node_name.as_deref(), Some("node-1"));
    assert!(pods.bind("web", "node-2", &post()).await.unwrap_err().is_conflict());

    let debugger = json!({"name": "debug", "image": "example.org/debug:1"});
    let debugger = Patch::Strategic(json!({"spec": {"ephemeralContainers": [debugger]}}));
    let pod = pods.patch_ephemeral_containers("web", &PatchParams::default(), &debugger).await.unwrap();
    let names = |pod: &Pod| pod.spec.clone().unwrap().ephemeral_containers.unwrap().len();
    assert_eq!(names(&pod), 1);
    let mut pod = pod;
    let another = json!({"name": "again", "image": "example.org/debug:1"});
    let another = serde_json::from_value(another).unwrap();
    pod.spec.as_mut().unwrap().ephemeral_containers.as_mut().unwrap().push(another);
    let pod = pods.replace_ephemeral_containers("web", &post(), &pod).await.unwrap();
    assert_eq!(names(&pod), 2);

    let dry = PostParams { dry_run: true, ..post() };
    let now = DeleteParams::default().grace_period(0);
    assert!(pods.evict("web", &now, &dry).await.unwrap().is_success());
    assert!(pods.get_opt("web").await.unwrap().is_some(), "it was a dry run");
    let wrong =
        actix_informer::client::api::Preconditions { uid: Some("another".to_owned()), ..Default::default() };
    let refused = pods.evict("web", &now.clone().preconditions(wrong), &post()).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    assert!(pods.evict("web", &now, &post()).await.unwrap().is_success());
    assert!(pods.get_opt("web").await.unwrap().is_none());
}

pub(crate) async fn a_token_is_issued_for_a_service_account(stage: Stage) {
    let accounts = stage.server.client().api::<ServiceAccount>().namespaced(&*stage.namespace);
    let mut account = ServiceAccount::default();
    account.metadata.name = Some("cart".to_owned());
    accounts.create(&post(), &account).await.unwrap();
    let spec = TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let issued = accounts.create_token("cart", &post(), &request).await.unwrap();
    assert_eq!(issued.status.unwrap().token.unwrap().split('.').count(), 3, "a JSON web token");
    let brief = TokenRequestSpec { expiration_seconds: Some(1), ..TokenRequestSpec::default() };
    let brief = TokenRequest { spec: Some(brief), ..TokenRequest::default() };
    assert!(accounts.create_token("cart", &post(), &brief).await.unwrap_err().is_invalid());
}

pub(crate) async fn a_signing_request_is_approved(stage: Stage) {
    let requests = stage.server.client().api::<CertificateSigningRequest>();
    let key = rcgen::KeyPair::generate().unwrap();
    let signing = rcgen::CertificateParams::new(Vec::new()).unwrap().serialize_request(&key).unwrap();
    let name = format!("{}-request", stage.namespace);
    let mut request = CertificateSigningRequest::default();
    request.metadata.name = Some(name.clone());
    request.spec.request = ByteString(signing.pem().unwrap().into_bytes());
    request.spec.signer_name = "example.org/tests".to_owned();
    request.spec.usages = Some(vec!["client auth".to_owned()]);
    let created = requests.create(&post(), &request).await.unwrap();

    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "Checked"});
    let approved = Patch::Merge(json!({"status": {"conditions": [condition("Approved")]}}));
    let approved = requests.patch_approval(&name, &PatchParams::default(), &approved).await.unwrap();
    assert_eq!(approved.status.unwrap().conditions.unwrap()[0].type_, "Approved");
    let stale = requests.replace_approval(&name, &post(), &created).await.unwrap_err();
    assert!(stale.is_conflict(), "{stale}");
}
