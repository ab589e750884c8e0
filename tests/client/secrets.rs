//! What no error, Debug or log may hold: passwords, tokens and the values of objects.
//!
//! Answers "does a reader of the errors or the logs find a secret?" Each source of text gets a mark of its own,
//! every path to an error is taken, and everything that can be read afterwards is searched: Display, Debug, the chain
//! of causes, the status and what is undecodable, and all log lines of the library's own targets at every level.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::path::Path;

use actix_informer::client::{Client, Config, Error};
use actix_informer::representation::MetadataOnly;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use http::{Method, Request};
use informer_actors::list_watch::{KnownObjects, ListWatch};
use informer_actors::runtime::Runtime;
use informer_core::meta::ObjectKey;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use crate::harness::*;
use crate::logs;
use crate::raw_server::*;
use crate::scripted::*;

/// All texts that an error can show.
pub(crate) fn shown(error: &(dyn StdError + 'static)) -> String {
    let mut text = format!("{error}\n{error:?}\n{error:#?}\n");
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = writeln!(text, "{error}\n{error:?}\n{error:#?}");
        cause = error.source();
    }
    text
}

pub(crate) fn is_unmarked(text: &str, where_from: &str) {
    let encoded = STANDARD.encode("MARK-");
    for mark in ["MARK-", encoded.trim_end_matches(['=', 't'])] {
        let line = text.lines().find(|line| line.contains(mark));
        assert_eq!(line, None, "{where_from} quotes a secret");
    }
}

#[test]
fn an_endpoint_that_is_refused_is_shown_without_its_user_password_and_query() {
    for url in [
        "https://user:MARK-password@host.example/path",
        "https://host.example/?token=MARK-token",
        "https://host.example?token=MARK-token#MARK-fragment",
        "ftp://user:MARK-password@host.example",
        "user:MARK-password@host.example:6443",
        "https://user:MARK-pass/word@host.example",
        "https://user:1/MARK-pass@host.example",
        "https://host.example:MARK-port/",
        "https://us er:MARK-pass word@host.example:x/?a=MARK-query",
        "https://@/?MARK-query",
    ] {
        let error = Config::new(url).unwrap_err();
        assert!(matches!(error, Error::Endpoint { .. }), "{url}");
        is_unmarked(&shown(&error), url);
        if url.contains("host.example") {
            assert!(error.to_string().contains("host.example"), "the error still names the host: {error}");
        }
        let long = Config::new(format!("{url} {}", "x".repeat(1 << 20))).unwrap_err();
        assert!(long.to_string().len() < 1_000, "{} bytes", long.to_string().len());
    }
}

async fn undecodable(item: String) -> String {
    let body = list_of(&[item], "9");
    let server = RawServer::start(move |mut connection: Connection| {
        let sent = answer("200 OK", "", &body);
        async move {
            connection.request().await;
            connection.write(sent).await;
            connection.gone().await;
        }
    })
    .await;
    let page = local(async { list(&made(config_maps(&server.url())), latest()).await.unwrap() }).await;
    page.items.into_iter().next().unwrap()
}

#[tokio::test]
async fn an_object_that_does_not_decode_is_undecodable_with_the_path_of_the_field_and_without_its_value() {
    let wrong = |data: &str| config_map("x", 3).replace(r#""data":{"k":"é\n]}"}"#, data);
    for (data, path, form) in [
        (r#""data":"MARK-text""#, "data: ", "string"),
        (r#""data":{"k":7}"#, "data.k: ", "integer"),
        (r#""data":{"k":["MARK-text"]}"#, "data.k: ", "sequence"),
        (r#""immutable":"MARK-text""#, "immutable: ", "string"),
        (r#""binaryData":{"k":"MARK-text, expected MARK-tail"}"#, "binaryData.k: ", ""),
    ] {
        let received = undecodable(wrong(data)).await;
        is_unmarked(&received, data);
        assert!(received.starts_with("!a/x@3: does not decode: "), "{received}");
        assert!(received.contains(path) && received.contains(form), "{received}");
    }
}

#[tokio::test]
async fn an_error_does_not_grow_with_what_was_sent() {
    let large = "x".repeat(1 << 20);
    let with = |data: String| config_map("x", 3).replace(r#""data":{"k":"é\n]}"}"#, &data);
    for item in [
        with(format!(r#""data":"{large}""#)),
        with(format!(r#""data":{{"{large}":7}}"#)),
        config_map("x", 3).replace("ConfigMap", &large),
        config_map("x", 3).replace(r#""resourceVersion":"3""#, &format!(r#""resourceVersion":"{large}""#)),
    ] {
        let received = undecodable(item).await;
        assert!(received.chars().count() < 300, "{} characters", received.chars().count());
    }
}

/// A token that a server repeats: proxies and webhooks do so.
#[tokio::test]
async fn a_refusal_that_repeats_our_token_is_shown_without_it() {
    let server = RawServer::start(|mut connection: Connection| async move {
        while let Some(head) = connection.request().await {
            let header =
                head.lines().find(|line| line.starts_with("authorization")).unwrap_or_default().to_owned();
            let words = format!("who is {header}?");
            let status =
                format!(r#"{{"kind":"Status","code":401,"reason":"Unauthorized","message":"{words}"}}"#);
            let body = if head.contains("configmaps") { status } else { words };
            connection.write(answer("401 Unauthorized", "", &body)).await;
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "MARK-in-a-file\n").unwrap();
    let fixed = Config::new(server.url()).unwrap().token("MARK-fixed-token");
    for config in [fixed, Config::new(server.url()).unwrap().token_file(&file)] {
        let client = Client::new(config).unwrap();
        is_unmarked(&format!("{client:?}"), "Debug");
        let error = client.request(Method::GET, "/x", None).await.unwrap_err();
        assert!(error.to_string().contains("who is"), "{error}");
        is_unmarked(&shown(&error), "a single request");
        let source = made(client.resource::<ConfigMap>());
        is_unmarked(&format!("{source:?}"), "Debug");
        let error = local(async { list(&source, latest()).await.unwrap_err() }).await;
        assert!(error.to_string().contains("who is"), "{error}");
        is_unmarked(&shown(&error), "a list");
    }
}

/// Answers that break in every place, with marks in all their texts.
fn broken_answers() -> Vec<String> {
    let item = |text: &str| {
        format!(
            r#"{{"kind":"Secret","apiVersion":"v1","metadata":{{"name":"s","namespace":"a","resourceVersion":"3"}},{text}}}"#
        )
    };
    let list = |items: &str| {
        format!(
            r#"{{"kind":"SecretList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{items}]}}"#
        )
    };
    let good = item(r#""data":{"k":"TUFSSy1kYXRh"}"#);
    let bodies = vec![
        list(&item(r#""data":"MARK-data""#)),
        list(&item(r#""data":{"k":"MARK-not-base64"}"#)),
        list(&item(r#""stringData":["MARK-data"]"#)),
        list(&item(r#""data":{"k":"TUFSSy1kYXRh","#)),
        list(&item(r#""type":"MARK-type","immutable":"MARK-flag""#)),
        list(r#"{"stringData":{"k":"MARK-data"},"metadata":{"resourceVersion":"3"}}"#),
        list(r#"{"stringData":{"k":"MARK-data"},"metadata":{"name":"x"}}"#),
        list(r#"{"stringData":{"k":"MARK-data"}, MARK-broken"#),
        list(r#""MARK-data""#),
        good.clone(),
        good.replace(r#""kind":"Secret""#, r#""kind":["MARK-kind"]"#),
        list(&good).replace(r#"{"resourceVersion":"9"}"#, r#"["MARK-metadata"]"#),
        list(&good)[..120].to_owned(),
        "MARK-garbage".to_owned(),
    ];
    let mut answers: Vec<String> = bodies.iter().map(|body| answer("200 OK", "", body)).collect();
    answers.push(format!("{CHUNKED}{}", chunk(&list(&good)[..150])));
    answers.push("HTTP/9.9 MARK-line\r\n\r\n".to_owned());
    answers.push("HTTP/1.1 200 OK\r\ncontent-length: MARK-length\r\n\r\n".to_owned());
    answers.push(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 12\r\n\r\nMARK-no-gzip".to_owned(),
    );
    answers
}

fn broken_lines() -> Vec<String> {
    let secret = |text: &str| {
        format!(
            r#"{{"kind":"Secret","apiVersion":"v1","metadata":{{"name":"s","namespace":"a","resourceVersion":"12"}},{text}}}"#
        )
    };
    vec![
        event("ADDED", &secret(r#""data":"MARK-data""#)),
        event("DELETED", &secret(r#""data":"MARK-data""#)),
        event("MODIFIED", &secret(r#""data":{"k":"TUFSSy1kYXRh""#)),
        event("ADDED", r#"{"stringData":{"k":"MARK-data"},"metadata":{"resourceVersion":"3"}}"#),
        event("BOOKMARK", r#"{"metadata":{"resourceVersion":["MARK-version"]}}"#),
        event("BOOKMARK", r#"{"metadata":"MARK-metadata"}"#),
        event("ERROR", r#"{"kind":"Status","message":{"k":"MARK-message"}}"#),
        event("ERROR", r#""MARK-error""#),
        event("STRANGE", r#"{"stringData":{"k":"MARK-data"}}"#),
        "{\"type\":[\"MARK-type\"],\"object\":{}}\n".to_owned(),
        "{\"stringData\":{\"k\":\"MARK-data\"}}\n".to_owned(),
        "MARK-garbage\n".to_owned(),
    ]
}

async fn drive_single_requests(url: &str, token_file: &Path) {
    let client = Client::new(Config::new(url).unwrap().token_file(token_file)).unwrap();
    for request in [
        Request::get("/x?token=MARK-query").header("x-secret", "MARK-header").body(Vec::new()).unwrap(),
        Request::post("http://u:MARK-password@elsewhere/x").body(b"MARK-body".to_vec()).unwrap(),
    ] {
        match client.send(request).await {
            Ok(answer) => is_unmarked(&format!("{:?}", answer.headers()), "headers"),
            Err(error) => is_unmarked(&shown(&error), "a single request"),
        }
    }
}

/// Sends this line to a watch, and to an informer, and checks the result.
async fn drive_a_watch(runtime: &Runtime, line: &str, token: &Path) {
    let good = list_of(&[], "9").replace("ConfigMap", "Secret");
    let api = Scripted::start(answer("200 OK", "", &good)).await;
    let client = Client::new(Config::new(api.url()).unwrap().token_file(token)).unwrap();
    api.bytes(line);
    let mut batches = made(client.resource::<Secret>()).watch(from("9"), KnownObjects::nothing());
    local(async {
        batches.next().await.unwrap().unwrap();
        match batches.next().await.unwrap() {
            Ok(parts) => parts.iter().for_each(|part| is_unmarked(&text(part), line)),
            Err(error) => is_unmarked(&shown(&error), line),
        }
    })
    .await;
    drop(batches);
    let api = Scripted::start(answer("200 OK", "", &good)).await;
    let client = Client::new(Config::new(api.url()).unwrap().token_file(token)).unwrap();
    api.bytes(line);
    let informer = follows(client.resource::<Secret>(), runtime).start().unwrap();
    let seen = reached(&informer, |status| {
        let counters = &status.sources[0].counters;
        status.data.undecodable > 0 || counters.failures > 0 || counters.relists > 0
    });
    is_unmarked(&format!("{:?}", seen.await), line);
    is_unmarked(&format!("{:?}", informer.snapshot().undecodable().collect::<Vec<_>>()), line);
    ends(informer).await;
}

// REST-35: given a secret in the user or query of a URL, in a kubeconfig, in a token file, in a value of an
// object, or repeated by a server, when anything about it fails, then no error (Display, Debug, causes),
// status, set-aside entry or log line of the library holds it, a field is named by its path, a kubeconfig's
// mistake by file, line and column, and no text grows with what was sent.
// - a no error, Debug, status, set-aside entry or log line holds it, whatever breaks
// - b an endpoint is shown without user, password and query:
//   `an_endpoint_that_is_refused_is_shown_without_its_user_password_and_query`
// - c a kubeconfig's mistake is reported by file, line and column:
//   `a_kubeconfig_with_a_mistake_is_refused_with_its_file_line_and_column_and_without_a_word_of_it`
// - d what a kubeconfig asks for in vain is reported without its secrets:
//   `a_kubeconfig_that_asks_for_too_much_is_refused_without_its_secrets`
// - e a field that does not decode is named by its path and the type of its value:
//   `an_object_that_does_not_decode_is_undecodable_with_the_path_of_the_field_and_without_its_value`
// - f a token that the server repeats is left out: `a_refusal_that_repeats_our_token_is_shown_without_it`
// - g no text grows with what was sent: `an_error_does_not_grow_with_what_was_sent`
// - h the weight of a set-aside entry in a queue includes its texts:
//   `what_is_undecodable_weighs_what_it_holds_in_parts_and_in_lists`
// - i informerd writes none of it to stdout, stderr or its probes:
//   `a_kubeconfig_that_is_refused_is_reported_without_a_word_of_its_secrets`
// - j of a plugin its output, arguments and variables are shown nowhere:
//   `no_error_debug_or_log_of_a_plugin_holds_what_it_printed_its_arguments_or_its_variables`
// - k of an OpenID login no token, no secret and no word of the issuer:
//   `no_error_debug_or_log_of_an_openid_login_holds_a_token_or_a_word_of_the_issuer`
// - l of a password and an impersonation no value:
//   `no_error_debug_or_log_of_a_password_or_an_impersonation_holds_a_value`
// - m of a kubeconfig that breaks while its client lives no word:
//   `a_kubeconfig_that_breaks_while_its_client_lives_is_logged_without_a_word_of_it`
#[tokio::test]
async fn rest_35_no_error_debug_status_or_log_holds_a_secret_whatever_breaks() {
    logs::keep();
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    for content in ["MARK-one\nMARK-two", "MARK-\u{7}", ""] {
        std::fs::write(&token, content).unwrap();
        drive_single_requests("http://127.0.0.1:1", &token).await;
    }
    std::fs::write(&token, [b"MARK-".as_slice(), &[0xff]].concat()).unwrap();
    drive_single_requests("http://127.0.0.1:1", &token).await;
    std::fs::write(&token, "MARK-token-of-a-file").unwrap();

    let runtime = threads();
    for broken in broken_answers() {
        let api = Scripted::start(broken.clone()).await;
        drive_single_requests(&api.url(), &token).await;
        let client = Client::new(Config::new(api.url()).unwrap().token_file(&token)).unwrap();
        let informer = follows(client.resource::<Secret>(), &runtime).start().unwrap();
        let seen =
            reached(&informer, |status| status.synced || status.sources[0].counters.failures > 0).await;
        is_unmarked(&format!("{seen:?}\n{informer:?}"), &broken);
        for undecodable in informer.snapshot().undecodable() {
            is_unmarked(&format!("{undecodable:?}"), &broken);
        }
        ends(informer).await;
        // The question for one object, whose answer breaks in the same ways.
        let key = ObjectKey::namespaced("a", "s");
        local(async {
            if let Err(error) = made(client.resource::<Secret>()).get(key.clone()).await {
                is_unmarked(&shown(&error), &broken);
            }
            let metadata = made(client.resource::<Secret>().keep_as(MetadataOnly::<Secret>::new()));
            if let Err(error) = metadata.get(key).await {
                is_unmarked(&shown(&error), &broken);
            }
        })
        .await;
    }
    for line in broken_lines() {
        drive_a_watch(&runtime, &line, &token).await;
    }
    let logged = logs::kept();
    assert!(logged.contains("informer"), "the logs are seen");
    is_unmarked(&logged, "a log line");
}
