//! Carries single requests for callers who have no `LocalSet`.
//!
//! Answers "how does `Client::send` work in any runtime?" with one thread per client, on which the requests run side
//! by side. Informers do not use it. Invariants:
//! 1. The thread is started by the first request, and ends when the last clone of the client is dropped.
//! 2. A caller who stops waiting ends its request.
//!
//! The queue to the thread is unbounded in name only: every entry has a caller waiting for it. Read next: `client.rs`.

use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{Request, Response, header};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

use super::endpoint::Prepared;
use super::error::Error;
use super::status::Status;
use super::transport::awc::AwcTransport;
use super::transport::{Lane, SentAuthorization, Transport};
use super::whole::{length_of, whole};

/// The largest answer to a single request.
const ANSWER_LIMIT: usize = 64 << 20;

type Answer = Result<Response<Bytes>, Error>;

struct Order {
    request: Request<Bytes>,
    answer: oneshot::Sender<Answer>,
}

/// The thread that carries single requests, and the way to it.
#[derive(Debug)]
pub(crate) struct Worker {
    prepared: Arc<Prepared>,
    orders: OnceLock<Option<mpsc::UnboundedSender<Order>>>,
}

impl Worker {
    pub(crate) fn new(prepared: Arc<Prepared>) -> Self {
        Self { prepared, orders: OnceLock::new() }
    }

    pub(crate) async fn carry(&self, request: Request<Bytes>) -> Answer {
        let orders = self.orders.get_or_init(|| start(Arc::clone(&self.prepared)));
        let (answer, answered) = oneshot::channel();
        let order = Order { request, answer };
        orders.as_ref().ok_or(Error::Stopped)?.send(order).map_err(|_| Error::Stopped)?;
        answered.await.unwrap_or(Err(Error::Stopped))
    }
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Order").finish_non_exhaustive()
    }
}

/// Starts the thread; `None` if the system gives none.
fn start(prepared: Arc<Prepared>) -> Option<mpsc::UnboundedSender<Order>> {
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    let (orders, mut ordered) = mpsc::unbounded_channel::<Order>();
    let serve = move || {
        LocalSet::new().block_on(&runtime, async move {
            let transport = Rc::new(AwcTransport::new(prepared));
            while let Some(Order { request, mut answer }) = ordered.recv().await {
                let transport = Rc::clone(&transport);
                tokio::task::spawn_local(async move {
                    tokio::select! {
                        biased;
                        () = answer.closed() => {}
                        answered = carry(&transport, request) => { drop(answer.send(answered)); }
                    }
                });
            }
        });
    };
    std::thread::Builder::new().name("informer-client".to_owned()).spawn(serve).ok()?;
    Some(orders)
}

async fn carry(transport: &AwcTransport, request: Request<Bytes>) -> Answer {
    let (head, body) = transport.send(request, Lane::Unary).await?.into_parts();
    let length = length_of(&head.headers);
    let bytes = whole(body, length, ANSWER_LIMIT).await?.ok_or(Error::TooLarge(ANSWER_LIMIT))?;
    if head.status.is_success() {
        return Ok(Response::from_parts(head, bytes));
    }
    let retry_after = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let authorization = head.extensions.get::<SentAuthorization>().map(|sent| &sent.0);
    let status = Status::from_answer_to(authorization, (head.status.as_u16(), retry_after), &bytes);
    Err(Error::Refused(Box::new(status)))
}
