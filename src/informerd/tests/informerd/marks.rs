//! What informerd may never write: secrets of its kubeconfig, of its token and of the objects that it reads.
//!
//! Answers "does a reader of stdout, stderr or the probes find a secret?" Every source of text gets a mark,
//! everything that can fail does, the own targets log as much as possible, and all that was written is searched.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use informer_apiserver::ApiServer;
use rustix::process::Signal;
use serde_json::json;

use crate::process::{Informerd, command, http_get};

const LOG: &str = "actix_informer=trace";

fn is_unmarked(text: &str, what: &str) {
    let encoded = STANDARD.encode("MARK-s");
    for mark in ["MARK-", &encoded] {
        let line = text.lines().find(|line| line.contains(mark));
        assert_eq!(line, None, "a secret is written ({what})");
    }
}

fn kubeconfig(server: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters:\n- name: a\n  cluster: {{server: '{server}'}}\n\
         contexts:\n- name: a\n  context: {{cluster: a, user: a}}\nusers:\n- name: a\n  user:\n{user}"
    )
}

/// Everything that informerd writes in a second with this kubeconfig; it ends with this code.
fn written_with(text: &str, code: i32) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("the-kubeconfig");
    std::fs::write(&file, text).unwrap();
    let mut process = command(&["--kubeconfig", file.to_str().unwrap(), "--for", "1s"]);
    process.env("RUST_LOG", LOG);
    let (status, lines, stderr) = Informerd::run(process).end();
    assert_eq!(status.code(), Some(code), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    format!("{}\n{stderr}", lines.join("\n"))
}

#[test]
fn a_kubeconfig_that_is_refused_is_reported_without_a_word_of_its_secrets() {
    let server = "https://127.0.0.1:1";
    let env = "    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: aws\n      \
               env:\n      - {name: KEY, value: MARK-env}\n";
    for text in [
        kubeconfig("https://user:MARK-password@127.0.0.1:1/?token=MARK-query", "    token: MARK-token\n"),
        kubeconfig("http://127.0.0.1:1/?token=MARK-query", "    token: MARK-token\n"),
        kubeconfig(server, "    token: [MARK-token]\n"),
        kubeconfig(server, "    token: MARK-token\n   username: u\n"),
        kubeconfig(server, "    token: \"MARK-token\n"),
        kubeconfig(server, "    auth-provider: {name: gcp, config: {access-token: MARK-access}}\n"),
        kubeconfig(server, env),
        kubeconfig(server, "    client-key-data: 'MARK-%%'\n"),
        kubeconfig(
            server,
            "    client-certificate-data: TUFSSy1zZWNyZXQ=\n    client-key-data: TUFSSy1zZWNyZXQ=\n",
        ),
    ] {
        let written = written_with(&text, 2);
        is_unmarked(&written, &text);
        assert!(written.contains("informerd: "), "{written}");
    }
}

#[test]
fn a_token_that_stands_twice_in_a_kubeconfig_is_accepted_as_kubectl_does_and_not_written() {
    let text = kubeconfig("https://127.0.0.1:1", "    token: MARK-token\n    token: MARK-again\n");
    is_unmarked(&written_with(&text, 3), &text);
}

#[test]
fn objects_that_do_not_decode_are_reported_without_their_values() {
    let server =
        ApiServer::builder().token("MARK-token-of-the-server").validation(false).start_blocking().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    server.write_kubeconfig(&file).unwrap();
    let config = folder.path().join("c.toml");
    let text =
        "[[informer]]\nkind = \"Secret\"\nrepresentation = \"dynamic\"\n[[informer]]\nkind = \"Pod\"\n";
    std::fs::write(&config, text).unwrap();
    let pod = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"a","resourceVersion":"3"},"spec":"MARK-spec"}"#;
    let secret = r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"a","resourceVersion":"3","labels":"MARK-labels"},"data":{"k":"TUFSSy1zZWNyZXQ="}}"#;
    let half = r#"{"kind":"Secret","apiVersion":"v1","data":{"k":"TUFSSy1zZWNyZXQ="#;
    for format in ["text", "json"] {
        let arguments = [
            "--kubeconfig",
            file.to_str().unwrap(),
            "--config",
            config.to_str().unwrap(),
            "--output",
            format,
        ];
        let mut process = command(&arguments);
        process.env("RUST_LOG", LOG);
        let mut informerd = Informerd::run(process);
        let address = informerd.probes();
        informerd.lines_with(&[&["Secret", "Streaming"], &["Pod", "Streaming"]]);
        for (resource, object) in [("pods", pod), ("secrets", secret)] {
            server.faults().send_raw(resource, format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n"));
        }
        server.faults().send_raw("secrets", format!("{half}\n"));
        server
            .create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "later-"},
            "spec": {"containers": [{"name": "main", "image": "x:1"}]}}))
            .unwrap();
        informerd.line(|line| line.contains("Added") && line.contains("later-"));
        let paths = [
            "/healthz",
            "/readyz",
            "/readyz?verbose",
            "/metrics",
            "/state",
            "/objects?informer=Secret",
            "/objects?informer=Pod",
            "/path?key=default%2Fmarked",
        ];
        let written = paths.map(|path| http_get(&address, path).1).join("\n");
        informerd.signal(Signal::TERM);
        let (_, lines, stderr) = informerd.end();
        is_unmarked(&format!("{}\n{stderr}\n{written}", lines.join("\n")), format);
    }
}

#[test]
fn a_server_that_repeats_the_token_is_quoted_without_it() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = vec![0; 4096];
            let read = stream.read(&mut head).unwrap_or(0);
            let words = String::from_utf8_lossy(&head[..read]).replace("\r\n", " ");
            let body = format!("what is this: {words}");
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig(&url, "    token: MARK-token\n")).unwrap();
    for format in ["text", "json"] {
        let mut process =
            command(&["--kubeconfig", file.to_str().unwrap(), "--for", "2s", "--output", format]);
        process.env("RUST_LOG", LOG);
        let mut informerd = Informerd::run(process);
        let address = informerd.probes();
        informerd.line(|line| line.contains("what is this"));
        let written = http_get(&address, "/readyz?verbose").1;
        assert!(written.contains("what is this"), "{written}");
        let written = written + &http_get(&address, "/state").1 + &http_get(&address, "/metrics").1;
        let (status, lines, stderr) = informerd.end();
        assert_eq!(status.code(), Some(3), "it was refused: {stderr}");
        assert!(!lines.join("\n").contains("everything was delivered"), "{lines:?}");
        is_unmarked(&format!("{}\n{stderr}\n{written}", lines.join("\n")), format);
    }
}
