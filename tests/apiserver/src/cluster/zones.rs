//! Time zones by name, from the data base that is compiled in.
//!
//! Answers: which offset does this name mean, and is there such a zone? The machine's own files are not read, so that the
//! same request is answered alike everywhere.
use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

static BUNDLED: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The zone of this name.
///
/// # Errors
/// Go's text for an unknown name.
pub(crate) fn find(name: &str) -> Result<TimeZone, String> {
    match name {
        "" | "UTC" => Ok(TimeZone::UTC),
        _ => BUNDLED.get(name).map_err(|_| format!("unknown time zone {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn a_zone_is_found_by_its_name() {
        assert!(find("Europe/Berlin").is_ok());
        assert_eq!(find("Mars/Olympus"), Err("unknown time zone Mars/Olympus".to_owned()));
    }
}
