//! How lists that nobody wants any more are freed.
//!
//! Answers "what becomes of a list that fails, or of a machine that is dropped in mid-list?": every stage of a list is
//! kept in an `OffArbiter`, so that dropping it costs the same whatever it holds. Read next: `off_arbiter.rs`; `list.rs`
//! and `watch_list.rs`, which keep them.

use std::sync::Arc;

use super::watch_list::{Content, Rest};
use crate::delta::SetAside;
use crate::meta::Object;
use crate::off_arbiter::{Freeing, Release};

/// One way of freeing for each stage of a list.
pub(super) struct ListFreeing<S> {
    pub(super) objects: Freeing<Vec<Object<S>>>,
    pub(super) set_aside: Freeing<Vec<SetAside>>,
    pub(super) content: Freeing<Content<S>>,
    pub(super) rest: Freeing<Rest<S>>,
}

impl<S> ListFreeing<S> {
    /// Where they are dropped.
    pub(super) const fn in_place() -> Self {
        Self {
            objects: Freeing::in_place(),
            set_aside: Freeing::in_place(),
            content: Freeing::in_place(),
            rest: Freeing::in_place(),
        }
    }
}

impl<S: Send + Sync + 'static> ListFreeing<S> {
    pub(super) fn by(release: &Arc<dyn Release>) -> Self {
        let by = || Arc::clone(release);
        Self {
            objects: Freeing::in_pieces(by()),
            set_aside: Freeing::in_pieces(by()),
            content: Freeing::whole(by()),
            rest: Freeing::whole(by()),
        }
    }
}
