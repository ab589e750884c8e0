//! A machine behind a short lock, outside of the actor that carries out its decisions.
//!
//! Any thread changes it directly, so a panic of the actor loses no change that waits in a mailbox. A call that
//! panics leaves a mark: the next one rebuilds the machine if it is not sound. If the rebuild panics, the mark stays.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use informer_core::reflector::Moment;

use crate::runtime::clock::{Clock, RandomNumbers};

/// The content of a mutex, also after a panic of a thread that held the lock. Only for content that no panic
/// can leave half changed, such as one field, one counter or one queue.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value behind a short lock, which is held for one closure. Only for content that no panic can leave half
/// changed, such as one field, one counter or one queue: what a panic leaves is used further.
#[derive(Debug, Default)]
pub struct Guarded<T>(Mutex<T>);

impl<T> Guarded<T> {
    /// The value behind its lock.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Calls `call` under the lock. It must not block, call code of others, or take another lock that is held
    /// around this one. What it returns is dropped without the lock.
    pub fn with<R>(&self, call: impl FnOnce(&mut T) -> R) -> R {
        call(&mut locked(&self.0))
    }
}

/// What a [`Locked`] holds.
pub trait Machine {
    /// Whether its parts fit together. Called only after a panic.
    fn is_sound(&self) -> bool;

    /// Makes it sound from what is left.
    fn rebuild(&mut self, at: Moment);
}

/// A machine behind a short lock.
pub struct Locked<M> {
    clock: Clock,
    state: Mutex<State<M>>,
    is_told: AtomicBool,
}

struct State<M> {
    machine: M,
    chance: RandomNumbers,
    is_changing: bool,
    rebuilt: u64,
}

impl<M: Machine> Locked<M> {
    /// A machine with its own time and random numbers.
    pub fn new(machine: M, (clock, chance): (Clock, RandomNumbers)) -> Self {
        let state = State { machine, chance, is_changing: false, rebuilt: 0 };
        Self { clock, state: Mutex::new(state), is_told: AtomicBool::new(false) }
    }

    /// Calls the machine. What the call returns is dropped without the lock.
    pub fn with<R>(&self, call: impl FnOnce(&mut M, Moment) -> R) -> R {
        let mut state = locked(&self.state);
        let State { machine, chance, is_changing, rebuilt } = &mut *state;
        let moment = chance.moment(&self.clock);
        if *is_changing && !machine.is_sound() {
            machine.rebuild(moment);
            *rebuilt += 1;
        }
        *is_changing = true;
        let result = call(machine, moment);
        *is_changing = false;
        result
    }

    /// How often the machine was rebuilt.
    pub fn rebuilt(&self) -> u64 {
        locked(&self.state).rebuilt
    }

    /// The time of the machine.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// After a change: the actor must be told if it was not since it last looked.
    pub(crate) fn must_tell(&self) -> bool {
        !self.is_told.swap(true, Ordering::AcqRel)
    }

    /// From here on it must be told of changes.
    pub(crate) fn begin_look(&self) {
        self.is_told.store(false, Ordering::Release);
    }
}

informer_core::debug_as!([M] Locked<M>, self);

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Two numbers that have to be equal.
    #[derive(Default)]
    struct Twins(u32, u32);

    impl Machine for Twins {
        fn is_sound(&self) -> bool {
            self.0 == self.1
        }

        fn rebuild(&mut self, _: Moment) {
            assert!(self.0 < 9, "the bug is still there");
            self.1 = self.0;
        }
    }

    fn twins() -> Locked<Twins> {
        Locked::new(Twins::default(), (Clock::simulated(1), RandomNumbers::new(1, 0)))
    }

    fn panics(twins: &Locked<Twins>, call: impl FnOnce(&mut Twins)) {
        let called = catch_unwind(AssertUnwindSafe(|| twins.with(|twins, _| call(twins))));
        assert!(called.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_is_built_anew_after_a_panic_only_if_it_is_not_sound() {
        let twins = twins();
        panics(&twins, |_| panic!("between two calls"));
        assert_eq!((twins.with(|twins, _| twins.1), twins.rebuilt()), (0, 0));
        panics(&twins, |twins| {
            twins.0 = 3;
            panic!("half changed");
        });
        assert_eq!((twins.with(|twins, _| twins.1), twins.rebuilt()), (3, 1));
        twins.with(|twins, _| twins.0 = 4);
        assert_eq!(
            (twins.with(|twins, _| twins.1), twins.rebuilt()),
            (3, 1),
            "nothing is checked without a panic"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_whose_rebuilding_panics_is_built_anew_by_the_next_call() {
        let twins = twins();
        panics(&twins, |twins| {
            twins.0 = 9;
            panic!("half changed");
        });
        panics(&twins, |_| unreachable!("it is built anew first"));
        locked(&twins.state).machine.0 = 5;
        assert_eq!((twins.with(|twins, _| twins.1), twins.rebuilt()), (5, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn an_actor_is_told_once_of_all_changes_at_which_it_has_not_looked() {
        let twins = twins();
        assert_eq!([twins.must_tell(), twins.must_tell()], [true, false]);
        twins.begin_look();
        assert!(twins.must_tell());
    }
}
