//! Metrics of informers, their sources and subscriptions, and of the runtime. There may be thousands of namespaces: the sources
//! of an informer share its series. [`MOST_SUBSCRIPTIONS`] of its subscriptions have series.

use std::time::Duration;

use super::write::{Family, Labels, Samples, Value, number, seconds, times, yes};
use crate::runtime::ArbiterHealth;
use crate::status::{InformerReport, InformerStatus, SourceState};
use crate::subscription::SubscriptionStatus;

/// Of each informer.
pub(super) const MOST_SUBSCRIPTIONS: usize = 100;

/// client-go's labels of its informer metrics.
pub(super) fn labels(informer: &InformerReport) -> Labels {
    let InformerStatus { name, resource, .. } = &informer.status;
    let resource = resource.as_deref().cloned().unwrap_or_default();
    vec![
        ("name", name.to_string()),
        ("group", resource.group),
        ("version", resource.version),
        ("resource", resource.resource),
    ]
}

/// Takes the subscriptions with series of their own; each gets its labels and the time of the report.
pub(super) fn subscriptions(
    (labels, (at, informer)): &mut (Labels, (Duration, InformerReport)),
) -> Vec<(Labels, (Duration, SubscriptionStatus))> {
    let shown = std::mem::take(&mut informer.subscriptions).into_iter().take(MOST_SUBSCRIPTIONS);
    let with_labels = shown.map(|subscription| {
        let own = [("handler", subscription.name.to_string())];
        (labels.iter().cloned().chain(own).collect(), (*at, subscription))
    });
    with_labels.collect()
}

fn count(samples: &mut Samples<'_>, counted: u64) {
    samples.add(Value::Count(counted));
}

/// With the time of the report.
pub(super) const INFORMERS: &[Family<(Duration, InformerReport)>] = &[
    Family::gauge(
        "informer_queued_items",
        "What waits between the sources and the store",
        |(_, informer), samples| {
            samples.add(number(informer.status.queue.parts));
        },
    ),
    Family::gauge("informer_queued_bytes", "Its bytes as they came", |(_, informer), samples| {
        samples.add(number(informer.status.queue.bytes));
    }),
    Family::gauge(
        "informer_queue_oldest_seconds",
        "How long the oldest of it waits",
        |(at, informer), samples| {
            let since = informer.status.queue.oldest_since;
            samples.add(seconds(since.map(|since| at.saturating_sub(since)).unwrap_or_default()));
        },
    ),
    Family::histogram(
        "informer_processing_latency_seconds",
        "How long the store took for what it got at once, until others could read it",
        |(_, informer), samples| samples.add(times(&informer.status.processing)),
    ),
    Family::gauge(
        "informer_store_resource_version",
        "The last 15 digits of the version of the store, if it has one source",
        |(_, informer), samples| {
            if let [source] = &informer.status.sources[..]
                && let Some(version) = &source.version
            {
                samples.add(Value::Number(version.as_metric() as f64));
            }
        },
    ),
    Family::gauge("informer_objects", "Objects in the cache", |(_, informer), samples| {
        samples.add(number(informer.status.objects));
    }),
    Family::gauge(
        "informer_objects_wire_bytes",
        "What these objects were on the wire",
        |(_, informer), samples| {
            samples.add(number(informer.status.bytes));
        },
    ),
    Family::gauge(
        "informer_undecodable_objects",
        "Objects that cannot be decoded",
        |(_, informer), samples| {
            samples.add(number(informer.status.undecodable));
        },
    ),
    Family::gauge(
        "informer_synced",
        "1 once every source has listed, and has caught up if it began with saved objects",
        |(_, informer), samples| {
            samples.add(yes(informer.status.synced));
        },
    ),
    Family::gauge("informer_sync_duration_seconds", "How long that took", |(_, informer), samples| {
        informer.status.sync_took.iter().for_each(|took| samples.add(seconds(*took)));
    }),
    Family::gauge(
        "informer_sync_wire_bytes",
        "The bytes of objects that came until then",
        |(_, informer), samples| {
            informer.status.sync_bytes.iter().for_each(|bytes| samples.add(Value::Number(*bytes as f64)));
        },
    ),
    Family::gauge("informer_sources", "Sources by what they are doing", |(_, informer), samples| {
        for state in STATES {
            samples.with([("state", state)], number(0));
        }
        for source in &informer.status.sources {
            samples.with([("state", state_of(&source.state))], number(1));
        }
    }),
    Family::gauge(
        "informer_stale_seconds",
        "For how long a source has failed, after the sync",
        |(at, informer), samples| {
            let stale = informer.status.stale(*at).map(|stale| stale.lasts);
            samples.add(seconds(stale.unwrap_or_default()));
        },
    ),
    Family::gauge(
        "informer_last_event_age_seconds",
        "How long ago the source that has been silent longest sent an event or a bookmark",
        |(at, informer), samples| informer.status.age(*at).iter().for_each(|age| samples.add(seconds(*age))),
    ),
    Family::counter("informer_restarts", "Restarts of its actors after panics", |(_, informer), samples| {
        count(samples, informer.status.restarts);
    }),
    Family::gauge(
        "informer_given_up",
        "1 if a part of it is not restarted any more",
        |(_, informer), samples| {
            samples.add(yes(informer.status.failed.is_some()));
        },
    ),
    Family::gauge(
        "informer_stuck",
        "1 while something blocks it, or makes no progress",
        |(_, informer), samples| {
            samples.add(yes(informer.status.stuck.is_some()));
        },
    ),
    Family::gauge(
        "informer_save_failing",
        "1 while its cache cannot be saved, or what was saved could not be read",
        |(_, informer), samples| {
            let problem = informer.status.saved.as_ref().and_then(|saved| saved.problem.as_ref());
            samples.add(yes(problem.is_some()));
        },
    ),
    Family::gauge(
        "informer_catching_up",
        "1 while its objects are only those of its saved cache",
        |(_, informer), samples| {
            let saved = informer.status.saved.as_ref();
            samples.add(yes(saved.is_some_and(|saved| saved.catching_up_to.is_some())));
        },
    ),
    Family::counter(
        "informer_data_incidents",
        "What was odd in the data, by reason",
        |(_, informer), samples| {
            for (reason, counted) in informer.status.data.by_reason() {
                samples.with([("reason", &reason.to_string())], Value::Count(counted));
            }
        },
    ),
    Family::histogram(
        "reflector_list_duration_seconds",
        "How long delivered lists took, from their beginning to the last object",
        |(_, informer), samples| samples.add(times(&informer.status.lists)),
    ),
    Family::counter("reflector_lists", "Lists that were begun", |(_, informer), samples| {
        count(samples, informer.status.totals.counters.lists);
    }),
    Family::counter("reflector_relists", "Lists after the first one, by reason", |(_, informer), samples| {
        for (reason, counted) in informer.status.totals.counters.relists_by.by_reason() {
            samples.with([("reason", reason)], Value::Count(counted));
        }
    }),
    Family::counter("reflector_watches", "Watches that were opened", |(_, informer), samples| {
        count(samples, informer.status.totals.counters.watches);
    }),
    Family::counter(
        "reflector_short_watches",
        "Watches that ended soon and without an event",
        |(_, informer), samples| {
            count(samples, informer.status.totals.counters.short_watches);
        },
    ),
    Family::counter(
        "reflector_watch_ends",
        "Watches that have ended, by reason",
        |(_, informer), samples| {
            for (reason, counted) in informer.status.totals.watch_ends.by_reason() {
                samples.with([("reason", reason)], Value::Count(counted));
            }
        },
    ),
    Family::counter(
        "reflector_failures",
        "Failures that were followed by a wait, by reason",
        |(_, informer), samples| {
            let counters = &informer.status.totals.counters;
            let named = [
                ("denied", counters.denied),
                ("gone", counters.gone),
                ("rejected_selector", counters.rejected_selectors),
                ("overloaded", counters.overloaded),
                ("short_watch", counters.short_watches),
            ];
            let others = counters.failures.saturating_sub(named.iter().map(|(_, counted)| counted).sum());
            for (reason, counted) in named.into_iter().chain([("other", others)]) {
                samples.with([("reason", reason)], Value::Count(counted));
            }
        },
    ),
    Family::counter(
        "reflector_received_bytes",
        "The bytes of objects that came from the server",
        |(_, informer), samples| {
            count(samples, informer.status.totals.wire_bytes);
        },
    ),
    Family::counter("watch_events", "Events of watches, without bookmarks", |(_, informer), samples| {
        count(samples, informer.status.totals.watch_events);
    }),
    Family::gauge("informer_subscriptions", "Subscriptions", |(_, informer), samples| {
        samples.add(number(informer.subscriptions.len()));
    }),
];

/// Labels: those of the informer, and `handler`.
pub(super) const SUBSCRIPTIONS: &[Family<(Duration, SubscriptionStatus)>] = &[
    Family::gauge(
        "subscription_queued_events",
        "Events that wait for the subscriber",
        |(_, subscription), samples| {
            samples.add(number(subscription.depth));
        },
    ),
    Family::gauge(
        "subscription_oldest_event_seconds",
        "How long the oldest of them waits",
        |(at, subscription), samples| {
            let since = subscription.oldest_since.map(|since| at.saturating_sub(since));
            samples.add(seconds(since.unwrap_or_default()));
        },
    ),
    Family::counter("subscription_events", "Events that were handled", |(_, subscription), samples| {
        count(samples, subscription.delivered);
    }),
    Family::counter(
        "subscription_coalesced_events",
        "Events that a newer one of the same object replaced",
        |(_, subscription), samples| count(samples, subscription.coalesced),
    ),
    Family::counter(
        "subscription_dropped_events",
        "Events that a full backlog dropped",
        |(_, subscription), samples| {
            count(samples, subscription.dropped);
        },
    ),
    Family::counter(
        "subscription_filtered_events",
        "Events that filters dropped",
        |(_, subscription), samples| {
            count(samples, subscription.filtered);
        },
    ),
    Family::counter(
        "subscription_panics",
        "Events on which the callback panicked",
        |(_, subscription), samples| {
            count(samples, subscription.panics);
        },
    ),
    Family::counter(
        "subscription_overran_calls",
        "Calls that took longer than their limit",
        |(_, subscription), samples| {
            count(samples, subscription.overran);
        },
    ),
    Family::histogram(
        "subscription_delivery_latency_seconds",
        "From the arrival of an event until the subscriber had handled it; one of each window is measured",
        |(_, subscription), samples| samples.add(times(&subscription.latency)),
    ),
    Family::histogram(
        "subscription_callback_duration_seconds",
        "How long calls of a closure took",
        |(_, subscription), samples| samples.add(times(&subscription.calls)),
    ),
];

/// Without labels.
pub(super) const RUNTIME: &[Family<(usize, Vec<ArbiterHealth>)>] = &[
    Family::gauge(
        "informer_runtime_to_free_bytes",
        "Bytes that are dropped and not yet freed",
        |(to_free, _), samples| {
            samples.add(number(*to_free));
        },
    ),
    Family::gauge(
        "informer_runtime_thread_silence_seconds",
        "Time since a thread of actors last responded; above two seconds something blocks it",
        |(_, threads), samples| {
            for thread in threads {
                samples.with([("thread", &thread.name)], seconds(thread.since_pulse));
            }
        },
    ),
    Family::counter(
        "informer_runtime_job_panics",
        "Jobs of a thread that panicked",
        |(_, threads), samples| {
            for thread in threads {
                samples.with([("thread", &thread.name)], Value::Count(thread.panics));
            }
        },
    ),
];

const STATES: [&str; 10] = [
    "declared",
    "starting",
    "listing",
    "streaming",
    "backoff",
    "gone",
    "selector_rejected",
    "denied",
    "given_up",
    "stopped",
];

fn state_of(state: &SourceState) -> &'static str {
    match state {
        SourceState::Declared => "declared",
        SourceState::Starting => "starting",
        SourceState::Listing { .. } => "listing",
        SourceState::Streaming => "streaming",
        SourceState::Backoff { .. } => "backoff",
        SourceState::Gone { .. } => "gone",
        SourceState::SelectorRejected { .. } => "selector_rejected",
        SourceState::Denied { .. } => "denied",
        SourceState::GivenUp { .. } => "given_up",
        _ => "stopped",
    }
}
