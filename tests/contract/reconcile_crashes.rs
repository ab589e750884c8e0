//! OPR-03 and OPR-18: a reconciler that ends at any of its requests, before the server has seen it or before its answer.
//!
//! Answers "is there a place at which a process may end and something stays behind?" by trying each: the future of the
//! reconcile is dropped there, and another process goes on from what the server has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use actix_informer::client::Client;
use actix_informer::client::api::{Api, DeleteParams};
use actix_informer::object::from_body;
use actix_informer::reconcile::{Children, Finalize, finalizer};
use futures_util::FutureExt;
use futures_util::future::{Either, select};
use informer_actors::runtime::Runtime;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use tokio::sync::Notify;

use crate::children::{Site, define_sites, page, site};
use crate::reconcile::MINE;

/// Where a process ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The server never sees the request.
    Before(usize),
    /// The server has carried it out, and nobody hears of it.
    After(usize),
}

/// A server, and a client whose process ends at one request.
struct World {
    server: Arc<ApiServer>,
    sites: Api<Site>,
    client: Client,
    requests: Arc<AtomicUsize>,
    ended: Arc<Notify>,
}

async fn world(runtime: &Runtime, end: End) -> World {
    let server = ApiServer::builder().seed(7).in_process(SystemTime::UNIX_EPOCH).start().await;
    let server = Arc::new(server.expect("a server in memory"));
    define_sites(&server);
    server.create(site("shop")).expect("a new site");
    let (requests, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (count, tell, serve, looked_at) =
        (Arc::clone(&requests), Arc::clone(&ended), server.service(), Arc::clone(&server));
    let client = Client::in_process(runtime, move |request: http::Request<bytes::Bytes>| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        let is_effect = request.uri().path().contains("configmaps") && request.method() != http::Method::GET;
        assert!(!is_effect || is_held(&looked_at), "an effect without the finalizer: {}", request.uri());
        let (tell, answer) = (Arc::clone(&tell), serve(request));
        async move {
            if matches!(end, End::Before(at) if at == number) {
                tell.notify_one();
                std::future::pending::<()>().await;
            }
            let answer = answer.await;
            if matches!(end, End::After(at) if at == number) {
                tell.notify_one();
                std::future::pending::<()>().await;
            }
            answer
        }
        .boxed_local()
    });
    let sites = Client::in_process(runtime, server.service()).api::<Site>().namespaced("default");
    World { server, sites, client, requests, ended }
}

fn is_held(server: &ApiServer) -> bool {
    let site = server.get("sites.example.org", "default", "shop");
    site.is_ok_and(|site| site["metadata"]["finalizers"].to_string().contains(MINE))
}

impl World {
    /// Reconciles as the newest state wants it: these pages while the site is there, none when it goes. The garbage collector
    /// is off: what the clean-up forgets stays.
    async fn reconcile(&self, pages: &[&str]) -> anyhow::Result<()> {
        let Some(site) = self.sites.get_opt("shop").await? else { return Ok(()) };
        let site = from_body(site)?;
        let children = Children::new(&self.client, "sites").listed::<ConfigMap>("").listed::<Secret>("");
        let children = &children;
        finalizer(&self.client, &site, MINE, |event: Finalize<Site>| async move {
            let (owner, pages) = match &event {
                Finalize::Apply(site) => (site, pages),
                Finalize::CleanUp(site) => (site, &[][..]),
            };
            let mut pass = children.of(owner, owner)?;
            for name in pages {
                pass.apply(page(name, "1")).await?;
            }
            pass.prune().await?;
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// Reconciles in one process after another until one comes to its end.
    async fn settle(&self, pages: &[&str]) {
        loop {
            let (reconcile, ended) =
                (std::pin::pin!(self.reconcile(pages)), std::pin::pin!(self.ended.notified()));
            if let Either::Left((done, _)) = select(reconcile, ended).await {
                return done.expect("it comes to its end");
            }
        }
    }

    fn pages(&self) -> Vec<String> {
        let maps = self.server.list("configmaps").expect("a kind");
        maps.iter().map(|map| map["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
    }
}

/// The life of a site whose reconciler ends there once; gives how many requests there were.
fn life(end: End) -> usize {
    Runtime::simulated(7).run(|runtime| async move {
        let world = world(&runtime, end).await;
        world.settle(&["a", "b"]).await;
        assert_eq!(world.pages(), ["a", "b"], "{end:?}");
        assert!(is_held(&world.server), "{end:?}");
        world.settle(&["b", "c"]).await;
        assert_eq!(world.pages(), ["b", "c"], "{end:?}");
        world.sites.delete("shop", &DeleteParams::default()).await.expect("it is there");
        world.settle(&[]).await;
        assert_eq!(world.pages(), [""; 0], "{end:?}: nothing stays behind");
        assert!(
            world.sites.get_opt("shop").await.expect("an answer").is_none(),
            "{end:?}: no finalizer is left"
        );
        world.requests.load(Ordering::SeqCst)
    })
}

// OPR-03: given a reconciler that ends at any of its requests, before the server has seen it or before its
// answer, when another one goes on, then no effect is without the finalizer, and after a deletion nothing
// stays behind, neither an effect nor a finalizer.
// - a no effect is without the finalizer
// - b no effect stays behind
// - c no finalizer stays behind
// OPR-18: given a reconciler with children that ends at any of its requests, when another one goes on, then
// the children are those that are wanted, each once.
#[test]
fn opr_03_and_opr_18_wherever_a_reconciler_ends_nothing_is_lost_nothing_stays_and_nothing_is_made_twice() {
    let undisturbed = life(End::Before(usize::MAX));
    assert!(undisturbed > 10, "{undisturbed} requests");
    for at in 0..undisturbed {
        assert!(life(End::Before(at)) > undisturbed - 1);
        assert!(life(End::After(at)) >= undisturbed);
    }
}
