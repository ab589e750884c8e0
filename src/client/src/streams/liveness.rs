//! Detects a dead websocket on a connection that stands: a relay may forward nothing, which TCP does not notice. kubectl pings
//! each 5 s and gives up after 61 s (`tools/remotecommand/websocket.go`).
//!
//! A server that is silent for [`SILENCE`] is pinged, and given up after [`ANSWER`] without a byte: at most two minutes after its
//! last byte. Time in which something waits on this side does not count.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

const SILENCE: Duration = Duration::from_secs(30);
const ANSWER: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Ping,
    End(Duration),
}

#[derive(Debug, Default)]
pub(super) struct Liveness {
    timer: Option<Pin<Box<Sleep>>>,
    is_heard: bool,
    is_asked: bool,
}

impl Liveness {
    pub(super) fn handle_heard(&mut self) {
        if std::mem::take(&mut self.is_asked)
            && let Some(timer) = &mut self.timer
        {
            timer.as_mut().reset(Instant::now() + SILENCE);
        }
        self.is_heard = true;
    }

    /// `is_held_up`: something waits on this side.
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
