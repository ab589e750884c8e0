//! The keys that wait: a class for each priority, lanes in a class, a line in each lane.
//!
//! The lanes of a class take turns: a lane that has handed out a key, or is new, goes behind the others. The
//! most urgent class is served, unless another one was passed over [`MOST_PASSED_OVER`] times in a row. So
//! the first key of a class waits for at most [`MOST_TURNS`] turns, and key p of a lane for `MOST_TURNS × p ×
//! lanes`.
//!
//! Waits are counted in keys, not in time: by age, a first list of a million keys would go before every newer
//! change as soon as it is old enough.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::slots::{NONE, Priority, Slot, Slots, State, Waiting};
use super::sorted_ids::{Place, SortedIds};

/// How often a class is passed over in a row while a key waits in it.
pub const MOST_PASSED_OVER: u32 = 7;

/// How many keys are handed out at most before one of a class that has any, this one included: two classes
/// can be due at the same time.
pub const MOST_TURNS: u32 = MOST_PASSED_OVER + 2;

/// An empty class with more lanes frees their memory.
const MOST_SPARE: usize = 16;

/// Which keys are of one lane: those that compare equal.
pub type LaneOrder<K> = fn(&K, &K) -> Ordering;

type Line = Result<(Place, u32), Place>;

#[derive(Debug)]
pub(super) struct Lines<K> {
    order: LaneOrder<K>,
    /// By priority, the lowest first.
    classes: [Class; 3],
}

#[derive(Debug, Default)]
struct Class {
    lanes: Vec<Lane>,
    free: Vec<u32>,
    /// By their first keys.
    sorted: SortedIds,
    turns: BTreeMap<u64, u32>,
    next_turn: u64,
    len: usize,
    passed_over: u32,
}

#[derive(Debug)]
struct Lane {
    first: u32,
    last: u32,
    turn: u64,
}

impl<K> Lines<K> {
    pub(super) fn new(order: LaneOrder<K>) -> Self {
        Self { order, classes: Default::default() }
    }

    pub(super) fn order(&self) -> LaneOrder<K> {
        self.order
    }

    pub(super) fn len(&self) -> usize {
        self.classes.iter().map(|class| class.len).sum()
    }

    pub(super) fn depth(&self, priority: Priority) -> usize {
        self.classes[priority as usize].len
    }

    /// A key for which the order panics gets no slot.
    pub(super) fn ask(&self, key: &K) {
        (self.order)(key, key);
    }

    /// Until the next change of the class.
    pub(super) fn find<P>(&self, slots: &Slots<K, P>, key: &K, priority: Priority) -> Line {
        self.ask(key);
        self.classes[priority as usize].find(slots, key, self.order)
    }

    pub(super) fn push<P>(&mut self, slots: &mut Slots<K, P>, id: u32, (priority, since): (Priority, u64)) {
        let Some(slot) = slots.get(id) else { return };
        let line = self.find(slots, &slot.key, priority);
        self.put(slots, id, (priority, since), line);
    }

    pub(super) fn raise<P>(&mut self, slots: &mut Slots<K, P>, id: u32, (priority, since): (Priority, u64)) {
        let Some(slot) = slots.get(id) else { return };
        let line = self.find(slots, &slot.key, priority);
        self.remove(slots, id);
        self.put(slots, id, (priority, since), line);
    }

    /// Does not call the order.
    pub(super) fn put<P>(
        &mut self,
        slots: &mut Slots<K, P>,
        id: u32,
        (priority, since): (Priority, u64),
        line: Line,
    ) {
        let class = &mut self.classes[priority as usize];
        let (lane, before) = match line {
            Ok((_, lane)) => (lane, class.lanes[lane as usize].last),
            Err(place) => {
                let lane = class.open(id);
                class.sorted.insert(place, lane);
                (lane, NONE)
            }
        };
        class.lanes[lane as usize].last = id;
        class.len += 1;
        if let Some(waiting) = slots.get_mut(before).and_then(Slot::waiting_mut) {
            waiting.behind = id;
        }
        if let Some(slot) = slots.get_mut(id) {
            slot.state = State::Waiting(Waiting { since, before, behind: NONE, lane, priority });
        }
    }

    pub(super) fn remove<P>(&mut self, slots: &mut Slots<K, P>, id: u32) -> Option<Waiting> {
        let slot = slots.get(id)?;
        let State::Waiting(waiting) = slot.state else { return None };
        let class = &mut self.classes[waiting.priority as usize];
        let Waiting { before, behind, lane, .. } = waiting;
        if before == NONE && behind == NONE {
            let place = class.find(slots, &slot.key, self.order);
            class.close(lane, place.ok().map(|(place, _)| place));
        } else if before == NONE {
            class.lanes[lane as usize].first = behind;
        } else if behind == NONE {
            class.lanes[lane as usize].last = before;
        }
        class.len -= 1;
        if class.len == 0 {
            class.clear();
        }
        if let Some(waiting) = slots.get_mut(before).and_then(Slot::waiting_mut) {
            waiting.behind = behind;
        }
        if let Some(waiting) = slots.get_mut(behind).and_then(Slot::waiting_mut) {
            waiting.before = before;
        }
        if let Some(slot) = slots.get_mut(id) {
            slot.state = State::Idle;
        }
        Some(waiting)
    }

    pub(super) fn pop<P>(&mut self, slots: &mut Slots<K, P>) -> Option<(u32, Waiting)> {
        let served = self.next_class()?;
        for (at, class) in self.classes.iter_mut().enumerate() {
            let is_passed_over = at != served && class.len > 0;
            class.passed_over = if is_passed_over { class.passed_over + 1 } else { 0 };
        }
        let class = &mut self.classes[served];
        let (_, lane) = class.turns.pop_first()?;
        class.enqueue(lane);
        let id = class.lanes[lane as usize].first;
        self.remove(slots, id).map(|waiting| (id, waiting))
    }

    fn next_class(&self) -> Option<usize> {
        let waiting = || self.classes.iter().enumerate().filter(|(_, class)| class.len > 0);
        let due = waiting().filter(|(_, class)| class.passed_over >= MOST_PASSED_OVER);
        let due = due.max_by_key(|(_, class)| class.passed_over);
        due.or_else(|| waiting().next_back()).map(|(at, _)| at)
    }

    /// Linear.
    pub(super) fn check<P>(&self, slots: &Slots<K, P>) -> Result<(), String> {
        for priority in Priority::ALL {
            let class = &self.classes[priority as usize];
            if class.passed_over > MOST_TURNS {
                return Err(format!("{priority:?} was passed over {} times", class.passed_over));
            }
            let lanes: Vec<u32> = class.sorted.iter().collect();
            let in_turn = class.turns.iter().all(|(turn, lane)| class.has_turn(*lane, *turn));
            if lanes.len() != class.turns.len() || !in_turn {
                return Err(format!("{priority:?}: {} lanes, {} turns", lanes.len(), class.turns.len()));
            }
            let mut waits = 0;
            for lane in &lanes {
                waits += self.check_lane(slots, (priority, *lane), class)?;
            }
            let firsts: Option<Vec<&Slot<K, P>>> =
                lanes.iter().map(|lane| slots.get(class.lanes.get(*lane as usize)?.first)).collect();
            let firsts = firsts.ok_or("a lane without a key")?;
            if !firsts.is_sorted_by(|one, next| (self.order)(&one.key, &next.key).is_lt()) {
                return Err(format!("the lanes of {priority:?} are not in order"));
            }
            if waits != class.len {
                return Err(format!("{priority:?}: {waits} keys in lines, {} counted", class.len));
            }
        }
        Ok(())
    }

    fn check_lane<P>(
        &self,
        slots: &Slots<K, P>,
        of: (Priority, u32),
        class: &Class,
    ) -> Result<usize, String> {
        let (priority, lane) = of;
        let line = class.lanes.get(lane as usize).ok_or("an unknown lane")?;
        let (mut id, mut last, mut length) = (line.first, NONE, 0);
        while id != NONE {
            let slot = slots.get(id).ok_or("a line holds a freed slot")?;
            let State::Waiting(waiting) = slot.state else {
                return Err("a key in a line does not wait".into());
            };
            if (waiting.before, waiting.lane, waiting.priority) != (last, lane, priority) {
                return Err(format!("{of:?}: a wrong link: {waiting:?}"));
            }
            if slots.get(line.first).is_none_or(|first| (self.order)(&first.key, &slot.key).is_ne()) {
                return Err(format!("{of:?}: keys of two lanes in one line"));
            }
            (last, id, length) = (id, waiting.behind, length + 1);
            if length > slots.len() {
                return Err(format!("{of:?}: a line without an end"));
            }
        }
        if last == line.last { Ok(length) } else { Err(format!("{of:?}: a wrong end")) }
    }
}

impl<K, P> Slot<K, P> {
    fn waiting_mut(&mut self) -> Option<&mut Waiting> {
        match &mut self.state {
            State::Waiting(waiting) => Some(waiting),
            _ => None,
        }
    }
}

impl Class {
    fn find<K, P>(&self, slots: &Slots<K, P>, key: &K, order: LaneOrder<K>) -> Line {
        self.sorted.find(|lane| {
            let first = slots.get(self.lanes[lane as usize].first);
            first.map_or(Ordering::Less, |first| order(&first.key, key))
        })
    }

    fn open(&mut self, first: u32) -> u32 {
        let lane = Lane { first, last: first, turn: 0 };
        let at = if let Some(at) = self.free.pop() {
            self.lanes[at as usize] = lane;
            at
        } else {
            self.lanes.push(lane);
            u32::try_from(self.lanes.len() - 1).expect("a lane has a key, and keys are counted by a u32")
        };
        self.enqueue(at);
        at
    }

    fn enqueue(&mut self, lane: u32) {
        self.lanes[lane as usize].turn = self.next_turn;
        self.turns.insert(self.next_turn, lane);
        self.next_turn += 1;
    }

    fn close(&mut self, lane: u32, place: Option<Place>) {
        if let Some(place) = place {
            self.sorted.remove(place);
        }
        self.turns.remove(&self.lanes[lane as usize].turn);
        self.free.push(lane);
    }

    fn clear(&mut self) {
        if self.lanes.capacity() > MOST_SPARE {
            *self = Self::default();
        }
        self.lanes.clear();
        self.free.clear();
        (self.next_turn, self.passed_over) = (0, 0);
    }

    fn has_turn(&self, lane: u32, turn: u64) -> bool {
        self.lanes.get(lane as usize).is_some_and(|lane| lane.turn == turn)
    }
}
