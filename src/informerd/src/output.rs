//! Writes stdout on one thread: no other thread blocks on a pipe that is not read.
//!
//! Lines are written in order; none is dropped. At most 1,024 wait: without room a subscription waits and coalesces. When no line
//! waits, the output is flushed.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

const CHANNEL_CAPACITY: usize = 1_024;

#[derive(Debug, Clone)]
pub(super) enum Ended {
    Complete,
    /// The reader closed the pipe (`| head`): a normal end.
    Closed,
    Failed(Arc<io::Error>),
}

enum Line {
    Next(String),
    Last,
}

#[derive(Debug, Clone)]
pub(super) struct Output {
    lines: mpsc::Sender<Line>,
    ended: watch::Receiver<Option<Ended>>,
}

impl Output {
    pub(super) fn start(sink: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, queue) = mpsc::channel(CHANNEL_CAPACITY);
        let (report, ended) = watch::channel(None);
        std::thread::Builder::new().name("informerd-output".to_owned()).spawn(move || {
            let result = write_lines(queue, sink);
            report.send_replace(Some(match result {
                Ok(()) => Ended::Complete,
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ended::Closed,
                Err(error) => Ended::Failed(Arc::new(error)),
            }));
        })?;
        Ok(Self { lines, ended })
    }

    /// Waits for room. After the output's end the line is dropped.
    pub(super) async fn line(&self, text: String) {
        // An error: the output has ended, as `ended` reports.
        drop(self.lines.send(Line::Next(text)).await);
    }

    /// Nothing is written after this.
    pub(super) async fn finish(&self) -> Ended {
        drop(self.lines.send(Line::Last).await);
        self.ended().await
    }

    pub(super) async fn ended(&self) -> Ended {
        let mut ended = self.ended.clone();
        let reported = ended.wait_for(Option::is_some).await;
        // After a panic of the thread nothing more is written.
        reported.ok().and_then(|ended| ended.clone()).unwrap_or(Ended::Closed)
    }
}

fn write_lines(mut queue: mpsc::Receiver<Line>, sink: impl Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, sink);
    while let Some(line) = queue.blocking_recv() {
        let mut next = Some(line);
        while let Some(Line::Next(text)) = next {
            out.write_all(text.as_bytes())?;
            out.write_all(b"\n")?;
            next = queue.try_recv().ok();
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

    struct ClosedPipe;

    impl Write for ClosedPipe {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn lines_are_written_in_order_and_nothing_after_the_last() {
        let sink = Sink::default();
        let output = Output::start(sink.clone()).unwrap();
        for number in 0..3_000 {
            output.line(number.to_string()).await;
        }
        assert!(matches!(output.finish().await, Ended::Complete));
        output.line("after the end".to_owned()).await;
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        let expected: String = (0..3_000).map(|number| format!("{number}\n")).collect();
        assert_eq!(text, expected);
    }

    #[tokio::test]
    async fn a_reader_that_closes_the_pipe_ends_the_output_and_blocks_no_writer() {
        let output = Output::start(ClosedPipe).unwrap();
        for _ in 0..3_000 {
            output.line("x".to_owned()).await;
        }
        assert!(matches!(output.ended().await, Ended::Closed));
        assert!(matches!(output.finish().await, Ended::Closed));
    }
}
