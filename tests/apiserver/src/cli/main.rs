//! The command `informer-apiserver`: an in-memory Kubernetes API server on loopback, until Ctrl-C or SIGTERM.
//!
//! Answers: how do I get such a server beside my shell, for kubectl or a program under test? It only reads its arguments
//! and starts the library; all behaviour is there.
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use informer_apiserver::{ApiServer, Builder};

/// An in-memory Kubernetes API server for tests and trials. All objects are gone when it ends.
///
/// It listens on loopback only. With a kubeconfig written by --kubeconfig-out, kubectl and any client can use it:
///
///   informer-apiserver --kubeconfig-out dev.kubeconfig &
///   kubectl --kubeconfig dev.kubeconfig get pods -A
#[derive(Debug, Parser)]
#[command(version, verbatim_doc_comment)]
struct Serve {
    /// Port on 127.0.0.1; 0 takes a free one (printed at the start)
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Write a kubeconfig for this server to FILE
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,
    /// Require this bearer token from clients
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Let Roles and bindings decide who may do what; the kubeconfig is the administrator's
    #[arg(long)]
    rbac: bool,
    /// Serve HTTPS with a certificate of an authority made at the start (its certificate is in the kubeconfig)
    #[arg(long)]
    tls: bool,
    /// resourceVersion before the first write
    #[arg(long, default_value_t = 1000)]
    first_revision: u64,
    /// How many events each resource remembers for watches that resume
    #[arg(long, default_value_t = 10_000)]
    event_window: usize,
    /// How many events a watcher may be behind before its stream is closed
    #[arg(long, default_value_t = 4_096)]
    watch_queue: usize,
    /// Seconds between the bookmarks of a quiet watch
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    bookmark_period: u64,
    /// Let each request wait this many milliseconds
    #[arg(long, value_name = "MILLISECONDS")]
    latency: Option<u64>,
    /// Keep no metadata.managedFields: cheaper writes, smaller objects
    #[arg(long)]
    no_managed_fields: bool,
    /// Delete objects when their owners have gone, as the controller manager of a cluster does
    #[arg(long)]
    garbage_collection: bool,
    /// How many requests that read are answered at once (0: any number); one more is 429
    #[arg(long, value_name = "REQUESTS", default_value_t = 0)]
    max_requests_inflight: usize,
    /// The same for requests that change something
    #[arg(long, value_name = "REQUESTS", default_value_t = 0)]
    max_mutating_requests_inflight: usize,
    /// Fix uids and generated names
    #[arg(long)]
    seed: Option<u64>,
    /// Threads that serve requests
    #[arg(long, default_value_t = 2)]
    workers: usize,
}

/// Raises the limit of open files to the allowed maximum: a thousand watchers are a thousand connections.
fn allow_many_connections() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        // If it cannot be raised, it stays as it is.
        let _as_many_as_allowed =
            setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit });
    }
}

fn main() -> ExitCode {
    let serve = Serve::parse();
    allow_many_connections();
    match serve.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut causes = std::iter::successors(error.source(), |cause| cause.source());
            let causes: String = causes.by_ref().map(|cause| format!(": {cause}")).collect();
            eprintln!("informer-apiserver: {error}{causes}");
            ExitCode::FAILURE
        }
    }
}

/// Begins to listen for Ctrl-C, and for SIGTERM where the system has it; the future inside ends at one of
/// them.
fn asked_to_end() -> std::io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use actix_web::rt::signal::unix::{SignalKind, signal};
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(async move {
            tokio::select! {
                _asked = interrupt.recv() => {}
                _asked = terminate.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async {
        let _asked = actix_web::rt::signal::ctrl_c().await;
    })
}

impl Serve {
    fn builder(&self) -> Builder {
        let mut builder = ApiServer::builder()
            .port(self.port)
            .first_revision(self.first_revision)
            .event_window(self.event_window)
            .watch_queue(self.watch_queue)
            .bookmark_period(Duration::from_secs(self.bookmark_period.max(1)))
            .workers(self.workers)
            .managed_fields(!self.no_managed_fields)
            .garbage_collection(self.garbage_collection)
            .max_requests_inflight(self.max_requests_inflight)
            .max_mutating_requests_inflight(self.max_mutating_requests_inflight);
        if let Some(token) = &self.token {
            builder = builder.token(token);
        }
        if self.rbac {
            builder = builder.rbac();
        }
        if let Some(seed) = self.seed {
            builder = builder.seed(seed);
        }
        if let Some(milliseconds) = self.latency {
            builder = builder.latency(Duration::from_millis(milliseconds));
        }
        if self.tls {
            builder = builder.tls();
        }
        builder
    }

    /// Serves until Ctrl-C or SIGTERM.
    fn run(&self) -> Result<(), Box<dyn std::error::Error>> {
        actix_web::rt::System::new().block_on(async {
            // Before anything is printed: a program that has read the URL may send the signal.
            let asked = asked_to_end()?;
            let server = self.builder().start_blocking()?;
            if let Some(path) = &self.kubeconfig_out {
                server.write_kubeconfig(path)?;
            }
            println!("{}", server.url());
            asked.await;
            Ok(())
        })
    }
}
