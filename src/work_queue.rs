//! Work queues: keys that wait once each, and are handed out to one worker at a time.
//!
//! A [`WorkQueue`] needs no informer and no cluster, and takes any ordered type as its key. What failed is
//! tried again later.

pub use informer_core::reflector::Moment;
pub use informer_operator::queue::machine::{KeyBackoff, KeyBackoffPolicy, LaneOrder, TooLong};
pub use informer_operator::queue::{
    Added, Bucket, Enqueue, ExponentialPerKey, FastSlow, Handing, MOST_PERIODS, MOST_WORKERS, MaxOf, MaxWait,
    NotDrained, Priority, QueueFigures, QueueKey, QueueReport, RateLimiter, WAIT_AFTER_PANIC, WorkItem,
    WorkQueue, WorkQueueBuilder,
};
