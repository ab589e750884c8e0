//! Times in the form of the API: RFC 3339, parsed as strictly as in Go.
//!
//! Answers: which time is this text, how is it written in UTC, and what is Go's error for a text that is not a time?
//! 1. A `Time` may have any number of digits after its seconds and is written without them; a `MicroTime` has six and
//!    is written with them.
//! 2. Years are 0 to 9999; a second of 60 or an hour of 24 is out of range.
use std::fmt::Write as _;

const TIME: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_TIME: &str = "2006-01-02T15:04:05.000000Z07:00";
/// The parts of a time up to its seconds, as Go's layout names them.
const PARTS: [&str; 11] = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"];
const MICRO_DIGITS: usize = 6;
const DAY: i64 = 86_400;

/// A moment: seconds since 1970, and a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    seconds: i64,
    nanos: u32,
}

/// Reads a time of any precision.
///
/// # Errors Go's error for a text that is not a time.
pub(crate) fn time(text: &str) -> Result<Moment, String> {
    Reader { text, rest: text, layout: TIME }.read(false)
}

/// Reads a time of microseconds.
///
/// # Errors Go's error for a text that is not such a time.
pub(crate) fn micro_time(text: &str) -> Result<Moment, String> {
    Reader { text, rest: text, layout: MICRO_TIME }.read(true)
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    layout: &'static str,
}

impl Reader<'_> {
    fn unparsed(&self, rest: &str, part: &str) -> String {
        let (text, layout) = (self.text, self.layout);
        format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}")
    }

    fn out_of_range(&self, what: &str) -> String {
        format!("parsing time {:?}: {what} out of range", self.text)
    }

    fn read(mut self, micros: bool) -> Result<Moment, String> {
        let mut numbers = [0_i64; 6];
        let mut number = numbers.iter_mut();
        for part in PARTS {
            let head = self.rest.get(..part.len());
            if part.len() == 1 {
                head.filter(|head| *head == part).ok_or_else(|| self.unparsed(self.rest, part))?;
            } else {
                let digits = head.filter(|head| head.bytes().all(|byte| byte.is_ascii_digit()));
                let value = digits.and_then(|digits| digits.parse().ok());
                let value = value.ok_or_else(|| self.unparsed(self.rest, part))?;
                *number.next().expect("there are six numbers in a time") = value;
                self.check(part, value)?;
            }
            self.rest = &self.rest[part.len()..];
        }
        let nanos = self.fraction(micros)?;
        let offset = self.zone()?;
        if !self.rest.is_empty() {
            return Err(format!("parsing time {:?}: extra text: {:?}", self.text, self.rest));
        }
        let [year, month, day, hour, minute, second] = numbers;
        if day < 1 || day > days_of(year, month) {
            return Err(self.out_of_range("day"));
        }
        let days = days_before(year, month) + day - 1;
        Ok(Moment { seconds: days * DAY + hour * 3_600 + minute * 60 + second - offset, nanos })
    }

    fn check(&self, part: &str, value: i64) -> Result<(), String> {
        let (name, range) = match part {
            "01" => ("month", 1..=12),
            "15" => ("hour", 0..=23),
            "04" => ("minute", 0..=59),
            "05" => ("second", 0..=59),
            _ => return Ok(()),
        };
        if range.contains(&value) { Ok(()) } else { Err(self.out_of_range(name)) }
    }

    fn fraction(&mut self, micros: bool) -> Result<u32, String> {
        let digits = self.rest.strip_prefix(['.', ',']).unwrap_or_default();
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        if micros && count < MICRO_DIGITS {
            return Err(self.unparsed(self.rest, ".000000"));
        }
        if count == 0 {
            return Ok(0);
        }
        let count = if micros { MICRO_DIGITS } else { count };
        let nanos: String = digits[..count].chars().chain(std::iter::repeat('0')).take(9).collect();
        self.rest = &digits[count..];
        Ok(nanos.parse().expect("nine digits are a number"))
    }

    /// How many seconds the zone is ahead of UTC.
    fn zone(&mut self) -> Result<i64, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let zone = self.rest.as_bytes();
        let digits = |from: usize| {
            let pair = self.rest.get(from..from + 2)?;
            pair.bytes().all(|byte| byte.is_ascii_digit()).then(|| pair.parse::<i64>().ok()).flatten()
        };
        let sign = match zone.first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Err(self.unparsed(self.rest, "Z07:00")),
        };
        let (Some(hours), Some(b':'), Some(minutes)) = (digits(1), zone.get(3), digits(4)) else {
            return Err(self.unparsed(self.rest, "Z07:00"));
        };
        if hours > 24 {
            return Err(self.out_of_range("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(self.out_of_range("time zone offset minute"));
        }
        self.rest = &self.rest[6..];
        Ok(sign * (hours * 3_600 + minutes * 60))
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(is_leap(year)),
        _ => 31,
    }
}

/// The days from 1970 to the first of a month.
fn days_before(year: i64, month: i64) -> i64 {
    let before = year - 1;
    let leaps = before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400);
    let of_year = (1..month).map(|month| days_of(year, month)).sum::<i64>();
    before * 365 + leaps - 719_162 + of_year
}

impl Moment {
    /// The time in UTC; none for Go's zero time.
    pub(crate) fn told(self, micros: bool) -> Option<String> {
        if (self.seconds, self.nanos) == (days_before(1, 1) * DAY, 0) {
            return None;
        }
        let (mut days, time) = (self.seconds.div_euclid(DAY), self.seconds.rem_euclid(DAY));
        let mut year = 1970 + days.div_euclid(366);
        while days_before(year + 1, 1) <= days {
            year += 1;
        }
        while days_before(year, 1) > days {
            year -= 1;
        }
        days -= days_before(year, 1);
        let mut month = 1;
        while days >= days_of(year, month) {
            days -= days_of(year, month);
            month += 1;
        }
        let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
        let mut text = format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}", days + 1);
        if micros {
            let _infallible = write!(text, ".{:06}", self.nanos / 1_000);
        }
        text.push('Z');
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_44_a_time_is_written_in_utc_without_its_fraction() {
        for (text, told) in [
            ("2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z"),
            ("2020-01-02T03:04:05.999999999-05:30", "2020-01-02T08:34:05Z"),
            ("2020-03-01T00:30:00+02:00", "2020-02-29T22:30:00Z"),
            ("1969-12-31T23:59:59,5Z", "1969-12-31T23:59:59Z"),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
            ("1900-03-01T00:00:00+24:00", "1900-02-28T00:00:00Z"),
        ] {
            assert_eq!(time(text).unwrap().told(false).as_deref(), Some(told), "{text}");
        }
        assert_eq!(time("0001-01-01T00:00:00Z").unwrap().told(false), None);
        let micros = micro_time("2020-01-02T03:04:05.123456+02:00").unwrap();
        assert_eq!(micros.told(true).as_deref(), Some("2020-01-02T01:04:05.123456Z"));
    }

    #[test]
    fn api_44_every_day_of_four_centuries_is_read_as_it_was_written() {
        for day in (-300 * 365..400 * 365).step_by(7) {
            let moment = Moment { seconds: i64::from(day) * DAY + 1, nanos: 0 };
            assert_eq!(time(&moment.told(false).unwrap()), Ok(moment));
        }
    }

    #[test]
    fn api_20_a_text_that_is_not_a_time_is_refused_with_the_text_of_go() {
        for (text, why) in [
            ("2020-02-30T00:00:00Z", "day out of range"),
            ("2020-13-01T00:00:00Z", "month out of range"),
            ("2020-01-02T24:00:00Z", "hour out of range"),
            ("2020-01-02T03:04:60Z", "second out of range"),
            ("2020-01-02T03:04:05+25:00", "time zone offset hour out of range"),
            ("2020-01-02T03:04:05Zx", "extra text: \"x\""),
        ] {
            assert_eq!(time(text), Err(format!("parsing time {text:?}: {why}")));
        }
        let unparsed = micro_time("2020-01-02T03:04:05.1234567Z").unwrap_err();
        assert!(unparsed.ends_with("cannot parse \"7Z\" as \"Z07:00\""), "{unparsed}");
    }
}
