//! What an assertion about a world is told: that it holds, or what is seen instead.
//!
//! Answers "which closures can be given to `eventually`, `never` and `always`?": those that return `bool`, and those that
//! return a `Result`, whose error is the state that is shown when the assertion fails. Nothing is decided here.

use std::fmt;

/// Whether something holds, and what is seen where it does not. Made from `bool` and from any `Result` whose error can be
/// shown.
///
/// ```
/// use actix_informer::testing::Check;
/// fn ready(sites: usize) -> Result<(), String> {
///     if sites == 20 { Ok(()) } else { Err(format!("{sites} of 20 sites are ready")) }
/// }
/// assert!(Check::from(ready(20)).holds());
/// assert_eq!(Check::from(ready(3)).to_string(), "3 of 20 sites are ready");
/// assert!(!Check::from(1 == 2).holds());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it says whether something holds"]
pub struct Check(Result<(), String>);

impl Check {
    /// Whether it holds.
    pub fn holds(&self) -> bool {
        self.0.is_ok()
    }
}

impl From<bool> for Check {
    fn from(holds: bool) -> Self {
        Self(if holds { Ok(()) } else { Err("the condition does not hold".to_owned()) })
    }
}

impl<T, E: fmt::Display> From<Result<T, E>> for Check {
    fn from(result: Result<T, E>) -> Self {
        Self(result.map(drop).map_err(|error| error.to_string()))
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(()) => f.write_str("it holds"),
            Err(seen) => f.write_str(seen),
        }
    }
}
