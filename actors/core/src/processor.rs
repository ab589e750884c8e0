//! The roster of listeners of one informer. A sorted map and not a slab: a slab reuses places, so a late message
//! would reach the next listener.

use std::collections::BTreeMap;
use std::fmt;

/// The number of one subscription: never used for another one in the life of its informer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(u64);

impl ListenerId {
    /// Names the subscription with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ListenerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "listener-{}", self.0)
    }
}

/// The listeners in order of subscription; `T` is the handle of a listener.
///
/// ```
/// # use informer_core::processor::{ListenerId, Roster};
/// let mut roster = Roster::new();
/// roster.attach(ListenerId::new(2), "second");
/// roster.attach(ListenerId::new(1), "first");
/// let handles: Vec<&str> = roster.iter().map(|(_, handle)| *handle).collect();
/// assert_eq!(handles, ["first", "second"]);
/// ```
#[derive(Debug, Clone)]
pub struct Roster<T> {
    listeners: BTreeMap<ListenerId, T>,
}

impl<T> Roster<T> {
    /// There is no listener.
    pub const fn new() -> Self {
        Self { listeners: BTreeMap::new() }
    }

    /// Adds a listener, or replaces its handle and returns the one before; logarithmic.
    pub fn attach(&mut self, id: ListenerId, listener: T) -> Option<T> {
        self.listeners.insert(id, listener)
    }

    /// Removes a listener; `None` if it had left already.
    pub fn detach(&mut self, id: ListenerId) -> Option<T> {
        self.listeners.remove(&id)
    }

    /// The handle of one listener.
    pub fn get(&self, id: ListenerId) -> Option<&T> {
        self.listeners.get(&id)
    }

    /// All listeners, in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (ListenerId, &T)> {
        self.listeners.iter().map(|(id, listener)| (*id, listener))
    }

    /// All listeners in order of their ids, and whether each is one of `due`, which is sorted. One walk of
    /// both.
    pub fn iter_due<'a>(
        &'a self,
        due: &'a [ListenerId],
    ) -> impl Iterator<Item = (ListenerId, &'a T, bool)> + use<'a, T> {
        debug_assert!(due.is_sorted(), "who is due is in order of the ids");
        let mut due = due.iter().copied().peekable();
        self.listeners.iter().map(move |(id, listener)| {
            while due.next_if(|due| due < id).is_some() {}
            (*id, listener, due.next_if_eq(id).is_some())
        })
    }

    /// How many listen.
    pub fn len(&self) -> usize {
        self.listeners.len()
    }

    /// Whether there is no listener.
    pub fn is_empty(&self) -> bool {
        self.listeners.is_empty()
    }
}

impl<T> Default for Roster<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::{ListenerId, Roster};

    #[test]
    fn listeners_are_visited_in_order_of_subscription_whatever_the_order_of_attaching() {
        let mut roster = Roster::new();
        for number in [3, 1, 2] {
            roster.attach(ListenerId::new(number), number * 10);
        }
        let seen: Vec<(u64, u64)> = roster.iter().map(|(id, handle)| (id.number(), *handle)).collect();
        assert_eq!(seen, [(1, 10), (2, 20), (3, 30)]);
    }

    #[test]
    fn who_is_due_is_found_in_one_walk_whoever_has_left_or_joined() {
        let mut roster = Roster::new();
        for number in [1, 3, 4, 7] {
            roster.attach(ListenerId::new(number), ());
        }
        let due = [2, 3, 5, 7, 9].map(ListenerId::new);
        let seen: Vec<(u64, bool)> = roster.iter_due(&due).map(|(id, (), due)| (id.number(), due)).collect();
        assert_eq!(seen, [(1, false), (3, true), (4, false), (7, true)]);
    }

    #[test]
    fn who_left_is_no_longer_found_and_others_keep_their_ids() {
        let mut roster = Roster::new();
        roster.attach(ListenerId::new(1), "a");
        roster.attach(ListenerId::new(2), "b");
        assert_eq!(roster.detach(ListenerId::new(1)), Some("a"));
        assert_eq!(roster.detach(ListenerId::new(1)), None);
        assert_eq!(roster.get(ListenerId::new(1)), None);
        assert_eq!(roster.get(ListenerId::new(2)), Some(&"b"));
        assert_eq!((roster.len(), roster.is_empty()), (1, false));
        roster.detach(ListenerId::new(2));
        assert_eq!((roster.len(), roster.is_empty()), (0, true));
    }

    #[test]
    fn a_listener_that_attaches_again_keeps_its_id_and_replaces_its_handle() {
        let mut roster = Roster::new();
        roster.attach(ListenerId::new(7), "before the restart");
        assert_eq!(roster.attach(ListenerId::new(7), "after"), Some("before the restart"));
        assert_eq!(roster.len(), 1);
    }

    #[test]
    fn an_id_reads_as_a_name_in_logs() {
        assert_eq!(ListenerId::new(4).to_string(), "listener-4");
    }
}
