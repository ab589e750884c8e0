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

use serde_json::Value;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::WriteHalf;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::history::{History, KIND, Progress};
use super::messages::{self, Message};
use super::request::Request;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const PROTOBUF_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// So much is written at once.
const BUFFER: usize = 256 << 10;
/// How often a silent watch hears a bookmark.
const BOOKMARK_EVERY: Duration = Duration::from_secs(10);
/// The beginning of an object, and what a list is, where metadata are asked for.
const METADATA: &str = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","#;
const METADATA_LIST: &str = r#""kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1""#;
const EXPIRED: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}"#;

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
                let count = request.number("count");
                match request.number("rate").filter(|rate| *rate > 0) {
                    Some(rate) => {
                        let history = Rc::clone(history);
                        spawn_local(async move { history.release_paced(count, rate).await });
                    }
                    None => history.release(count),
                }
                reply.whole("200 OK", "").await?;
            }
            ("POST", "/replay/expire") => {
                history.expire(request.number("changed").unwrap_or(0));
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

    fn head(&mut self, media_type: &str) -> io::Result<()> {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {media_type}");
        write!(self.buffer, "{head}\r\ntransfer-encoding: chunked\r\n\r\n")
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
        let version = history.version(now);
        if let Some(all) = protobuf(history, request) {
            self.head(PROTOBUF)?;
            let token = (to < count).then_some(to);
            messages::put_list_head((version, token), all[from..to].iter().map(Message::len), &mut self.part);
            for (number, message) in all.iter().enumerate().take(to).skip(from) {
                messages::put_item_head(message.len(), &mut self.part);
                let (version, changes) = history.at(number, now.events);
                message.write(version, changes, &mut self.part);
                self.chunk().await?;
            }
            messages::put_tail(&mut self.part);
            self.chunk().await?;
            return self.end().await;
        }
        let token = if to < count { format!(r#","continue":"{to}""#) } else { String::new() };
        self.head(JSON)?;
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

    async fn watch(&mut self, history: &History, request: &Request) -> anyhow::Result<()> {
        let mut progress = history.progress();
        let mut now = *progress.borrow_and_update();
        let opened = now.expiries;
        self.head(protobuf(history, request).map_or(JSON, |_| PROTOBUF_WATCH))?;
        let mut seen = history.seen(request.number("resourceVersion").unwrap_or(0));
        if request.value("sendInitialEvents") == Some("true") {
            seen = now.events;
            for number in 0..history.len() {
                self.event("ADDED", (number, now.events), (history, request)).await?;
            }
            self.bookmark(history.version(now), true, (history, request)).await?;
        }
        loop {
            if now.expiries > opened {
                self.expired((history, request)).await?;
                return Ok(self.end().await?);
            }
            self.events(history, request, (seen, now)).await?;
            seen = now.events;
            self.flush().await?;
            if timeout(BOOKMARK_EVERY, progress.changed()).await.is_err() {
                self.bookmark(history.version(now), false, (history, request)).await?;
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
    ) -> anyhow::Result<()> {
        for event in seen..now.events {
            self.event("MODIFIED", (history.changed(event), event + 1), (history, request)).await?;
        }
        if seen < now.events {
            let version = history.version(Progress { expiries: 0, ..now });
            self.bookmark(version, false, (history, request)).await?;
        }
        Ok(())
    }

    /// About a pod as it is after so many events.
    async fn event(
        &mut self,
        kind: &str,
        (number, events): (usize, u64),
        (history, request): (&History, &Request),
    ) -> io::Result<()> {
        if let Some(all) = protobuf(history, request) {
            let (message, (version, changes)) = (&all[number], history.at(number, events));
            let write = |out: &mut Vec<u8>| message.write(version, changes, out);
            messages::put_pod_event(kind, message.len(), write, &mut self.part);
        } else {
            write!(self.part, r#"{{"type":"{kind}","object":"#)?;
            let begin = self.part.len();
            history.pod(number, events, &mut self.part);
            if request.is_for_metadata {
                self.part.splice(begin..begin + KIND.len(), METADATA.bytes());
            }
            self.part.extend_from_slice(b"}\n");
        }
        self.chunk().await
    }

    async fn bookmark(
        &mut self,
        version: u64,
        ends_list: bool,
        (history, request): (&History, &Request),
    ) -> anyhow::Result<()> {
        self.told("BOOKMARK", &messages::bookmark(version, ends_list), (history, request)).await
    }

    async fn expired(&mut self, told: (&History, &Request)) -> anyhow::Result<()> {
        self.told("ERROR", &serde_json::from_str(EXPIRED)?, told).await
    }

    /// An event that is not about a pod of the history.
    async fn told(
        &mut self,
        kind: &str,
        object: &Value,
        (history, request): (&History, &Request),
    ) -> anyhow::Result<()> {
        match protobuf(history, request) {
            Some(_) => messages::put_json_event(kind, object, &mut self.part)?,
            None => writeln!(self.part, r#"{{"type":"{kind}","object":{object}}}"#)?,
        }
        Ok(self.chunk().await?)
    }
}

/// The pods in protobuf, if this request is answered with them.
fn protobuf<'a>(history: &'a History, request: &Request) -> Option<&'a [Message]> {
    history.messages().filter(|_| request.is_for_protobuf && !request.is_for_metadata)
}
