//! `/healthz` and `/readyz`.
//!
//! Answers "do the probes say what a kubelet must know, and why?".

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

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
fn its_first_line_leads_to_a_page_that_says_that_all_is_well_and_prometheus_finds_its_figures() {
    let mut informerd = Informerd::start(&[]);
    let line = informerd.written_on_stderr("informerd: ");
    let (_, address) = line.split_once("open http://").unwrap_or_else(|| panic!("not the page: {line}"));
    let address = address.split('/').next().expect("an address").to_owned();
    informerd.line(|line| line.contains("Streaming"));
    let (code, page) = http_get(&address, "/");
    assert!(code == 200 && page.contains("<title>informerd</title>"), "{code}: {page}");
    let (code, state) = http_get(&address, "/state");
    assert!(code == 200 && state.contains("\"problems\":[]"), "{code}: {state}");
    let (code, metrics) = http_get(&address, "/metrics");
    assert!(code == 200 && metrics.contains("# TYPE informer_objects gauge"), "{code}: {metrics}");
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
    let (code, reasons) = http_get(&address, "/readyz?verbose");
    assert_eq!(code, 503);
    assert_eq!(http_get(&address, "/readyz"), (503, "unready\n".to_owned()), "one word for other machines");
    assert!(reasons.starts_with("Pod is not synced, Backoff: connection failed"), "{reasons}");
    assert_eq!(http_get(&address, "/healthz").0, 200);
    server.start_again().unwrap();
    informerd.line(|line| line.contains("Streaming: 0 objects at version"));
    wait_for_code(&address, "/readyz", 200);
}

/// The first bytes of what comes on this connection before its end, or before this time is over.
fn answer_within(stream: &mut TcpStream, limit: Duration) -> Option<String> {
    stream.set_read_timeout(Some(limit)).unwrap();
    let mut answer = [0; 64];
    let read = std::io::Read::read(stream, &mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer[..read]).into_owned())
}

// REST-41: given a peer that holds 100 half-sent requests, when another request of `/healthz` or `/readyz`
// comes, then it is answered within 1 s; a request that does not come is cut off after seconds, an answer
// ends its connection, and reasons are shown only with `?verbose` and only to the same machine.
// - a the probes answer within 1 s
// - b a request that does not come is cut off, and an answer ends its connection:
//   `a_request_that_does_not_come_is_cut_off_after_seconds_and_an_answer_ends_its_connection`
// - c reasons are shown only with `?verbose`: `it_is_alive_but_not_ready_while_the_cluster_is_away`
// - d and only to the same machine: `reasons_are_returned_only_to_clients_on_this_machine_that_ask_for_them`
#[test]
fn rest_41_half_sent_requests_of_one_peer_do_not_silence_the_probes() {
    let mut informerd = Informerd::start(&[]);
    let address = informerd.probes();
    wait_for_code(&address, "/readyz", 200);
    for begun in
        ["", "GET /healthz HTTP/1.1\r\nHost: a\r\n", "GET /healthz HTTP/1.1\r\ncontent-length: 9\r\n\r\n"]
    {
        let half_sent: Vec<_> = (0..100)
            .map(|_| {
                let mut stream = TcpStream::connect(&address).unwrap();
                stream.write_all(begun.as_bytes()).unwrap();
                stream
            })
            .collect();
        for path in ["/healthz", "/readyz"] {
            let mut probe = TcpStream::connect(&address).unwrap();
            write!(probe, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            // A kubelet waits one second.
            let answer = answer_within(&mut probe, Duration::from_secs(1));
            assert!(
                answer.as_deref().is_some_and(|answer| answer.contains(" 200 ")),
                "{begun:?}: {answer:?}"
            );
        }
        drop(half_sent);
    }
}

#[test]
fn a_request_that_does_not_come_is_cut_off_after_seconds_and_an_answer_ends_its_connection() {
    let mut informerd = Informerd::start(&[]);
    let address = informerd.probes();
    let mut slow = TcpStream::connect(&address).unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
    let cut = answer_within(&mut slow, Duration::from_secs(8)).expect("it is cut off");
    assert!(cut.is_empty() || cut.contains(" 408 "), "{cut}");
    let mut second = TcpStream::connect(&address).unwrap();
    second.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut all = String::new();
    second.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
    std::io::Read::read_to_string(&mut second, &mut all).expect("the connection ends by itself");
    assert!(all.starts_with("HTTP/1.1 200 ") && all.ends_with("ok\n"), "{all}");
}

#[test]
fn client_informerd_after_the_first_list_readyz_verbose_lists_each_kind_with_its_state_its_age_and_its_error()
{
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (kubeconfig, config) = (path("kubeconfig"), path("c.toml"));
    let mut server = ApiServer::builder().start_blocking().unwrap();
    server.write_kubeconfig(&kubeconfig).unwrap();
    let kinds = "[[informer]]\nkind = \"Pod\"\n[[informer]]\nkind = \"ConfigMap\"\n";
    std::fs::write(&config, kinds).unwrap();
    let arguments = ["--kubeconfig", &kubeconfig, "--config", &config];
    let mut tolerant = Informerd::start(&arguments);
    let address = tolerant.probes();
    wait_for_code(&address, "/readyz", 200);
    let (code, text) = http_get(&address, "/readyz?verbose");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((code, lines[0], lines.len()), (200, "ok", 3), "{text}");
    for (line, kind) in lines[1..].iter().zip(["Pod", "ConfigMap"]) {
        assert!(line.starts_with(&format!("{kind}: streaming, 0 objects, heard ")), "{text}");
    }
    let limited = format!("[probes]\nunready_when_stale_seconds = 1\n{kinds}");
    std::fs::write(&config, limited).unwrap();
    let mut strict = Informerd::start(&arguments);
    let strict_address = strict.probes();
    wait_for_code(&strict_address, "/readyz", 200);

    server.stop();
    tolerant.lines_with(&[&["Pod", "Backoff"], &["ConfigMap", "Backoff"]]);
    let (code, text) = http_get(&address, "/readyz?verbose");
    assert_eq!((code, text.lines().next()), (200, Some("ok")), "the caches can still be read: {text}");
    for kind in ["Pod: failed", "ConfigMap: failed"] {
        let line = text.lines().find(|line| line.starts_with(kind)).unwrap_or_else(|| panic!("{text}"));
        for part in [" 0 objects, heard ", "; stale for ", "connection failed: "] {
            assert!(line.contains(part), "{part:?} is not in {line}");
        }
    }
    wait_for_code(&strict_address, "/readyz", 503);
    let (_, text) = http_get(&strict_address, "/readyz?verbose");
    assert!(text.starts_with("Pod is stale for ") || text.starts_with("ConfigMap is stale for "), "{text}");
    assert_eq!(http_get(&strict_address, "/healthz").0, 200, "a restart would not help");
    server.start_again().unwrap();
    wait_for_code(&strict_address, "/readyz", 200);
}
