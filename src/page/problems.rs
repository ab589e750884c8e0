//! What is wrong, in one sentence each: what, since when, why, what to do.

use std::time::Duration;

use informer_core::words::Brief;
use serde_json::{Value, json};

use crate::controller::{ControllerState, ControllerStatus};
use crate::leader_election::ElectionStatus;
use crate::status::{InformerReport, InformerStatus, RuntimeReport};
use crate::subscription::{EndReason, SubscriptionStatus};

/// Longer without a response: the thread is blocked.
const SILENT: Duration = Duration::from_secs(2);
/// Of a list.
const SYNCING: Duration = Duration::from_secs(10);
/// Of a subscriber.
const BEHIND: Duration = Duration::from_secs(10);

/// So few keys that have failed, for so short a time, are not told.
const SHORT: Duration = Duration::from_secs(2);
const FEW: usize = 10;

/// A restart is told so long.
const RECENT: Duration = Duration::from_secs(60);

struct Problem {
    what: String,
    since: Option<Duration>,
    why: String,
    todo: &'static str,
}

/// The worst kinds first.
pub(super) fn of(report: &RuntimeReport) -> Vec<Value> {
    let threads = report.arbiters.iter().filter(|thread| thread.since_pulse > SILENT);
    let threads = threads.map(|thread| Problem {
        what: format!("The thread {} does not respond", thread.name),
        since: Some(thread.since_pulse),
        why: thread.running.as_ref().map_or_else(String::new, |what| format!("it is busy with {what}")),
        todo: "Something blocks it: run long work in a blocking subscriber, or in tokio's spawn_blocking.",
    });
    let informers = report.informers.iter().flat_map(|informer| of_informer(informer, report.at));
    let controllers = report.controllers.iter().flat_map(|controller| of_controller(controller, report.at));
    let queues = report.work_queues.iter().filter_map(|queue| {
        let (limiter, rebuilt) = (queue.limiter_panics, queue.rebuilt);
        (limiter > 0 || rebuilt > 0).then(|| Problem {
            what: format!("Code that the work queue {} calls has panicked", queue.name),
            since: None,
            why: format!(
                "its rate limiter {limiter} times; the order or the clone of its keys {rebuilt} times"
            ),
            todo: "No key is lost. A panic is a bug of that code.",
        })
    });
    let elections = report.elections.iter().filter_map(of_election);
    let recorders = report.recorders.iter().filter_map(|recorder| {
        let dropped: u64 = recorder.figures.dropped.values().sum();
        let why = recorder.figures.last_error.as_ref().map(|error| error.text.clone());
        (dropped > 0).then(|| Problem {
            what: format!("The recorder {} has dropped {dropped} events about objects", recorder.name),
            since: None,
            why: why.unwrap_or_default(),
            todo: "Reconciles are not affected. The log names the reasons, such as a missing right to create events.",
        })
    });
    let clients = report.clients.iter().filter_map(|client| {
        let has_expired = client.credentials.expire_in.is_some_and(|left| left.is_zero());
        has_expired.then(|| Problem {
            what: format!("The credentials for {} have expired", client.server),
            since: None,
            why: format!("{} renewals have failed", client.credentials.failures),
            todo: "Log in again, or look at the credential plugin.",
        })
    });
    let all = threads
        .chain(informers)
        .chain(controllers)
        .chain(queues)
        .chain(elections)
        .chain(clients)
        .chain(recorders);
    all.map(|Problem { what, since, why, todo }| {
        json!({ "what": what, "since": since.map(|since| since.as_secs_f64()), "why": why, "todo": todo })
    })
    .collect()
}

fn of_informer(InformerReport { status, subscriptions, .. }: &InformerReport, at: Duration) -> Vec<Problem> {
    let name = &status.name;
    let mut found = Vec::new();
    if status.stopped {
        return found;
    }
    if let Some(why) = &status.failed {
        found.push(Problem {
            what: format!("A part of the informer {name} is not restarted any more"),
            since: None,
            why: why.to_string(),
            todo: "It has panicked too often. Restart the process; the panic is a bug.",
        });
    }
    let restarted = status.last_restart.as_ref().filter(|last| at.saturating_sub(last.at) < RECENT);
    found.extend(restarted.map(|last| Problem {
        what: format!("The actor {} of {name} was restarted", last.actor),
        since: None,
        why: format!("it {} ({} restarts so far)", last.why, status.restarts),
        todo: "Nothing is lost by it. A panic is a bug: the log has its place.",
    }));
    if let Some(stuck) = &status.stuck {
        found.push(Problem {
            what: format!("The informer {name} makes no progress"),
            since: None,
            why: stuck.to_string(),
            todo: "What is named blocks its thread.",
        });
    }
    found.extend(not_followed(status, at));
    if status.undecodable > 0 {
        found.push(Problem {
            what: format!("{} objects of {name} cannot be decoded", status.undecodable),
            since: None,
            why: "the cache has their last state that could be decoded, or none; a lazy cache has their text"
                .to_owned(),
            todo: "The log names each with its error. The type may be older than what the server stores.",
        });
    }
    if let Some((saved, why)) = status.saved.as_ref().and_then(|saved| Some((saved, saved.problem.as_ref()?)))
    {
        found.push(Problem {
            what: format!("The cache of {name} is not saved to {}", saved.file),
            since: saved.saved_at.map(|last| at.saturating_sub(last)),
            why: why.to_string(),
            todo: "It is followed all the same. The next start begins with what was saved last, or with a list.",
        });
    }
    found.extend(subscriptions.iter().filter_map(|subscription| of_subscription(name, subscription, at)));
    found
}

/// Not synced, or synced and out of date.
fn not_followed(status: &InformerStatus, at: Duration) -> Option<Problem> {
    let name = &status.name;
    let error = status.last_error().map(|error| error.with_causes().to_string());
    let hint = status.sources.iter().find_map(|source| source.hint.as_deref());
    if let Some(stale) = status.stale(at) {
        return Some(Problem {
            what: format!("The cache {name} is out of date"),
            since: Some(stale.lasts),
            why: stale.why.to_string(),
            todo: "It is tried again by itself. Readers get the last state until then.",
        });
    }
    let failing = status.sources.iter().filter_map(|source| source.failing_since).min();
    let began = status.began_at.map(|began| at.saturating_sub(began));
    let is_slow = !status.synced && (failing.is_some() || began.is_some_and(|lasts| lasts > SYNCING));
    let has_saved = status.saved.as_ref().is_some_and(|saved| saved.catching_up_to.is_some());
    let what = if has_saved {
        "has saved objects alone: it has not caught up"
    } else {
        "has not listed its objects yet"
    };
    is_slow.then(|| Problem {
        what: format!("The informer {name} {what}"),
        since: failing.map(|since| at.saturating_sub(since)).or(began),
        why: error.or_else(|| hint.map(str::to_owned)).unwrap_or_else(|| status.state().to_string()),
        todo: "It is tried again by itself. Check the address of the server, the rights and the name of the kind.",
    })
}

fn of_subscription(informer: &str, subscription: &SubscriptionStatus, at: Duration) -> Option<Problem> {
    let name = &subscription.name;
    match &subscription.ended {
        None | Some(EndReason::Unsubscribed | EndReason::InformerStopped) => {}
        Some(reason) => {
            return Some(Problem {
                what: format!("The subscription {name} of {informer} has ended"),
                since: None,
                why: reason.to_string(),
                todo: "It receives nothing more. Subscribe again, or restart the process.",
            });
        }
    }
    let behind = subscription.oldest_since.map(|since| at.saturating_sub(since));
    if let Some(behind) = behind.filter(|behind| *behind > BEHIND) {
        return Some(Problem {
            what: format!("The subscriber {name} of {informer} lags by {} events", subscription.depth),
            since: Some(behind),
            why: subscription.stuck_on.as_ref().map_or_else(
                || format!("its calls take {} at most", Brief(subscription.calls.max)),
                |key| format!("it is busy with {key}"),
            ),
            todo: "Events of one object are merged, so memory stays bounded. Make the handler faster.",
        });
    }
    (subscription.panics > 0 || subscription.dropped > 0).then(|| Problem {
        what: format!(
            "The subscriber {name} of {informer} has lost events: {} by panics, {} by a full backlog",
            subscription.panics, subscription.dropped
        ),
        since: None,
        why: "each was counted and logged".to_owned(),
        todo: "A panic is a bug of the handler. Choose to merge events where not each one counts.",
    })
}

fn of_controller(controller: &ControllerStatus, at: Duration) -> Vec<Problem> {
    let name = &controller.name;
    let mut found = Vec::new();
    if controller.state == ControllerState::NoWorkers {
        found.push(Problem {
            what: format!("Nothing runs the workers of the controller {name} any more"),
            since: None,
            why: "the tokio runtime that ran them has ended".to_owned(),
            todo: "Keep that runtime as long as the controller.",
        });
    }
    found.extend(controller.not_followed.iter().map(|what| Problem {
        what: format!("The controller {name} does not follow something any more"),
        since: None,
        why: what.clone(),
        todo: "Changes of these objects lead to no reconcile. Restart the process.",
    }));
    if controller.hangs().is_some()
        && let Some((key, time)) = &controller.longest_running
    {
        found.push(Problem {
            what: format!("The reconcile of {key} in {name} does not end"),
            since: Some(*time),
            why: "its key waits for it; others go on".to_owned(),
            todo: "Set a time limit (ControllerBuilder::time_limit), and look at what it awaits.",
        });
    }
    let failure = controller.last_failure.as_ref().filter(|_| controller.queue.retrying > 0);
    // One conflict, tried again at once, is no problem.
    if failure.is_some_and(|failure| at.saturating_sub(failure.at) > SHORT) || controller.queue.retrying > FEW
    {
        let why = controller.last_failure.as_ref().map(|failure| format!("{}: {}", failure.key, failure.why));
        found.push(Problem {
            what: format!("{} keys of the controller {name} have failed", controller.queue.retrying),
            since: None,
            why: why.unwrap_or_default(),
            todo: "Each is tried again after a growing wait.",
        });
    }
    found
}

fn of_election(election: &ElectionStatus) -> Option<Problem> {
    let why = election.write_error.as_ref().or(election.last_error.as_ref()).map(ToString::to_string);
    let is_bad = election.failing_for.is_some() || election.write_error.is_some();
    (is_bad && !election.over).then(|| Problem {
        what: format!("The lease {} cannot be read or written", election.lease),
        since: election.failing_for,
        why: why.unwrap_or_default(),
        todo: "Nobody may lead. Check the rights on leases and the connection to the server.",
    })
}
