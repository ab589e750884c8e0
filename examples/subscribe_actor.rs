//! An actor that is subscribed to pods and counts what it receives, and why.
//!
//! Shows that any actix actor with a `Handler<Notify<Pod>>` is a subscriber, that causes separate the initial list
//! from live events and from deletions that are found later, and what "synced" means for one subscriber. The
//! subscription keeps its actor here; an actor that keeps its own subscription subscribes itself by a weak address.
//! Needs no cluster:
//!
//! ```sh
//! cargo run --example subscribe_actor
//! ```

use std::time::Duration;

use actix::{Actor, Context, Handler, Message};
use actix_informer::client::Config;
use actix_informer::prelude::*;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(10);

/// Counts pods.
#[derive(Default)]
struct Audit {
    known: usize,
    missed: usize,
}

impl Actor for Audit {
    type Context = Context<Self>;
}

impl Handler<Notify<Pod>> for Audit {
    type Result = ();

    fn handle(&mut self, notify: Notify<Pod>, _ctx: &mut Context<Self>) {
        match notify {
            Notify::Added { cause: Cause::InitialList, .. } => self.known += 1,
            Notify::Added { object, cause } => {
                self.known += 1;
                println!("{} appeared ({cause})", object.key());
            }
            Notify::Updated { old, object, cause } => {
                println!(
                    "{} went from version {} to {} ({cause})",
                    object.key(),
                    old.version(),
                    object.version()
                );
            }
            Notify::Deleted { last, exact, cause } => {
                self.known -= 1;
                self.missed += usize::from(!exact);
                let end = if exact { "was deleted" } else { "was deleted while the watch was interrupted" };
                println!("{} {end} ({cause})", last.key());
            }
        }
    }
}

/// Asks for the counts; answered after every event that was sent before.
#[derive(Message)]
#[rtype(result = "(usize, usize)")]
struct Counts;

impl Handler<Counts> for Audit {
    type Result = actix::MessageResult<Counts>;

    fn handle(&mut self, _counts: Counts, _ctx: &mut Context<Self>) -> Self::Result {
        actix::MessageResult((self.known, self.missed))
    }
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "example.org/app:1"}]},
    })
}

fn version_of(object: &Value) -> anyhow::Result<ResourceVersion> {
    Ok(object["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse()?)
}

#[actix::main]
async fn main() -> anyhow::Result<()> {
    let mut server = ApiServer::builder().port(0).start().await?;
    for n in 0..5 {
        server.create(pod(&format!("pod-{n}")))?;
    }

    let runtime = Runtime::threads().start()?;
    let client = Client::new(Config::new(server.url())?)?;
    let pods = client.resource::<Pod>().informer(&runtime)?.start()?;

    let audit = Audit::default().start();
    let subscription = pods.subscribe(audit.clone())?;
    subscription.synced_within(LONG).await?; // this actor has handled its last initial event
    println!("synced: {} pods known", audit.send(Counts).await?.0);

    server.merge_patch("pods", "default", "pod-0", &json!({"metadata": {"labels": {"checked": "yes"}}}))?;
    server.delete("pods", "default", "pod-1")?;
    let live = version_of(&server.create(pod("pod-5"))?)?;
    pods.lister().wait_for(&live, LONG).await?;

    // The server stops, a pod is deleted meanwhile, and the history that would show it is compacted.
    server.stop();
    server.delete("pods", "default", "pod-2")?;
    server.faults().compact();
    server.start_again()?;
    let back = version_of(&server.create(pod("pod-6"))?)?;
    pods.lister().wait_for(&back, LONG).await?;

    let report = pods.shutdown(LONG).await;
    let (known, missed) = audit.send(Counts).await?;
    println!(
        "{known} pods known, {missed} deletion missed and found; everything delivered: {}",
        report.is_clean()
    );
    Ok(())
}
