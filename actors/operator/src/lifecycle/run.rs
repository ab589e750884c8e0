//! Runs one life of a part as a task, which alone runs the code of the part. The end is reported once, when
//! nothing of the future and of what outlives it is left: also after a panic, or the end of its tokio
//! runtime.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use crate::lifecycle::machine::{Life, PartEnded, PartId};
use futures_util::FutureExt;
use informer_core::restart::Exit;
use informer_core::words::{Brief, QUOTED, one_line};
use tokio::runtime::Handle;

use super::Shared;
use super::content::Tokens;
use super::part::{PartContext, PartError};
use informer_actors::inner::ArbiterHandle;
use informer_actors::runtime::Runtime;
use informer_core::words::panic_text;

pub(super) enum Executor {
    /// In which the operator was started.
    Tokio(Handle),
    Callbacks(ArbiterHandle),
}

impl Executor {
    /// In simulation parts end with the process that they belong to.
    pub(super) fn here(runtime: &Runtime) -> Self {
        let foreign = Handle::try_current().ok().filter(|_| !runtime.is_simulated());
        foreign.map_or_else(|| Self::Callbacks(runtime.callback_arbiter()), Self::Tokio)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Tokio(handle) => drop(handle.spawn(task)),
            Self::Callbacks(arbiter) => arbiter.spawn(move || task),
        }
    }
}

pub(super) fn start(shared: &Arc<Shared>, life: Life, Tokens { stop, kill }: Tokens) {
    let PartId(at) = life.part;
    let Some(named) = shared.parts.get(at) else { return };
    let part = Arc::clone(&named.part);
    let context = PartContext { shared: Arc::clone(shared), life, stop };
    let notice = EndNotice { shared: Arc::clone(shared), life, exit: None };
    shared.executor.spawn(async move {
        let run = async move { part.run(context).await };
        let ended = kill.run_until_cancelled(AssertUnwindSafe(run).catch_unwind()).await;
        for rest in notice.shared.take_rests(life) {
            drop(AssertUnwindSafe(rest).catch_unwind().await);
        }
        notice.report(match ended {
            None => Exit::Asked,
            Some(Ok(Ok(()))) => Exit::Finished,
            Some(Ok(Err(PartError(why)))) => Exit::Failed(why),
            Some(Err(panic)) => Exit::Panicked(panic_text(&*panic).into()),
        });
    });
}

/// Its drop reports the end.
struct EndNotice {
    shared: Arc<Shared>,
    life: Life,
    exit: Option<Exit>,
}

impl EndNotice {
    fn report(mut self, exit: Exit) {
        self.exit = Some(exit);
    }
}

impl Drop for EndNotice {
    fn drop(&mut self) {
        let dropped = || Exit::Failed("what ran it has ended, or it panicked while it was dropped".into());
        let exit = self.exit.take().unwrap_or_else(dropped);
        let ended = self.shared.ended(self.life, &exit);
        let PartId(at) = self.life.part;
        if let (Some(ended), Some(named)) = (ended, self.shared.parts.get(at)) {
            log((&self.shared.name, &named.name), &exit, &ended);
        }
        self.shared.tell();
    }
}

fn log((operator, part): (&str, &str), exit: &Exit, ended: &PartEnded) {
    let why = match exit {
        Exit::Failed(why) => format!("has failed: {}", one_line(why, QUOTED)),
        Exit::Panicked(text) => format!("has panicked: {}", one_line(text, QUOTED)),
        _ => "has ended".to_owned(),
    };
    let is_failure = matches!(exit, Exit::Failed(_) | Exit::Panicked(_));
    match ended {
        PartEnded::Restarts { after } => {
            tracing::warn!(target: "actix_informer::operator", %operator, %part, "operator {operator}: {part} {why}; it starts again in {}, and nothing else is touched", Brief(*after));
        }
        PartEnded::GivenUp { .. } => {
            tracing::error!(target: "actix_informer::operator", %operator, %part, "operator {operator}: {part} {why}; it is not started again");
        }
        PartEnded::LeaseLost => {
            tracing::warn!(target: "actix_informer::operator", %operator, %part, "operator {operator}: {part} was dropped, because the lease is lost; it starts again with the next one");
        }
        PartEnded::TimeOver => {
            tracing::warn!(target: "actix_informer::operator", %operator, %part, "operator {operator}: {part} was dropped, because its time to drain was over");
        }
        _ if is_failure => {
            tracing::warn!(target: "actix_informer::operator", %operator, %part, "operator {operator}: {part} {why} while it was stopped")
        }
        _ => {
            tracing::debug!(target: "actix_informer::operator", %operator, %part, "operator {operator}: {part} {why}")
        }
    }
}
