//! A leader election as a part of an operator: it says who leads, and gives the lease back when the leader's work has
//! ended.
//!
//! Answers "when does the leader's work start, and when is it dropped?". The election takes part from its own start, so
//! that clients can be guarded before the operator starts; the leader's work waits for the caches all the same. Read
//! next: `leader_election.rs`.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};

use super::{Part, PartContext, PartError};
use crate::leader_election::LeaderElection;

impl Part for LeaderElection {
    fn name(&self) -> Arc<str> {
        format!("election for {}", self.status().lease).into()
    }

    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>> {
        run(self.clone(), context).boxed()
    }
}

async fn run(election: LeaderElection, context: PartContext) -> Result<(), PartError> {
    context.ready();
    tokio::select! {
        biased;
        limit = context.stopping() => Ok(election.shutdown(limit).await?),
        over = follow(&election, &context) => over,
    }
}

/// Says of each term when it begins and when it ends.
async fn follow(election: &LeaderElection, context: &PartContext) -> Result<(), PartError> {
    loop {
        let term = election.acquired().await?;
        context.leads(true);
        term.ended().await;
        context.leads(false);
    }
}
