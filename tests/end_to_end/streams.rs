//! Logs, commands and ports of pods: through the in-memory server's agent, and through a kube-apiserver that asks a fake
//! kubelet.
//!
//! Answers "does a stream pass through a real server as through ours?" The kubelet declares that it speaks websockets, as
//! those of Kubernetes 1.36 do: then the server hands the connection on.

#![expect(clippy::unwrap_used, reason = "a stream that fails has failed the test")]

use actix_informer::client::Api;
use actix_informer::client::api::{AttachParams, LogParams};
use actix_informer::client::streams::{Protocol, StreamError};
use futures_util::StreamExt;
use informer_apiserver::{Agent, Kubelet};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::Server;
use crate::stage::{Stage, until};

/// A pod that is bound to a node of its own, and what runs in it.
struct Bound {
    pods: Api<Pod>,
    agent: Agent,
    namespace: String,
    _kubelet: Option<Kubelet>,
}

impl Bound {
    async fn on(stage: &Stage) -> Self {
        let node = format!("node-of-{}", stage.namespace);
        let kubelet = match &*stage.server {
            Server::Memory(_) => None,
            Server::Real(_) => Some(Kubelet::start().unwrap()),
        };
        let agent = match &kubelet {
            None => stage.server.in_memory().agent(),
            Some(kubelet) => {
                let status = json!({
                    "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.addr().port()}},
                    "declaredFeatures": ["ExtendWebSocketsToKubelet"],
                });
                let node =
                    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "status": status});
                stage.api.post("/api/v1/nodes", &node).await;
                kubelet.agent()
            }
        };
        let mut pod = crate::api::pod("web");
        pod["spec"]["nodeName"] = json!(node);
        pod["spec"]["containers"][0]["name"] = json!("main");
        stage.api.post(&format!("/api/v1/namespaces/{}/pods", stage.namespace), &pod).await;
        let pods = stage.server.client().api::<Pod>().namespaced(&*stage.namespace);
        Self { pods, agent, namespace: stage.namespace.clone(), _kubelet: kubelet }
    }

    fn container(&self) -> informer_apiserver::Container {
        self.agent.container(&self.namespace, "web", "main")
    }
}

pub(crate) async fn str_01_a_log_is_read_and_followed_through_the_node_of_the_pod(stage: Stage) {
    let bound = Bound::on(&stage).await;
    let web = bound.container();
    web.log("before");
    web.restart();
    web.log("one");
    web.log("two");
    let log = async |params: LogParams| bound.pods.logs("web", &params).await.unwrap();
    let params = LogParams::default;
    assert_eq!(log(params()).await, "one\ntwo\n");
    assert_eq!(log(LogParams { tail_lines: Some(1), ..params() }).await, "two\n");
    assert_eq!(log(LogParams { previous: true, ..params() }).await, "before\n");
    assert_eq!(log(LogParams { limit_bytes: Some(5), ..params() }).await, "one\nt");
    assert_eq!(log(LogParams { since_seconds: Some(3600), ..params() }).await, "one\ntwo\n");
    let mut followed = bound.pods.log_stream("web", &LogParams { follow: true, ..params() }).await.unwrap();
    for line in ["one", "two"] {
        assert_eq!(&*followed.next().await.unwrap().unwrap(), line);
    }
    web.log("three");
    assert_eq!(&*followed.next().await.unwrap().unwrap(), "three");
    web.end();
    assert!(followed.next().await.is_none());

    let followed = bound.pods.log_stream("web", &LogParams { follow: true, ..params() }).await.unwrap();
    drop(followed);
    until("nobody reads the log", || web.log_readers() == 0).await;

    let wrong = LogParams { container: Some("other".to_owned()), ..params() };
    let refused = bound.pods.logs("web", &wrong).await.unwrap_err();
    assert_eq!(refused.refused().unwrap().code, 400);
    assert!(refused.to_string().contains("container other is not valid for pod web"), "{refused}");
    let refused = bound.pods.logs("web", &LogParams { tail_lines: Some(-1), ..params() }).await.unwrap_err();
    assert!(refused.is_invalid() && refused.to_string().contains("tailLines"), "{refused}");
}

pub(crate) async fn str_06_commands_run_through_the_node_of_the_pod(stage: Stage) {
    let bound = Bound::on(&stage).await;
    bound.container();
    let run = async |words: &[&str], params: &AttachParams| {
        bound.pods.exec("web", words.iter().copied(), params).await.unwrap()
    };
    let quiet = AttachParams::default();
    let (stdout, stderr, status) = run(&["echo", "hi", "there"], &quiet).await.output(100).await.unwrap();
    assert_eq!((&*stdout, &*stderr, status.code()), (&b"hi there\n"[..], &b""[..], Some(0)));
    let status = run(&["exit", "7"], &quiet).await.wait().await.unwrap();
    assert_eq!(status.code(), Some(7));

    let mut cat = run(&["cat"], &AttachParams::default().stdin(true)).await;
    assert_eq!(cat.protocol(), Protocol::V5);
    let (mut input, mut output) = (cat.stdin().unwrap(), cat.stdout().unwrap());
    let sent: Vec<u8> = (0..300_000_u32).map(|number| number.to_le_bytes()[1]).collect();
    let mut received = Vec::new();
    let writing = async {
        input.write_all(&sent).await.unwrap();
        drop(input);
    };
    tokio::join!(writing, output.read_to_end(&mut received)).1.unwrap();
    assert!(received == sent);
    assert_eq!(cat.status().await.unwrap().code(), Some(0));

    let mut sizes = run(&["sizes"], &AttachParams::interactive_tty()).await;
    let mut output = sizes.stdout().unwrap();
    sizes.resize(80, 24).await.unwrap();
    let mut shown = [0; 6];
    output.read_exact(&mut shown).await.unwrap();
    assert_eq!(&shown, b"80x24\n");
    drop((sizes, output));
    until("the command has ended with its connection", || bound.agent.running() == 0).await;

    let mut process = bound.pods.attach("web", &AttachParams::default().stdin(true)).await.unwrap();
    process.stdin().unwrap().write_all(b"to the process").await.unwrap();
    let mut heard = Vec::new();
    process.stdout().unwrap().read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"to the process");
    assert!(process.status().await.unwrap().is_success());

    let refused = bound.pods.exec("nobody", ["echo"], &quiet).await.unwrap_err();
    assert!(refused.refused().unwrap().is_object_not_found(), "{refused}");
}

pub(crate) async fn str_13_ports_are_forwarded_through_the_node_of_the_pod(stage: Stage) {
    let bound = Bound::on(&stage).await;
    bound.container();
    bound.agent.refuse_port(81, "connect: connection refused");
    let mut forward = bound.pods.port_forward("web", &[80, 81, 443]).await.unwrap();
    let (mut http, mut https) = (forward.take_stream(80).unwrap(), forward.take_stream(443).unwrap());
    http.write_all(b"http").await.unwrap();
    https.write_all(b"https").await.unwrap();
    let (mut of_http, mut of_https) = ([0; 4], [0; 5]);
    http.read_exact(&mut of_http).await.unwrap();
    https.read_exact(&mut of_https).await.unwrap();
    assert_eq!((&of_http, &of_https), (b"http", b"https"));
    let error = forward.take_stream(81).unwrap().read(&mut [0; 1]).await.unwrap_err();
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<StreamError>());
    assert!(matches!(cause, Some(StreamError::Port { port: 81, .. })), "{error}");
    drop((forward, http, https));
    until("the connection has ended", || bound.agent.running() == 0).await;
}
