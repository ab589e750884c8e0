//! The command `informer-apiserver`: an in-memory Kubernetes API server on loopback, until Ctrl-C.
//!
//! Answers: how do I get such a server beside my shell, for kubectl or a program under test?
//! It only reads its arguments and starts the library; all behaviour is there.
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use informer_apiserver::ApiServer;

/// An in-memory Kubernetes API server for tests and tries. Nothing is kept: when it ends, all objects are gone.
///
/// It listens on loopback only. With a kubeconfig written by --kubeconfig-out, kubectl and any client can use it:
///
///   informer-apiserver --kubeconfig-out dev.kubeconfig &
///   kubectl --kubeconfig dev.kubeconfig get namespaces
#[derive(Debug, Parser)]
#[command(version, verbatim_doc_comment)]
struct Arguments {
    /// Port on 127.0.0.1; 0 takes a free one (printed at the start)
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Write a kubeconfig for this server to FILE
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,
    /// Ask clients for this bearer token
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Serve HTTPS with a certificate of an authority made at the start (its certificate is in the kubeconfig)
    #[arg(long)]
    tls: bool,
    /// resourceVersion before the first write
    #[arg(long, default_value_t = 1000)]
    first_revision: u64,
    /// How many events each resource remembers for watches that resume
    #[arg(long, default_value_t = 10_000)]
    event_window: usize,
    /// Fix uids and generated names
    #[arg(long)]
    seed: Option<u64>,
    /// Threads that serve requests
    #[arg(long, default_value_t = 2)]
    workers: usize,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut causes = std::iter::successors(error.source(), |cause| cause.source());
            let causes: String = causes.by_ref().map(|cause| format!(": {cause}")).collect();
            eprintln!("informer-apiserver: {error}{causes}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = ApiServer::builder()
        .port(arguments.port)
        .first_revision(arguments.first_revision)
        .event_window(arguments.event_window)
        .workers(arguments.workers);
    if let Some(token) = arguments.token {
        builder = builder.token(token);
    }
    if let Some(seed) = arguments.seed {
        builder = builder.seed(seed);
    }
    if arguments.tls {
        builder = builder.tls();
    }
    let server = builder.start_blocking()?;
    if let Some(path) = &arguments.kubeconfig_out {
        server.write_kubeconfig(path)?;
    }
    println!("{}", server.url());
    actix_web::rt::System::new().block_on(actix_web::rt::signal::ctrl_c())?;
    Ok(())
}
