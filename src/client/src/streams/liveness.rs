//! Finds out that a websocket is dead although its connection stands.
//!
//! Answers "when is a silent server asked, and when is it given up?" A relay on the way may hold a connection open and
//! forward nothing: TCP notices nothing then. kubectl asks each 5 s and gives up after 61 s
//! (`tools/remotecommand/websocket.go`). Invariants:
//! 1. A server of which anything is heard within [`SILENCE`] is never asked. What is asked is given up when nothing at all
//!    is heard within [`ANSWER`], so at most two minutes after the last byte.
//! 2. Time in which the program takes nothing, or the connection takes nothing, does not count.
//!
//! Read next: `engine.rs`.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// How often the silence is looked at.
const SILENCE: Duration = Duration::from_secs(30);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(60);

/// What has to be done about a silent server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// A ping.
    Ping,
    /// The end: it has not answered for so long.
    End(Duration),
}

/// What is known of the server.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    timer: Option<Pin<Box<Sleep>>>,
    /// Something was heard since the timer began.
    is_heard: bool,
    is_asked: bool,
}

impl Liveness {
    /// Something has come from the server.
    pub(super) fn handle_heard(&mut self) {
        if std::mem::take(&mut self.is_asked)
            && let Some(timer) = &mut self.timer
        {
            timer.as_mut().reset(Instant::now() + SILENCE);
        }
        self.is_heard = true;
    }

    /// Ready when something has to be done. `is_held_up`: something waits on this side.
    pub(super) fn poll_due(&mut self, context: &mut Context<'_>, is_held_up: bool) -> Poll<Due> {
        loop {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(SILENCE)));
            ready!(timer.as_mut().poll(context));
            let is_silent = !std::mem::take(&mut self.is_heard) && !is_held_up;
            let was_asked = std::mem::replace(&mut self.is_asked, is_silent);
            let next = if is_silent { ANSWER } else { SILENCE };
            timer.as_mut().reset(Instant::now() + next);
            match (is_silent, was_asked) {
                (true, true) => return Poll::Ready(Due::End(ANSWER)),
                (true, false) => return Poll::Ready(Due::Ping),
                (false, _) => {}
            }
        }
    }
}
