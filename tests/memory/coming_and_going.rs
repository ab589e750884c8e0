//! FAC-11 by bytes: what informers leave behind that come and go.
//!
//! Answers "is memory where it was after ten thousand informers?". Informers and server are in one process, so what the
//! server keeps counts, too; its log of requests is cleared again and again. Invariant: a round is the same in each measured part.

use actix_informer::client::Client;
use actix_informer::factory::InformerFactory;
use informer_actors::informer::Informer;
use informer_actors::runtime::Runtime;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::{LONG, held, settle};

/// How many informers stay, and how many are added and removed.
const STAY: usize = 20;
const COME_AND_GO: usize = 10_000;
/// As many rounds differ from each other: how far an informer comes before it goes.
const SORTS: usize = 20;
/// What may be held in the end that was not held before: less than half a byte for each informer.
const MOST: usize = 4 << 10;

struct Cluster {
    server: ApiServer,
    factory: InformerFactory,
}

impl Cluster {
    async fn start(runtime: &Runtime) -> Self {
        let server = ApiServer::builder().seed(7).in_process(runtime.wall_time()).start().await;
        let server = server.expect("a server in memory");
        let client = Client::in_process(runtime, server.service());
        for n in 0..10 {
            let metadata = json!({"name": format!("map-{n}"), "namespace": "default"});
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            server.create(map).expect("a new object");
        }
        Self { server, factory: InformerFactory::new(runtime, &client) }
    }

    fn informer(&self, labels: String) -> Informer<ConfigMap> {
        let described = self.factory.resource::<ConfigMap>().labels(labels);
        self.factory.of(described).expect("the factory is open")
    }

    /// Adds so many informers one after the other, some of them with an index and a subscriber, and removes each.
    async fn come_and_go(&self, count: usize) {
        for round in 0..count {
            let one = self.informer(format!("none!={}", STAY + round % SORTS));
            let weak = one.downgrade();
            let subscription = one.for_each(|_| std::future::ready(())).expect("it runs");
            if round % SORTS < 2 {
                one.begin();
                subscription.synced_within(LONG).await.expect("it lists");
            }
            drop((subscription, one));
            weak.ended().await;
            if round % SORTS == 0 {
                self.server.clear_requests();
            }
        }
        settle().await;
        self.server.clear_requests();
    }
}

pub(crate) async fn informers_that_come_and_go_leave_nothing(runtime: &Runtime) {
    let cluster = Cluster::start(runtime).await;
    let staying: Vec<_> = (0..STAY).map(|n| cluster.informer(format!("none!={n}"))).collect();
    cluster.factory.start().expect("it is open");
    cluster.factory.synced_within(LONG).await.expect("they list");
    // What grows once, such as tables, has grown.
    cluster.come_and_go(10 * SORTS).await;
    let before = held();
    cluster.come_and_go(COME_AND_GO).await;
    let more = held().saturating_sub(before);
    assert!(more < MOST, "{COME_AND_GO} informers left {more} bytes");
    assert!(staying.iter().all(|informer| informer.snapshot().len() == 10));
}
