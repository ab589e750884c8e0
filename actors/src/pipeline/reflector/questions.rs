//! The single requests of a session. The drop of a future ends its request. A GET or an explanation that fails or is
//! late changes no object.

use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};
use informer_core::delta::{ListPart, Replacement};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey, ResourceVersion};
use informer_core::request::ListRequest;
use informer_core::words::{QUOTED, one_line};

use super::ReflectorSpec;
use crate::list_watch::{KnownObjects, ListWatch};
use crate::pipeline::messages::Body;
use crate::runtime::within;

pub(super) fn version<S: Body>(
    source: &Rc<dyn ListWatch<S>>,
    request: ListRequest,
) -> LocalBoxFuture<'static, Result<ResourceVersion, ListWatchError>> {
    let mut answer = source.list(request, KnownObjects::nothing());
    async move {
        while let Some(part) = answer.next().await {
            if let ListPart::End { version, .. } = part? {
                return Ok(version);
            }
        }
        Err(ListWatchError::Protocol("the answer to a question for the version did not end".into()))
    }
    .boxed_local()
}

/// `None` if no answer comes in time, or the object still does not decode.
pub(super) fn object<S: Body>(
    spec: &ReflectorSpec<S>,
    source: &Rc<dyn ListWatch<S>>,
    key: ObjectKey,
) -> LocalBoxFuture<'static, Option<Object<S>>> {
    let (answer, limit) = (source.get(key.clone()), spec.config.answer_deadline);
    let (shared, source) = (spec.shared.clone(), spec.source.clone());
    async move {
        match within(limit, answer).await {
            // Another key, such as one of another cluster, is no answer.
            Some(Ok(found)) => found.filter(|found| found.key() == &key),
            Some(Err(error)) => {
                let (informer, error) = (&shared.name, one_line(&error.to_string(), QUOTED));
                tracing::debug!(target: "actix_informer::informer", %informer, %source, %key, "{key} still cannot be decoded, and is asked for again later: {error}");
                None
            }
            None => None,
        }
    }
    .boxed_local()
}

/// Shows and logs why a first list is empty. Called before the list is published: a wait for it knows of the
/// question.
pub(super) fn why_empty<S: Body>(
    spec: &ReflectorSpec<S>,
    source: &Rc<dyn ListWatch<S>>,
    list: &Replacement<S>,
) -> Option<LocalBoxFuture<'static, ()>> {
    if !list.is_first_and_empty() {
        return None;
    }
    let (answer, limit) = (source.explain_nothing(), spec.config.answer_deadline);
    let (shared, source) = (spec.shared.clone(), spec.source.clone());
    let question = shared.board.begin_question();
    let asked = async move {
        let _question = question;
        let Some(Some(hint)) = within(limit, answer).await else { return };
        let hint: Arc<str> = one_line(&hint, QUOTED).into();
        let mut is_shown = false;
        shared.board.update_source(&source, |status| {
            is_shown = status.wire_bytes == 0;
            status.hint = Some(Arc::clone(&hint)).filter(|_| is_shown);
            is_shown
        });
        if is_shown {
            let informer = &shared.name;
            tracing::warn!(target: "actix_informer::informer", %informer, %source, "the first list of source {source} is empty: {hint}");
        }
    };
    Some(asked.boxed_local())
}
