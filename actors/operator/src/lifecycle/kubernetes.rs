//! Parts of an operator that speak with an API server: the election and the recorder of events.
//!
//! Answers "in which phase do they begin and end?": when the leader's work starts, when it is dropped, when the candidate ends,
//! and when what waits is sent. The election says who leads, and gives the lease back when the leader's work has ended. A
//! client that is guarded by the lease sends nothing after its end, so a recorder of the leader's work is a part between that
//! work and the election ([`OperatorBuilder::events`](crate::lifecycle::OperatorBuilder::events)). Invariants:
//! 1. An election that was declared takes part when the caches are filled, so that no replica has the lease which cannot
//!    work yet. One that was started takes part from then on, and the leader's work waits for the caches all the same.
//! 2. A drain gives the lease back in every phase, also before the caches are filled. When the operator is dropped, the
//!    candidate ends at once, whoever else has a handle of it, and the lease runs out.
//! 3. It leads again when nothing of the leader's work of its former term is left. If a drain abandons such work, the election
//!    ends at once.
//! 4. It is unhealthy when its actor was given up, when work of a former term does not end, or when it has not ended a term
//!    whose lease ran out more than [`TOLERANCE`] ago. A server that does not answer is no reason: the term was ended, and a
//!    restart of the process would not help.
//! 5. It is ready when it was known once who leads: another one, or this process, which has written the lease then. One that may
//!    not read or write the lease never will. Later failures make it stale, with the reason.
//! 6. A recorder is never missing: a server that takes no events delays no work. At its end it refuses events, and sends what
//!    waits, for as long as its phase may take.
//!
//! Read next: `election/kubernetes.rs`; `events/kubernetes.rs`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};

use crate::election::kubernetes::{LeaderElection, TermWork};
use crate::events::kubernetes::Recorder;
use crate::lifecycle::{Part, PartContext, PartError, Stale};

/// How long after the end of its lease a term may go on to be shown before liveness fails: as in kube-controller-manager.
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
        // A little less, so that it is told why the lease was not given back.
        limit = context.stopping() => Ok(election.shutdown(limit - limit / 10).await?),
        over = follow(&election, &context) => over,
    }
}

/// The leader's work of a term. If this is dropped while something of it is left, which a drain has abandoned, the election
/// ends: it must not lead again beside that.
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

/// Says when it is known who leads, and of each term when it begins and when it ends.
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
            // A little less, so that the report says how many events are left and why.
            Ok(recorder.shutdown(limit - limit / 10).await?)
        }
        .boxed()
    }
}
