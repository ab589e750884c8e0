//! Work queues: keys that wait once each, go to one worker at a time, and are tried again when they fail.
//!
//! A [`WorkQueue`] needs no informer and no cluster; its key is any ordered type.

pub use informer_core::reflector::Moment;
pub use informer_operator::queue::machine::{KeyBackoff, KeyBackoffPolicy, LaneOrder, TooLong};
pub use informer_operator::queue::{
    Added, Bucket, Enqueue, ExponentialPerKey, FastSlow, Handing, MOST_PERIODS, MOST_WORKERS, MaxOf, MaxWait,
    NotDrained, Priority, QueueFigures, QueueKey, QueueReport, RateLimiter, WAIT_AFTER_PANIC, WorkItem,
    WorkQueue, WorkQueueBuilder,
};
