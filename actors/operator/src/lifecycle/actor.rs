//! The actor of an operator: it starts and stops parts, and wakes when one is due. Parts run on while it is
//! restarted. It ends when everything has stopped; if it is given up, or its arbiter ends, every part is
//! dropped.

use std::time::Duration;

use crate::lifecycle::machine::Stage;
use actix::Context;

use super::content::{Content, Step};
use super::{Shared, run};
use informer_actors::inner::{Locked, Run, Runner, Site};

impl Run for Shared {
    type Machine = Content;
    type Waiting = ();

    const SITES: [Site; 2] = [Site::OperatorStarted, Site::OperatorLook];

    fn locked(&self) -> &Locked<Content> {
        &self.content
    }

    fn look(runner: &mut Runner<Self>, _ctx: &mut Context<Runner<Self>>) -> Option<Duration> {
        let shared = &runner.run;
        let mut has_acted = false;
        while let Some(step) = shared.next() {
            has_acted = true;
            match step {
                Step::Start(life, tokens) => run::start(shared, life, tokens),
                Step::Cancel(token) => token.cancel(),
            }
        }
        let (stage, due) = shared.with(|lifecycle, _| (lifecycle.stage(), lifecycle.next_due()));
        if has_acted || stage == Stage::Stopped {
            shared.changed.raise();
        }
        if stage == Stage::Stopped {
            shared.stop.cancel();
        }
        due.filter(|_| stage != Stage::Stopped)
    }
}
