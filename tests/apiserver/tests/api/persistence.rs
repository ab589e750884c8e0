//! A server that keeps its store in a directory, ended in every way.
//!
//! They answer: is what was acknowledged there after a start, and does no version come twice?
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::path::Path;

use informer_apiserver::{ApiServer, StartError};
use serde_json::{Value, json};

use crate::client::{config_map, get, post, watch};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn kept(directory: &Path) -> ApiServer {
    ApiServer::builder().seed(1).data_dir(directory).start_blocking().unwrap()
}

fn names(server: &ApiServer) -> Vec<String> {
    let all = server.list("configmaps").unwrap();
    all.iter().map(|map| map["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_was_written_is_there_after_a_start_and_versions_go_on_above() {
    let directory = tempfile::tempdir().unwrap();
    let server = kept(directory.path());
    assert_eq!(post(&server, MAPS, &config_map("a", "x")).code, 201);
    let b = server.create(config_map("b", "x")).unwrap();
    server.delete("configmaps", "default", "a").unwrap();
    let last = server.revision();
    drop(server);
    let server = kept(directory.path());
    assert_eq!(names(&server), ["b"]);
    assert_eq!(server.get("configmaps", "default", "b").unwrap(), b, "it keeps its version and uid");
    assert!(server.revision() > last);
    let c = server.create(config_map("c", "x")).unwrap();
    assert_ne!(c["metadata"]["uid"], b["metadata"]["uid"], "a fixed seed gives no uid twice");
    let mut old = watch(&server, &format!("{MAPS}?watch=1&resourceVersion={last}"));
    assert_eq!(old.event().unwrap().unwrap()["object"]["code"], 410);
}

#[test]
fn a_log_that_breaks_off_gives_what_was_written_before() {
    let directory = tempfile::tempdir().unwrap();
    let server = kept(directory.path());
    server.create(config_map("a", "x")).unwrap();
    server.create(config_map("b", "x")).unwrap();
    let before = server.revision();
    drop(server);
    let log = directory.path().join("log");
    let bytes = std::fs::read(&log).unwrap();
    std::fs::write(&log, &bytes[..bytes.len() - 3]).unwrap();
    let server = kept(directory.path());
    assert_eq!(names(&server), ["a"]);
    assert!(server.revision() > before, "the version of the lost write is not issued again");
}

#[test]
fn a_directory_belongs_to_one_server_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let server = kept(directory.path());
    let refused = ApiServer::builder().data_dir(directory.path()).start_blocking().unwrap_err();
    assert!(matches!(refused, StartError::DataDir { .. }), "{refused}");
    drop(server);
    kept(directory.path());
}

#[test]
fn a_restored_backup_is_what_a_start_finds() {
    let directory = tempfile::tempdir().unwrap();
    let server = kept(directory.path());
    server.create(config_map("a", "x")).unwrap();
    let backup = server.backup();
    server.create(config_map("b", "x")).unwrap();
    server.restore(&backup);
    server.create(config_map("c", "x")).unwrap();
    drop(server);
    assert_eq!(names(&kept(directory.path())), ["a", "c"]);
}

#[test]
fn writes_that_come_together_are_all_kept() {
    let directory = tempfile::tempdir().unwrap();
    let server = kept(directory.path());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let server = &server;
            scope.spawn(move || {
                for number in 0..10 {
                    let made = post(server, MAPS, &config_map(&format!("m{thread}-{number}"), "x"));
                    assert_eq!(made.code, 201);
                }
            });
        }
    });
    drop(server);
    let server = kept(directory.path());
    assert_eq!(names(&server).len(), 80);
    let list: Value = get(&server, MAPS).json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(80));
    assert_eq!(list["items"][0]["metadata"]["labels"], json!({"app": "x"}));
}
