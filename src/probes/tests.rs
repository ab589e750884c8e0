//! Tests of the probes over HTTP: codes, words, and reasons for clients on this machine.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::*;

/// A state that the test sets.
#[derive(Default)]
struct Fixed {
    unhealthy: Vec<String>,
    unready: Vec<String>,
}

impl Probed for Fixed {
    fn unhealthy(&self) -> Vec<String> {
        self.unhealthy.clone()
    }

    fn unready(&self) -> Vec<String> {
        self.unready.clone()
    }
}

fn served(probed: impl Probed) -> Probes {
    let socket = ProbeSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    socket.serve(probed).expect("a thread can be started")
}

fn get(probes: &Probes, path: &str) -> String {
    let mut stream = TcpStream::connect(probes.address()).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: probes\r\n\r\n").expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("head and body");
    format!("{} {body}", head.split(' ').nth(1).expect("a code"))
}

#[test]
fn what_is_probed_decides_the_code_and_reasons_are_given_only_when_they_are_asked_for() {
    let fine = served(Fixed::default());
    for path in ["/livez", "/healthz", "/readyz", "/readyz?verbose"] {
        assert_eq!(get(&fine, path), "200 ok\n", "{path}");
    }
    assert_eq!(get(&fine, "/metrics"), "404 not found\n");
    let (unhealthy, unready) = (vec!["a thread is stuck".to_owned()], vec!["pods\nwait".to_owned()]);
    let broken = served(Arc::new(Fixed { unhealthy, unready }));
    assert_eq!(get(&broken, "/livez"), "503 unhealthy\n");
    assert_eq!(get(&broken, "/livez?verbose"), "503 a thread is stuck\n");
    assert_eq!(get(&broken, "/readyz"), "503 unready\n");
    assert_eq!(get(&broken, "/readyz?verbose"), "503 pods\\nwait\n", "a reason is one line");
}

#[cfg(feature = "metrics")]
#[test]
fn the_metrics_of_a_registry_are_served_in_the_form_that_is_asked_for() {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::registry::Registry;

    let mut registry = Registry::default();
    registry.register("visits", "How often", Counter::<u64>::default());
    let socket = ProbeSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    let probes = socket.metrics(registry).serve(Fixed::default()).expect("a thread can be started");
    assert_eq!(get(&probes, "/livez"), "200 ok\n");
    let text = "200 # HELP visits_total How often.\n# TYPE visits_total counter\nvisits_total 0\n";
    assert_eq!(get(&probes, "/metrics"), text);
    let asked = "/metrics HTTP/1.1\r\nAccept: application/openmetrics-text;version=1.0.0,*/*;q=0.1\r\nA: b";
    assert!(get(&probes, asked).ends_with("visits_total 0\n# EOF\n"), "{}", get(&probes, asked));
}

#[cfg(feature = "page")]
#[test]
fn the_page_is_answered_under_names_of_this_machine_and_not_to_other_web_pages() {
    use crate::object::ObjectKey;
    use crate::page::Page;
    use crate::runtime::Runtime;

    let runtime = Runtime::threads().start().expect("threads");
    let socket = ProbeSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    let probes = socket.page(Page::of(&runtime, "a test")).serve(Fixed::default()).expect("a thread");
    let asked = |request: &str| {
        let mut stream = TcpStream::connect(probes.address()).expect("it listens");
        write!(stream, "{request}\r\n\r\n").expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    let code = |request: &str| asked(request).split(' ').nth(1).expect("a code").to_owned();
    assert_eq!(code("GET / HTTP/1.1\r\nHost: localhost:1"), "200");
    assert_eq!(code("GET /state HTTP/1.1\r\nHost: 127.0.0.1"), "200");
    assert_eq!(code("GET /state HTTP/1.1\r\nHost: rebound.example.org"), "403", "its name leads here");
    let from = |site: &str| format!("GET /state HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: {site}");
    assert_eq!([code(&from("same-origin")), code(&from("none"))], ["200", "200"]);
    assert_eq!([code(&from("cross-site")), code(&from("same-site"))], ["403", "403"]);
    let key = ObjectKey::namespaced("a", "b");
    let follow = |method: &str, site: &str| {
        let head = format!("{method} /path?key=a%2Fb&follow=1 HTTP/1.1\r\nHost: localhost");
        code(&format!("{head}\r\nSec-Fetch-Site: {site}\r\nContent-Length: 0"))
    };
    assert_eq!((follow("GET", "same-origin"), runtime.paths().is_followed(&key)), ("200".to_owned(), false));
    assert_eq!((follow("POST", "cross-site"), runtime.paths().is_followed(&key)), ("403".to_owned(), false));
    assert_eq!((follow("POST", "same-origin"), runtime.paths().is_followed(&key)), ("200".to_owned(), true));
    assert_eq!(code("POST /state HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0"), "405");
    let head = asked("GET / HTTP/1.1\r\nHost: localhost").to_ascii_lowercase();
    assert!(head.contains("frame-ancestors 'none'") && head.contains("nosniff"), "{head}");
    assert_eq!(code("GET /livez HTTP/1.1\r\nHost: anything"), "200", "probes are answered to all");
}

#[cfg(feature = "page")]
#[test]
fn the_state_is_sent_each_second_until_the_connection_has_lasted_as_long_as_any_may() {
    use crate::page::Page;
    use crate::runtime::Runtime;

    let runtime = Runtime::threads().start().expect("threads");
    let socket = ProbeSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    let probes = socket.page(Page::of(&runtime, "a test")).serve(Fixed::default()).expect("a thread");
    let mut stream = TcpStream::connect(probes.address()).expect("it listens");
    write!(stream, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is sent");
    let mut bytes = Vec::new();
    // The connection is cut, which is no end of the body.
    let _cut = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let events = text.matches("data: {").count();
    assert!((4..=6).contains(&events) && text.contains("retry: 200"), "{events} events: {text}");
}

#[test]
fn a_taken_address_is_an_error_that_names_it() {
    let first = ProbeSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    let error = ProbeSocket::bind(first.address()).expect_err("it is taken").to_string();
    assert!(error.starts_with(&format!("probes cannot listen on {}: ", first.address())), "{error}");
}

#[cfg(feature = "testing")]
#[test]
fn a_runtime_is_ready_when_each_of_its_informers_is_synced_and_the_reason_names_the_one_that_is_not() {
    use crate::informer::Informer;
    use crate::runtime::Runtime;
    use crate::testing::Server;

    Runtime::simulated(1).run(|runtime| async move {
        let server = Server::<String>::new();
        server.hold_lists(true);
        let source = server.clone();
        let informer = Informer::builder(&runtime, "texts").source(move || source.clone()).start();
        let informer = informer.expect("the spec is sound");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(runtime.unready(), ["informer texts is not synced, listing, 0 objects received"]);
        server.hold_lists(false);
        informer.synced_within(Duration::from_secs(30)).await.expect("it syncs");
        assert_eq!((runtime.unready(), runtime.unhealthy()), (vec![], vec![]));
    });
}

#[cfg(feature = "testing")]
#[test]
fn operator_b_a_reconcile_that_hangs_is_named_by_a_probe_that_is_asked_for_details() {
    use crate::controller::{Controller, ReconcileError, Request};
    use crate::informer::Informer;
    use crate::runtime::Runtime;
    use crate::testing::Server;

    Runtime::simulated(1).run(|runtime| async move {
        let server = Server::<String>::new();
        server.apply("a/one", "1".to_owned());
        let informer = Informer::builder(&runtime, "texts").source(move || server.clone()).start();
        let informer = informer.expect("the spec is sound");
        let hangs = |_: Request<String>| std::future::pending::<Result<_, ReconcileError>>();
        let _controller = Controller::builder(&informer).reconcile(hangs).start().expect("it starts");
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        let details = Probed::details(&runtime);
        let hangs = "controller texts: the reconcile of a/one has not ended for 1h";
        assert!(details.iter().any(|line| line.contains(hangs)), "{details:?}");
    });
}
