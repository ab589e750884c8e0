//! A configured cluster: informerd reads it, never writes to it, and follows it through outages and refusals.
//!
//! Answers "what does it do to a real cluster, and what does a user see when that fails?".

use std::collections::BTreeMap;

use informer_apiserver::ApiServer;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::process::Informerd;
use crate::replay::Replay;

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "x:1"}]}})
}

fn started(pods: usize) -> (ApiServer, tempfile::TempDir, String) {
    let server = ApiServer::builder().token("t").start_blocking().unwrap();
    for number in 0..pods {
        server.create(pod(&format!("pod-{number}"))).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    server.write_kubeconfig(&file).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (server, folder, file)
}

/// Name to uid and version, as the server has it.
fn pods_of(server: &ApiServer) -> BTreeMap<String, (String, String)> {
    let text = |pod: &Value, member: &str| pod["metadata"][member].as_str().unwrap().to_owned();
    let pods = server.list("pods").unwrap();
    pods.iter().map(|pod| (text(pod, "name"), (text(pod, "uid"), text(pod, "resourceVersion")))).collect()
}

fn by_name(replay: &Replay) -> BTreeMap<String, (String, String)> {
    replay.objects.iter().map(|(key, state)| (key.2.clone(), state.clone())).collect()
}

fn ended(informerd: Informerd) -> Replay {
    informerd.signal(Signal::TERM);
    let (status, lines, stderr) = informerd.end();
    assert_eq!(status.code(), Some(0), "{stderr}");
    let replay = Replay::of(&lines);
    replay.check_against_summary();
    replay
}

// REST-34: given `informerd` with no --kubeconfig, --context, KUBECONFIG or in-cluster environment, when
// started, then it uses the in-memory server if built in, else an error lists the options; it writes only to
// a server that it started itself.
// - a it uses the in-memory server if built in: `rest_34_without_a_cluster_the_in_memory_server_is_read`
// - b else an error lists the options:
//   `rest_34_without_a_cluster_and_without_an_in_memory_server_the_error_lists_the_options`
// - c it never writes to a server that was configured
#[test]
fn rest_34_a_cluster_named_by_kubeconfig_is_read_and_never_written_to() {
    let (server, _folder, file) = started(5);
    server.clear_requests();
    let before = server.revision();
    let arguments = ["--output", "json", "--for", "2s", "--list-at-end"];
    let (status, lines, stderr) = Informerd::start_with(&arguments, ("KUBECONFIG", &file)).end();
    assert!(status.success() && stderr.contains(&server.url()), "{stderr}");
    assert_eq!(by_name(&Replay::of(&lines)), pods_of(&server));
    assert_eq!(server.revision(), before);
    let requests = server.requests();
    assert!(!requests.is_empty());
    for request in requests {
        assert_eq!(request.method, "GET", "{request:?}");
        let is_discovery = matches!(&*request.path, "/api" | "/apis");
        assert!(is_discovery || ["list", "watch", "get"].contains(&&*request.verb), "{request:?}");
    }
}

#[test]
fn an_outage_is_reported_with_its_reason_and_so_is_the_recovery() {
    let (mut server, _folder, file) = started(3);
    let mut informerd = Informerd::start(&["--kubeconfig", &file]);
    informerd.line(|line| line.contains("Streaming: 3 objects"));
    server.stop();
    let written = informerd.line(|line| line.contains("Backoff"));
    assert!(
        written.contains("(attempt 1, next in ") && written.contains("): connection failed: "),
        "{written}"
    );
    server.delete("pods", "default", "pod-0").unwrap();
    server.create(pod("late")).unwrap();
    server.start_again().unwrap();
    // The state and the changes are reported by different actors: their lines come in any order.
    let written: [fn(&str) -> bool; 3] = [
        |line| line.contains("Streaming: "),
        |line| line.contains("Deleted") && line.contains("default/pod-0"),
        |line| line.contains("Added") && line.contains("default/late"),
    ];
    let mut missing = Vec::from(written);
    while !missing.is_empty() {
        let line = informerd.line(|line| missing.iter().any(|written| written(line)));
        missing.retain(|written| !written(&line));
    }
}

#[test]
fn the_lines_replay_to_the_server_through_outages_and_lost_history() {
    let (mut server, _folder, file) = started(20);
    let mut informerd = Informerd::start(&["--output", "json", "--list-at-end", "--kubeconfig", &file]);
    informerd.line(|line| line.contains(r#""state":"Streaming","objects":20"#));
    server.stop();
    informerd.line(|line| line.contains(r#""state":"Backoff""#));
    for number in 0..10 {
        server.delete("pods", "default", &format!("pod-{number}")).unwrap();
    }
    // The same name again is another object: Deleted and Added, never Updated.
    server.create(pod("pod-0")).unwrap();
    server.faults().compact();
    server.start_again().unwrap();
    informerd.line(|line| line.contains(r#""state":"Streaming","objects":11"#));
    server.create(pod("last")).unwrap();
    informerd.line(|line| line.contains(r#""name":"last""#));
    let replay = ended(informerd);
    assert_eq!(by_name(&replay), pods_of(&server));
    assert!(replay.causes["Relist"] >= 11, "{:?}", replay.causes);
    assert!(replay.only_informer()["relists"].as_u64() >= Some(1));
}

#[test]
fn a_kind_that_is_refused_degrades_alone_and_reports_why() {
    let (server, folder, file) = started(3);
    server.faults().deny("list", "configmaps");
    server.faults().deny("watch", "configmaps");
    let config = folder.path().join("c.toml");
    std::fs::write(&config, "[[informer]]\nkind = \"Pod\"\n[[informer]]\nkind = \"ConfigMap\"\n").unwrap();
    let arguments = ["--kubeconfig", &file, "--config", config.to_str().unwrap()];
    let mut informerd = Informerd::start(&arguments);
    let address = informerd.probes();
    let (mut denied, mut streaming) = (String::new(), String::new());
    while denied.is_empty() || streaming.is_empty() {
        let line = informerd.line(|line| line.contains("Denied") || line.contains("Streaming: 3 objects"));
        if line.contains("Denied") { denied = line } else { streaming = line }
    }
    for word in
        ["ConfigMap", "(attempt 1, next in ", "): denied: ", "to allow it, bind a ClusterRole with the rule "]
    {
        assert!(denied.contains(word), "{word:?} is not in {denied}");
    }
    let (code, reasons) = crate::process::http_get(&address, "/readyz?verbose");
    assert!(code == 503 && reasons.starts_with("ConfigMap is not synced, Denied: denied"), "{reasons}");
    server.create(pod("later")).unwrap();
    informerd.line(|line| line.contains("Added") && line.contains("default/later"));
}

#[test]
fn client_informerd_a_namespace_that_does_not_exist_is_shown_in_lines_in_json_in_the_probe_and_in_the_summary()
 {
    let (_server, folder, file) = started(1);
    let config = folder.path().join("c.toml");
    std::fs::write(&config, "[[informer]]\nkind = \"Pod\"\nnamespaces = [\"default\", \"shpo\"]\n").unwrap();
    let config = config.to_str().unwrap();
    for format in ["text", "json"] {
        let arguments = ["--kubeconfig", &file, "--config", config, "--output", format];
        let mut informerd = Informerd::start(&arguments);
        let address = informerd.probes();
        informerd.line(|line| line.contains("shpo") && line.contains("does not exist"));
        crate::process::wait_for_code(&address, "/readyz", 200);
        let (code, text) = crate::process::http_get(&address, "/readyz?verbose");
        assert!(code == 200 && text.contains("shpo") && text.contains("does not exist"), "{text}");
        informerd.signal(Signal::TERM);
        let (status, lines, _) = informerd.end();
        assert_eq!(status.code(), Some(0), "it may be made later");
        let summary = lines.iter().rfind(|line| line.contains("shpo")).expect("the summary names it");
        assert!(summary.contains("does not exist"), "{summary}");
        if format == "json" {
            let hints = Replay::of(&lines).only_informer()["hints"].clone();
            assert!(hints[0].as_str().is_some_and(|hint| hint.contains("shpo")), "{hints}");
        }
    }
}

#[test]
fn client_informerd_kinds_that_are_refused_at_the_end_are_named_and_have_an_exit_code_of_their_own() {
    let (server, folder, file) = started(1);
    let config = folder.path().join("c.toml");
    std::fs::write(&config, "[[informer]]\nkind = \"Pod\"\n[[informer]]\nkind = \"ConfigMap\"\n").unwrap();
    let mut informerd = Informerd::start(&["--kubeconfig", &file, "--config", config.to_str().unwrap()]);
    informerd.lines_with(&[&["Pod", "Streaming: 1 object"], &["ConfigMap", "Streaming: 0 objects"]]);
    for verb in ["list", "watch"] {
        server.faults().deny(verb, "configmaps");
    }
    server.faults().end_watches();
    informerd.lines_with(&[&["ConfigMap", "Denied"]]);
    informerd.signal(Signal::TERM);
    let (status, lines, stderr) = informerd.end();
    assert_eq!(status.code(), Some(3), "{stderr}");
    let title = lines.iter().find(|line| line.starts_with("summary after")).expect("a summary");
    assert!(title.ends_with("(SIGTERM): NOT followed at the end: ConfigMap"), "{title}");
    assert!(stderr.contains("informerd: ConfigMap was not followed at the end: denied: "), "{stderr}");
}
