//! Metrics of work queues, controllers, elections and recorders.

use informer_operator::events::RecorderReport;

use super::write::{Family, Range, Samples, Value, number, seconds, times, yes};
use crate::controller::ControllerStatus;
use crate::events::DropReason;
use crate::leader_election::ElectionStatus;
use crate::status::QueueReport;

fn queue_times(samples: &mut Samples<'_>, timing: crate::status::Timing) {
    samples.add(Value::Times(Box::new(timing), Range::Queue));
}

/// controller-runtime's labels, a superset of client-go's.
pub(super) const QUEUES: &[Family<QueueReport>] = &[
    Family::gauge("workqueue_depth", "Keys that wait in the work queue, by priority", |queue, samples| {
        let [high, normal, low] = queue.figures.depth;
        samples.with([("priority", "100")], number(high));
        samples.with([("priority", "0")], number(normal));
        samples.with([("priority", "-100")], number(low));
    }),
    Family::counter("workqueue_adds", "Adds that made a key wait", |queue, samples| {
        samples.add(Value::Count(queue.figures.adds));
    }),
    Family::histogram(
        "workqueue_queue_duration_seconds",
        "How long keys waited before they were handed out",
        |queue, samples| queue_times(samples, queue.figures.waited),
    ),
    Family::histogram(
        "workqueue_work_duration_seconds",
        "How long keys were worked on, until they came back",
        |queue, samples| queue_times(samples, queue.figures.worked),
    ),
    Family::gauge(
        "workqueue_unfinished_work_seconds",
        "For how long the keys that have not come back have been worked on, all together",
        |queue, samples| samples.add(seconds(queue.figures.unfinished)),
    ),
    Family::gauge(
        "workqueue_longest_running_processor_seconds",
        "For how long the oldest key that has not come back has been worked on",
        |queue, samples| samples.add(seconds(queue.figures.longest_running)),
    ),
    Family::counter("workqueue_retries", "Adds after a failure, which wait first", |queue, samples| {
        samples.add(Value::Count(queue.figures.retries));
    }),
    Family::gauge("workqueue_delayed_items", "Keys that are added at a later time", |queue, samples| {
        samples.add(number(queue.figures.delayed));
    }),
    Family::gauge(
        "workqueue_retrying_items",
        "Keys that have failed and wait for their next try",
        |queue, samples| samples.add(number(queue.figures.retrying)),
    ),
    Family::gauge("workqueue_processing_items", "Keys that are worked on", |queue, samples| {
        samples.add(number(queue.figures.processing));
    }),
    Family::counter(
        "workqueue_discarded",
        "Keys that were discarded by a shutdown or a standby",
        |queue, samples| {
            samples.add(Value::Count(queue.figures.discarded));
        },
    ),
    Family::counter("workqueue_refused", "Adds after the shutdown", |queue, samples| {
        samples.add(Value::Count(queue.figures.refused));
    }),
    Family::counter("workqueue_rebuilt", "How often it was built anew after a panic", |queue, samples| {
        samples.add(Value::Count(queue.rebuilt));
    }),
    Family::counter("workqueue_limiter_panics", "Panics of its rate limiter", |queue, samples| {
        samples.add(Value::Count(queue.limiter_panics))
    }),
];

pub(super) const CONTROLLERS: &[Family<ControllerStatus>] = &[
    Family::counter(
        "controller_runtime_reconcile",
        "Reconciles that have ended, by result",
        |controller, samples| {
            let counts = &controller.counts;
            samples.with([("result", "success")], Value::Count(counts.succeeded - counts.requeued));
            samples.with([("result", "requeue_after")], Value::Count(counts.requeued));
            // controller-runtime's deprecated Result.Requeue.
            samples.with([("result", "requeue")], Value::Count(0));
            samples.with([("result", "error")], Value::Count(counts.failed));
        },
    ),
    Family::counter(
        "controller_runtime_reconcile_errors",
        "Reconciles that failed, terminal ones, panics and time-outs included",
        |controller, samples| samples.add(Value::Count(controller.counts.failed)),
    ),
    Family::counter(
        "controller_runtime_terminal_reconcile_errors",
        "Reconciles that failed with a terminal error, which is not tried again",
        |controller, samples| samples.add(Value::Count(controller.counts.terminal)),
    ),
    Family::counter(
        "controller_runtime_reconcile_panics",
        "Reconciles that panicked",
        |controller, samples| {
            samples.add(Value::Count(controller.counts.panics));
        },
    ),
    Family::counter(
        "controller_runtime_reconcile_timeouts",
        "Reconciles that took longer than the time limit",
        |controller, samples| samples.add(Value::Count(controller.counts.timeouts)),
    ),
    Family::histogram(
        "controller_runtime_reconcile_time_seconds",
        "How long reconciles took, without waiting in the queue and for own writes",
        |controller, samples| samples.add(times(&controller.took)),
    ),
    Family::gauge(
        "controller_runtime_max_concurrent_reconciles",
        "The number of workers",
        |controller, samples| samples.add(number(controller.workers)),
    ),
    Family::gauge(
        "controller_runtime_active_workers",
        "Workers that reconcile now",
        |controller, samples| {
            samples.add(number(controller.active));
        },
    ),
    Family::counter(
        "controller_cancelled_reconciles",
        "Reconciles that a stop, a panic of their worker or the end of their threads cancelled",
        |controller, samples| {
            samples.add(Value::Count(controller.counts.cancelled));
        },
    ),
    Family::histogram(
        "controller_own_writes_wait_seconds",
        "How long keys waited after a reconcile until the caches had shown what it wrote",
        |controller, samples| samples.add(times(&controller.writes_wait)),
    ),
    Family::counter(
        "controller_own_writes_not_seen",
        "Own writes that no cache had shown within the limit",
        |controller, samples| samples.add(Value::Count(controller.counts.writes_not_seen)),
    ),
    Family::gauge(
        "controller_resting_keys",
        "Keys that rest until their objects change",
        |controller, samples| samples.add(number(controller.kept.resting)),
    ),
    Family::counter(
        "controller_map_panics",
        "Panics of functions that map objects to keys",
        |controller, samples| samples.add(Value::Count(controller.counts.map_panics)),
    ),
    Family::gauge(
        "controller_informers_not_synced",
        "Informers that are not synced: while there is one, no first reconcile begins",
        |controller, samples| samples.add(number(controller.not_synced.len())),
    ),
    Family::gauge(
        "controller_not_followed",
        "Informers and subscriptions that have ended: their changes lead to no reconcile",
        |controller, samples| samples.add(number(controller.not_followed.len())),
    ),
];

pub(super) const ELECTIONS: &[Family<ElectionStatus>] = &[
    Family::gauge("leader_election_master_status", "1 if this process leads", |election, samples| {
        samples.add(yes(election.fence.is_some()));
    }),
    Family::counter(
        "leader_election_slowpath",
        "Renewals that had to read the lease first",
        |election, samples| samples.add(Value::Count(election.figures.slow_paths)),
    ),
    Family::counter("leader_election_terms", "Terms of this process that have begun", |election, samples| {
        samples.add(Value::Count(election.figures.terms));
    }),
    Family::counter("leader_election_lost", "Terms that ended before a shutdown", |election, samples| {
        samples.add(Value::Count(election.figures.lost));
    }),
    Family::counter("leader_election_renewals", "Renewals that were written", |election, samples| {
        samples.add(Value::Count(election.figures.renewals));
    }),
    Family::counter("leader_election_failures", "Requests that failed", |election, samples| {
        samples.add(Value::Count(election.figures.failures));
    }),
    Family::counter(
        "leader_election_restarts",
        "How often its actor was built again",
        |election, samples| {
            samples.add(Value::Count(election.restarts));
        },
    ),
];

pub(super) const RECORDERS: &[Family<RecorderReport>] = &[
    Family::counter("event_recorder_emitted", "Events that the program gave", |recorder, samples| {
        samples.add(Value::Count(recorder.figures.emitted));
    }),
    Family::counter("event_recorder_sent", "Requests that were accepted", |recorder, samples| {
        samples.with([("request", "create")], Value::Count(recorder.figures.created));
        samples.with([("request", "patch")], Value::Count(recorder.figures.patched));
    }),
    Family::counter(
        "event_recorder_retries",
        "Requests that failed and were sent again",
        |recorder, samples| {
            samples.add(Value::Count(recorder.figures.retries));
        },
    ),
    Family::counter("event_recorder_dropped", "Events that were not sent, by reason", |recorder, samples| {
        for (reason, name) in [
            (DropReason::Full, "full"),
            (DropReason::Spam, "spam"),
            (DropReason::Invalid, "invalid"),
            (DropReason::Closed, "closed"),
            (DropReason::Refused, "refused"),
            (DropReason::GaveUp, "gave_up"),
            (DropReason::Forgotten, "forgotten"),
        ] {
            samples.with([("reason", name)], Value::Count(recorder.figures.dropped(reason)));
        }
    }),
    Family::gauge("event_recorder_waiting", "Events that wait to be sent", |recorder, samples| {
        samples.add(number(recorder.figures.waiting));
    }),
];
