//! Sends the replay server's answers as HTTP/1.1.
//!
//! Answers "how is it sent?": bodies in chunks, one for each object or event, many of them in one write. It waits only
//! for a slow reader. Invariants:
//! 1. All pages of a list are of one state: nothing changes between them.
//! 2. A watch begins behind the requested version and sends every later event once, in order.
//! 3. At version "0" there are no pages, whatever the limit: the real server's cache also answers with a complete list.
//!
//! Bound: one buffer of 256 KiB for each connection.

use std::io::{self, Write};
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::WriteHalf;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::history::{History, KIND, Progress};
use super::request::Request;

/// So much is written at once.
const BUFFER: usize = 256 << 10;
/// How often a silent watch hears a bookmark.
const BOOKMARK_EVERY: Duration = Duration::from_secs(10);
/// The beginning of an object, and what a list is, where metadata are asked for.
const METADATA: &str = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","#;
const METADATA_LIST: &str = r#""kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1""#;
const EXPIRED: &str = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}}"#;

/// Answers one connection's requests, one after the other.
pub(super) async fn connection(mut stream: TcpStream, history: &Rc<History>) -> anyhow::Result<()> {
    let (read, write) = stream.split();
    let mut reader = BufReader::new(read);
    let mut reply = Reply { write, buffer: Vec::with_capacity(BUFFER + (64 << 10)), part: Vec::new() };
    while let Some(request) = Request::read(&mut reader).await? {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/api/v1/pods") if request.value("watch") == Some("true") => {
                reply.watch(history, &request).await?;
            }
            ("GET", "/api/v1/pods") => reply.list(history, &request).await?,
            ("GET", path) if path.starts_with("/api/v1/namespaces/") => reply.pod(history).await?,
            ("GET", "/replay/version") => {
                let now = *history.progress().borrow();
                reply.whole("200 OK", &history.version(now).to_string()).await?;
            }
            ("GET", "/replay/state") => {
                reply.whole("200 OK", &serde_json::to_string(&history.state()?)?).await?;
            }
            ("POST", "/replay/events") => {
                match request.number("rate").filter(|rate| *rate > 0) {
                    Some(rate) => {
                        let history = Rc::clone(history);
                        spawn_local(async move { history.release_paced(rate).await });
                    }
                    None => history.release(None),
                }
                reply.whole("200 OK", "").await?;
            }
            ("POST", "/replay/expire") => {
                history.expire();
                reply.whole("200 OK", "").await?;
            }
            _ => reply.whole("404 Not Found", "").await?,
        }
        if request.path.starts_with("/replay/") {
            return Ok(());
        }
    }
    Ok(())
}

struct Reply<'a> {
    write: WriteHalf<'a>,
    /// What is not written yet.
    buffer: Vec<u8>,
    /// The chunk that is being made.
    part: Vec<u8>,
}

impl Reply<'_> {
    async fn whole(&mut self, status: &str, body: &str) -> io::Result<()> {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}");
        write!(self.buffer, "{head}\r\n\r\n{body}")?;
        self.flush().await
    }

    /// The first pod, whatever the path names.
    async fn pod(&mut self, history: &History) -> io::Result<()> {
        let now = *history.progress().borrow();
        history.pod(0, now.events, &mut self.part);
        let length = self.part.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
        write!(self.buffer, "{head}\r\ncontent-length: {length}\r\n\r\n")?;
        self.buffer.append(&mut self.part);
        self.flush().await
    }

    fn head(&mut self) {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        self.buffer.extend_from_slice(head.as_bytes());
    }

    /// What has been put into `part` becomes a chunk.
    async fn chunk(&mut self) -> io::Result<()> {
        write!(self.buffer, "{:x}\r\n", self.part.len())?;
        self.buffer.extend_from_slice(&self.part);
        self.buffer.extend_from_slice(b"\r\n");
        self.part.clear();
        if self.buffer.len() >= BUFFER { self.flush().await } else { Ok(()) }
    }

    async fn end(&mut self) -> io::Result<()> {
        self.buffer.extend_from_slice(b"0\r\n\r\n");
        self.flush().await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.write.write_all(&self.buffer).await?;
        self.buffer.clear();
        Ok(())
    }

    async fn list(&mut self, history: &History, request: &Request) -> io::Result<()> {
        let now = *history.progress().borrow();
        let limit = request.number("limit").filter(|_| request.value("resourceVersion") != Some("0"));
        let from = request.number("continue").unwrap_or(0) as usize;
        // The only selector that a client of ours sends asks for a name that nothing has.
        let count = if request.value("fieldSelector").is_some() { 0 } else { history.len() };
        let to = limit.map_or(count, |limit| count.min(from.saturating_add(limit as usize)));
        let token = if to < count { format!(r#","continue":"{to}""#) } else { String::new() };
        let version = history.version(now);
        self.head();
        let metadata = format!(r#"{{"resourceVersion":"{version}"{token}}}"#);
        let kind =
            if request.is_for_metadata { METADATA_LIST } else { r#""kind":"PodList","apiVersion":"v1""# };
        write!(self.part, r#"{{{kind},"metadata":{metadata},"items":["#)?;
        for number in from..to {
            if number > from {
                self.part.push(b',');
            }
            let begin = self.part.len();
            history.pod(number, now.events, &mut self.part);
            self.part.splice(begin..begin + KIND.len(), *b"{");
            self.chunk().await?;
        }
        self.part.extend_from_slice(b"]}\n");
        self.chunk().await?;
        self.end().await
    }

    async fn watch(&mut self, history: &History, request: &Request) -> io::Result<()> {
        let mut progress = history.progress();
        let mut now = *progress.borrow_and_update();
        let opened = now.expiries;
        self.head();
        let mut seen = history.seen(request.number("resourceVersion").unwrap_or(0));
        if request.value("sendInitialEvents") == Some("true") {
            seen = now.events;
            for number in 0..history.len() {
                self.part.extend_from_slice(br#"{"type":"ADDED","object":"#);
                let begin = self.part.len();
                history.pod(number, now.events, &mut self.part);
                self.name_kind(request, begin);
                self.part.extend_from_slice(b"}\n");
                self.chunk().await?;
            }
            self.bookmark(history.version(now), r#","annotations":{"k8s.io/initial-events-end":"true"}"#)
                .await?;
        }
        loop {
            self.events(history, request, (seen, now)).await?;
            seen = now.events;
            if now.expiries > opened {
                writeln!(self.part, "{EXPIRED}")?;
                self.chunk().await?;
                return self.end().await;
            }
            self.flush().await?;
            if timeout(BOOKMARK_EVERY, progress.changed()).await.is_err() {
                self.bookmark(history.version(now), "").await?;
            }
            now = *progress.borrow_and_update();
        }
    }

    /// The events behind the first `seen`, and a bookmark if there were any.
    async fn events(
        &mut self,
        history: &History,
        request: &Request,
        (seen, now): (u64, Progress),
    ) -> io::Result<()> {
        for event in seen..now.events {
            self.part.extend_from_slice(br#"{"type":"MODIFIED","object":"#);
            let begin = self.part.len();
            history.event(event, &mut self.part);
            self.name_kind(request, begin);
            self.part.extend_from_slice(b"}\n");
            self.chunk().await?;
        }
        if seen < now.events {
            self.bookmark(history.version(Progress { expiries: 0, ..now }), "").await?;
        }
        Ok(())
    }

    /// Gives the pod that begins there the kind that was asked for.
    fn name_kind(&mut self, request: &Request, begin: usize) {
        if request.is_for_metadata {
            self.part.splice(begin..begin + KIND.len(), METADATA.bytes());
        }
    }

    async fn bookmark(&mut self, version: u64, more: &str) -> io::Result<()> {
        let metadata = format!(r#"{{"resourceVersion":"{version}","creationTimestamp":null{more}}}"#);
        let pod = format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{metadata},"spec":{{"containers":null}},"status":{{}}}}"#
        );
        writeln!(self.part, r#"{{"type":"BOOKMARK","object":{pod}}}"#)?;
        self.chunk().await
    }
}
