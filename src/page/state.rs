//! What the page shows, as JSON: figures, names and texts of errors, no body of an object.

use std::time::Duration;

use informer_client::ClientFigures;
use informer_operator::events::RecorderReport;
use serde_json::{Value, json};

use super::problems;
use crate::controller::ControllerStatus;
use crate::leader_election::ElectionStatus;
use crate::object::ObjectKey;
use crate::status::{
    InformerMemory, InformerReport, InformerStatus, MemoryReport, QueueReport, RuntimeReport, SourceStatus,
    Timing,
};
use crate::subscription::SubscriptionStatus;
use crate::work_queue::QueueFigures;

/// The worst are shown.
const MOST_SOURCES: usize = 50;
const MOST_SUBSCRIPTIONS: usize = 100;
const MOST_FIELDS: usize = 12;

pub(super) fn of(report: &RuntimeReport, memory: &MemoryReport, title: &str) -> Value {
    let at = report.at;
    let controllers = &report.controllers;
    // Queues of controllers are shown with these.
    let is_own = |queue: &&QueueReport| controllers.iter().all(|controller| controller.name != queue.name);
    json!({
        "title": title,
        "at": at.as_secs_f64(),
        "problems": problems::of(report),
        "toFree": report.bytes_to_free,
        "threads": report.arbiters.iter().map(|thread| json!({
            "name": thread.name,
            "silent": thread.since_pulse.as_secs_f64(),
            "running": thread.running,
            "panics": thread.panics,
            "busiest": thread.busiest.iter().map(|actor| json!({
                "actor": actor.actor,
                "turns": actor.turns,
                "time": actor.time.as_secs_f64(),
                "longest": actor.longest.as_secs_f64(),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "informers": report.informers.iter().map(|informer| of_informer(informer, memory, at)).collect::<Vec<_>>(),
        "controllers": controllers.iter().map(|controller| of_controller(controller, at)).collect::<Vec<_>>(),
        "queues": report.work_queues.iter().filter(is_own).map(|queue| {
            json!({ "name": &*queue.name, "queue": of_queue(&queue.figures) })
        }).collect::<Vec<_>>(),
        "elections": report.elections.iter().map(of_election).collect::<Vec<_>>(),
        "recorders": report.recorders.iter().map(of_recorder).collect::<Vec<_>>(),
        "clients": report.clients.iter().map(of_client).collect::<Vec<_>>(),
    })
}

fn ago(since: Option<Duration>, at: Duration) -> Option<f64> {
    since.map(|since| at.saturating_sub(since).as_secs_f64())
}

fn timing(timing: &Timing) -> Value {
    json!({
        "count": timing.count,
        "p50": timing.quantile(0.5).map(|time| time.as_secs_f64()),
        "p99": timing.quantile(0.99).map(|time| time.as_secs_f64()),
        "max": timing.max.as_secs_f64(),
    })
}

fn of_memory(memory: &InformerMemory) -> Value {
    let fields = memory.fields.iter().take(MOST_FIELDS);
    json!({
        "sent": memory.sent,
        "text": memory.text,
        "kept": memory.kept,
        "fields": fields.map(|field| json!([&*field.path, field.bytes])).collect::<Vec<_>>(),
    })
}

fn of_informer(
    InformerReport { status, subscriptions, .. }: &InformerReport,
    memory: &MemoryReport,
    at: Duration,
) -> Value {
    let read = |of: &&InformerMemory| of.informer == status.name && of.samples > 0;
    let InformerStatus { totals, queue, .. } = status;
    let mut sources: Vec<&SourceStatus> = status.sources.iter().collect();
    // Healthy ones last.
    sources.sort_by_key(|source| (source.failing_since.is_none(), source.version.is_some()));
    json!({
        "name": &*status.name,
        "resource": status.resource.as_ref().map(|resource| match &*resource.group {
            "" => format!("{}/{}", resource.version, resource.resource),
            group => format!("{group}/{}/{}", resource.version, resource.resource),
        }),
        "state": status.state().to_string(),
        "synced": status.synced,
        "syncTook": status.sync_took.map(|took| took.as_secs_f64()),
        "objects": status.objects,
        "bytes": status.bytes,
        "memory": memory.informers.iter().find(read).map(of_memory),
        "undecodable": status.undecodable,
        "age": status.age(at).map(|age| age.as_secs_f64()),
        "stale": status.stale(at).map(|stale| stale.lasts.as_secs_f64()),
        "restarts": status.restarts,
        "failed": status.failed.as_deref(),
        "lastRestart": status.last_restart.as_ref().map(|last| json!({
            "actor": &*last.actor,
            "why": &*last.why,
            "ago": ago(Some(last.at), at),
        })),
        "queue": { "parts": queue.parts, "bytes": queue.bytes, "age": ago(queue.oldest_since, at) },
        "processing": timing(&status.processing),
        "lists": timing(&status.lists),
        "events": totals.watch_events,
        "received": totals.wire_bytes,
        "relists": totals.counters.relists,
        "watches": totals.counters.watches,
        "failures": totals.counters.failures,
        "sources": sources.iter().take(MOST_SOURCES).map(|source| json!({
            "name": source.source.as_str(),
            "state": source.state.to_string(),
            "failing": ago(source.failing_since, at),
            "heard": ago(source.last_frame_at, at),
            "version": source.version.as_ref().map(ToString::to_string),
            "restarts": source.restarts,
            "events": source.watch_events,
            "lastError": source.last_error.as_ref().map(|error| error.with_causes().to_string()),
            "hint": source.hint.as_deref(),
        })).collect::<Vec<_>>(),
        "allSources": sources.len(),
        "failingSources": sources.iter().filter(|source| source.failing_since.is_some()).count(),
        "subscriptions": subscriptions.iter().take(MOST_SUBSCRIPTIONS)
            .map(|subscription| of_subscription(subscription, at)).collect::<Vec<_>>(),
        "moreSubscriptions": subscriptions.len().saturating_sub(MOST_SUBSCRIPTIONS),
    })
}

fn of_subscription(subscription: &SubscriptionStatus, at: Duration) -> Value {
    json!({
        "name": &*subscription.name,
        "synced": subscription.synced,
        "delivered": subscription.delivered,
        "depth": subscription.depth,
        "age": ago(subscription.oldest_since, at),
        "busy": subscription.in_flight,
        "coalesced": subscription.coalesced,
        "dropped": subscription.dropped,
        "filtered": subscription.filtered,
        "panics": subscription.panics,
        "latency": timing(&subscription.latency),
        "calls": timing(&subscription.calls),
        "ended": subscription.ended.as_ref().map(ToString::to_string),
    })
}

fn of_queue(queue: &QueueFigures) -> Value {
    json!({
        "depth": queue.depth.iter().sum::<usize>(),
        "delayed": queue.delayed,
        "retrying": queue.retrying,
        "processing": queue.processing,
        "adds": queue.adds,
        "retries": queue.retries,
        "waited": timing(&queue.waited),
        "worked": timing(&queue.worked),
        "longest": queue.longest_running.as_secs_f64(),
    })
}

fn of_controller(controller: &ControllerStatus, at: Duration) -> Value {
    let counts = &controller.counts;
    let key = |key: &ObjectKey| key.to_string();
    json!({
        "name": &*controller.name,
        "state": controller.state.to_string(),
        "workers": controller.workers,
        "active": controller.active,
        "reconciles": counts.reconciles,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "panics": counts.panics,
        "took": timing(&controller.took),
        "writesWait": timing(&controller.writes_wait),
        "resting": controller.kept.resting,
        "notSynced": controller.not_synced.iter().map(|informer| informer.name.to_string()).collect::<Vec<_>>(),
        "lastFailure": controller.last_failure.as_ref().map(|failure| json!({
            "key": key(&failure.key),
            "why": &*failure.why,
            "ago": ago(Some(failure.at), at),
        })),
        "longest": controller.longest_running.as_ref().map(|(of, time)| json!({
            "key": key(of),
            "time": time.as_secs_f64(),
        })),
        "queue": of_queue(&controller.queue),
    })
}

fn of_election(election: &ElectionStatus) -> Value {
    json!({
        "name": &*election.lease,
        "identity": &*election.identity,
        "leads": election.fence.is_some(),
        "fence": election.fence,
        "lastsFor": election.lasts_for.as_secs_f64(),
        "holder": &*election.holder,
        "whyNot": election.why_not.as_ref().map(ToString::to_string),
        "terms": election.figures.terms,
        "renewals": election.figures.renewals,
        "restarts": election.restarts,
    })
}

fn of_recorder(RecorderReport { name, figures, .. }: &RecorderReport) -> Value {
    json!({
        "name": &**name,
        "emitted": figures.emitted,
        "created": figures.created,
        "patched": figures.patched,
        "waiting": figures.waiting,
        "dropped": figures.dropped.values().sum::<u64>(),
        "lastError": figures.last_error.as_ref().map(|error| &error.text),
    })
}

fn of_client(client: &ClientFigures) -> Value {
    let mut requests: Vec<_> = client.requests.iter().collect();
    requests.sort_by_key(|row| std::cmp::Reverse(row.count));
    json!({
        "server": &*client.server,
        "sent": client.requests.iter().map(|row| row.count).sum::<u64>(),
        "expireIn": client.credentials.expire_in.map(|left| left.as_secs_f64()),
        "renewals": client.credentials.renewals,
        "requests": requests.iter().take(20).map(|row| json!({
            "verb": row.verb,
            "resource": &*row.resource,
            "code": row.code,
            "count": row.count,
            "retries": row.retries,
        })).collect::<Vec<_>>(),
        "methods": client.methods.iter().map(|method| json!({
            "method": method.method,
            "head": timing(&method.head),
        })).collect::<Vec<_>>(),
    })
}
