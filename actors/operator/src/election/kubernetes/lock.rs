//! The lock of an election on an API server. A write carries the version that was last read or written: 409,
//! and 404 of an update, mean that nothing was written. Nothing is retried: the election decides.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::election::machine::LeaseRecord;
use crate::election::{LeaseAnswer, LeaseLock, LockError, Request as Effect};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{Method, Request, header};
use serde_json::Value;

use super::candidate;
use super::lease::{Names, record_of};
use informer_client::inner;
use informer_client::inner::Transport;

use informer_client::{Error, RequestOptions};

type Result<T> = std::result::Result<T, LockError>;

pub(super) struct ServerLock(Rc<Inner>);

struct Inner {
    transport: Rc<dyn Transport>,
    names: Arc<Names>,
    identity: Arc<str>,
    lease: RefCell<Option<Value>>,
    candidate: RefCell<Option<Value>>,
    version: RefCell<Option<&'static str>>,
}

impl ServerLock {
    pub(super) fn new(transport: Rc<dyn Transport>, names: Arc<Names>, identity: Arc<str>) -> Self {
        let (lease, candidate, version) = (RefCell::default(), RefCell::default(), RefCell::default());
        Self(Rc::new(Inner { transport, names, identity, lease, candidate, version }))
    }
}

impl LeaseLock for ServerLock {
    fn send(&self, effect: Effect) -> LocalBoxFuture<'static, Result<LeaseAnswer>> {
        let inner = Rc::clone(&self.0);
        Box::pin(async move {
            match effect {
                Effect::Read => inner.read().await,
                Effect::Create(record) => inner.create(&record).await,
                Effect::Update(record) => inner.update(&record).await,
                Effect::ReadCandidate => inner.read_candidate().await,
                Effect::CreateCandidate(renewed) => inner.create_candidate(renewed).await,
                Effect::RenewCandidate(renewed) => inner.renew_candidate(renewed).await,
                Effect::WithdrawCandidate => inner.withdraw_candidate().await,
            }
        })
    }
}

impl Inner {
    async fn read(&self) -> Result<LeaseAnswer> {
        let lease = self.get(&self.names.lease()).await?.map(|answer| self.is_lease(answer)).transpose()?;
        let record = lease.as_ref().map(record_of);
        self.lease.replace(lease);
        Ok(LeaseAnswer::Lease(record))
    }

    async fn create(&self, record: &LeaseRecord) -> Result<LeaseAnswer> {
        let mut lease = self.names.new_lease();
        self.names.write(&mut lease, record);
        let written = self.write(Method::POST, &self.names.leases(), &lease).await?;
        self.lease.replace(Some(self.is_lease(written)?));
        Ok(LeaseAnswer::Written)
    }

    async fn update(&self, record: &LeaseRecord) -> Result<LeaseAnswer> {
        let mut lease = self.lease.borrow().clone().ok_or(LockError::Conflict)?;
        self.names.write(&mut lease, record);
        let written = self.write(Method::PUT, &self.names.lease(), &lease).await?;
        self.lease.replace(Some(self.is_lease(written)?));
        Ok(LeaseAnswer::Written)
    }

    /// A proxy or a login page may answer 200: that is no free lease.
    fn is_lease(&self, answer: Value) -> Result<Value> {
        let version = answer.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        if answer["kind"] == "Lease" && version.is_some_and(|version| !version.is_empty()) {
            return Ok(answer);
        }
        self.lease.replace(None);
        Err(LockError::Failed("the answer is not a Lease".into()))
    }

    async fn read_candidate(&self) -> Result<LeaseAnswer> {
        let candidate = self.get(&self.candidate_path().await?).await?;
        let record = candidate.as_ref().map(candidate::record_of);
        self.candidate.replace(candidate);
        Ok(LeaseAnswer::Candidate(record))
    }

    async fn create_candidate(&self, renewed: Duration) -> Result<LeaseAnswer> {
        let version = self.version().await?;
        let candidate = candidate::new(&self.names, &self.identity, version, renewed);
        let path = candidate::path(&self.names, version);
        let written = self.write(Method::POST, &path, &candidate).await;
        if written.is_err() {
            // The server may have been upgraded to another version of the group.
            self.version.replace(None);
        }
        self.candidate.replace(Some(written?));
        Ok(LeaseAnswer::Written)
    }

    async fn renew_candidate(&self, renewed: Duration) -> Result<LeaseAnswer> {
        let mut candidate = self.candidate.borrow().clone().ok_or(LockError::Conflict)?;
        candidate::renew(&mut candidate, renewed);
        let written = self.write(Method::PUT, &self.candidate_path().await?, &candidate).await?;
        self.candidate.replace(Some(written));
        Ok(LeaseAnswer::Written)
    }

    async fn withdraw_candidate(&self) -> Result<LeaseAnswer> {
        let path = self.candidate_path().await?;
        match self.send(Method::DELETE, &path, None).await {
            Err(error) if !error.is_not_found() => Err(failed(&error)),
            _ => Ok(LeaseAnswer::Written),
        }
    }

    /// The identity was checked.
    async fn candidate_path(&self) -> Result<String> {
        Ok(format!("{}/{}", candidate::path(&self.names, self.version().await?), self.identity))
    }

    async fn version(&self) -> Result<&'static str> {
        let known = *self.version.borrow();
        if let Some(version) = known {
            return Ok(version);
        }
        let group = self.get(candidate::GROUP).await?.unwrap_or_default();
        let why = "the server serves no LeaseCandidate that is known here (v1beta1, v1alpha2)";
        let version = candidate::version_of(&group).ok_or_else(|| LockError::Failed(why.into()))?;
        self.version.replace(Some(version));
        Ok(version)
    }

    async fn get(&self, path: &str) -> Result<Option<Value>> {
        match self.send(Method::GET, path, None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    async fn write(&self, method: Method, path: &str, object: &Value) -> Result<Value> {
        let is_update = method == Method::PUT;
        let written = self.send(method, path, Some(object)).await;
        written.map_err(|error| {
            let is_gone = is_update && error.is_not_found();
            if is_gone || error.is_conflict() || error.is_already_exists() {
                return LockError::Conflict;
            }
            failed(&error)
        })
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> std::result::Result<Value, Error> {
        let json = "application/json";
        let mut request = Request::builder().method(method).uri(path).header(header::ACCEPT, json);
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, json);
        }
        let bytes = body.map(Value::to_string).unwrap_or_default();
        let mut request =
            request.body(Bytes::from(bytes)).map_err(|error| Error::Request(error.to_string()))?;
        request.extensions_mut().insert(RequestOptions::new().max_retries(0));
        let answer = inner::send(&*self.transport, request).await?;
        Ok(serde_json::from_slice(answer.body()).unwrap_or_default())
    }
}

fn failed(error: &Error) -> LockError {
    LockError::Failed(error.to_string().into())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::{StreamExt, stream};
    use http::Response;

    use super::*;
    use informer_client::TransportError;
    use informer_client::inner::{Body, RequestKind};

    /// A server of LeaseCandidates in one version, which tells of each request.
    struct Candidates {
        serves: Rc<Cell<&'static str>>,
        asked: Rc<RefCell<Vec<String>>>,
    }

    impl Transport for Candidates {
        fn send(
            &self,
            request: Request<Bytes>,
            _kind: RequestKind,
        ) -> LocalBoxFuture<'static, std::result::Result<Response<Body>, TransportError>> {
            let (version, path, method) = (self.serves.get(), request.uri().path(), request.method());
            self.asked.borrow_mut().push(format!("{method} {path}"));
            let (code, body) = match path {
                candidate::GROUP => (200, serde_json::json!({"versions": [{"version": version}]})),
                _ if path.contains(version) && method == Method::POST => (201, serde_json::json!({})),
                _ => (404, serde_json::json!({"kind": "Status", "reason": "NotFound", "code": 404})),
            };
            let body = stream::iter([Ok(Bytes::from(body.to_string()))]).boxed_local();
            let answer = Response::builder().status(code).body(body).expect("an answer");
            Box::pin(std::future::ready(Ok(answer)))
        }
    }

    #[tokio::test]
    async fn after_a_registration_that_failed_the_server_is_asked_again_which_version_it_serves() {
        let (serves, asked) = (Rc::new(Cell::new("v1alpha2")), Rc::default());
        let server = Candidates { serves: Rc::clone(&serves), asked: Rc::clone(&asked) };
        let (namespace, name, version) = ("shop".to_owned(), "operator".to_owned(), Some("1.2.0".to_owned()));
        let names = Arc::new(Names { namespace, name, labels: Default::default(), version });
        let lock = ServerLock::new(Rc::new(server), names, "me".into());
        let (read, create) = (Effect::ReadCandidate, Effect::CreateCandidate(Duration::ZERO));
        assert!(matches!(lock.send(read.clone()).await, Ok(LeaseAnswer::Candidate(None))));
        serves.set("v1beta1"); // it is upgraded
        assert!(matches!(lock.send(create.clone()).await, Err(LockError::Failed(_))));
        assert!(matches!(lock.send(read).await, Ok(LeaseAnswer::Candidate(None))));
        assert!(matches!(lock.send(create).await, Ok(LeaseAnswer::Written)));
        let (group, path) = (candidate::GROUP, "namespaces/shop/leasecandidates");
        let expected = [
            format!("GET {group}"),
            format!("GET {group}/v1alpha2/{path}/me"),
            format!("POST {group}/v1alpha2/{path}"),
            format!("GET {group}"),
            format!("GET {group}/v1beta1/{path}/me"),
            format!("POST {group}/v1beta1/{path}"),
        ];
        assert_eq!(*asked.borrow(), expected);
    }
}
