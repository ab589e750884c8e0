//! From a fault as a value to the switch that it sets, and back to the list of faults that are on.
//!
//! Answers: what does this value do, and which values describe the present state?
//! 1. Applying all of `active` to a fresh server puts it under the same standing faults.
//! 2. `undone` returns the value that ends a standing fault; a fault that is over at once has none.
use std::time::Duration;

use super::{ErrorBody, Faults};
use crate::builder::StartError;
use crate::cluster::status::ApiError;
use crate::fault::Fault;
use crate::fault_state::{Dial, FaultState, Place, Switch};

/// Why a fault could not be applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// The store refused the change of the fault.
    #[error("the store refuses it: {}", .0.message())]
    Refused(ApiError),
    /// The port cannot be listened on any more.
    #[error("cannot listen again")]
    Listen(#[source] StartError),
    /// There is no kept state to restore.
    #[error("no backup is kept")]
    NoBackup,
    /// The server has no resource of this name: the fault would never take effect.
    #[error(
        "the server has no resource {name:?}{}; one that a definition adds later is announced by expect-resource",
        .nearest.as_ref().map(|name| format!(" (did you mean {name}?)")).unwrap_or_default()
    )]
    UnknownResource {
        /// The given name.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// There is no such verb.
    #[error(
        "no request has the verb {0:?}: it is list, watch, get, create, update, patch, delete or deletecollection"
    )]
    UnknownVerb(String),
}

impl Faults {
    /// Applies a fault. Blocks as the corresponding method does.
    ///
    /// # Errors Those of the corresponding method, and where that would panic: `UnknownResource`,
    /// `UnknownVerb`.
    pub fn apply(&self, fault: &Fault) -> Result<(), FaultError> {
        match fault {
            Fault::Clear {} => self.clear(),
            Fault::Compact { resource } => self.at(resource)?.compact(),
            Fault::KeepRevisions { revisions, resource } => self.at(resource)?.keep_revisions(*revisions),
            Fault::ExpireContinueTokens {} => self.expire_continue_tokens(),
            Fault::GoneNext { requests, resource } => self.at(resource)?.gone_next(*requests),
            Fault::FailNext { requests, code, resource } => self.at(resource)?.fail_next(*requests, *code),
            Fault::TooManyRequestsNext { requests, retry_after, text, resource } => {
                let body = if *text { ErrorBody::Text } else { ErrorBody::Status };
                self.at(resource)?.too_many_requests_next(*requests, *retry_after, body);
            }
            Fault::EndWatches { resource } => self.at(resource)?.end_watches(),
            Fault::ResetWatches { resource } => self.at(resource)?.reset_watches(),
            Fault::SlowLists { bytes_per_second, resource } => {
                self.at(resource)?.slow_lists(some(*bytes_per_second));
            }
            Fault::LimitLists { bytes, resource } => self.at(resource)?.limit_lists(some(*bytes)),
            Fault::PadLists { bytes, resource } => self.at(resource)?.pad_lists(some(*bytes)),
            Fault::DelayRequests { milliseconds, resource } => {
                self.at(resource)?.delay_requests(some(*milliseconds).map(Duration::from_millis));
            }
            Fault::SendRaw { resource, text } => self.try_of(resource)?.send(text.clone().into()),
            Fault::ExpectResource { resource } => return self.expect_resource(resource),
            Fault::Deny { verb, resource, off } => return self.forbid(verb, resource, !off),
            other => return self.apply_to_server(other),
        }
        Ok(())
    }

    /// The faults of the store, of the listener, and the plain switches.
    fn apply_to_server(&self, fault: &Fault) -> Result<(), FaultError> {
        match fault {
            Fault::RefuseConnections { off: false } => self.refuse_connections(),
            Fault::RefuseConnections { off: true } => {
                return self.accept_connections().map_err(FaultError::Listen);
            }
            Fault::JumpRevision { by } => self.jump_revision(*by),
            Fault::KeepBackup {} => self.keep_backup(),
            Fault::RestoreBackup {} => {
                return if self.restore_backup() { Ok(()) } else { Err(FaultError::NoBackup) };
            }
            Fault::Recreate { resource, namespace, name, unseen } => {
                return self.recreate(resource, namespace, name, *unseen).map_err(FaultError::Refused);
            }
            Fault::WithdrawDefinition { name, off: false } => {
                return self.withdraw_definition(name).map_err(FaultError::Refused);
            }
            Fault::WithdrawDefinition { name, off: true } => {
                return self.return_definition(name).map_err(FaultError::Refused);
            }
            switch => {
                if let Some((switch, resource, off)) = switch_of(switch) {
                    self.at(&resource)?.turn(switch, !off);
                }
            }
        }
        Ok(())
    }

    /// The standing faults, as the values that would set them.
    #[must_use]
    pub fn active(&self) -> Vec<Fault> {
        let mut active = self.world.with(|inner| active(&inner.faults));
        if !self.door.is_open() {
            active.push(Fault::RefuseConnections { off: false });
        }
        active
    }

    fn at(&self, resource: &Option<String>) -> Result<Self, FaultError> {
        resource.as_ref().map_or_else(|| Ok(self.clone()), |resource| self.try_of(resource))
    }
}

impl Fault {
    /// The fault that ends this one; none if it is over as soon as it has happened.
    #[must_use]
    pub fn undone(&self) -> Option<Self> {
        let mut undone = self.clone();
        match &mut undone {
            Self::FreezeWatches { off, .. }
            | Self::FreezeServer { off }
            | Self::ShortWatches { off, .. }
            | Self::DropBookmarks { off, .. }
            | Self::RefuseWatchList { off, .. }
            | Self::WithholdEndBookmark { off, .. }
            | Self::DuplicateEvents { off, .. }
            | Self::ReorderEvents { off, .. }
            | Self::HoldListTails { off, .. }
            | Self::PlainTextErrors { off }
            | Self::RefuseConnections { off }
            | Self::WithdrawDefinition { off, .. }
            | Self::Deny { off, .. } => *off = !*off,
            Self::SlowLists { bytes_per_second: size, .. }
            | Self::LimitLists { bytes: size, .. }
            | Self::PadLists { bytes: size, .. }
            | Self::DelayRequests { milliseconds: size, .. } => *size = 0,
            Self::GoneNext { requests, .. }
            | Self::FailNext { requests, .. }
            | Self::TooManyRequestsNext { requests, .. } => *requests = 0,
            _ => return None,
        }
        Some(undone)
    }
}

fn some(size: u64) -> Option<u64> {
    (size > 0).then_some(size)
}

fn switch_of(fault: &Fault) -> Option<(Switch, Option<String>, bool)> {
    let (switch, resource, off) = match fault {
        Fault::FreezeWatches { resource, off } => (Switch::FreezeWatches, resource.clone(), *off),
        Fault::FreezeServer { off } => (Switch::FreezeServer, None, *off),
        Fault::ShortWatches { resource, off } => (Switch::ShortWatches, resource.clone(), *off),
        Fault::DropBookmarks { resource, off } => (Switch::DropBookmarks, resource.clone(), *off),
        Fault::RefuseWatchList { resource, off } => (Switch::RefuseWatchList, resource.clone(), *off),
        Fault::WithholdEndBookmark { resource, off } => (Switch::WithholdEndBookmark, resource.clone(), *off),
        Fault::DuplicateEvents { resource, off } => (Switch::DuplicateEvents, resource.clone(), *off),
        Fault::ReorderEvents { resource, off } => (Switch::ReorderEvents, resource.clone(), *off),
        Fault::HoldListTails { resource, off } => (Switch::HoldListTails, resource.clone(), *off),
        Fault::PlainTextErrors { off } => (Switch::PlainTextErrors, None, *off),
        _ => return None,
    };
    Some((switch, resource, off))
}

fn fault_of(switch: Switch, resource: Option<String>) -> Fault {
    let off = false;
    match switch {
        Switch::FreezeWatches => Fault::FreezeWatches { resource, off },
        Switch::FreezeServer => Fault::FreezeServer { off },
        Switch::DropBookmarks => Fault::DropBookmarks { resource, off },
        Switch::RefuseWatchList => Fault::RefuseWatchList { resource, off },
        Switch::WithholdEndBookmark => Fault::WithholdEndBookmark { resource, off },
        Switch::ShortWatches => Fault::ShortWatches { resource, off },
        Switch::DuplicateEvents => Fault::DuplicateEvents { resource, off },
        Switch::ReorderEvents => Fault::ReorderEvents { resource, off },
        Switch::HoldListTails => Fault::HoldListTails { resource, off },
        Switch::PlainTextErrors => Fault::PlainTextErrors { off },
    }
}

fn active(faults: &FaultState) -> Vec<Fault> {
    let name = |place: &Place| place.as_ref().map(ToString::to_string);
    let switches = faults.on.iter().map(|(switch, place)| fault_of(*switch, name(place)));
    let dials = faults.dials.iter().map(|((dial, place), size)| {
        let (resource, size) = (name(place), *size);
        match dial {
            Dial::ListRate => Fault::SlowLists { bytes_per_second: size, resource },
            Dial::ListLimit => Fault::LimitLists { bytes: size, resource },
            Dial::ListPadding => Fault::PadLists { bytes: size, resource },
            Dial::Latency => Fault::DelayRequests { milliseconds: size, resource },
        }
    });
    let denied = faults.denied.iter().map(|(verb, resource)| Fault::Deny {
        verb: verb.clone(),
        resource: resource.to_string(),
        off: false,
    });
    let waiting = faults.failures.iter().filter(|(_, failure)| failure.left > 0);
    let failures = waiting.map(|(place, failure)| match (failure.retry_after, failure.reads_only) {
        (Some(retry_after), _) => Fault::TooManyRequestsNext {
            requests: failure.left,
            retry_after,
            text: failure.plain,
            resource: name(place),
        },
        (None, true) => Fault::GoneNext { requests: failure.left, resource: name(place) },
        (None, false) => {
            Fault::FailNext { requests: failure.left, code: failure.code, resource: name(place) }
        }
    });
    let withdrawn =
        faults.withdrawn.keys().map(|name| Fault::WithdrawDefinition { name: name.clone(), off: false });
    let expected = faults.expected.iter();
    let expected = expected.map(|resource| Fault::ExpectResource { resource: resource.to_string() });
    // The announcements come first, so that the others can be applied to another server.
    expected.chain(switches).chain(dials).chain(denied).chain(failures).chain(withdrawn).collect()
}
