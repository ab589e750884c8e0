//! A thousand clients that never read.
//!
//! They answer: does a server that cannot send its events keep them for each watcher, and for how long? The server is
//! a process of its own, so that its memory can be measured.
#![cfg(all(target_os = "linux", feature = "cli"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

use crate::command::{Running, ask};

const WATCHERS: usize = 1_000;
const EVENTS: usize = 700;
const EVENT_BYTES: usize = 8 * 1024;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A watch whose client reads almost nothing from the network.
fn deaf(addr: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.connect(&addr.into()).unwrap();
    let mut socket = TcpStream::from(socket);
    write!(socket, "GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    // The head of a watch comes once it is open.
    socket.read_exact(&mut [0; 12]).unwrap();
    socket
}

/// Reads what is on its way, up to the last chunk or a reset.
fn read_out(mut socket: TcpStream) {
    let (mut tail, mut some) = (Vec::new(), [0; 4_096]);
    while !tail.ends_with(b"0\r\n\r\n") {
        match socket.read(&mut some) {
            Ok(0) | Err(_) => return,
            Ok(count) => tail = [&tail, &some[..count]].concat(),
        }
        tail.drain(..tail.len().saturating_sub(5));
    }
}

/// The server's resident memory, in bytes.
fn resident(running: &Running) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1_024
}

#[test]
fn api_17_a_thousand_watchers_that_never_read_cost_little_and_are_closed() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let running = Running::start(&["--watch-queue", "300", "--event-window", "300"]);
    let addr = running.addr;
    let deaf: Vec<TcpStream> = (0..WATCHERS).map(|_| deaf(addr)).collect();
    let before = resident(&running);
    let data = "x".repeat(EVENT_BYTES);
    let made = ask(addr, &format!("POST {MAPS}"), r#"{"metadata": {"name": "a"}}"#).unwrap();
    assert!(made.starts_with("HTTP/1.1 201"), "{made}");
    let mut most = 0;
    for number in 0..EVENTS {
        let body = format!(r#"{{"metadata": {{"name": "a"}}, "data": {{"n": "{number}", "k": "{data}"}}}}"#);
        let put = ask(addr, &format!("PUT {MAPS}/a"), &body).unwrap();
        assert!(put.starts_with("HTTP/1.1 200"), "{put}");
        most = most.max(resident(&running).saturating_sub(before));
    }
    // Each watcher may have one chunk in transit; the events themselves are shared.
    let all = WATCHERS * EVENTS * EVENT_BYTES;
    assert!(most < all / 20, "{} MB, where a copy for each watcher would be {} MB", most >> 20, all >> 20);
    deaf.into_iter().for_each(read_out);
    assert!(running.ended_by("-TERM"));
}
