//! The harness against real processes: it starts, serves, and recovers from everything that it can do to itself.
//!
//! Question: does each provocation do what its documentation says, and does the control plane recover from it? How
//! clients react is tested where the clients are.
//! 1. Each test starts its own control plane, or skips with a line when there are no binaries.
//! 2. Nothing is timed; every wait is for a condition.
//!
//! Read next: `src/control_plane.rs`.

use std::{fs, path::Path};

use informer_control_plane::{Binaries, ControlPlane, Error, StartError};

fn start() -> Option<ControlPlane> {
    let binaries = Binaries::find_or_skip()?;
    Some(ControlPlane::builder(binaries).start().expect("the control plane starts"))
}

/// Creates a config map and returns its resource version.
fn create(plane: &ControlPlane, name: &str) -> u64 {
    plane.kubectl(&["create", "configmap", name]).expect("a config map is created");
    version(plane, name)
}

fn version(plane: &ControlPlane, name: &str) -> u64 {
    let version = plane.kubectl(&["get", "configmap", name, "--output=jsonpath={.metadata.resourceVersion}"]);
    version.expect("the config map is there").parse().expect("a resource version is a number")
}

fn refused(result: Result<String, Error>) -> String {
    match result {
        Err(Error::Kubectl { output, .. }) => output,
        other => panic!("expected kubectl to be refused, got {other:?}"),
    }
}

fn runs(id: u32) -> bool {
    Path::new("/proc").join(id.to_string()).exists()
}

#[test]
fn it_starts_and_serves_and_leaves_nothing_behind() {
    let Some(plane) = start() else { return };
    assert_eq!(plane.kubectl(&["get", "--raw=/readyz"]).unwrap(), "ok");
    plane.kubectl(&["get", "namespace", "default"]).unwrap();
    let ids = [plane.apiserver_id().unwrap(), plane.etcd_id().unwrap()];
    drop(plane);
    assert!(!ids.into_iter().any(runs), "{ids:?}");
}

#[test]
fn the_powerless_user_is_known_and_forbidden_everything() {
    let Some(plane) = start() else { return };
    let complaint = refused(plane.kubectl(&["--context=powerless", "get", "pods"]));
    assert!(complaint.contains("Forbidden") && complaint.contains("\"powerless\""), "{complaint}");
}

#[test]
fn a_client_certificate_makes_an_admin() {
    let Some(binaries) = Binaries::find_or_skip() else { return };
    let plane = ControlPlane::builder(binaries).with_client_ca().start().unwrap();
    assert!(plane.client_certificate().unwrap().certificate_pem().starts_with("-----BEGIN CERTIFICATE-----"));
    let user =
        plane.kubectl(&["--context=certificate", "auth", "whoami", "--output=jsonpath={.status.userInfo}"]);
    let user = user.unwrap();
    assert!(user.contains(r#""username":"admin""#) && user.contains("system:masters"), "{user}");
}

#[test]
fn the_kubeconfig_it_writes_works_from_anywhere() {
    let Some(plane) = start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("moved");
    plane.write_kubeconfig(&path).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains(&plane.url()));
    plane.kubectl(&["--kubeconfig", path.to_str().unwrap(), "get", "pods"]).unwrap();
}

#[test]
fn it_survives_a_kill_on_the_same_port_with_its_data() {
    let Some(plane) = start() else { return };
    let (url, id) = (plane.url(), plane.apiserver_id());
    create(&plane, "kept");
    plane.kill_apiserver().unwrap();
    assert!(refused(plane.kubectl(&["get", "configmap", "kept"])).contains("refused"));
    plane.start_apiserver().unwrap();
    plane.kubectl(&["get", "configmap", "kept"]).unwrap();
    assert_eq!(plane.url(), url);
    assert_ne!(plane.apiserver_id(), id);
}

#[test]
fn it_survives_an_orderly_restart() {
    let Some(plane) = start() else { return };
    create(&plane, "kept");
    plane.restart_apiserver().unwrap();
    plane.kubectl(&["get", "configmap", "kept"]).unwrap();
}

#[test]
fn frozen_it_stays_connected_and_silent_until_it_is_thawed() {
    let Some(plane) = start() else { return };
    plane.freeze_apiserver().unwrap();
    let complaint = refused(plane.kubectl(&["--request-timeout=1s", "get", "--raw=/readyz"]));
    assert!(!complaint.contains("refused"), "{complaint}");
    plane.thaw_apiserver().unwrap();
    assert_eq!(plane.kubectl(&["get", "--raw=/readyz"]).unwrap(), "ok");
}

#[test]
fn frozen_it_can_still_be_stopped() {
    let Some(plane) = start() else { return };
    plane.freeze_apiserver().unwrap();
    plane.stop_apiserver().unwrap();
}

#[test]
fn stopping_twice_and_starting_twice_are_errors() {
    let Some(plane) = start() else { return };
    assert!(matches!(plane.start_apiserver(), Err(Error::AlreadyRunning { .. })));
    plane.kill_apiserver().unwrap();
    assert!(matches!(plane.kill_apiserver(), Err(Error::NotRunning { .. })));
    assert!(matches!(plane.stop_apiserver(), Err(Error::NotRunning { .. })));
    assert!(matches!(plane.freeze_apiserver(), Err(Error::NotRunning { .. })));
}

#[test]
fn a_compaction_expires_old_resource_versions() {
    let Some(binaries) = Binaries::find_or_skip() else { return };
    let plane = ControlPlane::builder(binaries).apiserver_flag("--watch-cache=false").start().unwrap();
    let old = create(&plane, "first");
    let new = create(&plane, "second");
    let path = format!("--raw=/api/v1/configmaps?resourceVersion={old}&resourceVersionMatch=Exact");
    plane.kubectl(&["get", &path]).unwrap();
    plane.compact_etcd(new).unwrap();
    assert!(refused(plane.kubectl(&["get", &path])).contains("too old"));
    assert!(
        matches!(plane.compact_etcd(new), Err(Error::Etcd { .. })),
        "a second time there is nothing to compact"
    );
}

#[test]
fn a_restored_backup_takes_resource_versions_back() {
    let Some(plane) = start() else { return };
    create(&plane, "before");
    let backup = plane.backup_etcd().unwrap();
    // More writes than kube-apiserver makes by itself while it starts.
    let config_map = |n| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: after-{n}}}\n---\n");
    plane.apply(&(0..100).map(config_map).collect::<String>()).unwrap();
    let ahead = version(&plane, "after-99");
    plane.restore_etcd(&backup).unwrap();
    assert!(refused(plane.kubectl(&["get", "configmap", "after-99"])).contains("NotFound"));
    plane.kubectl(&["get", "configmap", "before"]).unwrap();
    assert!(create(&plane, "behind") < ahead);
}

#[test]
fn a_manifest_is_applied() {
    let Some(plane) = start() else { return };
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {a: b}\n";
    plane.apply(manifest).unwrap();
    assert_eq!(plane.kubectl(&["get", "configmap", "applied", "--output=jsonpath={.data.a}"]).unwrap(), "b");
}

#[test]
fn a_flag_the_server_refuses_is_an_error_that_shows_its_log() {
    let Some(binaries) = Binaries::find_or_skip() else { return };
    let error = ControlPlane::builder(binaries).apiserver_flag("--no-such-flag").start().unwrap_err();
    assert!(matches!(error, StartError::Exited { process: "kube-apiserver", .. }), "{error}");
    assert!(error.to_string().contains("no-such-flag"), "{error}");
}
