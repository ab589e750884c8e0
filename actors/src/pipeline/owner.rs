//! The informer as the owner of its actors: what it does when one of them fails.
//!
//! 1. Each failure is one log line: informer, actor, reason, and what follows.
//! 2. If the group is given up, the informer stops. If a reflector is given up, the store is still served,
//!    and the source is GivenUp until it is revived.

use std::sync::Arc;

use informer_core::meta::SourceId;
use informer_core::restart::{OnFailure, Role};
use informer_core::words::{Brief, QUOTED, one_line};
use tokio_util::sync::CancellationToken;

use crate::pipeline::board::StatusBoard;
use crate::pipeline::status::{LastRestart, SourceStatus};
use crate::runtime::Clock;
use crate::runtime::progress::Progress;
use crate::supervision::owner::{ChildEvent, Ended, Owner};

/// Their states belong together, so they are restarted together.
pub(crate) const MEMBER: Role =
    Role { on_failure: OnFailure::RestartGroup, follows_group: true, tells_owner: true };

/// Restarted alone: store and listeners are not affected. Also restarted with the group: the queue has lost
/// what the reflector had put in.
pub(crate) const REFLECTOR: Role =
    Role { on_failure: OnFailure::RestartAlone, follows_group: true, tells_owner: true };

/// Never restarted: its waiting events would be lost silently. Its subscription ends with a reason.
pub(crate) const LISTENER: Role =
    Role { on_failure: OnFailure::GiveUp, follows_group: false, tells_owner: false };

pub(crate) struct InformerOwner {
    pub(crate) informer: Arc<str>,
    pub(crate) board: StatusBoard,
    pub(crate) progress: Arc<Progress>,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
}

impl Owner for InformerOwner {
    fn child_changed(&self, child: &Arc<str>, role: Role, event: ChildEvent<'_>) {
        let (informer, actor, is_member) =
            (&self.informer, child, role.on_failure == OnFailure::RestartGroup);
        match event {
            ChildEvent::Restarts { exit, after } => {
                let (ended, after) = (Ended(exit), Brief(after));
                if is_member {
                    self.progress.group_is_down();
                    tracing::error!(target: "actix_informer::informer", %informer, %actor, "{actor} {ended}; delta-fifo, indexer and processor start again in {after}");
                } else {
                    tracing::error!(target: "actix_informer::informer", %informer, %actor, "{actor} {ended}; it starts again in {after}");
                }
                let (actor, why) =
                    (Arc::clone(child), one_line(&ended.to_string(), QUOTED).to_string().into());
                let last = LastRestart { actor, why, at: self.clock.now() };
                self.board.count_restart(last, followed_by(child).as_ref());
            }
            ChildEvent::Ended { exit } => {
                tracing::debug!(target: "actix_informer::informer", %informer, %actor, "{actor} {}", Ended(exit))
            }
            ChildEvent::GivenUp { reason } => {
                let (reason_line, source) = (one_line(reason, QUOTED), followed_by(child));
                if is_member {
                    tracing::error!(target: "actix_informer::informer", %informer, %actor, "{actor} is not started again: {reason_line}; the informer stops");
                } else if source.is_some() {
                    tracing::error!(target: "actix_informer::informer", %informer, %actor, "{actor} is not started again: {reason_line}; its source is not followed until it is revived");
                } else {
                    tracing::error!(target: "actix_informer::informer", %informer, %actor, "{actor} is not started again: {reason_line}; the namespaces stay as they are");
                }
                let source = source.as_ref().map(|source| (source, reason));
                self.board.give_up(failure(child, reason), source, self.clock.now());
                if is_member {
                    self.stop.cancel();
                }
            }
            ChildEvent::Revived => {
                tracing::info!(target: "actix_informer::informer", %informer, %actor, "{actor} was given up and is revived; its source is followed again");
                if let Some(source) = followed_by(child) {
                    let worded = |status: &SourceStatus, reason: &Arc<str>| {
                        failure(&reflector_name(&status.source), reason)
                    };
                    self.board.revive(&source, worded);
                }
            }
        }
    }
}

pub(crate) fn show_removed(board: &StatusBoard, source: &SourceId) {
    board.remove_source(source, |status, reason| failure(&reflector_name(&status.source), reason));
}

fn failure(child: &str, reason: &str) -> Arc<str> {
    format!("{child}: {reason}").into()
}

const REFLECTOR_OF: &str = "reflector/";

pub(crate) fn reflector_name(source: &SourceId) -> String {
    format!("{REFLECTOR_OF}{source}")
}

/// `None` if this child is no reflector.
fn followed_by(child: &str) -> Option<SourceId> {
    child.strip_prefix(REFLECTOR_OF).map(SourceId::new)
}
