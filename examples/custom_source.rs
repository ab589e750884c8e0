//! An informer over something that is not Kubernetes: the exchange rates of a small bank.
//!
//! Shows the one trait that a source implements, [`ListWatch`], and that everything else (snapshot, index,
//! subscription, supervision) works for it unchanged. Needs no cluster:
//!
//! ```sh
//! cargo run --example custom_source
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_informer::prelude::*;
use anyhow::Context;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use tokio::sync::watch;

/// What is cached of a currency.
#[derive(Debug, Clone)]
struct Rate {
    region: &'static str,
    euro_cents: u32,
}

/// The bank: an append-only log of rates. Its length is its version, plus one.
#[derive(Clone)]
struct Bank {
    log: Arc<Mutex<Vec<(&'static str, Rate)>>>,
    news: watch::Sender<usize>,
}

impl Bank {
    fn new() -> Self {
        Self { log: Arc::default(), news: watch::Sender::new(0) }
    }

    fn set(&self, currency: &'static str, region: &'static str, euro_cents: u32) -> ResourceVersion {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push((currency, Rate { region, euro_cents }));
        self.news.send_replace(log.len());
        version(log.len())
    }

    fn since(&self, position: usize) -> Vec<Object<Rate>> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter()
            .enumerate()
            .skip(position)
            .map(|(at, (currency, rate))| object(at + 1, currency, rate))
            .collect()
    }
}

fn version(entries: usize) -> ResourceVersion {
    ResourceVersion::from_number(entries as u64 + 1).expect("one more than a length is not zero")
}

fn object(entries: usize, currency: &str, rate: &Rate) -> Object<Rate> {
    let key = ObjectKey::cluster(currency);
    let meta = Meta::new(key, version(entries), SourceId::default()).wire_bytes(16);
    Object::new(meta, rate.clone())
}

impl ListWatch<Rate> for Bank {
    fn list(&self, _request: ListRequest, _known: KnownObjects<Rate>) -> ListStream<Rate> {
        // The last entry of each currency wins; the store sorts that out by version.
        let all = self.since(0);
        let end = ListPart::End { version: version(all.len()), token: None };
        stream::iter([Ok(ListPart::Objects(all)), Ok(end)]).boxed_local()
    }

    fn watch(&self, request: WatchRequest, _known: KnownObjects<Rate>) -> WatchStream<Rate> {
        if request.initial_events {
            let refusal = ListWatchError::WatchListUnsupported("the bank only lists".into());
            return stream::iter([Err(refusal)]).boxed_local();
        }
        let from = request.version.version().and_then(|version| version.to_string().parse::<usize>().ok());
        let position = from.unwrap_or(1) - 1;
        let head = stream::iter([Ok(Vec::new())]);
        let live = stream::unfold((self.clone(), position), |(bank, position)| async move {
            let mut news = bank.news.subscribe();
            news.wait_for(|entries| *entries > position).await.ok()?;
            let parts: Vec<_> = bank.since(position).into_iter().map(WatchPart::Applied).collect();
            let position = position + parts.len();
            Some((Ok(parts), (bank, position)))
        });
        head.chain(live).boxed_local()
    }

    fn get(&self, key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<Rate>>, ListWatchError>> {
        let newest = self.since(0).into_iter().rfind(|object| *object.key() == key);
        std::future::ready(Ok(newest)).boxed_local()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let bank = Bank::new();
    bank.set("DKK", "europe", 13);
    bank.set("JPY", "asia", 1);

    let runtime = Runtime::threads().start()?;
    let connected = bank.clone();
    let rates = Informer::builder(&runtime, "rates")
        .source(move || connected.clone())
        .index("region", |rate| [rate.region.to_owned()])
        .start()?;

    let subscription = rates.for_each(|notify| async move {
        match notify {
            Notify::Added { object, cause } => {
                println!("{} = {} cents ({cause})", object.key(), object.euro_cents)
            }
            Notify::Updated { old, object, cause } => {
                println!("{} {} -> {} cents ({cause})", object.key(), old.euro_cents, object.euro_cents);
            }
            Notify::Deleted { last, .. } => println!("{} is gone", last.key()),
        }
    })?;
    subscription.synced_within(Duration::from_secs(5)).await?;

    bank.set("JPY", "asia", 2);
    let mine = bank.set("CHF", "europe", 107);
    let lister = rates.lister();
    lister.wait_for(&mine, Duration::from_secs(5)).await?; // read your own writes
    let franc = lister.get(&ObjectKey::cluster("CHF")).context("it was just written")?;
    println!("the franc in the cache: {} cents at version {}", franc.euro_cents, franc.version());
    let europe: Vec<String> =
        lister.by_index("region", "europe")?.iter().map(|rate| rate.key().to_string()).collect();
    println!("europe: {}", europe.join(", "));

    let report = rates.shutdown(Duration::from_secs(5)).await;
    println!("stopped, everything delivered: {}", report.is_clean());
    drop((subscription, lister, rates));
    runtime.shutdown(Duration::from_secs(5)).await?;
    Ok(())
}
