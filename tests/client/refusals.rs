//! What people read when the server refuses an informer: in its state, in a wait that fails, and in the log.
//!
//! Answers "does a stranger learn which resource failed, where, why and what to do, wherever they look?" The texts of
//! each class stand in full in `src/client/src/list_watch/refusal/tests.rs`.

use std::time::Duration;

use informer_actors::informer::Informer;
use k8s_openapi::api::core::v1::ConfigMap;

use actix_informer::client::{Client, Config};
use informer_core::backoff::BackoffPolicy;

use crate::harness::{config_maps, list_of};
use crate::logs;
use crate::raw_server::{Connection, RawServer, answer};
use crate::scripted::{LONG, Scripted, ends, reached, threads};

const JSON: &str = "content-type: application/json\r\n";
const AUDIT: &str = "audit-id: 7f0c-1\r\n";

/// The name of the informer, the answer to its list, and what each text must say.
type Case = (&'static str, &'static str, &'static str, [&'static str; 3]);

const CASES: [Case; 9] = [
    (
        "refused-401",
        "401 Unauthorized",
        "Unauthorized",
        ["not authenticated", "no credentials", "have not expired"],
    ),
    (
        "refused-403",
        "403 Forbidden",
        "Forbidden",
        ["denied", "bind a ClusterRole", r#"resources: ["configmaps"]"#],
    ),
    (
        "refused-404",
        "404 Not Found",
        "NotFound",
        ["no such resource", "does not serve configmaps in v1", "correct"],
    ),
    (
        "refused-400",
        "400 Bad Request",
        "BadRequest",
        ["selector rejected", "labels=team=a", "correct the label"],
    ),
    (
        "refused-422",
        "422 Unprocessable",
        "Invalid",
        ["selector rejected", "labels=team=a", "correct the label"],
    ),
    ("refused-406", "406 Not Acceptable", "NotAcceptable", ["answered 406", "does not send JSON", "words"]),
    (
        "refused-429",
        "429 Too Many Requests",
        "TooManyRequests",
        ["overloaded", "if this lasts", "FlowSchema"],
    ),
    (
        "refused-503",
        "503 Unavailable",
        "ServiceUnavailable",
        ["answered 503", "the fault is the server's", "logs"],
    ),
    ("refused-410", "410 Gone", "Expired", ["expired", "words", "/api/v1/configmaps"]),
];

async fn refused(name: &str, status: &str, reason: &str) -> (Scripted, Informer<ConfigMap>) {
    let code = &status[..3];
    let body = format!(r#"{{"kind":"Status","code":{code},"reason":"{reason}","message":"words"}}"#);
    let headers = format!("{JSON}{AUDIT}");
    let api = Scripted::start(answer(status, &headers, &body)).await;
    let source = config_maps(&api.url()).labels("team=a").name(name).settings(|all| all.watch_list = false);
    let informer = source.informer(&threads()).unwrap().start().unwrap();
    (api, informer)
}

#[tokio::test]
async fn ref_61_the_state_the_wait_and_the_log_say_the_same_of_each_refusal_and_what_to_do() {
    logs::keep();
    for (name, status, reason, words) in CASES {
        let (_api, informer) = refused(name, status, reason).await;
        let reached = reached(&informer, |status| status.state().next_try().is_some()).await;
        let state = reached.to_string();
        let wait = informer.synced_within(Duration::ZERO).await.unwrap_err().to_string();
        let log = logs::kept();
        let log =
            log.lines().find(|line| line.starts_with("WARN") && line.contains(name)).unwrap_or_default();
        for text in [&*state, &*wait, log] {
            let said = text.replace("\\\"", "\"");
            for word in words.iter().chain(&["words, requested at /api/v1/configmaps", "(Audit-ID 7f0c-1)"]) {
                assert!(said.contains(word), "{word:?} is not in {said:?}");
            }
        }
        assert!(wait.contains("it is asked again in "), "{wait}");
        assert!(log.contains("asked again in "), "{log}");
        ends(informer).await;
    }
}

// REF-62: given a LIST or WATCH that is answered 401 also with renewed credentials, when it persists, then
// the state is Denied with the reason and the time of the next try, it is asked again as a missing kind is
// (REF-35), and a renewal of a silent watch that is answered 401 leaves the open watch followed. (New: a 401
// waited 30 to 60 s like a 403, though new credentials may be there a moment later.)
// - a the state is Denied and it is asked again after 1, 2, 4, 8 and then each 15 s, and after ten minutes
//   each 30 to 60 s:
//   `ref_62_credentials_that_are_refused_again_are_tried_after_1_2_4_to_30_seconds_with_one_request_each`
// - b what was refused is read again, and a corrected token file is used
// - c a renewal leaves the open watch followed:
//   `ref_62_a_renewal_that_is_refused_with_401_leaves_the_open_watch_followed`
#[tokio::test]
async fn ref_62_a_token_file_that_is_corrected_after_a_401_is_used_at_one_of_the_next_tries() {
    let api = RawServer::start(|mut connection: Connection| async move {
        while let Some(request) = connection.request().await {
            let is_right = request.to_ascii_lowercase().contains("authorization: bearer right");
            let said = match (is_right, request.contains("watch=true")) {
                (false, _) => {
                    answer("401 Unauthorized", JSON, r#"{"kind":"Status","reason":"Unauthorized"}"#)
                }
                (true, false) => answer("200 OK", JSON, &list_of(&[], "9")),
                (true, true) => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned(),
            };
            connection.write(said).await;
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "wrong").unwrap();
    let config = Config::new(api.url()).unwrap().token_file(&file);
    let maps = Client::new(config).unwrap().resource::<ConfigMap>();
    let moment = Duration::from_millis(50);
    let maps = maps.settings(|settings| {
        settings.watch_list = false;
        settings.early_backoff = BackoffPolicy { base: moment, cap: moment };
    });
    let maps = maps.informer(&threads()).unwrap().start().unwrap();
    let refused = reached(&maps, |status| status.sources[0].counters.denied >= 2).await;
    let said = refused.to_string();
    assert!(said.contains(&format!("it was sent with the token of the file {file:?}")), "{said}");
    std::fs::write(&file, "right").unwrap();
    maps.synced_within(LONG).await.expect("the corrected token is read");
    ends(maps).await;
}
