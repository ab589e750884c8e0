//! Statuses as one line of text each, for logs and terminals. Of several sources it names the worst. An error stands
//! in it once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::meta::ClusterName;

use super::status::InformerStatus;
use super::subscription_state::SubscriptionStatus;

/// The most hints in a line: many namespaces may be empty.
const MOST_HINTS: usize = 3;

impl fmt::Display for InformerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        write!(f, "informer {:?}: ", self.name)?;
        if let Some(worst) = self.worst().filter(|_| self.sources.len() > 1 && !self.stopped) {
            write!(f, "source {:?}: ", worst.source.as_str())?;
        }
        write!(f, "{state}; {} objects", self.objects)?;
        if !self.synced && !self.stopped {
            f.write_str(", not synced")?;
        }
        for hint in self.sources.iter().filter_map(|source| source.hint.as_ref()).take(MOST_HINTS) {
            write!(f, "; {hint}")?;
        }
        if self.sources.iter().any(|source| source.waits_for_receiver) {
            f.write_str("; it waits for the receiver of what it passes on")?;
        }
        for refused in self.namespaces.iter().filter(|set| set.refused.is_some()) {
            write!(f, "; {refused}")?;
        }
        if let Some(saved) = &self.saved {
            write!(f, "; {saved}")?;
        }
        if let Some(reason) = &self.failed {
            write!(f, "; supervision gave up: {reason}")?;
        }
        self.stuck.as_ref().map_or(Ok(()), |stuck| write!(f, "; {stuck}"))
    }
}

impl fmt::Display for SubscriptionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "subscription {:?}: {} events handled, {} wait", self.name, self.delivered, self.depth)?;
        if self.dropped > 0 {
            write!(f, ", {} dropped", self.dropped)?;
        }
        if self.panics > 0 {
            write!(f, ", {} skipped after a panic", self.panics)?;
        }
        match &self.ended {
            Some(reason) => write!(f, "; ended: {reason}"),
            None if !self.synced => f.write_str("; not synced"),
            None => Ok(()),
        }
    }
}

/// How an informer follows a set of namespaces: a given one, or one that a selector selects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct NamespacesStatus {
    /// The cluster, in an informer of several clusters.
    pub cluster: Option<ClusterName>,
    /// How many namespaces are wanted.
    pub wanted: usize,
    /// Whether one cluster-wide watch follows them, or is about to, instead of one watch each.
    pub cluster_wide: bool,
    /// Why the cluster-wide watch is not used although there are enough namespaces.
    pub refused: Option<Arc<str>>,
    /// When the cluster-wide watch is asked for again after that, as time since the runtime's start.
    pub next_try_at: Option<Duration>,
    /// How many of them have no source, because none could be made. They are tried again.
    pub failed: usize,
    /// One of these, and why.
    pub failure: Option<Arc<str>>,
}

impl fmt::Display for NamespacesStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.cluster_wide { "by one cluster-wide watch" } else { "one by one" };
        write!(f, "{} namespaces", self.wanted)?;
        if let Some(cluster) = &self.cluster {
            write!(f, " of cluster {cluster}")?;
        }
        write!(f, " {how}")?;
        if let Some(why) = &self.refused {
            write!(f, ", as the cluster-wide watch is refused: {why}")?;
        }
        match &self.failure {
            Some(why) => write!(f, ", {} of them not: {why}", self.failed),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use informer_core::delta_fifo::QueueOrder;
    use informer_core::list_watch_error::ListWatchError;
    use informer_core::meta::SourceId;
    use informer_core::reflector::SourceState;

    use crate::informer::Informer;
    use crate::pipeline::board::StatusBoard;
    use crate::runtime::Runtime;
    use crate::testing::Server;

    #[test]
    fn the_status_of_an_informer_is_one_line_that_names_its_worst_source_and_its_error_once() {
        let sources = [SourceId::new("a"), SourceId::new("b")];
        let mut status = StatusBoard::new(("pods".into(), None), QueueOrder::InOrder, &sources).read();
        status.sources[0].state = SourceState::Streaming;
        let error = ListWatchError::Denied("no".into());
        status.sources[1].state =
            SourceState::Denied { attempts: 1, error: error.clone(), until: Duration::ZERO };
        status.sources[1].last_error = Some(error);
        let text = status.to_string();
        assert_eq!(text, "informer \"pods\": source \"b\": denied: no; 0 objects, not synced");
        status.stopped = true;
        assert_eq!(status.to_string(), "informer \"pods\": stopped; 0 objects");
    }

    #[test]
    fn the_status_of_a_subscription_is_one_line_that_says_what_it_has_handled() {
        Runtime::simulated(1).run(|runtime| async move {
            let server = Server::new();
            server.apply("a/one", "text".to_owned());
            let informer = Informer::builder(&runtime, "texts").source(move || server.clone()).start();
            let informer = informer.expect("a sound spec");
            let subscription = informer.for_each(|_| std::future::ready(())).expect("it runs");
            let before = subscription.status().to_string();
            assert!(before.ends_with(": 0 events handled, 0 wait; not synced"), "{before}");
            subscription.synced().await.expect("it syncs");
            let after = subscription.status().to_string();
            assert!(after.ends_with(": 1 events handled, 0 wait"), "{after}");
            assert!(
                informer.status().to_string().ends_with("\"texts\": streaming; 1 objects"),
                "{informer:?}"
            );
        });
    }
}
