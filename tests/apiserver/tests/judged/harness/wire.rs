//! A small blocking HTTP/1.1 client over plain TCP or TLS: one connection per request, nothing hidden.
//!
//! Answers: what exactly did the server send? Bodies are de-chunked and otherwise left alone.
//! 1. Every read has a limit, so a server that hangs fails a test instead of stopping it.
//! 2. A connection that breaks is reported as broken, not as ended.
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// How long an answer may be silent: more than a loaded machine needs. Watches set how long they wait for an
/// event.
const PATIENCE: Duration = Duration::from_secs(60);

/// A place to send requests to.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    /// None for plain HTTP.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// A request as it is sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// The head of an answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    pub(crate) code: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// An answer whose body is still coming.
pub(crate) struct Incoming {
    pub(crate) head: Head,
    reader: BufReader<Box<dyn Socket>>,
    /// A second handle to the connection, to change its limits.
    control: TcpStream,
    pending: Vec<u8>,
}

trait Socket: Read + Write + Send {}
impl<S: Read + Write + Send> Socket for S {}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").field("head", &self.head).finish_non_exhaustive()
    }
}

/// Escapes what is not allowed in a request line.
fn escaped(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/?=&%,:!".contains(&byte);
    path.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

impl Endpoint {
    /// Sends a request and reads the head of its answer.
    pub(crate) fn open(&self, message: &Message) -> io::Result<Incoming> {
        let control = TcpStream::connect(self.address)?;
        control.set_read_timeout(Some(PATIENCE))?;
        control.set_nodelay(true)?;
        let mut socket = self.secure(control.try_clone()?)?;
        let lines: String =
            message.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut request = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n{lines}\r\n",
            message.method,
            escaped(&message.path),
            self.address,
            message.body.len()
        )
        .into_bytes();
        request.extend_from_slice(&message.body);
        socket.write_all(&request)?;
        socket.flush()?;
        Incoming::read_head(BufReader::new(socket), control)
    }

    fn secure(&self, tcp: TcpStream) -> io::Result<Box<dyn Socket>> {
        let Some(config) = &self.tls else { return Ok(Box::new(tcp)) };
        let name = ServerName::from(self.address.ip());
        let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        Ok(Box::new(StreamOwned::new(connection, tcp)))
    }
}

impl Incoming {
    fn read_head(mut reader: BufReader<Box<dyn Socket>>, control: TcpStream) -> io::Result<Self> {
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
        let head = Head { code: code.ok_or_else(|| io::Error::other("no status line"))?, headers };
        Ok(Self { head, reader, control, pending: Vec::new() })
    }

    /// One more piece of a chunked body; empty at its regular end.
    fn piece(&mut self) -> io::Result<Vec<u8>> {
        let mut size = String::new();
        if self.reader.read_line(&mut size)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
        let mut piece = vec![0; size];
        self.reader.read_exact(&mut piece)?;
        self.reader.read_exact(&mut [0; 2])?;
        Ok(piece)
    }

    /// Reads the body to its end.
    pub(crate) fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut body = std::mem::take(&mut self.pending);
        if self.head.header("transfer-encoding") == Some("chunked") {
            loop {
                let piece = self.piece()?;
                if piece.is_empty() {
                    return Ok(body);
                }
                body.extend_from_slice(&piece);
            }
        }
        let length = self.head.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        body.resize(length, 0);
        self.reader.read_exact(&mut body)?;
        Ok(body)
    }

    /// The next message of a stream in which each has its length before it; none at its regular end.
    pub(crate) fn frame(&mut self, limit: Duration) -> io::Result<Option<Vec<u8>>> {
        self.control.set_read_timeout(Some(limit))?;
        loop {
            if let Some((length, rest)) = self.pending.split_first_chunk() {
                let length = u32::from_be_bytes(*length) as usize;
                if rest.len() >= length {
                    return Ok(Some(self.pending.drain(..length + 4).skip(4).collect()));
                }
            }
            if !self.more()? {
                return Ok(None);
            }
        }
    }

    /// The next line of a stream; none at its regular end. An error of kind `TimedOut` when nothing came in
    /// time.
    pub(crate) fn line(&mut self, limit: Duration) -> io::Result<Option<Vec<u8>>> {
        self.control.set_read_timeout(Some(limit))?;
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                return Ok(Some(self.pending.drain(..=end).collect()));
            }
            if !self.more()? {
                return Ok(None);
            }
        }
    }

    /// Waits for one more piece; false at the end.
    fn more(&mut self) -> io::Result<bool> {
        let piece = match self.piece() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            other => other?,
        };
        self.pending.extend_from_slice(&piece);
        Ok(!piece.is_empty())
    }
}
