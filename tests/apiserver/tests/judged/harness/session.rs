//! What a script can do: send requests as a user, follow watches, and record the answers.
//!
//! Answers: how does a script use a server without knowing which one it is?
//! 1. `{ns}` and `{group}` in paths, headers and bodies stand for the script's own namespace and API group, so that
//!    scripts share a server without seeing each other.
//! 2. All requests and answers are in the transcript, except those of `prepare`, which must succeed.
//! 3. A watch waits for each event up to a limit; a missing event is recorded in the transcript as missing.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::language;
use super::servers::Subject;
use super::transcript::{Step, Transcript};
use super::unrecorded::Unrecorded;
use super::wire::{Head, Incoming, Message};

/// How long a watch waits for an event that should come: more than a loaded machine needs.
pub(crate) const EVENT_LIMIT: Duration = Duration::from_secs(60);
/// How often a question is asked again, with `MOMENT` in between.
const ASKED: usize = 1_200;
const MOMENT: Duration = Duration::from_millis(50);

/// A request that a script describes.
#[derive(Debug, Clone)]
#[must_use = "a request is sent by `Session::send`"]
pub(crate) struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    anonymous: bool,
    powerless: bool,
}

impl Request {
    pub(crate) fn new(method: &'static str, path: impl Into<String>) -> Self {
        let (headers, body) = (Vec::new(), Vec::new());
        Self { method, path: path.into(), headers, body, anonymous: false, powerless: false }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A body of this media type, sent unchanged.
    pub(crate) fn body(self, media: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut with = self.header("Content-Type", media);
        with.body = body.into();
        with
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    /// A body without a content type.
    pub(crate) fn bare(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sent with no credentials.
    pub(crate) fn anonymously(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// Sent by the user without permissions.
    pub(crate) fn powerlessly(mut self) -> Self {
        self.powerless = true;
        self
    }
}

/// A complete answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn code(&self) -> u16 {
        self.head.code
    }

    /// The body as JSON, from any language; a text if it cannot be read.
    pub(crate) fn json(&self) -> Value {
        language::value(&self.head, &self.body)
    }

    /// The text at this pointer of the body; empty if there is none.
    pub(crate) fn text(&self, pointer: &str) -> String {
        self.json().pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    pub(crate) fn version(&self) -> String {
        self.text("/metadata/resourceVersion")
    }
}

/// One run of a script on one server.
#[derive(Debug)]
pub(crate) struct Session {
    subject: Subject,
    namespace: String,
    pub(crate) transcript: Transcript,
    /// Where programs find their kubeconfig and keep their caches; created when the first one runs.
    home: Option<TempDir>,
}

impl Session {
    /// A run in a namespace of its own, which is created here.
    pub(crate) fn begin(subject: Subject, script: &str) -> Self {
        let mut namespace = script.replace('_', "-");
        namespace.truncate(50);
        let namespace = namespace.trim_end_matches('-').to_owned();
        let mut session = Self { subject, namespace, transcript: Transcript::default(), home: None };
        session
            .prepare(Request::new("POST", "/api/v1/namespaces").json(&json!({"metadata": {"name": "{ns}"}})));
        session
    }

    pub(crate) fn kubeconfig(&self) -> &str {
        &self.subject.kubeconfig
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A directory of this run alone, with the kubeconfig `config` in it.
    pub(crate) fn home(&mut self) -> PathBuf {
        let kubeconfig = &self.subject.kubeconfig;
        let home = self.home.get_or_insert_with(|| {
            let home = tempfile::tempdir().expect("a temporary directory");
            fs::write(home.path().join("config"), kubeconfig).expect("a kubeconfig can be written");
            home
        });
        home.path().to_owned()
    }

    pub(crate) fn filled(&self, text: &str) -> String {
        text.replace("{ns}", &self.namespace).replace("{group}", &format!("{}.example.com", self.namespace))
    }

    fn message(&self, request: &Request) -> Message {
        let mut headers: Vec<(String, String)> = Vec::new();
        let given = |name: &str| request.headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
        if !request.anonymous && !given("Authorization") {
            let token = if request.powerless { &self.subject.powerless } else { &self.subject.admin };
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        if !given("User-Agent") {
            headers.push(("User-Agent".to_owned(), "judge/1.0".to_owned()));
        }
        headers.extend(request.headers.iter().map(|(name, value)| (name.clone(), self.filled(value))));
        let body = match std::str::from_utf8(&request.body) {
            Ok(text) => self.filled(text).into_bytes(),
            Err(_) => request.body.clone(),
        };
        Message { method: request.method.to_owned(), path: self.filled(&request.path), headers, body }
    }

    /// Sends a request that is not compared, and may have any answer.
    pub(crate) fn answer(&self, request: &Request) -> io::Result<Answer> {
        let mut incoming = self.subject.endpoint.open(&self.message(request))?;
        // An answer to HEAD has no body, whatever length its head gives.
        let body = if request.method == "HEAD" { Vec::new() } else { incoming.rest()? };
        Ok(Answer { head: incoming.head, body })
    }

    /// Sends a request on a thread of its own; it is not compared.
    pub(crate) fn elsewhere(&self, request: Request) -> JoinHandle<()> {
        let (endpoint, message) = (self.subject.endpoint.clone(), self.message(&request));
        std::thread::spawn(move || {
            let answered = endpoint.open(&message).and_then(|mut incoming| incoming.rest());
            answered.expect("an answer");
        })
    }

    /// Sends a request that must succeed and is not compared.
    pub(crate) fn prepare(&mut self, request: Request) -> Answer {
        let answer = self.answer(&request).expect("an answer to a preparation");
        let text = String::from_utf8_lossy(&answer.body);
        assert!(answer.code() < 300, "{} {}: {text}", request.method, self.filled(&request.path));
        answer
    }

    /// Sends a request; it and its answer are compared.
    pub(crate) fn send(&mut self, request: Request) -> Answer {
        self.send_while(request, |_session| (), |_session| true)
    }

    /// Sends a request under a temporary condition: `prepare` causes it, and the answer counts only if it
    /// still `holds` afterwards. The request and its last answer are compared.
    pub(crate) fn send_while(
        &mut self,
        request: Request,
        prepare: impl Fn(&Self),
        holds: impl Fn(&Self) -> bool,
    ) -> Answer {
        let label = self.transcript.label(request.method, &request.path);
        let mut begins = 0;
        let answered = loop {
            prepare(self);
            let answered = self.answer(&request);
            // What a real server says of a kind for some milliseconds after a change of its definition; no condition of the
            // definition says when it is over.
            let is_beginning = |answer: &Answer| answer.text("/message") == "storage is (re)initializing";
            if answered.as_ref().is_ok_and(is_beginning) && begins < ASKED {
                begins += 1;
                wait_a_moment();
            } else if holds(self) {
                break answered;
            }
        };
        match answered {
            Ok(answer) => {
                self.transcript.push(Step::answered(label, &answer));
                answer
            }
            Err(error) => {
                self.transcript.push(Step::broken(label, &error));
                Answer { head: Head::default(), body: Vec::new() }
            }
        }
    }

    pub(crate) fn get(&mut self, path: impl Into<String>) -> Answer {
        self.send(Request::new("GET", path))
    }

    pub(crate) fn post(&mut self, path: impl Into<String>, body: &Value) -> Answer {
        self.send(Request::new("POST", path).json(body))
    }

    pub(crate) fn put(&mut self, path: impl Into<String>, body: &Value) -> Answer {
        self.send(Request::new("PUT", path).json(body))
    }

    pub(crate) fn delete(&mut self, path: impl Into<String>) -> Answer {
        self.send(Request::new("DELETE", path))
    }

    /// A patch; `language` is `json`, `merge`, `strategic-merge`.
    pub(crate) fn patch(&mut self, language: &str, path: impl Into<String>, body: &Value) -> Answer {
        let media = format!("application/{language}-patch+json");
        self.send(Request::new("PATCH", path).body(&media, body.to_string()))
    }

    /// A server-side apply; the path carries the manager.
    pub(crate) fn apply(&mut self, path: impl Into<String>, body: &Value) -> Answer {
        self.send(Request::new("PATCH", path).body("application/apply-patch+yaml", body.to_string()))
    }

    /// Adds a result of the script itself to the comparison.
    pub(crate) fn note(&mut self, what: &str, value: impl Into<Value>) {
        let label = self.transcript.label("NOTE", what);
        self.transcript.push(Step::noted(label, value.into()));
    }

    /// Opens a watch. Its events become part of the transcript as they are read.
    pub(crate) fn watch(&mut self, path: impl Into<String>) -> Watch {
        self.open(Request::new("GET", path))
    }

    /// Opens a watch whose events are not compared.
    pub(crate) fn watch_unrecorded(&mut self, path: impl Into<String>) -> Unrecorded {
        let incoming = self.subject.endpoint.open(&self.message(&Request::new("GET", path)));
        Unrecorded(incoming.expect("a watch that is prepared is answered"))
    }

    /// Opens a stream by a request of any kind.
    pub(crate) fn open(&mut self, request: Request) -> Watch {
        let label = self.transcript.label("WATCH", &request.path);
        let step = self.transcript.steps.len();
        match self.subject.endpoint.open(&self.message(&request)) {
            Ok(mut incoming) if incoming.head.code != 200 => {
                let body = incoming.rest().unwrap_or_default();
                self.transcript.push(Step::answered(label, &Answer { head: incoming.head, body }));
                Watch { step, incoming: None }
            }
            Ok(incoming) => {
                self.transcript.push(Step::streaming(label, &incoming.head));
                Watch { step, incoming: Some(incoming) }
            }
            Err(error) => {
                self.transcript.push(Step::broken(label, &error));
                Watch { step, incoming: None }
            }
        }
    }

    /// Makes the server compact everything before this version; for scripts of `judge_alone`.
    pub(crate) fn compact(&self, version: &str) {
        self.subject.lever.compact(version.parse().expect("a version is a number"));
    }

    /// Makes the server drop all past events, so that watches cannot resume from before.
    pub(crate) fn forget_events(&self) {
        self.subject.lever.forget_events();
    }

    /// Repeats a request, unrecorded, until `enough` is true or a limit is reached: for what servers do
    /// asynchronously.
    pub(crate) fn until(&mut self, request: &Request, enough: impl Fn(&Answer) -> bool) {
        for _ in 0..ASKED {
            if self.answer(request).is_ok_and(|answer| enough(&answer)) {
                return;
            }
            wait_a_moment();
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a real server does some things in its own time and tells nobody"
)]
fn wait_a_moment() {
    std::thread::sleep(MOMENT);
}

/// An open watch of a script.
#[derive(Debug)]
pub(crate) struct Watch {
    step: usize,
    incoming: Option<Incoming>,
}

impl Watch {
    /// Reads this many events.
    pub(crate) fn events(&mut self, session: &mut Session, count: usize) -> Vec<Value> {
        (0..count).map_while(|_| self.event(session, EVENT_LIMIT)).collect()
    }

    /// Reads events until one of this type has come.
    pub(crate) fn events_until(&mut self, session: &mut Session, event_type: &str) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.event(session, EVENT_LIMIT) {
            let last = event["type"] == event_type;
            events.push(event);
            if last {
                break;
            }
        }
        events
    }

    /// Reads to the end of the stream, which must come.
    pub(crate) fn end(mut self, session: &mut Session) {
        while self.event(session, EVENT_LIMIT).is_some() {}
    }

    /// Reads to the end of the stream; the events are not compared.
    pub(crate) fn rest_unrecorded(mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(Ok(Some(line))) = self.incoming.as_mut().map(|incoming| incoming.line(EVENT_LIMIT)) {
            events.push(serde_json::from_slice(&line).unwrap_or_default());
        }
        events
    }

    fn event(&mut self, session: &mut Session, limit: Duration) -> Option<Value> {
        let incoming = self.incoming.as_mut()?;
        let framed = language::is_protobuf(&incoming.head);
        let next = if framed { incoming.frame(limit) } else { incoming.line(limit) };
        let (event, more) = match next {
            Ok(Some(frame)) if framed => (language::event(&frame), true),
            Ok(Some(line)) => {
                let text = String::from_utf8_lossy(&line).into_owned();
                (serde_json::from_slice(&line).unwrap_or(Value::String(text)), true)
            }
            Ok(None) => (json!("the end"), false),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => (json!("nothing in time"), false),
            Err(_) => (json!("the connection broke"), false),
        };
        session.transcript.event(self.step, event.clone());
        if !more {
            self.incoming = None;
        }
        more.then_some(event)
    }
}
