//! Processor time of the whole process, as a measurement of criterion's.
//!
//! Answers "what did it cost?" where the clock on the wall answers "how long did it take?": all threads together, and
//! not the time in which other programs had the processor. It does not separate the threads. Shown in the units of
//! time. Unix only.

use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};

/// Processor time since the process started.
pub(crate) struct ProcessorTime;

impl Measurement for ProcessorTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        now.try_into().expect("a process has used no negative time")
    }

    fn end(&self, start: Duration) -> Duration {
        self.start().saturating_sub(start)
    }

    fn add(&self, one: &Duration, other: &Duration) -> Duration {
        *one + *other
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        WallTime.to_f64(value)
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}
