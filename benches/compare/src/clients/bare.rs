//! A client without actors: one blocking thread with a socket, chunks, lines, a scan of each object's metadata, what is kept of
//! the object, and a hash map.
//!
//! Answers "what can no client of this form cost less than?" It trusts the server and repeats nothing. Invariants:
//! 1. It reads a watch-list, and after a 410 another one.
//! 2. What it keeps of an object is what the informer keeps: the same representation.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};

use actix_informer::representation::{Encoded, Prune, Representation};
use actix_informer::unstable::meta_scan;
use anyhow::{Context, ensure};
use futures_util::FutureExt as _;
use memchr::memchr;
use tokio::sync::watch;

use super::informer::Whole;
use crate::drive::Cache;
use crate::state::State;

const WATCH_LIST: &str = "/api/v1/pods?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&\
                          resourceVersionMatch=NotOlderThan&timeoutSeconds=600";
/// Objects between two looks whether what is kept wants to be packed again.
const UPKEEP_EVERY: u64 = 256;

/// What is kept, by namespace and name.
pub(crate) type Pods<B> = Arc<Mutex<HashMap<(String, String), (u64, B)>>>;

/// What a line has told, with its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    Object(u64),
    /// A bookmark, which also ends the initial events.
    Bookmark(u64),
    Expired,
}

/// One connection, and the map.
pub(crate) struct Bare<R: Representation> {
    address: String,
    body: BufReader<TcpStream>,
    /// What is left of the chunk under way.
    chunk: usize,
    line: Vec<u8>,
    kept: R,
    prune: Prune,
    pods: Pods<R::Body>,
    objects: u64,
}

impl<R: Representation> Bare<R> {
    pub(crate) fn watch(url: &str, kept: R) -> anyhow::Result<Self> {
        let address = url.strip_prefix("http://").context("the URL is not http")?.to_owned();
        let body = opened(&address)?;
        let (line, prune, pods) = (Vec::new(), Prune::default(), Pods::default());
        Ok(Self { address, body, chunk: 0, line, kept, prune, pods, objects: 0 })
    }

    pub(crate) fn pods(&self) -> Pods<R::Body> {
        Arc::clone(&self.pods)
    }

    /// Reads one line.
    pub(crate) fn next(&mut self) -> anyhow::Result<Told> {
        self.line.clear();
        while self.line.last() != Some(&b'\n') {
            self.piece()?;
        }
        let (kind, object) = event_of(&self.line).context("an event has a type and an object")?;
        if kind == b"ERROR" {
            return Ok(Told::Expired);
        }
        let scan = meta_scan(object);
        let version: u64 = scan.version.as_deref().context("a version")?.parse()?;
        if kind == b"BOOKMARK" {
            return Ok(Told::Bookmark(version));
        }
        let key = (
            scan.namespace.as_deref().unwrap_or_default().to_owned(),
            scan.name.as_deref().context("a name")?.to_owned(),
        );
        let body = self.kept.keep(&Encoded::json(std::str::from_utf8(object)?), &self.prune)?;
        self.pods.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (version, body));
        self.objects += 1;
        if self.objects.is_multiple_of(UPKEEP_EVERY) {
            self.upkeep();
        }
        Ok(Told::Object(version))
    }

    /// Connects again; the map stays.
    fn again(&mut self) -> anyhow::Result<()> {
        (self.body, self.chunk) = (opened(&self.address)?, 0);
        Ok(())
    }

    fn upkeep(&self) {
        let Some(upkeep) = self.kept.upkeep() else { return };
        let Some(_held) = Arc::clone(&upkeep).due().now_or_never() else { return };
        upkeep.prepare();
        let pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        let _bytes: usize = pods.values().map(|(_, body)| upkeep.renew(body)).sum();
        upkeep.round_ended();
    }

    /// Takes what has arrived of the line under way.
    fn piece(&mut self) -> anyhow::Result<()> {
        if self.chunk == 0 {
            let mut size = String::new();
            self.body.read_line(&mut size)?;
            self.chunk = usize::from_str_radix(size.trim_end(), 16).context("the size of a chunk")?;
            ensure!(self.chunk > 0, "the watch has ended");
        }
        let here = self.body.fill_buf()?;
        let here = &here[..here.len().min(self.chunk)];
        let taken = memchr(b'\n', here).map_or(here.len(), |end| end + 1);
        self.line.extend_from_slice(&here[..taken]);
        self.body.consume(taken);
        self.chunk -= taken;
        if self.chunk == 0 {
            self.body.read_exact(&mut [0; 2])?;
        }
        Ok(())
    }
}

fn opened(address: &str) -> anyhow::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(address)?;
    let head = format!("GET {WATCH_LIST} HTTP/1.1\r\nhost: {address}\r\naccept: application/json\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut body = BufReader::with_capacity(32 << 10, stream);
    let mut head = String::new();
    while head.is_empty() || head.trim_end() != "" {
        head.clear();
        ensure!(body.read_line(&mut head)? > 0, "the server has closed the connection");
    }
    Ok(body)
}

/// Type and object of an event, by their places in the line.
fn event_of(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let kind = rest.iter().position(|byte| *byte == b'"')?;
    let object = rest[kind..].strip_prefix(br#"","object":"#)?;
    Some((&rest[..kind], object.strip_suffix(b"}\n")?))
}

/// What the thread has seen so far.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    lists: u64,
    version: u64,
}

/// The client on a thread of its own.
pub(crate) struct Running<B> {
    pods: Pods<B>,
    seen: watch::Receiver<Seen>,
}

impl<B: Send + 'static> Running<B> {
    pub(crate) fn start<R: Representation<Body = B>>(url: &str, kept: R) -> anyhow::Result<Self> {
        let mut bare = Bare::watch(url, kept)?;
        let pods = bare.pods();
        let (sender, seen) = watch::channel(Seen::default());
        std::thread::spawn(move || {
            if let Err(error) = follow(&mut bare, &sender) {
                eprintln!("informer-compare: the bare client: {error:#}");
            }
        });
        Ok(Self { pods, seen })
    }
}

fn follow<R: Representation>(bare: &mut Bare<R>, sender: &watch::Sender<Seen>) -> anyhow::Result<()> {
    let mut is_listed = false;
    while !sender.is_closed() {
        match bare.next()? {
            Told::Object(_) => {}
            // After each burst of events comes a bookmark.
            Told::Bookmark(version) => {
                let lists = u64::from(!std::mem::replace(&mut is_listed, true));
                sender.send_modify(|seen| (seen.lists, seen.version) = (seen.lists + lists, version));
            }
            Told::Expired => {
                is_listed = false;
                bare.again()?;
            }
        }
    }
    Ok(())
}

impl<B: Whole> Cache for Running<B> {
    async fn synced(&mut self) -> anyhow::Result<()> {
        self.seen.wait_for(|seen| seen.lists >= 1).await?;
        Ok(())
    }

    async fn caught_up(&mut self, version: u64) -> anyhow::Result<()> {
        self.seen.wait_for(|seen| seen.version >= version).await?;
        Ok(())
    }

    async fn relisted(&mut self, _version: u64) -> anyhow::Result<()> {
        self.seen.wait_for(|seen| seen.lists >= 2).await?;
        Ok(())
    }

    fn state(&self) -> anyhow::Result<State> {
        let mut state = State::default();
        let pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        pods.values().try_for_each(|(_, body)| body.add_to(&mut state))?;
        Ok(state)
    }
}
