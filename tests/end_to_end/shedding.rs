//! A kube-apiserver that sheds load, with the 429 of the real one. Only for the control plane, whose flags set its
//! limits low.
//!
//! Answers "does an informer get through when other clients overload the server?" The server does not count watches;
//! it counts lists and the question for its version.

use actix_informer::client::Client;
use actix_rt::task::JoinHandle;
use http::Method;
use tokio::time::sleep;

use crate::relay::Relay;
use crate::server::POWERLESS;
use crate::stage::{LOOK, Stage, eventually};
use crate::trial::Trial;

/// The number of clients that ask beside the informers, again and again.
const CROWD: usize = 3;
/// A list of a version far in the future: the server waits three seconds for it, and then answers that the
/// version is too large.
const FUTURE: &str = "/api/v1/pods?resourceVersion=999999999&resourceVersionMatch=NotOlderThan";

pub(crate) async fn a_server_that_is_overloaded(stage: Stage) {
    stage.server.empower(&stage.api).await;
    let client = stage.server.powerless_client();
    let trial = Trial::begin(Stage { context: Some(POWERLESS), ..stage }).await;
    let crowd: Vec<JoinHandle<()>> =
        (0..CROWD).map(|_| actix_rt::spawn(ask_for_ever(client.clone()))).collect();
    trial.wires(Relay::cut);
    trial.wires(Relay::mend);
    for observer in &trial.observers {
        eventually("the server has no time for it", || match observer.pods.counters() {
            counters if counters.overloaded >= 1 => Ok(()),
            counters => Err(format!("{}: {counters:?}", observer.name)),
        })
        .await;
    }
    crowd.iter().for_each(JoinHandle::abort);
    let mark = trial.mark().await;
    trial.arrives(&mark).await;
    for observer in &trial.observers {
        assert_eq!(observer.pods.counters().relists, 0, "it goes on where it was");
    }
    trial.ends().await;
}

async fn ask_for_ever(client: Client) {
    loop {
        // The version is too large or the requests are too many: these clients ask again.
        let _refused = client.request(Method::GET, FUTURE, None).await;
        // The pace of the crowd, not a wait: it presses on the server until it is aborted.
        sleep(LOOK).await;
    }
}
