//! The clients that are compared.
//!
//! Answers "who is measured?" Each is written as its library's documentation has an ordinary user write it: all pods
//! in a cache, as typed `Pod`s or as texts, and a closure that receives every change. Invariants:
//! 1. Defaults everywhere, but for the one choice that is compared: list first, or watch-list.
//!
//! Read next: `informer.rs`, `reflector.rs`.

use std::fmt;
use std::time::Duration;

use actix_informer::client::ResourceSource;
use clap::ValueEnum;
use k8s_openapi::api::core::v1::Pod;

use crate::drive::{Report, drive};
use crate::server::Server;

mod informer;
pub(crate) mod reflector;

/// A client, and how it gets its first state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::Args)]
pub(crate) struct Subject {
    /// Which client.
    #[arg(long)]
    pub(crate) client: Client,
    /// How it asks for everything.
    #[arg(long)]
    pub(crate) by: By,
}

/// Whose cache it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Client {
    /// actix-informer, `Typed<Pod>`.
    Informer,
    /// actix-informer, `Lazy<Pod>`.
    Lazy,
    /// actix-informer, `Packed<Pod>`.
    Packed,
    /// kube-rs: watcher, reflector and store.
    Kube,
    /// The same, with `managedFields` cleared before the store.
    KubeCleared,
}

/// How everything is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum By {
    /// By list, then watch.
    List,
    /// By one watch with initial events.
    WatchList,
}

/// Measures one client.
pub(crate) async fn measure(
    server: &Server,
    events: u64,
    subject: Subject,
    rest: Duration,
) -> anyhow::Result<Report> {
    let Subject { client, by } = subject;
    match client {
        Client::Informer => {
            let pods = |pods: ResourceSource<Pod>| pods;
            let start = async |last| informer::Followed::start(server.url(), by, last, pods);
            drive(server, events, rest, start).await
        }
        Client::Lazy => {
            let lazy = |pods: ResourceSource<Pod>| pods.lazy();
            let start = async |last| informer::Followed::start(server.url(), by, last, lazy);
            drive(server, events, rest, start).await
        }
        Client::Packed => {
            let packed = |pods: ResourceSource<Pod>| pods.packed();
            let start = async |last| informer::Followed::start(server.url(), by, last, packed);
            drive(server, events, rest, start).await
        }
        Client::Kube | Client::KubeCleared => {
            let clears = client == Client::KubeCleared;
            let start = async |last| reflector::Reflected::start(server.url(), by, clears, last);
            drive(server, events, rest, start).await
        }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Informer => "actix-informer, typed",
            Self::Lazy => "actix-informer, lazy",
            Self::Packed => "actix-informer, packed",
            Self::Kube => "kube-rs",
            Self::KubeCleared => "kube-rs, managedFields cleared",
        })
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::List => "list",
            Self::WatchList => "watch-list",
        })
    }
}
