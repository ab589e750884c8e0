//! Servers that do not speak the protocol, refuse, or go away.
//!
//! Answers "is each a typed error, and is a command never run twice?"

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_http::ws::Message;

use super::*;
use crate::raw_server::{Connection, RawServer, answer, frames, switched};

fn client(server: &RawServer) -> Api<Pod> {
    Client::new(Config::new(server.url()).unwrap()).unwrap().api::<Pod>().namespaced("a")
}

fn quiet() -> AttachParams {
    AttachParams::default()
}

// STR-05: given a handshake, when it is made, then it offers v5 before v4 with a key of its own; an answer
// without a websocket, to another key, or with a protocol that was not offered is a typed error, and nothing
// is read of it.
// - a v5 before v4 with a key of its own: `str_05_the_request_offers_v5_before_v4_with_a_key_of_its_own`
// - b any other answer is a typed error
#[tokio::test]
async fn str_05_a_server_that_does_not_switch_to_the_protocol_is_a_typed_error() {
    for (made, expected) in [
        (answer("200 OK", "", "{}").into_bytes(), "a request without a websocket"),
        (
            switched("sec-websocket-key: another", "v5.channel.k8s.io").into_bytes(),
            "not the answer to this request",
        ),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n".to_vec(),
            "websocket",
        ),
    ] {
        let made = Arc::new(made);
        let server = RawServer::start(move |mut connection: Connection| {
            let made = Arc::clone(&made);
            async move {
                connection.request().await;
                connection.write(&*made).await;
                connection.gone().await;
            }
        })
        .await;
        let error = client(&server).exec("b", ["ls"], &quiet()).await.unwrap_err();
        assert!(matches!(error, Error::Stream(StreamError::Handshake(_))), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

// STR-04: given a log, command, process or port that the server refuses, when it is asked for, then the error
// is `Refused` with the server's Status; a request for a websocket whose connection breaks before the answer
// is sent once.
// - a the error is `Refused` with the Status: `str_04_a_refused_stream_is_the_refusal_of_the_server`
// - b of an upgrade its body is read, too
// - c one whose connection breaks is sent once
#[tokio::test]
async fn str_04_a_refusal_of_an_upgrade_carries_the_status_and_a_connection_that_breaks_is_not_tried_again() {
    let forbidden = r#"{"kind":"Status","status":"Failure","message":"you may not exec","reason":"Forbidden","code":403}"#;
    let server = RawServer::start(move |mut connection: Connection| async move {
        let request = connection.request().await.unwrap();
        assert!(
            request.starts_with(
                "GET /api/v1/namespaces/a/pods/b/exec?stdout=true&stderr=true&command=ls HTTP/1.1"
            ),
            "{request}"
        );
        if connection.number == 0 {
            connection.write(answer("403 Forbidden", "content-type: application/json\r\n", forbidden)).await;
        }
    })
    .await;
    let pods = client(&server);
    let error = pods.exec("b", ["ls"], &quiet()).await.unwrap_err();
    assert!(error.is_forbidden() && error.to_string().contains("you may not exec"), "{error}");
    let error = pods.exec("b", ["ls"], &quiet()).await.unwrap_err();
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
    assert_eq!(server.accepted(), 2, "a command may have run: it is not sent again");
}

// STR-22: given a stream, when its server goes away, closes with an error or breaks the protocol, then what
// came before is delivered, and then the stream and the status end with that error; only a close in order, or
// the end of the connection behind the status and between two frames, is a clean end; input that could not be
// sent takes nothing of that away.
// - a of the streams: `str_22_a_stream_ends_cleanly_only_where_the_server_ends_it`
// - b of a command and its status
// - c also where input could not be sent:
//   `str_22_what_a_server_sent_before_it_closed_is_delivered_although_input_waits`
#[tokio::test]
async fn str_22_a_stream_whose_server_goes_away_or_breaks_the_protocol_ends_with_that_error() {
    let out = || Message::Binary(bytes::Bytes::from_static(b"\x01so far"));
    let nothing: fn() -> Vec<Message> = Vec::new;
    let text: fn() -> Vec<Message> = || vec![Message::Text("no".into())];
    for (last, expected) in [(nothing, "cut off"), (text, "broke the websocket protocol")] {
        let server = RawServer::start(move |mut connection: Connection| async move {
            let request = connection.request().await.unwrap();
            // In one packet with the head.
            let mut packet = switched(&request, "v4.channel.k8s.io").into_bytes();
            packet.extend(frames([out()].into_iter().chain(last())));
            connection.write(packet).await;
            connection.close().await;
        })
        .await;
        let mut command = client(&server).exec("b", ["ls"], &quiet()).await.unwrap();
        let mut output = command.stdout().unwrap();
        let mut read = [0; 6];
        output.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"so far");
        let error = output.read(&mut read).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        let error = command.status().await.unwrap_err();
        assert!(matches!(&error, Error::Stream(_)) && error.to_string().contains(expected), "{error}");
        let error = client(&server).exec("b", ["ls"], &quiet()).await.unwrap().output(100).await.unwrap_err();
        assert!(matches!(&error, Error::Stream(_)) && error.to_string().contains(expected), "{error}");
    }
}

// STR-25: given a request for a websocket, when it is sent, then it has the client's headers and credentials,
// and after a 401 it is sent once again with renewed ones.
#[tokio::test]
async fn str_25_an_upgrade_is_authorized_and_after_a_401_once_again_with_a_renewed_token() {
    let token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(token.path(), "old").unwrap();
    let path = token.path().to_owned();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let server = RawServer::start(move |mut connection: Connection| {
        let (path, count) = (path.clone(), Arc::clone(&count));
        async move {
            let request = connection.request().await.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            if request.contains("Bearer old") || request.contains("bearer old") {
                std::fs::write(path, "new").unwrap();
                connection.write(answer("401 Unauthorized", "", "{}")).await;
                return;
            }
            assert!(request.to_lowercase().contains("authorization: bearer new"), "{request}");
            assert!(request.to_lowercase().contains("user-agent: actix-informer/"), "{request}");
            let mut packet = switched(&request, "v5.channel.k8s.io").into_bytes();
            let status = [&[3][..], br#"{"status":"Success"}"#].concat();
            packet.extend(frames([Message::Binary(status.into()), Message::Close(None)]));
            connection.write(packet).await;
            connection.gone().await;
        }
    })
    .await;
    let config = Config::new(server.url()).unwrap().token_file(token.path());
    let pods = Client::new(config).unwrap().api::<Pod>().namespaced("a");
    let status = pods.exec("b", ["ls"], &quiet()).await.unwrap().wait().await.unwrap();
    assert_eq!((status.code(), asked.load(Ordering::SeqCst)), (Some(0), 2));
}

#[tokio::test]
async fn client_p2_a_command_begins_behind_interim_answers_and_its_refusal_is_read_behind_them() {
    let interim = "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    for refuses in [false, true] {
        let server = RawServer::start(move |mut connection: Connection| async move {
            let request = connection.request().await.unwrap();
            let mut packet = interim.as_bytes().to_vec();
            if refuses {
                // Without a length: it ends with the connection.
                let refusal = r#"{"kind":"Status","reason":"Forbidden","code":403,"message":"no"}"#;
                packet.extend(format!("HTTP/1.1 403 Forbidden\r\n\r\n{refusal}").into_bytes());
                connection.write(packet).await;
                return connection.close().await;
            }
            packet.extend(switched(&request, "v5.channel.k8s.io").into_bytes());
            let status = [&[3][..], br#"{"status":"Success"}"#].concat();
            packet.extend(frames([Message::Binary(status.into()), Message::Close(None)]));
            connection.write(packet).await;
            connection.gone().await;
        })
        .await;
        let begun = client(&server).exec("b", ["ls"], &quiet()).await;
        match refuses {
            true => assert!(begun.unwrap_err().is_forbidden()),
            false => assert_eq!(begun.unwrap().wait().await.unwrap().code(), Some(0)),
        }
    }
}
