//! The signals that end the service.
//!
//! Answers "when did somebody ask for the end?". A library touches no signals; the service does, and only through
//! this function, so that whoever embeds it keeps their own. Invariants:
//! 1. SIGINT and SIGTERM ask for a drain; a second one while draining ends the process at once, as a person at a
//!    terminal expects.

use super::run::Ending;

/// Exit code of a process that ended without draining, because it was asked twice.
const IMPATIENT: i32 = 130;

/// Waits for SIGINT (Ctrl-C) or SIGTERM. Must be called inside a tokio runtime.
///
/// # Errors
/// When the system refuses the handlers.
#[cfg(unix)]
pub fn stop_signal() -> std::io::Result<impl Future<Output = Ending>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        let first = tokio::select! {
            _ = interrupt.recv() => Ending::Interrupted,
            _ = terminate.recv() => Ending::Terminated,
        };
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            std::process::exit(IMPATIENT);
        });
        first
    })
}

/// Waits for Ctrl-C. Must be called inside a tokio runtime.
///
/// # Errors
/// Never on this system.
#[cfg(not(unix))]
pub fn stop_signal() -> std::io::Result<impl Future<Output = Ending>> {
    Ok(async {
        // An error means that there is no console to be interrupted from: then only the limit ends it.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::spawn(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(IMPATIENT);
            }
        });
        Ending::Interrupted
    })
}
