//! The schedule of a cron job: five fields, or one of the names that begin with `@`.
//!
//! Answers: is this a schedule, and if not, what is the error of a real server? It computes no times.
//! 1. The first fault is reported, beginning with the minute.
use serde_json::json;

use super::causes::Causes;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// The least and most of each field, and the names its values may have.
const FIELDS: [(u32, u32, &[&str]); 5] =
    [(0, 59, &[]), (0, 23, &[]), (1, 31, &[]), (1, 12, &MONTHS), (0, 6, &DAYS)];
const NAMED: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Checks a schedule; its time zone is a separate field.
pub(super) fn check(field: &str, text: &str, causes: &mut Causes) {
    if text.is_empty() {
        causes.required(field, "");
        return;
    }
    let zoned = text.starts_with("TZ=") || text.starts_with("CRON_TZ=");
    let times = if zoned { text.split_once(' ').map_or("", |(_, times)| times) } else { text };
    if let Err(why) = read(times) {
        causes.invalid(field, &json!(text), &why);
    }
    if text.contains("TZ") {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        causes.invalid(field, &json!(text), why);
    }
}

fn read(text: &str) -> Result<(), String> {
    if text.starts_with('@') {
        return descriptor(text);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let (count, told) = (fields.len(), fields.join(" "));
        return Err(format!("expected exactly 5 fields, found {count}: [{told}]"));
    }
    fields.into_iter().zip(FIELDS).try_for_each(|(text, field)| {
        text.split(',').filter(|part| !part.is_empty()).try_for_each(|part| range(part, field))
    })
}

fn descriptor(text: &str) -> Result<(), String> {
    if let Some(duration) = text.strip_prefix("@every ") {
        let sound = duration.parse::<jiff::SignedDuration>().is_ok();
        let why = format!("failed to parse duration {text}: time: invalid duration {duration:?}");
        return if sound { Ok(()) } else { Err(why) };
    }
    if NAMED.contains(&text) { Ok(()) } else { Err(format!("unrecognized descriptor: {text}")) }
}

/// One of the parts between commas: `*`, a value or a range, perhaps with a step.
fn range(part: &str, (least, most, names): (u32, u32, &[&str])) -> Result<(), String> {
    let stepped: Vec<&str> = part.split('/').collect();
    let ends: Vec<&str> = stepped[0].split('-').collect();
    let value = |text: &str| {
        let named = names.iter().position(|name| text.eq_ignore_ascii_case(name));
        named.map_or_else(|| number(text), |at| Ok(u32::try_from(at).unwrap_or(0) + least))
    };
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?"] => (least, most),
        [one] => (value(one)?, value(one)?),
        [start, end] => (value(start)?, value(end)?),
        _ => return Err(format!("too many hyphens: {part}")),
    };
    let step = match stepped.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            end = if ends.len() == 1 { most } else { end };
            step
        }
        _ => return Err(format!("too many slashes: {part}")),
    };
    if start < least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {part}"));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {part}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {part}"));
    }
    if step == 0 { Err(format!("step of range should be a positive number: {part}")) } else { Ok(()) }
}

fn number(text: &str) -> Result<u32, String> {
    let number: i64 = text.parse().map_err(|_| {
        format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
    })?;
    u32::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_field_by_field() {
        for sound in ["* * * * *", "*/5 0-6 1,15 jan-MAR mon", "@daily", "@every 1h30m", "0 0 1 1 ?"] {
            assert_eq!(read(sound), Ok(()), "{sound}");
        }
        for (broken, why) in [
            ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("@never", "unrecognized descriptor: @never"),
        ] {
            assert_eq!(read(broken), Err(why.to_owned()), "{broken}");
        }
    }
}
