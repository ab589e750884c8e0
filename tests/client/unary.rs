//! Single requests from any runtime.
//!
//! Answers "does `Client::send` need anything of its caller?" It must work where futures move between threads, and
//! without a `LocalSet`.

use actix_informer::client::{Client, Config, Error};
use http::Method;

use crate::raw_server::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_request_works_on_a_work_stealing_runtime_and_carries_its_body_and_token() {
    let server = RawServer::start(|mut connection: Connection| async move {
        let head = connection.request().await.unwrap();
        let body = connection.body(9).await;
        let has = |header: &str| head.to_lowercase().contains(header);
        let whole = head.starts_with("POST /base/api/v1/namespaces HTTP/1.1")
            && has("authorization: bearer s3cret\r\n")
            && has("content-type: application/json\r\n")
            && has("accept-encoding: gzip\r\n")
            && has("user-agent: actix-informer/")
            && body == r#"{"a":"b"}"#;
        connection.write(answer(if whole { "201 Created" } else { "500 Oops" }, "x-a: 1\r\n", &head)).await;
    })
    .await;
    let config = Config::new(format!("{}/base/", server.url())).unwrap().token("s3cret");
    let client = Client::new(config).unwrap();
    let sent = tokio::spawn(async move {
        let body = Some(("application/json", br#"{"a":"b"}"#.to_vec()));
        client.request(Method::POST, "/api/v1/namespaces", body).await
    });
    let answer = sent.await.unwrap().unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["x-a"].to_str().unwrap()), (201, "1"));
}

#[tokio::test]
async fn a_refusal_carries_the_status_of_the_server() {
    let server = RawServer::start(|mut connection: Connection| async move {
        connection.request().await;
        let status = r#"{"kind":"Status","code":409,"reason":"AlreadyExists","message":"it is there"}"#;
        connection.write(answer("409 Conflict", "", status)).await;
    })
    .await;
    let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
    match client.request(Method::POST, "/x", None).await {
        Err(Error::Refused(status)) => {
            assert_eq!(
                (status.code, &*status.reason, &*status.message),
                (409, "AlreadyExists", "it is there")
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn many_requests_run_side_by_side_and_a_dropped_one_is_ended() {
    let server = RawServer::start(|mut connection: Connection| async move {
        while let Some(head) = connection.request().await {
            if !head.contains("/never") {
                connection.write(answer("200 OK", "", "{}")).await;
            }
        }
    })
    .await;
    let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
    let mut never = Box::pin(client.request(Method::GET, "/never", None));
    assert!(futures_util::poll!(&mut never).is_pending());
    client.request(Method::GET, "/now", None).await.unwrap();
    drop(never);
    client.request(Method::GET, "/now", None).await.unwrap();
}
