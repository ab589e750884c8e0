//! The clients that are compared.
//!
//! Answers "who is measured?" Each is written as its library's documentation has an ordinary user write it: all pods
//! in a cache, as typed `Pod`s or as texts, and a closure that receives every change. The bare clients are what no client
//! of their form costs less than. client-go is a program of its own. Invariants:
//! 1. Defaults everywhere, but for the choices that are compared: list first, or watch-list; JSON, or protobuf.
//!
//! Read next: `informer.rs`, `reflector.rs`, `bare.rs`.

use std::fmt;

use actix_informer::client::ResourceSource;
use actix_informer::representation::{Lazy, Packed, Typed};
use anyhow::bail;
use clap::ValueEnum;
use k8s_openapi::api::core::v1::Pod;

use crate::drive::{Report, Stages, drive};
use crate::server::Server;

pub(crate) mod bare;
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
    /// A client without actors that keeps types.
    BareTyped,
    /// A client without actors that keeps texts.
    BareLazy,
    /// A client without actors that keeps compressed texts.
    BarePacked,
    /// actix-informer, `Typed<Pod>`.
    Informer,
    /// actix-informer, `Lazy<Pod>`.
    Lazy,
    /// actix-informer, `Packed<Pod>`.
    Packed,
    /// actix-informer, `Typed<Pod>` over protobuf.
    TypedProtobuf,
    /// actix-informer, `Lazy<Pod>` over protobuf.
    LazyProtobuf,
    /// actix-informer, `Packed<Pod>` over protobuf.
    PackedProtobuf,
    /// kube-rs: watcher, reflector and store.
    Kube,
    /// The same, with `managedFields` cleared before the store.
    KubeCleared,
    /// client-go's informer, if `INFORMER_GO_CLIENTS` names the program.
    Go,
    /// The same over protobuf.
    GoProtobuf,
}

impl Client {
    /// A bare client knows watch-lists alone, and client-go chooses by itself.
    pub(crate) fn goes(self, by: By) -> bool {
        match self {
            Self::BareTyped | Self::BareLazy | Self::BarePacked => by == By::WatchList,
            Self::Go | Self::GoProtobuf => by == By::List,
            _ => true,
        }
    }

    /// Whether it is an informer of this crate.
    pub(crate) fn is_ours(self) -> bool {
        use Client::{Informer, Lazy, LazyProtobuf, Packed, PackedProtobuf, TypedProtobuf};
        matches!(self, Informer | Lazy | Packed | TypedProtobuf | LazyProtobuf | PackedProtobuf)
    }

    /// Beside whom one of ours stands: the bare client of its form, kube-rs, client-go.
    pub(crate) fn peers(self) -> [Self; 4] {
        let bare = match self {
            Self::Lazy | Self::LazyProtobuf => Self::BareLazy,
            Self::Packed | Self::PackedProtobuf => Self::BarePacked,
            _ => Self::BareTyped,
        };
        let go = if self.reads_protobuf() { Self::GoProtobuf } else { Self::Go };
        [bare, Self::Kube, Self::KubeCleared, go]
    }

    /// Whether it is a program of its own.
    pub(crate) fn is_go(self) -> bool {
        matches!(self, Self::Go | Self::GoProtobuf)
    }

    /// Whether its server sends protobuf.
    pub(crate) fn reads_protobuf(self) -> bool {
        matches!(self, Self::TypedProtobuf | Self::LazyProtobuf | Self::PackedProtobuf | Self::GoProtobuf)
    }
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
pub(crate) async fn measure(server: &Server, stages: Stages, subject: Subject) -> anyhow::Result<Report> {
    let Subject { client, by } = subject;
    let url = server.url();
    macro_rules! informer {
        ($kept:expr) => {
            drive(server, stages, async |ends| informer::Followed::start(url, by, ends, $kept)).await
        };
    }
    macro_rules! bare {
        ($kept:expr) => {
            drive(server, stages, async |_| bare::Running::start(url, $kept)).await
        };
    }
    type Pods = ResourceSource<Pod>;
    match client {
        Client::Informer => informer!(|pods: Pods| pods),
        Client::Lazy => informer!(|pods: Pods| pods.lazy()),
        Client::Packed => informer!(|pods: Pods| pods.packed()),
        Client::TypedProtobuf => informer!(|pods: Pods| pods.protobuf()),
        Client::LazyProtobuf => informer!(|pods: Pods| pods.lazy().protobuf()),
        Client::PackedProtobuf => informer!(|pods: Pods| pods.packed().protobuf()),
        Client::BareTyped => bare!(Typed::<Pod>::new()),
        Client::BareLazy => bare!(Lazy::<Pod>::new()),
        Client::BarePacked => bare!(Packed::<Pod>::new()),
        Client::Kube | Client::KubeCleared => {
            let clears = client == Client::KubeCleared;
            drive(server, stages, async |ends| reflector::Reflected::start(url, by, clears, ends)).await
        }
        Client::Go | Client::GoProtobuf => bail!("client-go is a program of its own"),
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Informer => "actix-informer, typed",
            Self::Lazy => "actix-informer, lazy",
            Self::Packed => "actix-informer, packed",
            Self::TypedProtobuf => "actix-informer, typed, protobuf",
            Self::LazyProtobuf => "actix-informer, lazy, protobuf",
            Self::PackedProtobuf => "actix-informer, packed, protobuf",
            Self::BareTyped => "bare, typed",
            Self::BareLazy => "bare, lazy",
            Self::BarePacked => "bare, packed",
            Self::Kube => "kube-rs",
            Self::KubeCleared => "kube-rs, managedFields cleared",
            Self::Go => "client-go",
            Self::GoProtobuf => "client-go, protobuf",
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
