//! A tiny HTTP/1.1 client for tests: one connection per request, blocking, nothing hidden.
//!
//! Answers: what exactly did the server send? Bodies are de-chunked and otherwise left alone.
//! 1. Every read has a timeout, so a server that hangs fails a test instead of stopping it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use informer_apiserver::ApiServer;
use serde_json::Value;

/// More than a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// An answer whose body is still coming.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) head: Answer,
    reader: BufReader<TcpStream>,
    pending: Vec<u8>,
    left_in_chunk: usize,
}

fn encoded(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/?=&%,:".contains(&byte);
    path.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// Sends a request and reads the head of its answer.
pub(crate) fn open(
    server: &ApiServer,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &(impl AsRef<[u8]> + ?Sized),
) -> Incoming {
    let body = body.as_ref();
    let mut socket = TcpStream::connect(server.addr()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!(
        "{method} {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n{lines}\r\n",
        encoded(path),
        server.addr(),
        body.len()
    );
    socket.write_all(&[request.as_bytes(), body].concat()).unwrap();
    Incoming::read_head(BufReader::new(socket)).unwrap()
}

/// Asks by GET where anything may fail, and nothing takes longer than `patience`.
pub(crate) fn try_get(addr: SocketAddr, path: &str, patience: Duration) -> io::Result<Incoming> {
    let mut socket = TcpStream::connect_timeout(&addr, patience)?;
    socket.set_read_timeout(Some(patience))?;
    let request = format!("GET {} HTTP/1.1\r\nHost: {addr}\r\n\r\n", encoded(path));
    socket.write_all(request.as_bytes())?;
    Incoming::read_head(BufReader::new(socket))
}

pub(crate) fn request(
    server: &ApiServer,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &(impl AsRef<[u8]> + ?Sized),
) -> Answer {
    let mut incoming = open(server, method, path, headers, body);
    incoming.head.body = incoming.rest().unwrap();
    incoming.head
}

pub(crate) fn get(server: &ApiServer, path: &str) -> Answer {
    request(server, "GET", path, &[], "")
}

pub(crate) fn post(server: &ApiServer, path: &str, body: &Value) -> Answer {
    request(server, "POST", path, &[("Content-Type", "application/json")], &body.to_string())
}

pub(crate) fn put(server: &ApiServer, path: &str, body: &Value) -> Answer {
    request(server, "PUT", path, &[("Content-Type", "application/json")], &body.to_string())
}

pub(crate) fn merge_patch(server: &ApiServer, path: &str, body: &Value) -> Answer {
    let headers = [("Content-Type", "application/merge-patch+json")];
    request(server, "PATCH", path, &headers, &body.to_string())
}

pub(crate) fn delete(server: &ApiServer, path: &str) -> Answer {
    request(server, "DELETE", path, &[], "")
}

/// Opens a watch and checks its head.
pub(crate) fn watch(server: &ApiServer, path: &str) -> Incoming {
    let incoming = open(server, "GET", path, &[], "");
    assert_eq!(incoming.head.code, 200, "{path}");
    incoming
}

impl Incoming {
    fn read_head(mut reader: BufReader<TcpStream>) -> io::Result<Self> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end().to_owned();
            if line.is_empty() {
                break;
            }
            lines.push(line);
        }
        let code = lines.first().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let header = |line: &String| {
            line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        };
        let headers = lines.iter().skip(1).filter_map(header).collect();
        let head = Answer { code: code.expect("a status line"), headers, body: Vec::new() };
        Ok(Self { head, reader, pending: Vec::new(), left_in_chunk: 0 })
    }

    fn is_chunked(&self) -> bool {
        self.head.header("transfer-encoding") == Some("chunked")
    }

    /// One more piece of the body; empty at its regular end.
    fn piece(&mut self) -> io::Result<Vec<u8>> {
        if self.left_in_chunk == 0 {
            let mut size = String::new();
            if self.reader.read_line(&mut size)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.left_in_chunk = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            if self.left_in_chunk == 0 {
                return Ok(Vec::new());
            }
        }
        let mut piece = vec![0; self.left_in_chunk];
        self.reader.read_exact(&mut piece)?;
        self.reader.read_exact(&mut [0; 2])?;
        self.left_in_chunk = 0;
        Ok(piece)
    }

    /// One more piece of the body, as it comes.
    pub(crate) fn next_piece(&mut self) -> Vec<u8> {
        self.piece().unwrap()
    }

    /// Reads the body to its end.
    pub(crate) fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut body = std::mem::take(&mut self.pending);
        if self.is_chunked() {
            loop {
                let piece = self.piece()?;
                if piece.is_empty() {
                    return Ok(body);
                }
                body.extend_from_slice(&piece);
            }
        }
        let length = self.head.header("content-length").map_or(0, |length| length.parse().unwrap());
        body.resize(length, 0);
        self.reader.read_exact(&mut body)?;
        Ok(body)
    }

    /// The next event of a watch; none at its regular end.
    pub(crate) fn event(&mut self) -> io::Result<Option<Value>> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return serde_json::from_slice(&line).map(Some).map_err(io::Error::other);
            }
            let piece = self.piece()?;
            if piece.is_empty() {
                assert!(self.pending.is_empty(), "a line is complete at a proper end");
                return Ok(None);
            }
            self.pending.extend_from_slice(&piece);
        }
    }

    /// The next event as (type, name, version).
    pub(crate) fn next_event(&mut self) -> (String, String, u64) {
        let event = self.event().unwrap().expect("an event, not the end");
        let text = |at: &str| event.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let version = text("/object/metadata/resourceVersion").parse().unwrap();
        (text("/type"), text("/object/metadata/name"), version)
    }

    /// The next frame of a websocket, as (first byte, content).
    pub(crate) fn frame(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.reader.read_exact(&mut head).unwrap();
        let mut len = [0; 2];
        let len = match head[1] {
            126 => {
                self.reader.read_exact(&mut len).unwrap();
                usize::from(u16::from_be_bytes(len))
            }
            short => usize::from(short),
        };
        let mut content = vec![0; len];
        self.reader.read_exact(&mut content).unwrap();
        (head[0], content)
    }

    /// Sends more on the same connection.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    /// What has arrived of a line that is not complete.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// Reads with a short patience; whether nothing came, and no line of what came is left.
    pub(crate) fn is_silent_for(&mut self, patience: Duration) -> bool {
        if self.pending.contains(&b'\n') {
            return false;
        }
        let socket = self.reader.get_ref();
        socket.set_read_timeout(Some(patience)).unwrap();
        let silent = matches!(
            self.reader.fill_buf(),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
        );
        self.reader.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        silent
    }
}

/// A server for one test.
pub(crate) fn server() -> ApiServer {
    ApiServer::builder().seed(1).start_blocking().unwrap()
}

/// A config map with a label.
pub(crate) fn config_map(name: &str, app: &str) -> Value {
    serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": app}}})
}
