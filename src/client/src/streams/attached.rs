//! A command in a container, or its main process: input, outputs, terminal, status.
//!
//! The status is known once it has come, even while outputs are still read.

use std::sync::Arc;
use std::task::{Context, Poll};

use kube_core::response::{Status, StatusSummary};
use kube_core::subresource::AttachParams;
use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, oneshot};

use super::channels::{Channels, Protocol};
use super::engine::{Buffers, Engine, Side, Stream};
use super::pipes::{Input, Keep, Near, Output, pipe};
use crate::error::{Error, StreamError};
use crate::transport::Connection;
use crate::worker::Worker;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;
/// Bytes of a stream that wait for program or command, unless the parameters differ.
const WAITING: usize = 64 << 10;
/// In bytes.
const STATUS_LIMIT: usize = 64 << 10;

/// How a command ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ExitStatus(Status);

impl ExitStatus {
    /// Whether it ended with code 0.
    pub fn is_success(&self) -> bool {
        self.0.status == Some(StatusSummary::Success)
    }

    /// The exit code; `None` if the command never ran or ended without a code.
    pub fn code(&self) -> Option<i32> {
        if self.is_success() {
            return Some(0);
        }
        let causes = self.0.details.as_ref().map(|details| &*details.causes).unwrap_or_default();
        let code = causes.iter().find(|cause| cause.reason == "ExitCode")?;
        code.message.parse().ok()
    }

    /// The server's status. It tells why a command could not run.
    pub fn status(&self) -> &Status {
        &self.0
    }
}

/// A process in a container, as long as this or one of its parts lives. Made by [`Api::exec`] and
/// [`Api::attach`].
///
/// Take the parts that you need ([`Self::stdin`], [`Self::stdout`], [`Self::stderr`]) and read the outputs.
/// If nobody reads an output, the process and the connection wait once its pipe is full. Bytes of a dropped
/// output are discarded. Dropping all parts closes the connection; whether the process then ends depends on
/// the container.
///
/// [`Api::exec`]: crate::Api::exec
/// [`Api::attach`]: crate::Api::attach
#[must_use = "dropping it closes the connection"]
pub struct Attached {
    protocol: Protocol,
    stdin: Option<Input>,
    stdout: Option<Output>,
    stderr: Option<Output>,
    sizes: Option<mpsc::Sender<(u16, u16)>>,
    status: Exit,
    _keep: Keep,
}

enum Exit {
    Awaited(oneshot::Receiver<Result<Status, StreamError>>),
    Known(Box<Result<ExitStatus, StreamError>>),
}

impl Attached {
    /// The input of the process, once; `None` if it was not requested. Dropping it ends the input if the
    /// server speaks v5 of the protocol (Kubernetes 1.30 and later).
    pub fn stdin(&mut self) -> Option<Input> {
        self.stdin.take()
    }

    /// The stdout of the process, once; with a terminal, both outputs.
    pub fn stdout(&mut self) -> Option<Output> {
        self.stdout.take()
    }

    /// The stderr of the process, once; `None` with a terminal.
    pub fn stderr(&mut self) -> Option<Output> {
        self.stderr.take()
    }

    /// The version of the protocol that the server has chosen.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Sets the size of the process's terminal. Waits while the connection takes nothing.
    ///
    /// # Errors
    /// [`Error::Request`] when no terminal was requested; [`StreamError::CutOff`] when the connection has
    /// ended.
    pub async fn resize(&self, columns: u16, rows: u16) -> Result<(), Error> {
        let Some(sizes) = &self.sizes else {
            return Err(Error::Request("a process without a terminal has no size".to_owned()));
        };
        sizes.send((columns, rows)).await.map_err(|_| StreamError::CutOff.into())
    }

    /// Waits until the process has ended. Read or drop its outputs at the same time: see [`Self::wait`]. May
    /// be called again.
    ///
    /// # Errors
    /// [`Error::Stream`] when the connection ended without a status.
    pub async fn status(&mut self) -> Result<ExitStatus, Error> {
        if let Exit::Awaited(status) = &mut self.status {
            let status = status.await.unwrap_or(Err(StreamError::CutOff));
            self.status = Exit::Known(Box::new(status.map(ExitStatus)));
        }
        match &self.status {
            Exit::Known(status) => Ok((**status).clone()?),
            Exit::Awaited(_) => unreachable!("it was replaced above"),
        }
    }

    /// Ends the input, discards the outputs that were not taken, and waits until the process has ended. v4 of
    /// the protocol cannot end the input: a process that reads its input to the end then never ends.
    ///
    /// # Errors
    /// As [`Self::status`].
    pub async fn wait(mut self) -> Result<ExitStatus, Error> {
        drop((self.stdin.take(), self.stdout.take(), self.stderr.take()));
        self.status().await
    }

    /// Ends the input and reads both outputs to their end. Returns stdout, stderr, and how the process ended.
    /// Each output may have at most `limit` bytes. v4 of the protocol cannot end the input, as for
    /// [`Self::wait`].
    ///
    /// # Errors
    /// [`Error::TooLarge`] when an output is longer; otherwise as [`Self::status`].
    pub async fn output(mut self, limit: usize) -> Result<(Vec<u8>, Vec<u8>, ExitStatus), Error> {
        drop(self.stdin.take());
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        let (stdout, stderr) = futures_util::try_join!(read(stdout, limit), read(stderr, limit))?;
        Ok((stdout, stderr, self.status().await?))
    }
}

async fn read(output: Option<Output>, limit: usize) -> Result<Vec<u8>, Error> {
    let Some(output) = output else { return Ok(Vec::new()) };
    let mut read = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    output.take(most).read_to_end(&mut read).await.map_err(|error| {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<StreamError>().cloned());
        cause.unwrap_or_else(|| StreamError::Broken(Arc::new(error)))
    })?;
    if read.len() > limit { Err(Error::TooLarge(limit)) } else { Ok(read) }
}

pub(crate) fn attached(
    connection: Connection,
    protocol: Protocol,
    params: &AttachParams,
    worker: &Arc<Worker>,
) -> (Attached, impl Future<Output = ()> + use<>) {
    let (keep, wanted) = Keep::new(worker);
    let mut streams = Vec::new();
    let mut stream = |channel, size: Option<usize>, sends| -> Near {
        let (near, far) = pipe(size.unwrap_or(WAITING), &keep);
        streams.push(Stream { channel, far, sends });
        near
    };
    let stdin = params.stdin.then(|| stream(STDIN, params.max_stdin_buf_size, true));
    let stdout = params.stdout.then(|| Output(stream(STDOUT, params.max_stdout_buf_size, false)));
    let stderr = params.stderr.then(|| Output(stream(STDERR, params.max_stderr_buf_size, false)));
    let (told, status) = oneshot::channel();
    let (sizes, queue) = mpsc::channel(1);
    let side = Process { text: Vec::new(), tries: 0, told: Some(told), sizes: params.tty.then_some(queue) };
    let channels = Channels::of_command(protocol);
    let engine = Engine { connection, channels, streams, side, wanted, buffers: Buffers::default() };
    let attached = Attached {
        protocol,
        stdin: stdin.map(|near| Input { near, can_end: protocol.ends_channels() }),
        stdout,
        stderr,
        sizes: params.tty.then_some(sizes),
        status: Exit::Awaited(status),
        _keep: keep,
    };
    (attached, engine.run())
}

struct Process {
    text: Vec<u8>,
    tries: u8,
    told: Option<oneshot::Sender<Result<Status, StreamError>>>,
    sizes: Option<mpsc::Receiver<(u16, u16)>>,
}

impl Process {
    fn tell(&mut self, status: Result<Status, StreamError>) {
        if let Some(told) = self.told.take() {
            drop(told.send(status));
        }
    }
}

impl Side for Process {
    fn handle_data(&mut self, channel: u8, bytes: &[u8]) -> Option<(u8, StreamError)> {
        if channel != STATUS || self.told.is_none() {
            return None;
        }
        let room = STATUS_LIMIT.saturating_sub(self.text.len()).min(bytes.len());
        self.text.extend_from_slice(&bytes[..room]);
        // A status is usually one message. In many pieces, it is decoded at the end.
        self.tries = self.tries.saturating_add(1);
        if self.tries < 4
            && let Ok(status) = serde_json::from_slice(&self.text)
        {
            self.tell(Ok(status));
        }
        None
    }

    fn handle_end(&mut self, error: Option<&StreamError>) {
        let status = match error {
            _ if !self.text.is_empty() => serde_json::from_slice(&self.text)
                .map_err(|error| StreamError::Status(format!("it does not decode ({:?})", error.classify()))),
            Some(error) => Err(error.clone()),
            None => Err(StreamError::Status("the server sent none".to_owned())),
        };
        self.tell(status);
    }

    fn is_over(&self) -> bool {
        self.told.is_none()
    }

    fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<(u8, Vec<u8>)> {
        let Some(sizes) = &mut self.sizes else { return Poll::Pending };
        match sizes.poll_recv(context) {
            Poll::Ready(Some((columns, rows))) => {
                Poll::Ready((RESIZE, format!(r#"{{"Width":{columns},"Height":{rows}}}"#).into_bytes()))
            }
            _ => Poll::Pending,
        }
    }
}

informer_core::debug_as!(Attached, self, protocol = self.protocol);
