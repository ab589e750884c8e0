//! Commands: what they hear and say, and those that every container has.
//!
//! Answers: what does a command do? It is a function of its words, its input and its output, and gives its exit code.
//! 1. Output waits while the client does not read it; input waits while the command does not read it.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use tokio::sync::mpsc;

/// A command.
pub(crate) type Program = Arc<dyn Fn(Io) -> LocalBoxFuture<'static, i32> + Send + Sync>;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const RESIZE: u8 = 4;

/// What a command hears.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Heard {
    /// Bytes of its input.
    Input(Bytes),
    /// Its input has ended.
    End,
    /// Its terminal has this size: columns, rows.
    Size(u16, u16),
}

/// The words, the input and the output of a running command.
#[derive(Debug)]
pub struct Io {
    /// The words of the command, its name first.
    pub words: Vec<String>,
    /// Whether it has a terminal.
    pub is_terminal: bool,
    pub(crate) heard: mpsc::Receiver<(u8, Option<Bytes>)>,
    pub(crate) said: mpsc::Sender<(u8, Bytes)>,
}

impl Io {
    /// Prints to stdout, once there is room. Returns whether anybody is there to read it.
    pub async fn print(&mut self, bytes: impl Into<Bytes>) -> bool {
        self.said.send((STDOUT, bytes.into())).await.is_ok()
    }

    /// Prints to stderr; with a terminal to stdout, as terminals do.
    pub async fn warn(&mut self, bytes: impl Into<Bytes>) -> bool {
        let channel = if self.is_terminal { STDOUT } else { STDERR };
        self.said.send((channel, bytes.into())).await.is_ok()
    }

    /// What comes next; `None` once the connection has ended.
    pub async fn hear(&mut self) -> Option<Heard> {
        loop {
            match self.heard.recv().await? {
                (STDIN, Some(bytes)) => return Some(Heard::Input(bytes)),
                (STDIN, None) => return Some(Heard::End),
                (RESIZE, Some(bytes)) => {
                    let size: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
                    let side = |name: &str| size[name].as_u64().and_then(|side| u16::try_from(side).ok());
                    if let (Some(columns), Some(rows)) = (side("Width"), side("Height")) {
                        return Some(Heard::Size(columns, rows));
                    }
                }
                _ => {}
            }
        }
    }
}

/// The command of this name that every container has.
pub(crate) fn built_in(name: &str) -> Option<Program> {
    Some(match name {
        "echo" => Arc::new(|mut io| {
            Box::pin(async move {
                let line = format!("{}\n", io.words[1..].join(" "));
                io.print(line).await;
                0
            })
        }),
        "warn" => Arc::new(|mut io| {
            Box::pin(async move {
                let line = format!("{}\n", io.words[1..].join(" "));
                io.warn(line).await;
                0
            })
        }),
        "exit" => Arc::new(|io| {
            Box::pin(async move { io.words.get(1).and_then(|code| code.parse().ok()).unwrap_or(0) })
        }),
        "cat" => Arc::new(|io| Box::pin(cat(io))),
        "sizes" => Arc::new(|io| Box::pin(sizes(io))),
        "yes" => Arc::new(|mut io| {
            Box::pin(async move {
                while io.print("y\n".repeat(2048)).await {}
                1
            })
        }),
        "sleep" => Arc::new(|mut io| {
            Box::pin(async move {
                while io.hear().await.is_some() {}
                130
            })
        }),
        _ => return None,
    })
}

async fn cat(mut io: Io) -> i32 {
    while let Some(heard) = io.hear().await {
        match heard {
            Heard::Input(bytes) => drop(io.print(bytes).await),
            Heard::End => break,
            Heard::Size(..) => {}
        }
    }
    0
}

async fn sizes(mut io: Io) -> i32 {
    while let Some(heard) = io.hear().await {
        match heard {
            Heard::Size(columns, rows) => drop(io.print(format!("{columns}x{rows}\n")).await),
            Heard::End => break,
            Heard::Input(_) => {}
        }
    }
    0
}

/// One more that runs, until it is dropped.
#[derive(Debug)]
pub(crate) struct Running(Arc<AtomicUsize>);

impl Running {
    pub(crate) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
