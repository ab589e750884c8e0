//! Credential plugins that misbehave, as a program that uses the client meets them.
//!
//! Answers "is there a clear error within the limit, and does everybody else go on?" The plugins are small shell scripts;
//! what their output means is tested beside `src/client/src/identity/exec.rs`.

use std::cell::RefCell;
use std::io::IsTerminal as _;
use std::time::Duration;

use actix_informer::client::{Client, Config};
use http::Method;
use informer_actors::runtime::Runtime;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::paths::kubeconfig;

const LIMIT: Duration = Duration::from_secs(2);

/// A client whose plugin is this script.
pub(crate) fn with_plugin(server: &str, script: &str, mode: &str) -> Client {
    let exec = serde_json::json!({
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": mode, "command": "/bin/sh",
        "args": ["-c", script],
    });
    let config =
        Config::from_kubeconfig_text(&kubeconfig(server, &format!("    exec: {exec}\n")), None).unwrap();
    Client::new(config.plugin_limit(LIMIT)).unwrap()
}

/// Script, mode, and a part of the error.
const PLUGINS: [(&str, &str, &str); 7] = [
    ("sleep 1000", "Never", "it did not end within 2s and was killed"),
    ("sleep 1000 & sleep 1000", "Never", "it did not end within 2s and was killed"),
    ("echo garbage", "Never", "its output cannot be used: it is not an ExecCredential"),
    ("yes", "Never", "it printed more than 1048576 bytes and was killed"),
    ("head -c 3000000 /dev/zero", "Never", "it printed more than 1048576 bytes and was killed"),
    ("echo no login >&2; exit 7", "Never", "it ended with exit status: 7: no login"),
    ("true", "Always", "standard input is not a terminal"),
];

// REST-33: given a plugin that hangs, when the caller stops waiting, then it returns at once, and other
// callers are not blocked for ever.
// - a another caller gets what the same run gives:
//   `rest_33_a_caller_who_stops_waiting_for_a_plugin_leaves_it_to_the_others`
// - b whatever it does, there is a clear error within its limit, and others go on
#[tokio::test]
async fn rest_33_a_plugin_that_misbehaves_is_a_clear_error_within_its_limit_and_blocks_nobody_else() {
    let server = ApiServer::builder().start().await.unwrap();
    let good = Client::new(Config::new(server.url()).unwrap()).unwrap();
    let get = async |client: &Client| client.request(Method::GET, "/version", None).await;
    // A person who runs this test has a terminal, and then the plugin may run.
    let plugins = PLUGINS.iter().filter(|(_, mode, _)| *mode == "Never" || !std::io::stdin().is_terminal());
    for (script, mode, reason) in plugins {
        let bad = with_plugin(&server.url(), script, mode);
        let order = RefCell::new(Vec::new());
        let fails = async {
            let errors = futures_util::future::join_all((0..10).map(|_| get(&bad))).await;
            for error in errors {
                let error = error.unwrap_err().to_string();
                assert!(
                    error.contains(r#"credential plugin "/bin/sh""#) && error.contains(reason),
                    "{error}"
                );
            }
            order.borrow_mut().push("bad");
        };
        let goes_on = async {
            for _ in 0..20 {
                get(&good).await.unwrap();
            }
            order.borrow_mut().push("good");
        };
        let both = async { tokio::join!(fails, goes_on) };
        tokio::time::timeout(LIMIT * 10, both).await.unwrap_or_else(|_| panic!("{script} is not given up"));
        if script.contains("sleep") {
            assert_eq!(*order.borrow(), ["good", "bad"], "{script}");
        }
    }
}

#[tokio::test]
async fn rest_33_an_informer_whose_plugin_hangs_blocks_no_other_informer_of_its_runtime() {
    let server = ApiServer::builder().start().await.unwrap();
    let runtime = Runtime::threads().start().unwrap();
    let bad = with_plugin(&server.url(), "sleep 1000", "Never");
    let bad = bad.resource::<ConfigMap>().informer(&runtime).unwrap().start().unwrap();
    let good = Client::new(Config::new(server.url()).unwrap()).unwrap();
    let good = good.resource::<ConfigMap>().informer(&runtime).unwrap().start().unwrap();
    good.synced_within(LIMIT).await.unwrap();
    let failed = bad.wait_until(|status| status.sources[0].counters.failures > 0);
    let status = tokio::time::timeout(LIMIT * 10, failed).await.unwrap().unwrap();
    assert!(!status.synced);
    let error = bad.last_error().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("it did not end within 2s and was killed"), "{error}");
    runtime.shutdown(LIMIT * 10).await.unwrap();
}
