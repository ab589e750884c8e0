//! The signals that ask a process to end.
//!
//! Only [`stop_signal`] installs signal handlers. It returns the first SIGINT or SIGTERM to the caller; a second one ends the
//! process at once, as a person at a terminal expects.

/// After a second signal.
const EXIT_ON_SECOND_SIGNAL: i32 = 130;

/// Which signal came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a third signal would change what this promises")]
pub enum Signal {
    /// SIGINT, Ctrl-C.
    Interrupt,
    /// SIGTERM, by which a kubelet asks a container to end.
    Terminate,
}

/// Waits for SIGINT (Ctrl-C) or SIGTERM. Must be called inside a tokio runtime.
///
/// ```no_run
/// # async fn demo(operator: actix_informer::operator::Operator) -> std::io::Result<()> {
/// let report = operator.run_until(actix_informer::signals::stop_signal()?).await;
/// println!("{report}");
/// # Ok(()) }
/// ```
///
/// # Errors
/// When the system refuses the handlers.
#[cfg(unix)]
pub fn stop_signal() -> std::io::Result<impl Future<Output = Signal> + Send> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        let first = tokio::select! {
            _ = interrupt.recv() => Signal::Interrupt,
            _ = terminate.recv() => Signal::Terminate,
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
pub fn stop_signal() -> std::io::Result<impl Future<Output = Signal> + Send> {
    Ok(async {
        // An error: no console, so no signal comes.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::spawn(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(EXIT_ON_SECOND_SIGNAL);
            }
        });
        Signal::Interrupt
    })
}
