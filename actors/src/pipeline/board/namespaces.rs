//! How the sets of namespaces are followed, as the status shows it.
//!
//! Answers "which line belongs to which set?": the number of a set, which is never used twice.

use super::StatusBoard;
use crate::pipeline::status::NamespacesStatus;
use crate::runtime::locked::locked;

impl StatusBoard {
    /// Shows how a set of namespaces is followed.
    pub(crate) fn show_namespaces(&self, set: usize, status: NamespacesStatus) {
        let mut shown = locked(&self.0.namespaces);
        if self.is_stopped() || shown.get(&set) == Some(&status) {
            return;
        }
        shown.insert(set, status);
        self.0.changed.raise();
    }

    /// Shows a set of namespaces no more.
    pub(crate) fn end_namespaces(&self, set: usize) {
        if !self.is_stopped() {
            locked(&self.0.namespaces).remove(&set);
            self.0.changed.raise();
        }
    }
}
