//! A client of the replay server's own API: a few queries and commands in addition to the Kubernetes API.
//!
//! Answers "how is the server controlled?" It uses only `/replay/...`; the measured clients send the lists and watches.
//! Blocking; each call is one small request on its own connection.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, ensure};

use crate::state::State;

/// A replay server somewhere on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    url: String,
}

impl Server {
    /// The server at this URL.
    pub(crate) fn at(url: &str) -> Self {
        Self { url: url.to_owned() }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The version that it has reached.
    pub(crate) fn version(&self) -> anyhow::Result<u64> {
        Ok(self.ask("GET", "/replay/version")?.trim().parse()?)
    }

    /// What it holds, read from the bytes that it sends.
    pub(crate) fn state(&self) -> anyhow::Result<State> {
        Ok(serde_json::from_str(&self.ask("GET", "/replay/state")?)?)
    }

    /// Has it send its events.
    pub(crate) fn release_events(&self) -> anyhow::Result<()> {
        self.ask("POST", "/replay/events").map(drop)
    }

    /// Has it send so many of its events.
    pub(crate) fn release(&self, count: u64) -> anyhow::Result<()> {
        self.ask("POST", &format!("/replay/events?count={count}")).map(drop)
    }

    /// Has it send so many of its events, or all, so many in a second.
    pub(crate) fn release_paced(&self, count: Option<u64>, rate: u64) -> anyhow::Result<()> {
        let count = count.map(|count| format!("&count={count}")).unwrap_or_default();
        self.ask("POST", &format!("/replay/events?rate={rate}{count}")).map(drop)
    }

    /// Has it end the watches with 410, since their versions are too old, and change so many objects that no watch tells.
    pub(crate) fn expire(&self, changed: u64) -> anyhow::Result<()> {
        self.ask("POST", &format!("/replay/expire?changed={changed}")).map(drop)
    }

    fn ask(&self, method: &str, path: &str) -> anyhow::Result<String> {
        let address = self.url.strip_prefix("http://").context("the URL is not http")?;
        let mut stream = TcpStream::connect(address)?;
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 200 "), "{method} {path}: {answer}");
        let (_, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
        Ok(body.to_owned())
    }
}
