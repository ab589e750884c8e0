//! Disasters of the network: the server is well, and the connection to it is not.
//!
//! Answers "what does a bad network do to an informer?" These scenarios do nothing to their server, so all of them may
//! run on one server at once, each with relays of its own.

use std::io::ErrorKind;
use std::time::Duration;

use fastrand::Rng;
use informer_core::reflector::ReflectorConfig;
use tokio::net::TcpStream;

use crate::relay::Relay;
use crate::stage::{Stage, until};
use crate::trial::{Observer, Trial};

/// The longest time from the silence of all open connections to the next event.
const SILENCE: Duration = Duration::from_secs(40);

pub(crate) async fn connections_refused_for_fifteen_seconds(stage: Stage) {
    let trial = Trial::begin(stage).await;
    trial.wires(Relay::refuse);
    for observer in &trial.observers {
        until("the outage is noticed", || observer.pods.counters().failures >= 1).await;
        let refused = TcpStream::connect(observer.wire.address()).await.expect_err("nobody listens");
        // Reset, if it was let in just before the relay closed.
        let kinds = [ErrorKind::ConnectionRefused, ErrorKind::ConnectionReset];
        assert!(kinds.contains(&refused.kind()), "{refused}");
    }
    trial.lasts(Duration::from_secs(15)).await;
    trial.wires(Relay::mend);
    trial.ends().await;
}

// REF-53: given open connections through a relay that acknowledges and forwards nothing any more, while new
// ones work, when objects change, then the change is delivered within 40 s (one renewal), and nothing is lost
// or delivered twice.
// - a the change is delivered within 40 s, by one renewal
// - b nothing is lost or delivered twice
pub(crate) async fn ref_53_open_connections_that_fall_silent(stage: Stage) {
    let trial = Trial::begin(stage).await;
    // A real server may also end a first watch by itself.
    let before: Vec<_> = trial.observers.iter().map(|observer| observer.pods.counters()).collect();
    trial.wires(Relay::silence);
    let mark = trial.mark().await;
    let repaired = trial.arrives(&mark).await;
    assert!(repaired <= SILENCE, "repaired only after {repaired:?}");
    for (observer, before) in trial.observers.iter().zip(before) {
        let now = observer.pods.counters();
        let failure = observer.pods.informer.last_error();
        assert_eq!(
            (now.renewals - before.renewals, now.relists - before.relists, now.failures - before.failures),
            (1, 0, 0),
            "{now:?}, last failure: {failure:?}"
        );
    }
    trial.ends().await;
}

pub(crate) async fn a_wire_that_breaks_every_few_kilobytes(stage: Stage) {
    let trial = Trial::begin_with(stage, 5, |_| {}).await;
    // More than a handshake and one record of TLS, of which nothing can be read before it is whole.
    trial.wires(|wire| wire.fray(24_000));
    for _ in 0..2 {
        for Observer { wire, pods, .. } in &trial.observers {
            let (connections, watches) = (wire.connections(), pods.counters().watches);
            until("the watch breaks twice", || pods.counters().watches >= watches + 2).await;
            until("each is on a connection of its own", || wire.connections() >= connections + 2).await;
        }
        let mark = trial.mark().await;
        trial.arrives(&mark).await;
    }
    trial.wires(Relay::mend);
    trial.ends().await;
}

pub(crate) async fn a_wire_of_twenty_kilobytes_a_second(stage: Stage) {
    let trial = Trial::begin_with(stage, 8, |wire| wire.slow(20_000)).await;
    for _ in 0..3 {
        let mark = trial.mark().await;
        trial.arrives(&mark).await;
    }
    // The relay stays slow: what it carries is enough.
    trial.ends().await;
}

pub(crate) async fn objects_deleted_and_created_again_inside_a_gap(stage: Stage) {
    const LIVES: usize = 5;
    let trial = Trial::begin(stage).await;
    let name = |n: usize| format!("phoenix-{n}");
    for n in 0..LIVES {
        trial.create(&name(n)).await;
    }
    let mark = trial.mark().await;
    trial.arrives(&mark).await;
    let key = |n| trial.stage.key(&name(n));
    let known = |n| trial.observers.iter().map(move |observer| observer.pods.informer.lister().get(&key(n)));
    let first: Vec<Vec<_>> = (0..LIVES).map(|n| known(n).collect()).collect();

    trial.wires(Relay::cut);
    for n in 0..LIVES {
        trial.stage.api.delete(&trial.stage.namespace, &name(n)).await;
        trial.create(&name(n)).await;
    }
    let mark = trial.mark().await;
    trial.wires(Relay::mend);
    trial.arrives(&mark).await;
    for (n, first) in first.iter().enumerate() {
        for (before, now) in first.iter().zip(known(n)) {
            let (before, now) = (before.as_ref().expect("it was there"), now.expect("it is there again"));
            assert!(!now.is_same_life_as(before), "{before:?} is {now:?}");
        }
    }
    trial.ends().await;
}

pub(crate) async fn a_load_balancer_that_finds_no_server(stage: Stage) {
    let trial = Trial::begin(stage).await;
    for (head, body) in [
        ("500 Internal Server Error", r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}"#),
        ("502 Bad Gateway", "<html>Bad Gateway</html>"),
        ("503 Service Unavailable", "no healthy upstream"),
        ("504 Gateway Timeout", ""),
    ] {
        let failures: Vec<u64> = trial.failures();
        trial.wires(|wire| wire.answer(answer(head, body)));
        for (observer, before) in trial.observers.iter().zip(failures) {
            until("the answer is a failure", || observer.pods.counters().failures > before).await;
        }
        trial.wires(Relay::mend);
        let mark = trial.mark().await;
        trial.arrives(&mark).await;
    }
    trial.ends().await;
}

pub(crate) async fn an_overloaded_server_that_names_a_wait(stage: Stage) {
    let trial = Trial::begin(stage).await;
    trial.wires(|wire| wire.answer(overloaded()));
    for observer in &trial.observers {
        until("each 429 is waited for", || observer.pods.counters().overloaded >= 3).await;
    }
    trial.wires(Relay::mend);
    let mark = trial.mark().await;
    trial.arrives(&mark).await;
    for observer in &trial.observers {
        assert_eq!(observer.pods.counters().relists, 0, "it goes on where it was");
    }
    trial.ends().await;
}

/// The initial events stop in the middle, and the connection stays open. A server that goes on sending
/// changes and never ends the initial events is in `server_faults.rs`: a relay cannot do that.
pub(crate) async fn wl_14_a_watch_list_that_stops_in_its_middle(stage: Stage) {
    /// More than a TLS handshake, less than thirty pods.
    const STALL: u64 = 8_000;
    let mut trial = Trial::begin(stage).await;
    let impatient = |config| ReflectorConfig { initial_events_deadline: Duration::from_secs(10), ..config };
    let stalled = trial.observe("stalled", impatient, |wire| wire.stall(STALL)).await;
    until("it stops in its middle", || stalled.wire.received() >= STALL).await;
    stalled.wire.mend();
    stalled.pods.streams().await;
    let counters = stalled.pods.counters();
    assert_eq!((counters.watch_lists, counters.lists, counters.failures), (1, 1, 1), "{counters:?}");
    trial.ends().await;
}

/// Each of the two relays has another fault every second or two, and may be repaired in between.
pub(crate) async fn one_network_fault_after_another(stage: Stage) {
    let mut random = Rng::with_seed(stage.seed);
    let trial = Trial::begin(stage).await;
    for _ in 0..12 {
        for observer in &trial.observers {
            misfortune(&observer.wire, &mut random);
        }
        trial.lasts(Duration::from_millis(random.u64(100..2_500))).await;
    }
    trial.wires(Relay::mend);
    trial.ends().await;
}

/// Any fault but silence, which takes half a minute to be noticed.
fn misfortune(wire: &Relay, random: &mut Rng) {
    match random.u8(..9) {
        0 => wire.refuse(),
        1 => wire.hold(),
        2 => wire.slow(random.u64(1_000..50_000)),
        3 => wire.fray(random.u64(1..20_000)),
        4 => wire.answer(overloaded()),
        5 => wire.answer(answer("503 Service Unavailable", "no healthy upstream")),
        6 => wire.cut(),
        7 => {
            wire.cut();
            wire.mend();
        }
        _ => wire.mend(),
    }
}

/// The message of a kube-apiserver with too many requests in flight.
fn overloaded() -> String {
    let body = "Too many requests, please try again later.\n";
    answer("429 Too Many Requests\r\nRetry-After: 1\r\nContent-Type: text/plain", body)
}

fn answer(head: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}
