//! Packed bodies as bytes for a file, and back (`../../saved.rs`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::{LateFindings, Prune, Saves};
use super::{Dictionary, Frame, Kept, LazyBody, Packed, PackedBytes, Packer};

#[derive(Debug, Clone)]
pub(crate) struct SavedTo {
    pub(crate) path: PathBuf,
    pub(crate) may_be_secrets: bool,
}

impl<K> Packed<K> {
    pub(crate) fn saved_to(mut self, file: SavedTo) -> Self {
        self.file = Some(file);
        self
    }
}

/// The compressed text of a body. It keeps its dictionary.
pub struct SavedBody(Frame);

informer_core::debug_as!(SavedBody, self, bytes = self.0.bytes.len());

impl SavedBody {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Its number and its content.
    pub(crate) fn dictionary(&self) -> Option<(u32, &[u8])> {
        Some((self.0.dictionary.number()?, &self.0.dictionary.content))
    }
}

/// The dictionaries of a file.
pub struct Dictionaries {
    trained: BTreeMap<u32, Arc<Dictionary>>,
    none: Arc<Dictionary>,
}

informer_core::debug_as!(Dictionaries, self, numbers = self.trained.keys());

impl Dictionary {
    /// The number in each text that it compresses.
    fn number(&self) -> Option<u32> {
        zstd_safe::get_dict_id_from_dict(&self.content).map(Into::into)
    }
}

pub(super) struct Saving {
    pub(super) packer: Arc<Packer>,
    pub(super) file: SavedTo,
}

impl<K: Send + Sync + 'static> Saves<LazyBody<K>> for Saving {
    fn file(&self) -> Arc<Path> {
        self.file.path.as_path().into()
    }

    fn may_be_secrets(&self) -> bool {
        self.file.may_be_secrets
    }

    fn saved(&self, body: &LazyBody<K>) -> Option<SavedBody> {
        let Kept::Packed(text) = &body.kept else { return None };
        Some(SavedBody(text.frame().clone()))
    }

    fn fields(&self, body: &LazyBody<K>) -> (u64, Vec<(String, u64)>) {
        body.read(|object| object.weighed(&Prune::nothing())).unwrap_or_default()
    }

    fn newest(&self) -> (Option<u32>, bool) {
        let mut state = self.packer.state();
        (state.newest.number(), state.has_former())
    }

    fn restore(&self, contents: BTreeMap<u32, Vec<u8>>, newest: Option<u32>) -> Option<Dictionaries> {
        let made = contents.into_iter().map(|(number, content)| {
            Some((number, Arc::new(Dictionary::of(&content).filter(|made| made.number() == Some(number))?)))
        });
        let trained: BTreeMap<u32, Arc<Dictionary>> = made.collect::<Option<_>>()?;
        let mut state = self.packer.state();
        let none = Arc::new(Dictionary::none());
        if let Some(newest) = newest.and_then(|newest| trained.get(&newest)) {
            let before = std::mem::replace(&mut state.newest, Arc::clone(newest));
            let others = trained.values().filter(|other| !Arc::ptr_eq(other, newest)).cloned();
            state.former.extend(others.chain([before, Arc::clone(&none)]));
            // Samples of a former dictionary would keep it.
            state.samples.clear();
            state.drift.trained(true);
        }
        drop(state);
        self.packer.due.notify_one();
        Some(Dictionaries { trained, none })
    }

    fn body(
        &self,
        dictionaries: &Dictionaries,
        bytes: Vec<u8>,
        late: &Arc<LateFindings>,
    ) -> Option<LazyBody<K>> {
        let dictionary = match zstd_safe::get_dict_id_from_frame(&bytes) {
            Some(number) => Arc::clone(dictionaries.trained.get(&number.into())?),
            None => Arc::clone(&dictionaries.none),
        };
        let frame = Frame { bytes: bytes.into(), dictionary };
        Some(LazyBody::with(Kept::Packed(PackedBytes::new(frame)), Some(Arc::clone(late))))
    }
}
