//! What gzip wins and costs in lists: pages of 500 pods, plain and compressed, over networks of several speeds.
//!
//! Answers "should a client ask for gzip?" The server is a process of its own. It compresses each page anew at level 1,
//! as a kube-apiserver does, and sends no faster than it is told to. Invariants:
//! 1. A page counts only if it has as many bytes as the plain one.
//! 2. The processor time of the client includes its decompression, and no decoding of pods.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use actix_informer::client::{Client, Config};
use anyhow::{Context, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::meter::{self, Meter};
use crate::pod::{Pattern, Values, version};

const PODS: usize = 500;
const PIECE: usize = 64 << 10;

/// How much, and how fast.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Plan {
    /// Pages of 500 pods.
    #[arg(long, default_value_t = 40)]
    pages: usize,
    /// Mebibytes a second; 0: as fast as this machine.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1_000, 100, 10])]
    speeds: Vec<u64>,
}

/// Prints a row for each speed, plain and with gzip.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    println!(
        "{:<10} {:<6} {:>8} {:>14} {:>14}   {} pages of {PODS} pods",
        "MiB/s", "", "wall s", "client CPU s", "server CPU s", plan.pages
    );
    for &speed in &plan.speeds {
        for is_plain in [true, false] {
            let serving = Serving::start(speed)?;
            let mut config = Config::new(serving.url.trim())?;
            if is_plain {
                config = config.disable_compression();
            }
            let client = Client::new(config)?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let cost = runtime.block_on(async {
                let page = || client.request("GET".parse().expect("a method"), "/page", None);
                let expected = page().await?.body().len();
                let meter = Meter::start();
                for _ in 0..plan.pages {
                    ensure!(page().await?.body().len() == expected, "another page");
                }
                anyhow::Ok(meter.cost())
            })?;
            println!(
                "{:<10} {:<6} {:>8.2} {:>14.2} {:>14.2}",
                if speed == 0 { "unlimited".to_owned() } else { speed.to_string() },
                if is_plain { "plain" } else { "gzip" },
                cost.wall,
                cost.cpu,
                serving.processor_time()?
            );
        }
    }
    Ok(())
}

/// Serves one page, and how much processor time that took.
pub(crate) fn serve(speed: u64) -> anyhow::Result<()> {
    std::thread::spawn(|| {
        // The parent process has ended, or closed the pipe to end this one: reading fails or ends.
        let _gone = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let pattern = Pattern::new();
    let pods: Vec<_> =
        (0..PODS).map(|number| pattern.text(&Values::of(number), version(number), 0)).collect();
    let page =
        format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{}},"items":[{}]}}"#, pods.join(","));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("http://{}", listener.local_addr()?);
    let before = meter::processor_time();
    let page = Arc::new(page);
    for stream in listener.incoming() {
        let (stream, page) = (stream?, Arc::clone(&page));
        std::thread::spawn(move || answer(stream, page.as_bytes(), speed, before));
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a thread of its own is the slow network")]
fn answer(stream: TcpStream, page: &[u8], speed: u64, before: Duration) -> anyhow::Result<()> {
    let (mut reader, mut writer) = (BufReader::new(stream.try_clone()?), stream);
    loop {
        let (mut line, mut is_gzip, mut is_page) = (String::new(), false, false);
        while line != "\r\n" {
            line.clear();
            ensure!(reader.read_line(&mut line)? > 0, "the client hung up");
            is_page |= line.starts_with("GET /page");
            is_gzip |= line.eq_ignore_ascii_case("accept-encoding: gzip\r\n");
        }
        let (encoding, body) = match (is_page, is_gzip) {
            (false, _) => ("", (meter::processor_time() - before).as_secs_f64().to_string().into_bytes()),
            (true, false) => ("", page.to_vec()),
            (true, true) => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(page)?;
                ("content-encoding: gzip\r\n", encoder.finish()?)
            }
        };
        write!(writer, "HTTP/1.1 200 OK\r\n{encoding}content-length: {}\r\n\r\n", body.len())?;
        for piece in body.chunks(PIECE) {
            writer.write_all(piece)?;
            if speed > 0 {
                std::thread::sleep(Duration::from_secs_f64(piece.len() as f64 / (speed << 20) as f64));
            }
        }
    }
}

struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start(speed: u64) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["gzip-serve", "--speed", &speed.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().context("the server's output is piped")?;
        let mut serving = Self { child, url: String::new() };
        BufReader::new(stdout).read_line(&mut serving.url)?;
        Ok(serving)
    }

    /// In seconds.
    fn processor_time(&self) -> anyhow::Result<f64> {
        let address = self.url.trim().trim_start_matches("http://");
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(b"GET /time HTTP/1.1\r\n\r\n")?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text.rsplit("\r\n").next().unwrap_or_default().parse()?)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It ends by itself now; if it is gone already, there is nothing to wait for.
        let _gone = self.child.wait();
    }
}
