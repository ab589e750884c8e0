//! The fixtures of the demo: namespaces, nodes, applications and their images.
//!
//! Answers "what does a plausible small cluster run?" as tables; `population.rs` changes it.

/// The namespaces of the demo.
pub(super) const NAMESPACES: [&str; 4] = ["shop", "payments", "batch", "monitoring"];

/// The nodes that pods are scheduled to.
pub(super) const NODES: [&str; 6] = ["node-a1", "node-a2", "node-b1", "node-b2", "node-c1", "node-c2"];

/// The values of the label `track`.
pub(super) const TRACKS: [&str; 3] = ["stable", "canary", "beta"];

/// One application: its pods look alike.
#[derive(Debug, Clone, Copy)]
pub(super) struct App {
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
    pub(super) image: &'static str,
    /// The tags that are rolled out in turn.
    pub(super) tags: [&'static str; 2],
    /// Whether its pods end by themselves, like those of a Job.
    pub(super) job: bool,
    /// Whether its pods have a second container, a proxy.
    pub(super) sidecar: bool,
}

const SERVICE: App = App {
    namespace: "shop",
    name: "web",
    image: "registry.example/shop/web",
    tags: ["2.4.1", "2.5.0"],
    job: false,
    sidecar: false,
};
const JOB: App = App { namespace: "batch", tags: ["1.0", "1.1"], job: true, ..SERVICE };

/// All applications; each gets an equal share of the pods.
pub(super) const APPS: [App; 10] = [
    App { sidecar: true, ..SERVICE },
    App { name: "cart", image: "registry.example/shop/cart", ..SERVICE },
    App { name: "search", image: "registry.example/shop/search", tags: ["0.9.3", "0.9.4"], ..SERVICE },
    App {
        namespace: "payments",
        name: "ledger",
        image: "registry.example/pay/ledger",
        sidecar: true,
        ..SERVICE
    },
    App { namespace: "payments", name: "gateway", image: "registry.example/pay/gateway", ..SERVICE },
    App { namespace: "monitoring", name: "agent", image: "registry.example/mon/agent", ..SERVICE },
    App { namespace: "monitoring", name: "store", image: "registry.example/mon/store", ..SERVICE },
    App { name: "invoice", image: "registry.example/jobs/invoice", ..JOB },
    App { name: "reindex", image: "registry.example/jobs/reindex", ..JOB },
    App { name: "thumbnails", image: "registry.example/jobs/thumbnails", ..JOB },
];
