//! The election and the recorder of events as parts of an operator. A client that is guarded by the lease
//! sends nothing after its end, so a recorder of the leader's work ends after that work and before the
//! election ([`OperatorBuilder::events`](crate::lifecycle::OperatorBuilder::events)).
//!
//! 1. A declared election takes part when the caches are filled: no replica holds the lease before it can
//!    work. A started one takes part at once.
//! 2. A drain releases the lease in every phase. When the operator is dropped, the candidate ends at once,
//!    despite other handles, and the lease runs out.
//! 3. It is unhealthy when its actor was given up, when work of a former term does not end, or when a term
//!    lasts longer than [`TOLERANCE`] after its lease. A server that does not answer is no reason: a restart
//!    would not help.
//! 4. It is ready once it is known who leads, which needs the rights to read and write the lease. Later
//!    failures make it stale.
//! 5. A recorder is always ready: a server that takes no events delays no work.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};

use crate::election::kubernetes::{LeaderElection, TermWork};
use crate::events::kubernetes::Recorder;
use crate::lifecycle::{Part, PartContext, PartError, Stale};

/// As in kube-controller-manager.
const TOLERANCE: Duration = Duration::from_secs(20);

impl Part for LeaderElection {
    fn name(&self) -> Arc<str> {
        format!("election for {}", self.status().lease).into()
    }

    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>> {
        run(self.clone(), context).boxed()
    }

    fn missing(&self) -> Option<String> {
        let status = self.status();
        (!status.answered).then(|| match (status.write_error, status.last_error) {
            (Some(why), _) => format!("the lease could not be taken yet: {why}"),
            (None, Some(why)) => format!("the lease could not be read yet: {why}"),
            (None, None) => "the server has not answered yet what the lease says".to_owned(),
        })
    }

    fn stale(&self) -> Option<Stale> {
        let status = self.status();
        Some(Stale::new(status.failing_for?, status.last_error?))
    }

    fn unhealthy(&self) -> Option<String> {
        self.health(TOLERANCE).err().map(|unhealthy| unhealthy.to_string())
    }

    fn holds(&self) -> bool {
        true
    }

    fn end(&self) {
        self.abandon();
    }
}

async fn run(election: LeaderElection, context: PartContext) -> Result<(), PartError> {
    if !context.is_stopping() {
        election.begin();
    }
    tokio::select! {
        biased;
        // A little less: the reason for a kept lease is reported.
        limit = context.stopping() => Ok(election.shutdown(limit - limit / 10).await?),
        over = follow(&election, &context) => over,
    }
}

/// If a drain has abandoned some of it, the drop ends the election, which must not lead beside it.
struct LeadersWork<'a> {
    _work: TermWork,
    election: &'a LeaderElection,
    context: &'a PartContext,
}

impl Drop for LeadersWork<'_> {
    fn drop(&mut self) {
        if self.context.has_leaders_work() {
            self.election.abandon();
        }
    }
}

async fn follow(election: &LeaderElection, context: &PartContext) -> Result<(), PartError> {
    election.answered().await?;
    context.ready();
    loop {
        context.leaders_work_ended().await;
        let term = election.acquired().await?;
        let Some(work) = term.begin_work() else { continue };
        let work = LeadersWork { _work: work, election, context };
        context.leads(true);
        term.ended().await;
        context.leads(false);
        context.leaders_work_ended().await;
        drop(work);
    }
}

impl Part for Recorder {
    fn name(&self) -> Arc<str> {
        format!("events of {}", self.controller()).into()
    }

    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>> {
        let recorder = self.clone();
        async move {
            context.ready();
            let limit = context.stopping().await;
            // A little less: the report says what is left and why.
            Ok(recorder.shutdown(limit - limit / 10).await?)
        }
        .boxed()
    }
}
