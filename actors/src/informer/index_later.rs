//! An index that a reader of a cache needs, and that its maker has perhaps not added.
//!
//! Answers "how does a part that is given a lister get the index that it looks up?". Invariants:
//! 1. The call does not wait; the index appears, complete, in one later snapshot.
//! 2. An index of that name that is there already stays.
//!
//! Read next: `Informer::add_index`.

use informer_core::index::AnyIndex;

use super::Informer;
use crate::lister::Lister;
use crate::pipeline::messages::Body;

impl<S: Body> Lister<S> {
    /// Adds this index unless there is one of its name, and returns at once. Until a snapshot has it,
    /// [`Self::by_index`] says that it is not known. Of a fake nothing is added.
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use actix_informer::informer::{Index, Informer};
    /// fn add(words: &Informer<String>, by_length: &Index<String>) {
    ///     words.lister().ensure_index(by_length);
    /// }
    /// ```
    pub fn ensure_index(&self, index: impl Into<AnyIndex<S>>) {
        let (Some(keep), index) = (self.keep(), index.into()) else { return };
        if self.indices().iter().any(|known| known.name() == index.name()) {
            return;
        }
        let informer = Informer(std::sync::Arc::clone(keep));
        let runtime = informer.runtime().clone();
        // It is refused only where another index has the name by now, or the informer has stopped.
        runtime.spawn_local(move || async move { drop(informer.add_index(index).await) });
    }
}
