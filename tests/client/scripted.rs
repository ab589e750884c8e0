//! A config map API that sends what a test gives it, and an informer that follows it without long waits.
//!
//! Answers "how does an informer handle this answer?" Lists are answered from a queue whose last answer stays; events
//! go into the watch that is open, or into the next one. Invariants:
//! 1. A line is sent to one watch only: the newest, and never to one from before the newest list.
//! 2. The rewind question finds nothing, at a version that no test reaches.
//! 3. Every wait is for a condition on the informer, with one long limit.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_informer::client::ResourceSource;
use actix_informer::representation::Representation;
use informer_actors::informer::Informer;
use informer_actors::informer::InformerBuilder;
use informer_actors::runtime::Runtime;
use informer_actors::status::InformerStatus;
use informer_core::backoff::BackoffPolicy;
use informer_core::reflector::ReflectorConfig;
use tokio::sync::watch;

use crate::harness::*;
use crate::raw_server::*;

/// The limit of every wait; a healthy one never comes near it.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// One piece of what a watch sends.
#[derive(Clone)]
pub(crate) enum Said {
    /// These bytes, as a chunk of their own.
    Bytes(Vec<u8>),
    /// These bytes, and then the connection breaks.
    Cut(Vec<u8>),
    /// The orderly end of the answer.
    End,
}

struct Script {
    lists: VecDeque<Vec<u8>>,
    said: VecDeque<Said>,
    asked: Vec<String>,
    /// Whether the first of the lists has been given.
    given: bool,
    /// Counts lists and watches: lines go to a watch only while it is the newest request.
    newest: usize,
}

impl Script {
    fn next_list(&mut self) -> Vec<u8> {
        if self.given && self.lists.len() > 1 {
            self.lists.pop_front();
        }
        self.given = true;
        self.lists[0].clone()
    }
}

/// The server.
pub(crate) struct Scripted {
    server: RawServer,
    script: Arc<Mutex<Script>>,
    news: watch::Sender<()>,
}

impl Scripted {
    /// A server whose lists are answered with these bytes.
    pub(crate) async fn start(list: impl Into<Vec<u8>>) -> Self {
        let lists = VecDeque::from([list.into()]);
        let script = Script { lists, said: VecDeque::new(), asked: Vec::new(), given: false, newest: 0 };
        let (script, news) = (Arc::new(Mutex::new(script)), watch::Sender::new(()));
        let (shared, received) = (Arc::clone(&script), news.clone());
        let server =
            RawServer::start(move |connection| serve(connection, Arc::clone(&shared), received.clone()))
                .await;
        Self { server, script, news }
    }

    /// Answers in this way after the answers that already wait have been given once.
    pub(crate) fn list(&self, answer: impl Into<Vec<u8>>) {
        self.script.lock().unwrap().lists.push_back(answer.into());
    }

    /// Sends this in the watch.
    pub(crate) fn say(&self, said: Said) {
        self.script.lock().unwrap().said.push_back(said);
        self.news.send_replace(());
    }

    /// Sends these bytes in the watch.
    pub(crate) fn bytes(&self, bytes: impl Into<Vec<u8>>) {
        self.say(Said::Bytes(bytes.into()));
    }

    /// Waits until this many watches have been requested.
    pub(crate) async fn watched(&self, count: usize) {
        let enough = || self.asked().iter().filter(|asked| asked.starts_with("WATCH")).count() >= count;
        let mut news = self.news.subscribe();
        let waiting = async {
            while !enough() {
                news.changed().await.unwrap();
            }
        };
        assert!(tokio::time::timeout(LONG, waiting).await.is_ok(), "no watch came: {:?}", self.asked());
    }

    /// The requests so far: `LIST 9`, `WATCH 9`.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.script.lock().unwrap().asked.clone()
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }
}

async fn serve(mut connection: Connection, script: Arc<Mutex<Script>>, news: watch::Sender<()>) {
    while let Some(request) = connection.request().await {
        if request.contains("fieldSelector=metadata.name%3D") {
            connection.write(good_list(&[], 1_000_000)).await;
            continue;
        }
        let version = request
            .split(['?', '&', ' '])
            .find_map(|member| member.strip_prefix("resourceVersion="))
            .unwrap_or_default()
            .to_owned();
        let watches = request.contains("watch=true");
        let (mine, list) = {
            let mut script = script.lock().unwrap();
            script.newest += 1;
            script.asked.push(format!("{} {version}", if watches { "WATCH" } else { "LIST" }));
            (script.newest, if watches { Vec::new() } else { script.next_list() })
        };
        if watches {
            news.send_replace(());
            return speak(connection, script, news.subscribe(), mine).await;
        }
        connection.write(&list).await;
        // An answer without a valid length ends with its connection.
        if !list.windows(15).any(|window| window == b"content-length:") {
            return;
        }
    }
}

async fn speak(
    mut connection: Connection,
    script: Arc<Mutex<Script>>,
    mut news: watch::Receiver<()>,
    mine: usize,
) {
    connection.write(CHUNKED).await;
    loop {
        news.borrow_and_update();
        let said = {
            let mut script = script.lock().unwrap();
            if script.newest != mine {
                return;
            }
            script.said.pop_front()
        };
        match said {
            Some(Said::Bytes(bytes)) => connection.write(chunk_of(&bytes)).await,
            Some(Said::Cut(bytes)) => return connection.write(chunk_of(&bytes)).await,
            Some(Said::End) => return connection.write(LAST_CHUNK).await,
            None if news.changed().await.is_err() => return,
            None => {}
        }
    }
}

fn chunk_of(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// A whole list of these config maps, each `name@version`.
pub(crate) fn good_list(items: &[&str], version: u64) -> String {
    let items: Vec<_> = items.iter().map(|item| object(item)).collect();
    answer("200 OK", "content-type: application/json\r\n", &list_of(&items, &version.to_string()))
}

/// The config map `name@version`.
pub(crate) fn object(item: &str) -> String {
    let (name, version) = item.split_once('@').unwrap();
    config_map(name, version.parse().unwrap())
}

/// The event that the config map `name@version` is there.
pub(crate) fn added(item: &str) -> String {
    event("ADDED", &object(item))
}

/// The number of threads whose informers ask at once.
pub(crate) fn threads() -> Runtime {
    Runtime::threads().start_jitter(Duration::ZERO).start().unwrap()
}

/// An informer with waits of a millisecond, by list and watch.
pub(crate) fn follows<K, R: Representation>(
    source: ResourceSource<K, R>,
    runtime: &Runtime,
) -> InformerBuilder<R::Body> {
    let moment = Duration::from_millis(1);
    let quick = |settings: &mut ReflectorConfig| {
        settings.watch_list = false;
        settings.backoff = BackoffPolicy { base: moment, cap: moment };
        settings.short_watch = Duration::ZERO;
        settings.reconnect_interval = moment;
        settings.refused_wait = moment;
    };
    source.settings(quick).informer(runtime).unwrap()
}

/// Waits until the informer's status fulfils this condition.
pub(crate) async fn reached<S: Send + Sync + 'static>(
    informer: &Informer<S>,
    enough: impl Fn(&InformerStatus) -> bool,
) -> InformerStatus {
    match tokio::time::timeout(LONG, informer.wait_until(enough)).await {
        Ok(status) => status.unwrap(),
        Err(_) => panic!("the status did not fulfil the condition: {:#?}", informer.status()),
    }
}

/// Waits until this version is published.
pub(crate) async fn published<S: Send + Sync + 'static>(informer: &Informer<S>, version: u64) {
    let version = version.to_string().parse().unwrap();
    let waited = informer.lister().wait_for(&version, LONG).await;
    waited.unwrap_or_else(|_| panic!("version {version} did not come: {:#?}", informer.status()));
}

/// What is published: `name@version`, in the order of the names.
pub(crate) fn held<S: Send + Sync + 'static>(informer: &Informer<S>) -> Vec<String> {
    let snapshot = informer.snapshot();
    let mut held: Vec<_> =
        snapshot.iter().map(|object| format!("{}@{}", object.key().name(), object.version())).collect();
    held.sort();
    held
}

/// Shuts the informer down, and checks that nothing of it remains.
pub(crate) async fn ends<S: Send + Sync + 'static>(informer: Informer<S>) {
    assert!(informer.shutdown(LONG).await.is_clean());
}
