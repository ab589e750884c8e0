//! Streams of pods: logs, commands, the main process, ports. A websocket request is not sent again when its
//! connection breaks: the command may have run.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use k8s_openapi::api::core::v1::Pod;
use kube_core::request::Error as RequestError;
use kube_core::subresource::{AttachParams, LogParams};

use super::Api;
use super::exchange::{Built, not_made};
use crate::error::Error;
use crate::streams::{Attached, LogStream, PortForward, Protocol, accepted, attached, forwarded, offer};
use crate::transport::Connection;

/// The newer first.
const OF_COMMANDS: &[Protocol] = &[Protocol::V5, Protocol::V4];
/// Kubelets know no other.
const OF_PORTS: &[Protocol] = &[Protocol::V4];

impl Api<Pod> {
    /// Reads the log of a container as it is now.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// let last = LogParams { tail_lines: Some(20), ..LogParams::default() };
    /// print!("{}", pods.logs("web", &last).await?);
    /// let before_the_crash = LogParams { previous: true, ..LogParams::default() };
    /// print!("{}", pods.logs("web", &before_the_crash).await?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] with code 400 when the pod has several containers and none is named, or the
    /// container waits to start; [`Error::TooLarge`] above 64 MiB; [`Error::Request`] with `follow`: such a
    /// log has no end.
    pub async fn logs(&self, name: &str, params: &LogParams) -> Result<String, Error> {
        if params.follow {
            let why = "a log that is followed has no end: use Api::log_stream";
            return Err(Error::Request(why.to_owned()));
        }
        let answer = self.client.send(self.log_request(name, params)?).await?;
        Ok(String::from_utf8(answer.into_body().into())
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Reads the log of a container line by line until it ends; with `follow`, also what is written from now
    /// on, until the container ends. Resolves when the server has accepted the request.
    ///
    /// A line longer than [`MAX_LINE`](crate::streams::MAX_LINE) comes in parts. While the stream is not
    /// read, only a few chunks are read from the connection, and the server waits. The stream ends when the
    /// log does; when the connection breaks, its last item is the error.
    ///
    /// ```
    /// # use actix_informer::prelude::*;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use futures_util::StreamExt;
    /// use k8s_openapi::api::core::v1::Pod;
    /// # let server = actix_informer::testing::ApiServer::builder().start().await?;
    /// # let pod = serde_json::json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
    /// #     "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "example.org/web:1"}]}});
    /// # server.create(pod)?;
    /// # let client = Client::new(Config::new(server.url())?)?;
    /// // The in-memory server: `agent` is what runs in its containers.
    /// let container = server.agent().container("default", "web", "main");
    /// container.log("hello");
    ///
    /// let pods = client.api::<Pod>().namespaced("default");
    /// let follow = LogParams { follow: true, ..LogParams::default() };
    /// let mut log = pods.log_stream("web", &follow).await?;
    /// assert_eq!(&*log.next().await.expect("a line")?, "hello");
    /// container.log("again");
    /// assert_eq!(&*log.next().await.expect("a line")?, "again");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::logs`], without its limits.
    pub async fn log_stream(&self, name: &str, params: &LogParams) -> Result<LogStream, Error> {
        let request = self.log_request(name, params)?;
        Ok(LogStream::new(self.client.stream(request, Duration::MAX).await?.into_body()))
    }

    fn log_request(&self, name: &str, params: &LogParams) -> Result<Built, Error> {
        let (collection, name) = self.object(name)?;
        let mut request = collection.logs(&name, params).map_err(not_made)?;
        // Logs are text, but their refusal is JSON.
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        self.finished(request)
    }

    /// Runs a command in a container. Resolves when the server has accepted the request. If the command could
    /// not run, its [`ExitStatus`](crate::streams::ExitStatus) says so.
    ///
    /// The command is not run by a shell. It runs at most once: the request is not repeated when its
    /// connection breaks.
    ///
    /// ```
    /// # use actix_informer::prelude::*;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::Pod;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    /// # let server = actix_informer::testing::ApiServer::builder().start().await?;
    /// # let pod = serde_json::json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
    /// #     "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "example.org/web:1"}]}});
    /// # server.create(pod)?;
    /// # server.agent().container("default", "web", "main");
    /// # let client = Client::new(Config::new(server.url())?)?;
    ///
    /// let pods = client.api::<Pod>().namespaced("default");
    /// let (stdout, _, status) = pods.exec("web", ["echo", "hi"], &AttachParams::default()).await?.output(4096).await?;
    /// assert_eq!((&*stdout, status.code()), (&b"hi\n"[..], Some(0)));
    ///
    /// let mut cat = pods.exec("web", ["cat"], &AttachParams::default().stdin(true)).await?;
    /// let (mut input, mut output) = (cat.stdin().expect("asked for"), cat.stdout().expect("asked for"));
    /// input.write_all(b"meow").await?;
    /// drop(input);
    /// let mut copied = String::new();
    /// output.read_to_string(&mut copied).await?;
    /// assert_eq!((&*copied, cat.status().await?.code()), ("meow", Some(0)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] with the server's reason; [`Error::Stream`] when it does not speak the protocol.
    pub async fn exec<C, T>(&self, name: &str, command: C, params: &AttachParams) -> Result<Attached, Error>
    where
        C: IntoIterator<Item = T>,
        T: Into<String>,
    {
        let (collection, name) = self.object(name)?;
        self.attached(collection.exec(&name, command, params), params).await
    }

    /// Attaches to the main process of a container: its outputs from now on, and its input if it has one.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// let mut shell = pods.attach("debugger", &AttachParams::interactive_tty()).await?;
    /// shell.resize(120, 40).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::exec`].
    pub async fn attach(&self, name: &str, params: &AttachParams) -> Result<Attached, Error> {
        let (collection, name) = self.object(name)?;
        self.attached(collection.attach(&name, params), params).await
    }

    /// Connects to ports of a pod, once to each. Resolves when the server has accepted the request. A port on
    /// which nobody listens ends with an error when it is read.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::Pod;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// let mut http = pods.port_forward("web", &[80]).await?.take_stream(80).expect("asked for");
    /// http.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
    /// let mut answer = Vec::new();
    /// http.read_to_end(&mut answer).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::exec`]; [`Error::Request`] for no port, the same port twice, or more than 127 ports.
    pub async fn port_forward(&self, name: &str, ports: &[u16]) -> Result<PortForward, Error> {
        let (collection, name) = self.object(name)?;
        // Each port takes two channels. Their numbers are bytes, and the protocol reserves the last one.
        if ports.len() > 127 {
            return Err(Error::Request("the number of ports cannot be more than 127".to_owned()));
        }
        let request = collection.portforward(&name, ports);
        let (ports, worker) = (ports.to_vec(), self.client.worker());
        self.upgraded(request, OF_PORTS, move |connection, protocol| {
            forwarded(connection, protocol, &ports, &worker)
        })
        .await
    }

    async fn attached(
        &self,
        request: Result<Built, RequestError>,
        params: &AttachParams,
    ) -> Result<Attached, Error> {
        let params = AttachParams {
            container: None,
            max_stdin_buf_size: params.max_stdin_buf_size,
            max_stdout_buf_size: params.max_stdout_buf_size,
            max_stderr_buf_size: params.max_stderr_buf_size,
            ..*params
        };
        let worker = self.client.worker();
        self.upgraded(request, OF_COMMANDS, move |connection, protocol| {
            attached(connection, protocol, &params, &worker)
        })
        .await
    }

    async fn upgraded<T: Send + 'static, F: Future<Output = ()> + 'static>(
        &self,
        request: Result<Built, RequestError>,
        protocols: &'static [Protocol],
        serve: impl FnOnce(Connection, Protocol) -> (T, F) + Send + 'static,
    ) -> Result<T, Error> {
        let mut request = self.finished(request.map_err(not_made)?)?.map(Bytes::from);
        let key = offer(&mut request, protocols);
        let serve = move |headers: &HeaderMap, connection| {
            let protocol = accepted(&key, protocols, headers)?;
            Ok(serve(connection, protocol))
        };
        self.client.upgrade(request, serve).await
    }
}
