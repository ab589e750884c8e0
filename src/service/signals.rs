//! Waits for the signals that end the service.
//!
//! Answers "when must the service end?". Only this function installs signal handlers, so a program that embeds the
//! service can keep its own. Invariants:
//! 1. The first SIGINT or SIGTERM starts a drain; a second one ends the process at once, as a person at a terminal
//!    expects.

use super::run::Ending;

/// The exit code of a process that a second signal ended before the drain was complete.
const EXIT_ON_SECOND_SIGNAL: i32 = 130;

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
            std::process::exit(EXIT_ON_SECOND_SIGNAL);
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
        // An error means that there is no console. Then only the time limit or a closed output ends the service.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::spawn(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(EXIT_ON_SECOND_SIGNAL);
            }
        });
        Ending::Interrupted
    })
}
