//! The connections of a client that would speak HTTP/2: HTTP/1.1 where the server has nothing else, what happens when
//! none can be made, and an informer over them.

use actix_informer::client::{Client, Config, Error, TransportError};
use futures_util::future::join_all;
use http::Method;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::raw_server::*;
use crate::scripted::{ends, reached, threads};
use crate::tls::Authority;

#[tokio::test]
async fn a_server_without_http2_is_asked_over_http1_on_as_many_connections_as_requests_at_once() {
    let authority = Authority::new();
    for acceptor in [Some(authority.acceptor("127.0.0.1")), None] {
        let serve = |mut connection: Connection| async move {
            while let Some(head) = connection.request().await {
                let early = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
                let headers: String = (0..200).map(|number| format!("x-{number}: 1\r\n")).collect();
                connection.write(format!("{early}{}", answer("200 OK", &headers, &head))).await;
            }
        };
        let server = match acceptor {
            Some(acceptor) => RawServer::start_tls(acceptor, serve).await,
            None => RawServer::start(serve).await,
        };
        let client = Client::new(authority.config(&server.url()).http2()).unwrap();
        for answer in join_all((0..4).map(|_| client.request(Method::GET, "/a?b", None))).await {
            let answer = answer.unwrap();
            let head = String::from_utf8(answer.body().to_vec()).unwrap().to_lowercase();
            assert!(head.starts_with("get /a?b http/1.1\r\n") && head.contains("host: 127.0.0.1:"), "{head}");
            assert!(answer.headers().len() > 200, "behind an interim answer, with many headers");
        }
        assert_eq!(server.accepted(), 4);
        join_all((0..4).map(|_| client.request(Method::GET, "/a", None))).await;
        assert_eq!(server.accepted(), 4, "they are used again");
    }
}

#[tokio::test]
async fn a_get_is_sent_again_when_its_kept_connection_was_closed_and_a_post_is_not_lost_silently() {
    let server = RawServer::start(|mut connection: Connection| async move {
        if connection.request().await.is_some() {
            connection.write(answer("200 OK", "", "{}")).await;
        }
        if connection.number < 2 {
            // Closes after it has read the next request.
            connection.request().await;
        }
    })
    .await;
    let client = Client::new(Config::new(server.url()).unwrap().http2().max_retries(0)).unwrap();
    for _ in 0..2 {
        client.request(Method::GET, "/a", None).await.unwrap();
    }
    assert_eq!(server.accepted(), 2, "the second one was sent twice");
    let error = client.request(Method::POST, "/a", None).await.unwrap_err();
    assert!(matches!(error, Error::Transport(TransportError::Broken { .. })), "{error}");
}

#[tokio::test]
async fn who_waits_for_a_connection_that_cannot_be_made_is_told_why() {
    let (one, other) = (Authority::new(), Authority::new());
    let server =
        RawServer::start_tls(one.acceptor_of_http2("127.0.0.1"), |connection| connection.gone()).await;
    let client = Client::new(other.config(&server.url()).http2()).unwrap();
    for answer in join_all((0..50).map(|_| client.request(Method::GET, "/a", None))).await {
        let error = answer.unwrap_err();
        assert!(matches!(error, Error::Transport(TransportError::Connect { .. })), "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    assert!(server.accepted() <= 10, "{} handshakes for 50 requests", server.accepted());
}

#[tokio::test]
async fn all_who_wait_for_one_connection_believe_a_new_authority_at_once() {
    let (old, new) = (Authority::new(), Authority::new());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, old.pem()).unwrap();
    let server = RawServer::start_tls(new.acceptor("127.0.0.1"), |mut connection: Connection| async move {
        while connection.request().await.is_some() {
            connection.write(answer("200 OK", "", "{}")).await;
        }
    })
    .await;
    let config = Config::new(server.url()).unwrap().certificate_authority_file(&file).http2();
    let client = Client::new(config).unwrap();
    std::fs::write(&file, new.pem()).unwrap();
    for answer in join_all((0..50).map(|_| client.request(Method::GET, "/a", None))).await {
        answer.unwrap();
    }
}

#[tokio::test]
async fn an_informer_over_http2_follows_the_in_memory_server() {
    let server = ApiServer::builder().tls().token("s3cret").seed(1).start().await.unwrap();
    let config = Config::from_kubeconfig_text(&server.kubeconfig(), None).unwrap().http2();
    let client = Client::new(config).unwrap();
    let runtime = threads();
    let maps =
        client.resource::<ConfigMap>().namespace("default").informer(&runtime).unwrap().start().unwrap();
    maps.synced().await.unwrap();
    let body = br#"{"metadata":{"name":"one"}}"#.to_vec();
    let path = "/api/v1/namespaces/default/configmaps";
    client.request(Method::POST, path, Some(("application/json", body))).await.unwrap();
    reached(&maps, |status| status.objects == 1).await;
    ends(maps).await;
}
