//! Puts load on an API server and prints the costs: creates, memory, one large list, a wide fan-out of events.
//!
//! ```text
//! cargo run --profile bench -p informer-apiserver --example load                   # ours, at the size it is made for
//! cargo run --profile bench -p informer-apiserver --example load -- --compare      # ours and a real one, same small load
//! cargo run --profile bench -p informer-apiserver --example load -- --pods 1000 --watchers 100 --events 100
//! ```
//!
//! Answers: how many per second, and for how much processor time of the server alone? Wall time suffers on a busy machine;
//! processor time (of the server process, from `/proc`) much less, and ratios of two runs beside each other least.
//! 1. The server is a process of its own (this program again), so its time and memory are not the client's.
//! 2. `--compare` needs the binaries that `tests/control-plane/build.sh` makes; both servers are asked over TLS then.
//!
//! Next: `client.rs` is the client, `usage.rs` reads `/proc`.
mod client;
mod usage;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use client::Target;
use informer_apiserver::ApiServer;
use informer_control_plane::{Binaries, ControlPlane};
use tokio::task::LocalSet;
use tokio::time::Instant;
use usage::Usage;

type Failure = Box<dyn std::error::Error>;

/// How much load.
#[derive(Debug, Clone, Copy)]
struct Size {
    pods: usize,
    bytes: usize,
    watchers: usize,
    events: usize,
    connections: usize,
}

const FULL: Size = Size { pods: 100_000, bytes: 8_192, watchers: 1_000, events: 2_000, connections: 16 };
/// A real server ends watches that fall a few hundred events behind, so fewer at once.
const SMALL: Size = Size { pods: 3_000, bytes: 8_192, watchers: 100, events: 100, connections: 16 };

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let number = |name: &str, default: usize| -> Result<usize, Failure> {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)).map_or(Ok(default), |text| Ok(text.parse()?))
    };
    if has("--serve") {
        return serve(has("--tls"));
    }
    let base = if has("--compare") { SMALL } else { FULL };
    let size = Size {
        pods: number("--pods", base.pods)?,
        bytes: number("--bytes", base.bytes)?,
        watchers: number("--watchers", base.watchers)?,
        events: number("--events", base.events)?,
        connections: number("--connections", base.connections)?,
    };
    println!("{size:?}");
    if has("--compare") { compare(size) } else { run("ours", &Ours::start(false)?.target()?, size).map(drop) }
}

/// Runs as the server, until its parent closes its input.
fn serve(tls: bool) -> Result<(), Failure> {
    let mut builder = ApiServer::builder().workers(2).seed(1);
    if tls {
        builder = builder.tls().token("load");
    }
    let server = builder.start_blocking()?;
    println!("{}", server.url());
    println!("{}", serde_json::json!(server.ca_pem()));
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Our server in a process of its own; ends with this value.
struct Ours {
    child: Child,
    url: String,
    ca_pem: Option<String>,
}

impl Ours {
    fn start(tls: bool) -> Result<Self, Failure> {
        let began = Instant::now();
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--serve").args(tls.then_some("--tls"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let mut line = || lines.next().ok_or("the server ended")?.map_err(Failure::from);
        let (url, ca_pem) = (line()?, serde_json::from_str(&line()?)?);
        println!("ours listens after {:.0} ms", began.elapsed().as_secs_f64() * 1e3);
        Ok(Self { child, url, ca_pem })
    }

    fn target(&self) -> Result<Target, Failure> {
        Target::new(&self.url, self.ca_pem.as_deref(), Some("load"), vec![self.child.id()])
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ended = self.child.wait();
    }
}

/// The costs of one run.
#[derive(Debug, Default)]
struct Results(Vec<(&'static str, f64)>);

impl Results {
    fn note(&mut self, who: &str, what: &'static str, value: f64) {
        println!("{who:>6}  {what:<44} {value:>14.1}");
        self.0.push((what, value));
    }
}

fn compare(size: Size) -> Result<(), Failure> {
    let binaries = Binaries::find().map_err(|skipped| format!("{skipped:?}"))?;
    let plane = ControlPlane::builder(binaries).start()?;
    let processes = [plane.apiserver_id(), plane.etcd_id()].into_iter().flatten().collect();
    let real = Target::new(&plane.url(), Some(plane.ca_pem()), Some(plane.admin_token()), processes)?;
    let theirs = run("real", &real, size)?;
    drop(plane);
    let ours = run("ours", &Ours::start(true)?.target()?, size)?;
    for ((what, ours), (_, theirs)) in ours.0.iter().zip(&theirs.0) {
        println!(" ratio  {what:<44} {:>14.2}  (ours to real)", ours / theirs);
    }
    Ok(())
}

fn run(who: &str, target: &Target, size: Size) -> Result<Results, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let target = Arc::new(target.clone());
    LocalSet::new().block_on(&runtime, async {
        let mut results = Results::default();
        target.wait_for_default_account().await?;
        creates(who, &target, size, &mut results).await?;
        list(who, &target, &mut results).await?;
        fan_out(who, &target, size, &mut results).await?;
        Ok(results)
    })
}

async fn creates(who: &str, target: &Arc<Target>, size: Size, results: &mut Results) -> Result<(), Failure> {
    for (what, cost, path, count, body) in [
        (
            "creates of small config maps, per second",
            "  server time per create, microseconds",
            "configmaps",
            size.pods.min(20_000),
            client::config_map(64),
        ),
        (
            "creates of pods, per second",
            "  server time per create, microseconds",
            "pods",
            size.pods,
            client::pod(size.bytes),
        ),
    ] {
        let (began, before) = (Instant::now(), Usage::of(&target.processes)?);
        target.create_all(path, count, size.connections, &body).await?;
        let spent = Usage::of(&target.processes)?.since(&before);
        results.note(who, what, count as f64 / began.elapsed().as_secs_f64());
        results.note(who, cost, spent * 1e6 / count as f64);
    }
    results.note(who, "memory, MB", Usage::of(&target.processes)?.megabytes);
    Ok(())
}

async fn list(who: &str, target: &Target, results: &mut Results) -> Result<(), Failure> {
    let (began, before) = (Instant::now(), Usage::of(&target.processes)?);
    let bytes = target.read_all("/api/v1/pods?resourceVersion=0").await? as f64 / 1e6;
    let spent = Usage::of(&target.processes)?.since(&before);
    results.note(who, "one list of all pods, MB", bytes);
    results.note(who, "  MB per second", bytes / began.elapsed().as_secs_f64());
    results.note(who, "  MB per second of server time", bytes / spent.max(0.005));
    results.note(who, "  memory, MB", Usage::of(&target.processes)?.megabytes);
    Ok(())
}

async fn fan_out(who: &str, target: &Arc<Target>, size: Size, results: &mut Results) -> Result<(), Failure> {
    let watchers = target.watch_all("/api/v1/namespaces/default/secrets", size.watchers, size.events).await?;
    let (began, before) = (Instant::now(), Usage::of(&target.processes)?);
    target.create_all("secrets", size.events, size.connections, &client::secret()).await?;
    for watcher in watchers {
        watcher.await?.map_err(|error| error.to_string())?;
    }
    let spent = Usage::of(&target.processes)?.since(&before);
    let told = (size.watchers * size.events) as f64;
    results.note(who, "events told to all watchers, per second", told / began.elapsed().as_secs_f64());
    results.note(who, "  per second of server time", told / spent.max(0.005));
    results.note(who, "  memory, MB", Usage::of(&target.processes)?.megabytes);
    Ok(())
}
