//! How durations and foreign texts are written in log lines and errors. A text of a server, file or panic has bounded
//! length.

use std::any::Any;
use std::fmt;
use std::time::Duration;

/// The most characters of a foreign text, such as a server's or a panic's message, that a log line quotes.
pub const QUOTED: usize = 300;

/// The text of a panic, or `panicked` if it has none.
///
/// ```
/// let panic = std::panic::catch_unwind(|| panic!("lost the way")).expect_err("it panics");
/// # use informer_core::words::panic_text;
/// assert_eq!(panic_text(&*panic), "lost the way");
/// ```
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("panicked")
}

/// A duration for people: `0.8s`, `42s`, `3m12s`, `1h5m`.
///
/// ```
/// # use informer_core::words::Brief;
/// use std::time::Duration;
/// assert_eq!(Brief(Duration::from_millis(840)).to_string(), "0.8s");
/// assert_eq!(Brief(Duration::from_millis(41_900)).to_string(), "42s");
/// assert_eq!(Brief(Duration::from_secs(192)).to_string(), "3m12s");
/// assert_eq!(Brief(Duration::from_secs(3_900)).to_string(), "1h5m");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brief(pub Duration);

impl fmt::Display for Brief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.0.as_millis().saturating_add(50) / 100;
        let seconds = self.0.as_millis().saturating_add(500) / 1_000;
        let (minutes, rest) = (seconds / 60, seconds % 60);
        match (minutes / 60, minutes % 60) {
            (0, 0) if tenths < 100 && !tenths.is_multiple_of(10) => {
                write!(f, "{}.{}s", tenths / 10, tenths % 10)
            }
            (0, 0) => write!(f, "{seconds}s"),
            (0, minutes) if rest == 0 => write!(f, "{minutes}m"),
            (0, minutes) => write!(f, "{minutes}m{rest}s"),
            (hours, 0) => write!(f, "{hours}h"),
            (hours, minutes) => write!(f, "{hours}h{minutes}m"),
        }
    }
}

/// As [`Brief`], with milliseconds below a second: `5ms`, `1.5s`.
///
/// ```
/// # use informer_core::words::Short;
/// use std::time::Duration;
/// assert_eq!(Short(Duration::from_micros(5_400)).to_string(), "5ms");
/// assert_eq!(Short(Duration::from_millis(1_500)).to_string(), "1.5s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short(pub Duration);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.as_secs() == 0 { write!(f, "{}ms", self.0.as_millis()) } else { Brief(self.0).fmt(f) }
    }
}

/// At most `most` characters of a text, and three dots if there was more.
///
/// ```
/// # use informer_core::words::shortened;
/// assert_eq!(shortened("éàè", 2), "éà...");
/// assert_eq!(shortened("éà", 2), "éà");
/// ```
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A name in quotes, at most a hundred characters of it.
///
/// ```
/// # use informer_core::words::quoted;
/// assert_eq!(quoted("a\"b"), r#""a\"b""#);
/// ```
pub fn quoted(name: &str) -> String {
    format!("{:?}", shortened(name, 100))
}

/// A foreign text on one line, cut after `most` characters.
///
/// ```
/// # use informer_core::words::one_line;
/// assert_eq!(one_line("no\nsuch kind", 6), "no suc...");
/// ```
pub fn one_line(text: &str, most: usize) -> String {
    let mut line: String =
        text.chars().take(most).map(|char| if char.is_control() { ' ' } else { char }).collect();
    if text.chars().nth(most).is_some() {
        line.push_str("...");
    }
    line
}

// A derived implementation requires the trait of each type parameter, and shows every field.

/// `Debug` by name and some fields: `debug_as!([S] Type<S>, self, field = self.value)`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as {
    ($([$($of:tt)*])? $type:ident $(<$($parameter:tt),*>)?, $this:ident $(, $field:ident = $value:expr)*) => {
        impl $(<$($of)*>)? std::fmt::Debug for $type $(<$($parameter),*>)? {
            fn fmt(&$this, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))$(.field(stringify!($field), &$value))*.finish_non_exhaustive()
            }
        }
    };
}

/// `Clone` by these fields, or by the only one of a tuple: `clone_of!([S] Type<S> { one, other })`.
#[doc(hidden)]
#[macro_export]
macro_rules! clone_of {
    ([$($of:tt)*] $type:ident<$($parameter:ident),*>) => {
        impl<$($of)*> Clone for $type<$($parameter),*> {
            fn clone(&self) -> Self {
                Self(Clone::clone(&self.0))
            }
        }
    };
    ([$($of:tt)*] $type:ident<$($parameter:ident),*> { $($field:ident),* }) => {
        impl<$($of)*> Clone for $type<$($parameter),*> {
            fn clone(&self) -> Self {
                Self { $($field: Clone::clone(&self.$field)),* }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_at_most_two_units() {
        let written = |millis| Brief(Duration::from_millis(millis)).to_string();
        for (millis, expected) in [
            (0, "0s"),
            (49, "0s"),
            (50, "0.1s"),
            (1_000, "1s"),
            (9_940, "9.9s"),
            (9_960, "10s"),
            (59_400, "59s"),
            (59_600, "1m"),
            (61_000, "1m1s"),
            (3_599_600, "1h"),
            (7_260_000, "2h1m"),
        ] {
            assert_eq!(written(millis), expected, "{millis} ms");
        }
        assert!(Brief(Duration::MAX).to_string().ends_with('h'));
    }

    #[test]
    fn a_foreign_text_is_one_line_of_bounded_length() {
        assert_eq!(one_line("all of it", 9), "all of it");
        assert_eq!(one_line("\u{1b}[31mred", 50), " [31mred");
        assert_eq!(one_line("ääää", 3), "äää...");
        assert_eq!(one_line(&"x".repeat(10_000), QUOTED).len(), QUOTED + 3);
    }
}
