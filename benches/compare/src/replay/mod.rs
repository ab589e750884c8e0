//! The replay server: the server of pods from which both clients are measured.
//!
//! It answers lists and watches of pods, in JSON or protobuf, with the same bytes for every client, as fast as they are read. It is not a
//! complete API server: it has no writes, no selectors and no other kinds. Where bytes and pages affect the cost of a
//! client, it does what the real server does: items of a list have no kind, each item and event is a chunk of the body,
//! there are no pages at version "0", and it sends bookmarks, and 410 as an event. Invariants:
//! 1. Only bookmarks are sent by themselves: events and expiries happen when a client requests them.
//! 2. Event n is the same text in every run.
//!
//! One thread. Read next: `history.rs`, what it has; `answer.rs`, how it is sent.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::rc::Rc;

use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local};

mod answer;
mod history;
mod messages;
mod request;

/// Serves until standard input ends; prints the URL when everything is prepared.
pub(crate) fn serve(pods: usize, events: u64, protobuf: bool) -> anyhow::Result<()> {
    std::thread::spawn(|| {
        // The parent process has ended, or closed the pipe to end this one: reading fails or ends.
        let _gone = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let history = Rc::new(history::History::new(pods, events, protobuf)?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let mut stdout = std::io::stdout();
        writeln!(stdout, "http://{}", listener.local_addr()?)?;
        stdout.flush()?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let history = Rc::clone(&history);
            spawn_local(async move {
                // A client that hangs up is no failure.
                let _hung_up = answer::connection(stream, &history).await;
            });
        }
    })
}
