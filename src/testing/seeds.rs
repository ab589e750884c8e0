//! Many seeds of one test, on all cores, and the command that repeats a failing one.
//!
//! 1. Each seed runs on one thread; which one makes no difference to a world.
//! 2. The lowest failing seed that was run is named, with the text of its panic.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use informer_core::words::panic_text;

/// Failing seeds after which no other one is begun.
const ENOUGH: usize = 5;

/// Runs `scenario` with each of these seeds, on as many threads as there are cores. Blocks until all have ended.
///
/// The environment variable `INFORMER_SIM_SEED=n` runs that seed alone, on this thread; `INFORMER_SIM_SEEDS=n` runs n seeds
/// from the first one on. `INFORMER_SIM_LINES=n` shows the last n lines of the trace of a world that fails, instead of the
/// last 40.
///
/// # Panics
/// When a seed fails: with the lowest failing seed, what it says, and the command that runs it alone.
///
/// ```
/// use actix_informer::testing::{World, each_seed};
/// use std::time::Duration;
///
/// each_seed(0..20, |seed| {
///     World::simulated(seed).run(|world| async move {
///         world.settles(Duration::from_secs(60), Duration::from_secs(120)).await;
///     });
/// });
/// ```
pub fn each_seed(seeds: Range<u64>, scenario: impl Fn(u64) + Sync) {
    if let Some(seed) = number("INFORMER_SIM_SEED") {
        return scenario(seed);
    }
    let end = number("INFORMER_SIM_SEEDS").map_or(seeds.end, |count| seeds.start.saturating_add(count));
    let (next, failed) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()));
    let run = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let known = || failed.lock().unwrap_or_else(PoisonError::into_inner);
            if seed >= end || known().len() >= ENOUGH {
                return;
            }
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| scenario(seed))) {
                known().push((seed, panic_text(&*panic).to_owned()));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let test = std::thread::current().name().unwrap_or("seeds").to_owned();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            // A world finds the name of the test, for its command, in the name of the thread.
            let started = std::thread::Builder::new().name(test.clone()).spawn_scoped(scope, run);
            started.expect("the system has one more thread");
        }
    });
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort_unstable();
    let Some((seed, text)) = failed.first() else { return };
    let others: Vec<u64> = failed[1..].iter().map(|(seed, _)| *seed).collect();
    panic!("seed {seed} fails (and so do {others:?}); run it alone: {}\n{text}", command(*seed));
}

/// Runs this test with this seed alone.
pub(super) fn command(seed: u64) -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let program = std::env::current_exe().ok().and_then(|program| target(&program, &package));
    let package = if package.is_empty() { package } else { format!(" -p {package}") };
    let thread = std::thread::current();
    let test =
        thread.name().filter(|name| *name != "main").map_or_else(String::new, |name| format!(" {name}"));
    format!(
        "INFORMER_SIM_SEED={seed} cargo test --all-features{package}{}{test}",
        program.unwrap_or_default()
    )
}

/// Chooses this test program among those of its package: else all would be built.
fn target(program: &Path, package: &str) -> Option<String> {
    let (name, _hash) = program.file_stem()?.to_str()?.rsplit_once('-')?;
    let folder = program.parent()?.file_name()?;
    Some(match folder.to_str()? {
        "examples" => format!(" --example {name}"),
        "deps" if name == package.replace('-', "_") => " --lib".to_owned(),
        "deps" => format!(" --test {name}"),
        _ => return None,
    })
}

pub(super) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_chooses_the_program_of_the_test() {
        let of = |path: &str| target(Path::new(path), "website-operator").unwrap_or_default();
        assert_eq!(of("target/debug/deps/website_operator-0123abcd"), " --lib");
        assert_eq!(of("target/debug/deps/contract-0123abcd"), " --test contract");
        assert_eq!(of("target/debug/examples/two_clusters-0123abcd"), " --example two_clusters");
        assert_eq!(of("bin/contract"), "");
    }

    #[test]
    fn the_lowest_failing_seed_is_named_with_its_text_and_the_command_that_repeats_it() {
        let ran = AtomicU64::new(0);
        let run = catch_unwind(AssertUnwindSafe(|| {
            each_seed(0..8, |seed| {
                ran.fetch_add(1, Ordering::Relaxed);
                assert!(seed % 3 != 2, "{seed} is not good");
            });
        }));
        let text = panic_text(&*run.expect_err("two seeds fail")).to_owned();
        assert!(
            text.starts_with("seed 2 fails (and so do [5]); run it alone: INFORMER_SIM_SEED=2 "),
            "{text}"
        );
        assert!(text.contains("the_lowest_failing_seed") && text.ends_with("2 is not good"), "{text}");
        assert_eq!(ran.into_inner(), 8);
    }
}
