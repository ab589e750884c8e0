//! The path of one object: marks of the places that a change of it has passed, each with its time.
//!
//! 1. Whether a change leaves marks depends on its version alone, or on its key if somebody asked for that:
//!    so every place decides alike, without a word between them.
//! 2. A place keeps the newest marks only; a path says that older ones are gone.
//! 3. Marks of one time stay in the order in which they were made.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::meta::{ObjectKey, ResourceVersion};

/// Of each informer and each controller.
pub const MOST_MARKS: usize = 4_096;
/// Keys that may be followed at once.
pub const MOST_KEYS: usize = 64;
/// Keys in queues whose marks are awaited.
const MOST_WORK: usize = 4_096;

/// A place that a change passes, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Hop {
    /// Its bytes were read from the connection.
    Read,
    /// They were cut into events.
    Scanned,
    /// It is decoded, and with the Reflector.
    Decoded,
    /// It waits in the DeltaFifo.
    Queued,
    /// It is in the published snapshot: listers see it.
    Published,
    /// The Processor has handed it to the listeners.
    Distributed,
    /// A listener has handed it to its subscriber.
    Delivered,
    /// The subscriber has handled it, with all that it got at once.
    Handled,
    /// A key was added to the queue of a controller because of it.
    KeyAdded,
    /// A worker has taken the key.
    KeyTaken,
    /// The reconcile of the key has ended.
    Reconciled,
    /// A reconcile has written the object.
    Written,
    /// The caches have shown what the reconcile wrote, or the wait for that is over.
    Seen,
}

impl Hop {
    /// Its name, in one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Scanned => "scanned",
            Self::Decoded => "decoded",
            Self::Queued => "queued",
            Self::Published => "published",
            Self::Distributed => "distributed",
            Self::Delivered => "delivered",
            Self::Handled => "handled",
            Self::KeyAdded => "key added",
            Self::KeyTaken => "key taken",
            Self::Reconciled => "reconciled",
            Self::Written => "written",
            Self::Seen => "seen",
        }
    }
}

/// One mark on the path of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mark {
    /// When, as time since the runtime's start.
    pub at: Duration,
    /// Where.
    pub hop: Hop,
    /// The informer, or the controller.
    pub place: Arc<str>,
    /// The source, the subscription, or the informer of the event. Of a reconcile, how it has ended.
    pub by: Option<Arc<str>>,
    /// The object; of hops of a queue, its key.
    pub key: ObjectKey,
    /// The version of the object.
    pub version: Option<ResourceVersion>,
    /// The other object: of an added key, the object of the event; of a write, the key of the reconcile.
    pub other: Option<ObjectKey>,
}

impl Mark {
    /// A mark at this hop of this place.
    pub fn new(hop: Hop, place: Arc<str>, key: ObjectKey) -> Self {
        Self { at: Duration::ZERO, hop, place, by: None, key, version: None, other: None }
    }

    /// At this time.
    pub fn at(mut self, at: Duration) -> Self {
        self.at = at;
        self
    }

    /// At another hop.
    pub fn hop(mut self, hop: Hop) -> Self {
        self.hop = hop;
        self
    }

    /// With the source, subscription, informer or outcome.
    pub fn by(mut self, by: impl Into<Arc<str>>) -> Self {
        self.by = Some(by.into());
        self
    }

    /// With the version.
    pub fn version(mut self, version: Option<ResourceVersion>) -> Self {
        self.version = version;
        self
    }

    /// With the other object.
    pub fn other(mut self, other: ObjectKey) -> Self {
        self.other = Some(other);
        self
    }
}

/// The marks of one object, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Path {
    /// The marks.
    pub marks: Vec<Mark>,
    /// Whether older marks may be gone: a place keeps 4,096.
    pub is_cut: bool,
}

/// One line for each mark: the time since the first one, the time since the one before, the hop and its
/// place.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.marks.first() else { return f.write_str("no marks") };
        let mut before = first.at;
        if self.is_cut {
            writeln!(f, "older marks are gone")?;
        }
        for mark in &self.marks {
            let since = mark.at.saturating_sub(first.at).as_secs_f64() * 1e3;
            let step = mark.at.saturating_sub(before).as_secs_f64() * 1e3;
            before = mark.at;
            write!(f, "{since:10.3} ms  +{step:<9.3} {:<11} {}", mark.hop.name(), mark.key)?;
            mark.version.iter().try_for_each(|version| write!(f, " version {version}"))?;
            write!(f, " in {}", mark.place)?;
            mark.by.iter().try_for_each(|by| write!(f, ", {by}"))?;
            mark.other.iter().try_for_each(|other| write!(f, ", {other}"))?;
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Which changes leave marks: a number, so that the places can read it without a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "known to our own crates alone")]
pub struct Choice(pub u64);

const SAMPLES: u64 = 1;
const KEYS: u64 = 2;

impl Choice {
    /// None.
    pub const NOTHING: Self = Self(0);

    /// One of so many changes, rounded up to a power of two; 1: all; 0: none.
    #[must_use]
    pub fn sampling(self, one_of: u32) -> Self {
        let keys = self.0 & KEYS;
        match u64::from(one_of).next_power_of_two() {
            _ if one_of == 0 => Self(keys),
            power => Self(keys | SAMPLES | ((power - 1) << 8)),
        }
    }

    /// Whether some keys are followed.
    #[must_use]
    pub fn with_keys(self, are_there: bool) -> Self {
        Self((self.0 & !KEYS) | if are_there { KEYS } else { 0 })
    }

    /// Whether any change can leave a mark.
    pub const fn is_on(self) -> bool {
        self.0 != 0
    }

    /// Whether every change leaves marks.
    pub const fn is_all(self) -> bool {
        self.0 & SAMPLES != 0 && self.0 >> 8 == 0
    }

    /// Whether the keys that are followed have to be looked up.
    pub const fn has_keys(self) -> bool {
        self.0 & KEYS != 0
    }

    /// Whether a change of this version leaves marks, whatever its key is.
    pub fn samples(self, version: &ResourceVersion) -> bool {
        self.0 & SAMPLES != 0 && version.low_bits() & (self.0 >> 8) == 0
    }
}

/// The newest marks of each place.
#[derive(Debug, Default)]
pub struct Marks {
    places: BTreeMap<Arc<str>, Place>,
    noted: u64,
    keys: BTreeSet<ObjectKey>,
    /// Keys of queues, by controller, that a change with marks has added.
    work: BTreeSet<(Arc<str>, ObjectKey)>,
    /// By informer and subscription, what was delivered and is not handled.
    delivered: BTreeMap<(Arc<str>, Arc<str>), Vec<Mark>>,
}

#[derive(Debug, Default)]
struct Place {
    marks: VecDeque<(u64, Mark)>,
    is_cut: bool,
}

impl Marks {
    /// False if [`MOST_KEYS`] are followed already.
    pub fn follow(&mut self, key: &ObjectKey) -> bool {
        let is_room = self.keys.len() < MOST_KEYS || self.keys.contains(key);
        if is_room {
            self.keys.insert(key.clone());
        }
        is_room
    }

    /// Returns whether other keys are followed.
    pub fn unfollow(&mut self, key: &ObjectKey) -> bool {
        self.keys.remove(key);
        !self.keys.is_empty()
    }

    /// Whether this key is followed.
    pub fn follows(&self, key: &ObjectKey) -> bool {
        self.keys.contains(key)
    }

    /// Notes a mark. One of an added key is followed in its queue until its reconcile has ended.
    pub fn note(&mut self, mark: Mark) {
        match mark.hop {
            Hop::KeyAdded if self.work.len() < MOST_WORK => {
                self.work.insert((Arc::clone(&mark.place), mark.key.clone()));
            }
            Hop::Delivered => {
                let by = mark.by.clone().unwrap_or_default();
                let delivered = self.delivered.entry((Arc::clone(&mark.place), by)).or_default();
                if delivered.len() < MOST_WORK {
                    delivered.push(mark.clone());
                }
            }
            Hop::Seen => drop(self.work.remove(&(Arc::clone(&mark.place), mark.key.clone()))),
            _ => {}
        }
        let is_same = |(_, last): &(u64, Mark)| mark.hop == Hop::Written && *last == mark;
        // A write is reported once for each type of cache.
        if self.places.get(&mark.place).and_then(|place| place.marks.back()).is_some_and(is_same) {
            return;
        }
        self.noted += 1;
        let place = self.places.entry(Arc::clone(&mark.place)).or_default();
        if place.marks.len() >= MOST_MARKS {
            place.marks.pop_front();
            place.is_cut = true;
        }
        place.marks.push_back((self.noted, mark));
    }

    /// The subscriber has handled what was delivered to it.
    pub fn handled(&mut self, at: Duration, place: &Arc<str>, subscription: &Arc<str>) {
        let delivered = self.delivered.remove(&(Arc::clone(place), Arc::clone(subscription)));
        for mark in delivered.into_iter().flatten() {
            self.note(Mark { at, hop: Hop::Handled, ..mark });
        }
    }

    /// The keys that are followed.
    pub fn followed(&self) -> impl Iterator<Item = &ObjectKey> {
        self.keys.iter()
    }

    /// Whether a change with marks has added this key to the queue of this controller.
    pub fn has_work(&self, controller: &Arc<str>, key: &ObjectKey) -> bool {
        self.work.contains(&(Arc::clone(controller), key.clone()))
    }

    /// Forgets a place that has ended.
    pub fn forget(&mut self, place: &Arc<str>) {
        self.places.remove(place);
        self.work.retain(|(controller, _)| controller != place);
        self.delivered.retain(|(informer, _), _| informer != place);
    }

    /// The marks of this object, and those that name it.
    pub fn of(&self, key: &ObjectKey) -> Path {
        self.path(|mark| mark.key == *key || mark.other.as_ref() == Some(key))
    }

    /// All marks.
    pub fn all(&self) -> Path {
        self.path(|_| true)
    }

    fn path(&self, is_of: impl Fn(&Mark) -> bool) -> Path {
        let mut marks: Vec<_> = self
            .places
            .values()
            .flat_map(|place| &place.marks)
            .filter(|(_, mark)| is_of(mark))
            .map(|(number, mark)| (mark.at, *number, mark))
            .collect();
        marks.sort_unstable_by_key(|(at, number, _)| (*at, *number));
        Path {
            marks: marks.into_iter().map(|(_, _, mark)| mark.clone()).collect(),
            is_cut: self.places.values().any(|place| place.is_cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(number: u64) -> ResourceVersion {
        ResourceVersion::from_number(number).expect("not zero")
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("a", name)
    }

    #[test]
    fn one_of_so_many_versions_is_sampled_and_all_places_choose_alike() {
        for (one_of, expected) in [(0, 0), (1, 1024), (2, 512), (100, 8), (1024, 1)] {
            let choice = Choice::NOTHING.sampling(one_of);
            let chosen = (1..=1024).filter(|number| choice.samples(&version(*number))).count();
            assert_eq!(chosen, expected, "one of {one_of}");
            assert_eq!((choice.is_on(), choice.is_all()), (one_of > 0, one_of == 1));
        }
        let with_keys = Choice::NOTHING.sampling(8).with_keys(true);
        assert!(with_keys.has_keys() && with_keys.samples(&version(16)) && !with_keys.samples(&version(17)));
        assert_eq!(with_keys.with_keys(false).sampling(0), Choice::NOTHING);
    }

    #[test]
    fn a_key_of_a_queue_has_marks_from_its_addition_until_its_writes_are_seen() {
        let mut marks = Marks::default();
        let controller: Arc<str> = "sites".into();
        let at = |hop| Mark::new(hop, Arc::clone(&controller), key("web"));
        assert!(!marks.has_work(&controller, &key("web")));
        marks.note(at(Hop::KeyAdded));
        marks.note(at(Hop::Reconciled));
        assert!(marks.has_work(&controller, &key("web")));
        marks.note(at(Hop::Seen));
        assert!(!marks.has_work(&controller, &key("web")));
    }

    #[test]
    fn what_a_subscriber_was_handed_has_its_mark_when_it_is_handled() {
        let mut marks = Marks::default();
        let (pods, one): (Arc<str>, Arc<str>) = ("pods".into(), "one".into());
        for subscription in ["one", "other"] {
            marks.note(Mark::new(Hop::Delivered, Arc::clone(&pods), key("web")).by(subscription));
        }
        marks.handled(Duration::from_secs(2), &pods, &one);
        marks.handled(Duration::from_secs(3), &pods, &one);
        let handled: Vec<_> = marks.all().marks.into_iter().filter(|mark| mark.hop == Hop::Handled).collect();
        let [mark] = &handled[..] else { panic!("{handled:?}") };
        assert_eq!((mark.at, mark.by.as_ref()), (Duration::from_secs(2), Some(&one)));
    }

    #[test]
    fn a_path_names_what_led_to_it_and_is_told_in_one_line_a_mark() {
        let mut marks = Marks::default();
        let mark = |hop, place: &str, at| {
            let mark = Mark::new(hop, place.into(), key("web")).version(Some(version(7)));
            Mark { at: Duration::from_micros(at), ..mark }
        };
        marks.note(mark(Hop::Queued, "pods", 250).by("pods"));
        marks.note(mark(Hop::Published, "pods", 1_250));
        let added = Mark::new(Hop::KeyAdded, "sites".into(), key("site")).by("pods").other(key("web"));
        marks.note(Mark { at: Duration::from_micros(1_250), ..added });
        let told = marks.of(&key("web")).to_string();
        let lines: Vec<_> = told.lines().map(str::trim_start).collect();
        assert_eq!(
            lines,
            [
                "0.000 ms  +0.000     queued      a/web version 7 in pods, pods",
                "1.000 ms  +1.000     published   a/web version 7 in pods",
                "1.000 ms  +0.000     key added   a/site in sites, pods, a/web",
            ]
        );
        assert_eq!(marks.of(&key("site")).marks.len(), 1);
    }

    proptest! {
        /// Against a list of all marks.
        #[test]
        fn a_place_keeps_its_newest_marks_in_order(
            notes in prop::collection::vec((0..3_u8, 0..4_u8, 0..5_u64), 0..200),
            forgotten in prop::option::of(0..3_u8),
        ) {
            let (mut marks, mut naive) = (Marks::default(), Vec::new());
            for (place, name, at) in notes {
                let mark = Mark::new(Hop::Queued, place.to_string().into(), key(&name.to_string()));
                let mark = Mark { at: Duration::from_secs(at), ..mark };
                marks.note(mark.clone());
                naive.push(mark);
            }
            if let Some(place) = forgotten {
                marks.forget(&place.to_string().into());
                naive.retain(|mark| *mark.place != *place.to_string());
            }
            naive.sort_by_key(|mark| mark.at);
            prop_assert_eq!(marks.all().marks, naive.clone());
            let of_one = naive.into_iter().filter(|mark| mark.key == key("1")).collect::<Vec<_>>();
            prop_assert_eq!(marks.of(&key("1")).marks, of_one);
        }
    }

    #[test]
    fn a_place_that_is_full_forgets_its_oldest_mark_and_the_path_says_so() {
        let mut marks = Marks::default();
        for number in 0..=MOST_MARKS {
            let mark = Mark::new(Hop::Queued, "pods".into(), key("web"));
            marks.note(Mark { at: Duration::from_secs(number as u64), ..mark });
        }
        let path = marks.of(&key("web"));
        assert_eq!(
            (path.marks.len(), path.marks[0].at, path.is_cut),
            (MOST_MARKS, Duration::from_secs(1), true)
        );
    }

    #[test]
    fn at_most_64_keys_are_followed() {
        let mut marks = Marks::default();
        assert!((0..MOST_KEYS).all(|number| marks.follow(&key(&number.to_string()))));
        assert!(!marks.follow(&key("more")) && marks.follow(&key("0")));
        assert!(marks.unfollow(&key("0")) && marks.follow(&key("more")) && marks.follows(&key("more")));
    }
}
