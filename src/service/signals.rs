//! The signals that end the service.
//!
//! Answers "when must the service end?" by `crate::signals`: the first SIGINT or SIGTERM starts a drain, a second one
//! ends the process at once.

use super::run::Ending;
use crate::signals::{self, Signal};

/// Waits for SIGINT (Ctrl-C) or SIGTERM. Must be called inside a tokio runtime.
///
/// # Errors
/// When the system refuses the handlers.
pub fn stop_signal() -> std::io::Result<impl Future<Output = Ending>> {
    let signal = signals::stop_signal()?;
    Ok(async move {
        match signal.await {
            Signal::Interrupt => Ending::Interrupted,
            Signal::Terminate => Ending::Terminated,
        }
    })
}
