//! Stdout, written by one thread, so that nobody else ever waits for a pipe that nobody reads.
//!
//! Answers "how do lines get out, in order, and what if they cannot?". It does not know what a line says. Invariants:
//! 1. Lines come out whole and in the order in which they were taken; nothing is dropped.
//! 2. At most 1,024 lines wait. A subscription whose line finds no room waits, and coalesces meanwhile.
//! 3. It is flushed whenever no line waits.
//! 4. After the last line nothing is written, even if somebody still tries.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

/// How many lines may wait.
const ROOM: usize = 1_024;

/// How the output ended.
#[derive(Debug, Clone)]
pub(super) enum Ended {
    /// The last line is written.
    Whole,
    /// The reader went away (`| head`): an end like any other.
    Closed,
    /// Something else broke.
    Failed(Arc<io::Error>),
}

enum Line {
    Next(String),
    Last,
}

/// The way to stdout. Cloning copies two pointers.
#[derive(Debug, Clone)]
pub(super) struct Output {
    lines: mpsc::Sender<Line>,
    ended: watch::Receiver<Option<Ended>>,
}

impl Output {
    /// Starts the thread that writes to `sink`.
    pub(super) fn start(sink: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, inbox) = mpsc::channel(ROOM);
        let (tell, ended) = watch::channel(None);
        std::thread::Builder::new().name("informerd-output".to_owned()).spawn(move || {
            let result = write_lines(inbox, sink);
            tell.send_replace(Some(match result {
                Ok(()) => Ended::Whole,
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ended::Closed,
                Err(error) => Ended::Failed(Arc::new(error)),
            }));
        })?;
        Ok(Self { lines, ended })
    }

    /// Hands over one line (without its end) when there is room. After the output's end it goes nowhere.
    pub(super) async fn line(&self, text: String) {
        // An error means that the output has ended, which `ended` tells to the one who decides.
        drop(self.lines.send(Line::Next(text)).await);
    }

    /// Writes what was taken so far and nothing after it; gives how it ended.
    pub(super) async fn finish(&self) -> Ended {
        drop(self.lines.send(Line::Last).await);
        self.ended().await
    }

    /// Waits for the output's end.
    pub(super) async fn ended(&self) -> Ended {
        let mut ended = self.ended.clone();
        let told = ended.wait_for(Option::is_some).await;
        // The writer's thread tells before it goes; if it panicked, nothing more is written either.
        told.ok().and_then(|ended| ended.clone()).unwrap_or(Ended::Closed)
    }
}

fn write_lines(mut inbox: mpsc::Receiver<Line>, sink: impl Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, sink);
    while let Some(line) = inbox.blocking_recv() {
        let mut next = Some(line);
        while let Some(Line::Next(text)) = next {
            out.write_all(text.as_bytes())?;
            out.write_all(b"\n")?;
            next = inbox.try_recv().ok();
        }
        out.flush()?;
        if matches!(next, Some(Line::Last)) {
            break;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn lines_come_out_in_order_and_nothing_after_the_last() {
        let sink = Sink::default();
        let output = Output::start(sink.clone()).unwrap();
        for number in 0..3_000 {
            output.line(number.to_string()).await;
        }
        assert!(matches!(output.finish().await, Ended::Whole));
        output.line("late".to_owned()).await;
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        let expected: String = (0..3_000).map(|number| format!("{number}\n")).collect();
        assert_eq!(text, expected);
    }

    #[tokio::test]
    async fn a_reader_that_goes_away_ends_the_output_and_blocks_nobody() {
        let output = Output::start(Gone).unwrap();
        for _ in 0..3_000 {
            output.line("x".to_owned()).await;
        }
        assert!(matches!(output.ended().await, Ended::Closed));
        assert!(matches!(output.finish().await, Ended::Closed));
    }
}
