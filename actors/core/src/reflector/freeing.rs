//! How a list that is not needed any more is freed.
//!
//! Answers "what happens to the objects of a list that fails, or when the machine is dropped in the middle of a list?".
//! Every stage of a list is kept in an `OffArbiter`: dropping it costs the same for any number of objects. Read next:
//! `off_arbiter.rs`; then `list.rs` and `watch_list.rs`, which keep the stages.

use std::sync::Arc;

use super::watch_list::{Content, Rest};
use crate::chunks::Chunks;
use crate::delta::Undecodable;
use crate::meta::Object;
use crate::off_arbiter::{Freeing, Release};

/// How each stage of a list is freed.
pub(super) struct ListFreeing<S> {
    pub(super) objects: Freeing<Chunks<Object<S>>>,
    pub(super) undecodable: Freeing<Chunks<Undecodable>>,
    pub(super) content: Freeing<Content<S>>,
    pub(super) rest: Freeing<Rest<S>>,
}

impl<S> ListFreeing<S> {
    /// Every stage is freed where it is dropped.
    pub(super) const fn in_place() -> Self {
        Self {
            objects: Freeing::in_place(),
            undecodable: Freeing::in_place(),
            content: Freeing::in_place(),
            rest: Freeing::in_place(),
        }
    }
}

impl<S: Send + Sync + 'static> ListFreeing<S> {
    /// Every stage is freed by `release`.
    pub(super) fn by(release: &Arc<dyn Release>) -> Self {
        let by = || Arc::clone(release);
        Self {
            objects: Freeing::by_chunks(by()),
            undecodable: Freeing::by_chunks(by()),
            content: Freeing::whole(by()),
            rest: Freeing::whole(by()),
        }
    }
}
