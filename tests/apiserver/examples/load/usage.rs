//! Processor time and memory of other processes, from `/proc`.
//!
//! Answers: what has this server used so far? Linux only; elsewhere it is an error.
//! 1. Times are user and system together, in seconds, at the kernel's grain of a hundredth.
use std::io;

/// A hundredth of a second: what the kernel counts in, on every architecture it is built for today.
const TICKS: f64 = 100.0;

/// What some processes have used together.
#[derive(Debug)]
pub(crate) struct Usage {
    seconds: f64,
    pub(crate) megabytes: f64,
}

impl Usage {
    pub(crate) fn of(processes: &[u32]) -> io::Result<Self> {
        let mut usage = Self { seconds: 0.0, megabytes: 0.0 };
        for process in processes {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
            // The second member is a name in parentheses, which may hold blanks.
            let members: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
            let ticks = |at: usize| members.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
            usage.seconds += (ticks(11) + ticks(12)) / TICKS;
            let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
            let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kilobytes = resident.and_then(|text| text.trim().strip_suffix(" kB")).map(str::parse::<f64>);
            usage.megabytes += kilobytes.and_then(Result::ok).unwrap_or(0.0) / 1e3;
        }
        Ok(usage)
    }

    /// Seconds of processor time since `before`.
    pub(crate) fn since(&self, before: &Self) -> f64 {
        self.seconds - before.seconds
    }
}
