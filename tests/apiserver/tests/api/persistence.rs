//! A server that keeps its store in a directory, ended in every way.
//!
//! They answer: are acknowledged writes there after a restart, and is no version issued twice?
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::path::Path;

use informer_apiserver::{ApiServer, StartError};
use serde_json::{Value, json};

use crate::client::{config_map, get, post, request, watch};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn kept(directory: &Path) -> ApiServer {
    ApiServer::builder().seed(1).data_dir(directory).start_blocking().unwrap()
}

fn names(server: &ApiServer) -> Vec<String> {
    let all = server.list("configmaps").unwrap();
    all.iter().map(|map| map["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn writes_are_there_after_a_restart_and_versions_continue_above_them() {
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
fn a_log_that_is_cut_off_gives_the_writes_before_the_cut() {
    let directory = tempfile::tempdir().unwrap();
    let server = kept(directory.path());
    server.create(config_map("a", "x")).unwrap();
    server.create(config_map("b", "x")).unwrap();
    let before = server.revision();
    drop(server);
    let log = directory.path().join("log.1");
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
fn tokens_certificates_and_kubeconfigs_stay_valid_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let start = || ApiServer::builder().data_dir(directory.path()).tls().rbac().start_blocking().unwrap();
    let server = start();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    server.create(account).unwrap();
    let first = (server.kubeconfig(), server.ca_pem().map(str::to_owned));
    drop(server);
    let server = start();
    assert_eq!((server.kubeconfig(), server.ca_pem().map(str::to_owned)), first);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let kept = std::fs::metadata(directory.path().join("identity.json")).unwrap();
        assert_eq!(kept.permissions().mode() & 0o077, 0, "nobody else reads the keys");
    }
}

#[test]
fn a_token_of_a_service_account_stays_valid_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let server = kept(directory.path());
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    server.create(account).unwrap();
    let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
    let issued = post(&server, path, &json!({"spec": {"expirationSeconds": 3600}})).json();
    let bearer = format!("Bearer {}", issued["status"]["token"].as_str().unwrap());
    let who = |server: &ApiServer| {
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        request(server, "POST", path, &headers, "{}").json()["status"]["userInfo"]["username"].clone()
    };
    assert_eq!(who(&server), "system:serviceaccount:default:robot");
    let addr = server.addr();
    drop(server);
    let server = kept(directory.path());
    assert_eq!(who(&server), "system:serviceaccount:default:robot");
    assert_eq!(server.addr(), addr, "it is where it was");
}

#[test]
fn a_port_that_another_process_has_taken_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let port = kept(directory.path()).addr().port();
    let other = ApiServer::builder().port(port).start_blocking().unwrap();
    assert_ne!(kept(directory.path()).addr(), other.addr());
}

#[test]
fn a_terminating_namespace_is_removed_after_a_restart_when_its_last_finalizer_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let server = kept(directory.path());
    server.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})).unwrap();
    for (name, finalizers) in [("a", json!([])), ("b", json!(["example.com/hold"]))] {
        let metadata = json!({"name": name, "namespace": "n", "finalizers": finalizers});
        server.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap();
    }
    server.delete("namespaces", "", "n").unwrap();
    drop(server);
    let server = kept(directory.path());
    assert_eq!(server.get("namespaces", "", "n").unwrap()["status"]["phase"], "Terminating");
    server.merge_patch("configmaps", "n", "b", &json!({"metadata": {"finalizers": null}})).unwrap();
    assert_eq!(server.get("namespaces", "", "n").unwrap_err().code(), 404);
}

#[test]
fn dependants_of_a_deleted_owner_are_collected_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let server = kept(directory.path());
    let owner = server.create(config_map("owner", "x")).unwrap();
    let mut owned = config_map("owned", "x");
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner["metadata"]["uid"]}]);
    server.create(owned).unwrap();
    server.delete("configmaps", "default", "owner").unwrap();
    drop(server);
    let builder = ApiServer::builder().garbage_collection(true).data_dir(directory.path());
    assert_eq!(names(&builder.start_blocking().unwrap()), Vec::<String>::new());
}

#[test]
fn the_directory_stays_small_however_long_the_same_objects_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let builder = ApiServer::builder().data_dir(directory.path()).sync(false).log_slack(50_000);
    let server = builder.start_blocking().unwrap();
    server.create(config_map("a", "x")).unwrap();
    let size = || -> u64 {
        let entries = std::fs::read_dir(directory.path()).unwrap();
        entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum()
    };
    let mut number = 0;
    // Writes do not wait for a snapshot: the directory is small again at some time, not always.
    while number < 2_000 || size() > 300_000 {
        number += 1;
        let data = json!({"data": {"k": format!("{number:01000}")}});
        server.merge_patch("configmaps", "default", "a", &data).unwrap();
    }
    drop(server);
    let found = kept(directory.path()).get("configmaps", "default", "a").unwrap();
    assert_eq!(found["data"]["k"], format!("{number:01000}"));
}

#[test]
fn a_restored_backup_is_there_after_a_restart() {
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
