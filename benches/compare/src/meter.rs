//! Measures processor time, wall time and memory of this process.
//!
//! Answers "what did this part of the run cost?" for the process: all its threads, user and system time together. Memory
//! is read from `/proc`, which only Linux has. Invariants:
//! 1. The peak is that since [`forget_peak`], not since the start of the process.

use std::time::Duration;

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// What a stretch has cost, in seconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Processor time of all threads.
    pub(crate) cpu: f64,
    /// What of it was not the kernel's, in steps of 10 ms.
    #[serde(default)]
    pub(crate) user: f64,
    /// Time on the wall.
    pub(crate) wall: f64,
}

/// A stretch that has begun.
#[derive(Debug)]
pub(crate) struct Meter {
    cpu: Duration,
    user: Duration,
    wall: Duration,
}

impl Meter {
    /// Begins a stretch.
    pub(crate) fn start() -> Self {
        let (cpu, wall) = (clock(ClockId::ProcessCPUTime), clock(ClockId::Monotonic));
        Self { cpu, user: user_time().unwrap_or_default(), wall }
    }

    /// What it has cost until now.
    pub(crate) fn cost(&self) -> Cost {
        let now = Self::start();
        Cost {
            cpu: now.cpu.saturating_sub(self.cpu).as_secs_f64(),
            user: now.user.saturating_sub(self.user).as_secs_f64(),
            wall: now.wall.saturating_sub(self.wall).as_secs_f64(),
        }
    }
}

/// Processor time of all threads of this process since its start.
pub(crate) fn processor_time() -> Duration {
    clock(ClockId::ProcessCPUTime)
}

/// The 14th field of this process, in ticks of 10 ms; its name may contain spaces.
fn user_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let ticks = stat.rsplit_once(") ")?.1.split(' ').nth(11)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(10 * ticks))
}

fn clock(id: ClockId) -> Duration {
    clock_gettime(id).try_into().expect("these clocks begin at zero and go forward")
}

/// Resident memory now, in KiB.
pub(crate) fn resident() -> anyhow::Result<u64> {
    status("VmRSS:")
}

/// What of it is no page of a file, in KiB: heap and stacks, without the program.
pub(crate) fn anonymous() -> anyhow::Result<u64> {
    status("RssAnon:")
}

/// The most that was resident since [`forget_peak`], in KiB.
pub(crate) fn peak() -> anyhow::Result<u64> {
    status("VmHWM:")
}

/// Makes what is resident now the peak.
pub(crate) fn forget_peak() -> anyhow::Result<()> {
    std::fs::write("/proc/self/clear_refs", "5").context("the peak cannot be reset")
}

fn status(field: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("memory cannot be read")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next()).context("no such field")?;
    Ok(number.parse()?)
}
