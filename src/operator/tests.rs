//! Tests of an operator with probes and a factory, over HTTP, against the in-memory API server.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};

use super::*;
use crate::client::{Client, Config};
use crate::factory::InformerFactory;
use crate::probes::ProbeSocket;
use crate::runtime::Runtime;

const LIMIT: Duration = Duration::from_secs(30);

/// The code and the first line of an answer: other lines say how each part is doing.
async fn first_line(address: SocketAddr, path: &'static str) -> (String, String) {
    let (code, text) = get(address, path).await;
    (code, text.lines().next().unwrap_or_default().to_owned())
}

/// The code and the text of an answer.
async fn get(address: SocketAddr, path: &'static str) -> (String, String) {
    let asked = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: probes\r\n\r\n").expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("head and body");
        (head.split(' ').nth(1).expect("a code").to_owned(), body.trim().to_owned())
    });
    asked.await.expect("no panic")
}

#[tokio::test]
async fn op_03_probes_and_factories_are_parts_and_the_probes_say_what_is_missing_until_the_last_part_has_ended()
 {
    let server = ApiServer::builder().start().await.expect("it starts");
    let runtime = Runtime::threads().start().expect("threads can be started");
    let client = Client::new(Config::new(server.url()).expect("a URL")).expect("a client");
    let factory = InformerFactory::new(&runtime, &client);
    let (pods, _maps) = (factory.informer::<Pod>().expect("declared"), factory.informer::<ConfigMap>());
    let probes = ProbeSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    let address = probes.address();
    let (release, mut held) = tokio::sync::watch::channel(false);
    held.mark_unchanged();
    let slow = task("slow", move |context: PartContext| {
        let mut held = held.clone();
        async move {
            held.wait_for(|released| *released).await?;
            context.ready();
            context.stopping().await;
            held.wait_for(|released| !*released).await?;
            Ok(())
        }
    });
    let operator = Operator::builder(&runtime).probes(probes).cache(factory).work(slow).start();
    let operator = operator.expect("the runtime runs");
    operator
        .wait_until(|status| status.unready() == ["slow is not ready: it has not said that it is ready"])
        .await;
    assert!(pods.status().synced, "work starts behind the caches");
    let missing = "slow is not ready: it has not said that it is ready".to_owned();
    assert_eq!(first_line(address, "/readyz?verbose").await, ("503".to_owned(), missing));
    release.send_replace(true);
    operator.ready_within(LIMIT).await.expect("it is ready");
    for path in ["/readyz", "/livez"] {
        assert_eq!(get(address, path).await, ("200".to_owned(), "ok".to_owned()));
    }
    let (_, text) = get(address, "/readyz?verbose").await;
    assert!(text.starts_with("ok\noperator operator: running\n  probes: probes at "), "{text}");
    let of_pods = text.lines().find(|line| line.starts_with("informer pods: streaming, 0 objects, heard "));
    assert!(of_pods.is_some_and(|line| line.ends_with(" ago")), "{text}");
    let draining = tokio::spawn({
        let operator = operator.clone();
        async move { operator.drain().await }
    });
    operator.wait_until(|status| status.stage != Stage::Running).await;
    let stopping = "operator operator is stopping: work".to_owned();
    operator.wait_until(|status| status.unready() == [stopping.as_str()]).await;
    assert_eq!(first_line(address, "/readyz?verbose").await, ("503".to_owned(), stopping));
    release.send_replace(false);
    let report = draining.await.expect("no panic");
    assert!(report.is_clean(), "{report}");
    assert!(pods.status().stopped, "caches are parts");
    std::net::TcpListener::bind(address).expect("the address is free, although the operator is held");
    drop(operator);
}
