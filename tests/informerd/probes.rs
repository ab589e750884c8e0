//! `/healthz` and `/readyz`.
//!
//! Answers "do the probes say what a kubelet must know, and why?".

use informer_apiserver::ApiServer;

use crate::process::{Informerd, http_get, wait_for_code};

#[test]
fn both_say_ok_once_everything_is_synced() {
    let mut informerd = Informerd::start(&[]);
    let address = informerd.probes();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    wait_for_code(&address, "/readyz", 200);
    assert_eq!(http_get(&address, "/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(http_get(&address, "/readyz"), (200, "ok\n".to_owned()));
    assert_eq!(http_get(&address, "/elsewhere").0, 404);
}

#[test]
fn it_is_alive_but_not_ready_while_the_cluster_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let mut server = ApiServer::builder().start_blocking().unwrap();
    server.write_kubeconfig(&file).unwrap();
    server.stop();
    let mut informerd = Informerd::start(&["--kubeconfig", file.to_str().unwrap()]);
    let address = informerd.probes();
    informerd.line(|line| line.contains("Backoff (attempt 1"));
    let (code, reasons) = http_get(&address, "/readyz");
    assert_eq!(code, 503);
    assert!(reasons.starts_with("Pod is not synced, Backoff: connection failed"), "{reasons}");
    assert_eq!(http_get(&address, "/healthz").0, 200);
    server.start_again().unwrap();
    informerd.line(|line| line.contains("Streaming: 0 objects at version"));
    wait_for_code(&address, "/readyz", 200);
}
