//! The replay server: the API server that both clients are measured against.
//!
//! Answers lists and watches of pods from bytes that are the same for every client, as fast as they are read. It is no
//! API server: no write, no selector, no other kind. Where bytes and pages decide what a client pays, it does what
//! the real one does: items of a list without kind, a chunk of the body for each item and event, no pages at version
//! "0", bookmarks, and 410 as an event. Invariants:
//! 1. Nothing happens by itself but bookmarks: events and expiries come when a client says so.
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
mod request;

/// Serves until standard input ends; prints the URL when everything is prepared.
pub(crate) fn serve(pods: usize, events: u64) -> anyhow::Result<()> {
    std::thread::spawn(|| {
        // Whoever started this process has gone, or wants it to: reading fails or ends.
        let _gone = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let history = Rc::new(history::History::new(pods, events)?);
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
