//! Connections: to what they are made, who shares them, and when they end.
//!
//! Answers "how many connections does a client have, and to where?"

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_informer::client::{Client, Config};
use futures_util::future::join_all;
use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::*;
use crate::raw_server::*;

/// A server that answers every request with an empty list, and how many connections are open.
async fn counted() -> (RawServer, Arc<AtomicUsize>) {
    let open = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&open);
    let server = RawServer::start(move |mut connection: Connection| {
        let open = Arc::clone(&count);
        async move {
            open.fetch_add(1, Ordering::SeqCst);
            while connection.request().await.is_some() {
                connection.write(answer("200 OK", "", &list_of(&[], "9"))).await;
            }
            open.fetch_sub(1, Ordering::SeqCst);
        }
    })
    .await;
    (server, open)
}

async fn until_all_are_closed(open: &AtomicUsize) {
    let closed = async {
        while open.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), closed).await.expect("the connections are closed");
}

// REST-25: given a client and its clones, when they are used on one thread, then there is one set of
// connections; when all users are dropped, then its connections end; afterwards the client can still be used.
// Clients of equal configurations are apart: each renews its own credentials.
// - a one set of connections for all
// - b its connections end with the last user
// - c afterwards the client can be used
// - d clients of equal configurations are apart:
//   `rest_25_clients_of_equal_configurations_are_apart_and_their_connections_end_with_them`
#[tokio::test]
async fn rest_25_clones_of_a_client_share_the_connections_of_a_thread_and_these_end_with_the_last() {
    let (server, open) = counted().await;
    local(async {
        let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
        let (maps, secrets) =
            (made(client.resource::<ConfigMap>()), made(client.clone().resource::<Secret>()));
        for _ in 0..3 {
            list(&maps, latest()).await.unwrap();
            list(&secrets, latest()).await.unwrap();
        }
        assert_eq!(server.accepted(), 1, "one connection for all sources of the thread");
        drop(maps);
        list(&secrets, latest()).await.unwrap();
        assert_eq!(server.accepted(), 1, "one that is left keeps it");
        drop(secrets);
        until_all_are_closed(&open).await;
        list(&made(client.resource::<ConfigMap>()), latest()).await.unwrap();
        assert_eq!(server.accepted(), 2, "the client can still be used");
    })
    .await;
}

#[tokio::test]
async fn rest_25_clients_of_equal_configurations_are_apart_and_their_connections_end_with_them() {
    let (server, open) = counted().await;
    let clients: Vec<_> = (0..3).map(|_| Client::new(Config::new(server.url()).unwrap()).unwrap()).collect();
    join_all(clients.iter().map(|client| client.request(Method::GET, "/a", None))).await;
    assert_eq!((server.accepted(), open.load(Ordering::SeqCst)), (3, 3));
    drop(clients);
    until_all_are_closed(&open).await;
}

#[tokio::test]
async fn an_endpoint_with_an_ipv6_address_is_reached_and_named_in_the_host_header() {
    let Ok(listener) = tokio::net::TcpListener::bind("[::1]:0").await else { return };
    let port = listener.local_addr().unwrap().port();
    let served = tokio::spawn(async move { answer_one(listener.accept().await.unwrap().0).await });
    let client = Client::new(Config::new(format!("http://[::1]:{port}/base")).unwrap()).unwrap();
    client.request(Method::GET, "/a", None).await.unwrap();
    let head = served.await.unwrap();
    assert!(head.starts_with("GET /base/a HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains(&format!("host: [::1]:{port}\r\n")), "{head}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_is_reached_and_named_in_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.sock");
    let url = format!("unix://{}", path.display());
    let client = Client::new(Config::new(&*url).unwrap().token("s3cret-token")).unwrap();
    let error = client.request(Method::GET, "/version", None).await.unwrap_err();
    assert!(error.to_string().contains(&format!("cannot connect to {url}")), "{error}");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let served = tokio::spawn(async move { answer_one(listener.accept().await.unwrap().0).await });
    client.request(Method::GET, "/version", None).await.unwrap();
    let head = served.await.unwrap().to_lowercase();
    assert!(head.starts_with("get /version http/1.1\r\n") && head.contains("host: localhost\r\n"), "{head}");
    assert!(head.contains("authorization: bearer s3cret-token\r\n"), "{head}");
}

/// Answers one request; gives its head.
async fn answer_one(mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    stream.write_all(answer("200 OK", "", "{}").as_bytes()).await.unwrap();
    String::from_utf8(head).unwrap()
}
