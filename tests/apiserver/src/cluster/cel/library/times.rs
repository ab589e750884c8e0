//! Parts of times and durations.
//!
//! Answers: which year, day or hour is it, here or in another zone? Times are in UTC unless a zone is given.
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

use super::{Given, Library, Run, no_overload};
use crate::cluster::cel::value::Value;
use crate::cluster::zones;

pub(super) fn add(library: &mut Library) {
    const PARTS: [(&str, &str, &str, Run); 10] = [
        ("timestamp_to_year", "timestamp_to_year_with_tz", "getFullYear", |given| {
            part(given, |time| i64::from(time.year()))
        }),
        ("timestamp_to_month", "timestamp_to_month_with_tz", "getMonth", |given| {
            part(given, |time| i64::from(time.month()) - 1)
        }),
        ("timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz", "getDayOfYear", |given| {
            part(given, |time| i64::from(time.day_of_year()) - 1)
        }),
        ("timestamp_to_day_of_month", "timestamp_to_day_of_month_with_tz", "getDayOfMonth", |given| {
            part(given, |time| i64::from(time.day()) - 1)
        }),
        (
            "timestamp_to_day_of_month_1_based",
            "timestamp_to_day_of_month_1_based_with_tz",
            "getDate",
            |given| part(given, |time| i64::from(time.day())),
        ),
        ("timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz", "getDayOfWeek", |given| {
            part(given, |time| i64::from(time.weekday().to_sunday_zero_offset()))
        }),
        ("timestamp_to_hours", "timestamp_to_hours_with_tz", "getHours", |given| {
            part(given, |time| i64::from(time.hour()))
        }),
        ("timestamp_to_minutes", "timestamp_to_minutes_with_tz", "getMinutes", |given| {
            part(given, |time| i64::from(time.minute()))
        }),
        ("timestamp_to_seconds", "timestamp_to_seconds_tz", "getSeconds", |given| {
            part(given, |time| i64::from(time.second()))
        }),
        ("timestamp_to_milliseconds", "timestamp_to_milliseconds_with_tz", "getMilliseconds", |given| {
            part(given, |time| i64::from(time.subsec_nanosecond()) / 1_000_000)
        }),
    ];
    for (id, with_zone, name, run) in PARTS {
        library.members(&[
            (id, name, "timestamp", "int", run),
            (with_zone, name, "timestamp, string", "int", run),
        ]);
    }
    library.members(&[
        ("duration_to_hours", "getHours", "duration", "int", |given| whole(given, 3_600_000_000_000)),
        ("duration_to_minutes", "getMinutes", "duration", "int", |given| whole(given, 60_000_000_000)),
        ("duration_to_seconds", "getSeconds", "duration", "int", |given| whole(given, 1_000_000_000)),
        ("duration_to_milliseconds", "getMilliseconds", "duration", "int", |given| whole(given, 1_000_000)),
    ]);
}

fn whole(given: &[Value], unit: i64) -> Given {
    match given {
        [Value::Duration(nanos)] => Ok(Value::Int(nanos / unit)),
        _ => no_overload(),
    }
}

fn part(given: &[Value], of: fn(&Zoned) -> i64) -> Given {
    match given {
        [Value::Timestamp(time)] => Ok(Value::Int(of(&time.to_zoned(TimeZone::UTC)))),
        [Value::Timestamp(time), Value::Text(zone)] => zoned(*time, zone).map(|time| Value::Int(of(&time))),
        _ => no_overload(),
    }
}

/// The time in a zone: the name of one, or hours and minutes east of UTC.
fn zoned(time: Timestamp, zone: &str) -> Result<Zoned, String> {
    if let Some((hours, minutes)) = zone.split_once(':') {
        let read = |text: &str| text.parse::<i32>().ok();
        let seconds = read(hours).zip(read(minutes)).map(|(hours, minutes)| {
            let minutes = if hours < 0 || zone.starts_with('-') { -minutes } else { minutes };
            hours * 3600 + minutes * 60
        });
        let offset = seconds.and_then(|seconds| Offset::from_seconds(seconds).ok());
        let offset = offset.ok_or_else(|| format!("unknown time zone {zone}"))?;
        return Ok(time.to_zoned(offset.to_time_zone()));
    }
    zones::find(zone).map(|zone| time.to_zoned(zone))
}
