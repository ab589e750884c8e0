//! The admin port: switches, clock and status over HTTP, beside an API that may be broken.
//!
//! They answer: can a shell do what a test in Rust can, and undo it?
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use informer_apiserver::{ApiServer, Fault};
use serde_json::{Value, json};

use crate::client::{config_map, get};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn administered() -> (ApiServer, SocketAddr) {
    let server = ApiServer::builder().admin_port(0).seed(1).start_blocking().unwrap();
    let addr = server.admin_addr().unwrap();
    (server, addr)
}

fn ask(addr: SocketAddr, line: &str, content_type: &str, body: &str) -> (u16, String) {
    let mut socket = TcpStream::connect(addr).unwrap();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn post(addr: SocketAddr, path: &str, body: &Value) -> (u16, Value) {
    let (code, text) = ask(addr, &format!("POST {path}"), "application/json", &body.to_string());
    (code, serde_json::from_str(&text).unwrap())
}

fn read(addr: SocketAddr, path: &str) -> Value {
    serde_json::from_str(&ask(addr, &format!("GET {path}"), "", "").1).unwrap()
}

#[test]
fn a_fault_is_switched_on_and_off_over_the_admin_port() {
    let (server, addr) = administered();
    let deny = json!({"fault": "deny", "verb": "list", "resource": "configmaps"});
    assert_eq!(post(addr, "/faults", &deny), (200, json!({"faults": [deny]})));
    assert_eq!(get(&server, MAPS).code, 403);
    let mut off = deny;
    off["off"] = json!(true);
    assert_eq!(post(addr, "/faults", &off), (200, json!({"faults": []})));
    assert_eq!(get(&server, MAPS).code, 200);
}

#[test]
fn the_admin_port_answers_while_the_api_refuses_connections() {
    let (server, addr) = administered();
    let refuse = json!({"fault": "refuse-connections"});
    assert_eq!(post(addr, "/faults", &refuse), (200, json!({"faults": [refuse]})));
    assert!(TcpStream::connect(server.addr()).is_err());
    assert_eq!(ask(addr, "DELETE /faults", "", "").1, r#"{"faults":[]}"#);
    assert_eq!(get(&server, MAPS).code, 200);
}

#[test]
fn a_fault_with_seconds_ends_by_itself() {
    let (server, addr) = administered();
    let freeze = json!({"fault": "freeze-server", "seconds": 3600});
    assert_eq!(post(addr, "/clock", &json!({"stopped": true})).0, 200);
    assert_eq!(post(addr, "/faults", &freeze).0, 200);
    assert_eq!(post(addr, "/clock", &json!({"advanceSeconds": 3599})).0, 200);
    assert_eq!(read(addr, "/faults"), json!({"faults": [{"fault": "freeze-server"}]}));
    assert_eq!(post(addr, "/clock", &json!({"advanceSeconds": 1})).0, 200);
    assert_eq!(get(&server, MAPS).code, 200, "it is answered when the fault is over");
    let once = post(addr, "/faults", &json!({"fault": "compact", "seconds": 1}));
    assert_eq!(once.0, 400);
}

#[test]
fn an_invalid_fault_is_refused_with_its_reason() {
    let (_server, addr) = administered();
    let (code, answer) = post(addr, "/faults", &json!({"fault": "explode"}));
    assert!(code == 400 && answer["error"].as_str().unwrap().contains("unknown variant"), "{answer}");
    assert_eq!(post(addr, "/faults", &json!({"fault": "compact", "ressource": "pods"})).0, 400);
    assert_eq!(post(addr, "/faults", &json!({"fault": "restore-backup"})).0, 409);
    let (code, answer) = post(addr, "/faults", &json!({"fault": "freeze-watches", "resource": "pots"}));
    assert!(code == 400 && answer["error"].as_str().unwrap().contains("did you mean pods?"), "{answer}");
    let (code, answer) = post(addr, "/faults", &json!({"fault": "deny", "verb": "lsit", "resource": "pods"}));
    assert!(code == 400 && answer["error"].as_str().unwrap().contains("the verb \"lsit\""), "{answer}");
    assert_eq!(ask(addr, "POST /faults", "text/plain", r#"{"fault":"clear"}"#).0, 415);
    assert_eq!(ask(addr, "GET /nope", "", "").0, 404);
}

#[test]
fn the_admin_port_reports_how_often_a_fault_took_effect() {
    let (server, addr) = administered();
    post(addr, "/faults", &json!({"fault": "fail-next", "requests": 2, "code": 503, "resource": "cm"}));
    let received = |count: u64| json!([{"fault": "fail-next", "resource": "configmaps", "count": count}]);
    assert_eq!(read(addr, "/counts"), received(0));
    assert_eq!(get(&server, MAPS).code, 503);
    assert_eq!(read(addr, "/counts"), received(1));
    ask(addr, "DELETE /counts", "", "");
    assert_eq!(read(addr, "/counts"), json!([]));
}

#[test]
fn status_requests_kubeconfig_and_clock_are_reported() {
    let (server, addr) = administered();
    server.create(config_map("a", "x")).unwrap();
    get(&server, MAPS);
    let status = read(addr, "/status");
    assert_eq!(status["url"], server.url());
    assert_eq!(status["revision"], server.revision().to_string());
    assert_eq!(status["resources"]["configmaps"], json!({"objects": 1, "watches": 0}));
    assert_eq!(read(addr, "/requests")[0]["path"], MAPS);
    assert_eq!(ask(addr, "GET /kubeconfig", "", "").1, server.kubeconfig());
    let set = json!({"stopped": true, "set": "2030-01-01T00:00:00Z", "advanceSeconds": 60});
    assert_eq!(post(addr, "/clock", &set), (200, json!({"now": "2030-01-01T00:01:00Z"})));
    assert!(ask(addr, "GET /", "", "").1.contains("POST   /faults"));
}

/// One of each standing fault, as the admin port and the command name them.
fn standing() -> Vec<Fault> {
    let value = json!([
        {"fault": "freeze-watches", "resource": "pods"}, {"fault": "freeze-server"},
        {"fault": "drop-bookmarks", "resource": "deployments.apps"}, {"fault": "refuse-watch-list"},
        {"fault": "withhold-end-bookmark"}, {"fault": "short-watches"}, {"fault": "duplicate-events"},
        {"fault": "reorder-events"}, {"fault": "hold-list-tails"}, {"fault": "plain-text-errors"},
        {"fault": "slow-lists", "bytesPerSecond": 9}, {"fault": "limit-lists", "bytes": 9, "resource": "pods"},
        {"fault": "pad-lists", "bytes": 9}, {"fault": "delay-requests", "milliseconds": 9},
        {"fault": "deny", "verb": "list", "resource": "pods"},
        {"fault": "fail-next", "requests": 2, "code": 503},
        {"fault": "gone-next", "requests": 2, "resource": "nodes"},
        {"fault": "too-many-requests-next", "requests": 2, "retryAfter": 3, "resource": "pods"},
        {"fault": "refuse-connections"},
    ]);
    serde_json::from_value(value).unwrap()
}

#[test]
fn standing_faults_are_listed_as_the_faults_that_would_set_them_and_each_can_be_ended() {
    let server = ApiServer::builder().start_blocking().unwrap();
    let faults = server.faults();
    let all = standing();
    for fault in &all {
        faults.apply(fault).unwrap();
    }
    let received = faults.active();
    assert_eq!(received.len(), all.len());
    assert!(all.iter().all(|fault| received.contains(fault)), "{received:?}");
    for fault in &received {
        faults.apply(&fault.undone().expect("a standing fault can be taken back")).unwrap();
    }
    assert_eq!(faults.active(), []);
    assert_eq!(get(&server, MAPS).code, 200);
}
