//! Named formats: `format.dns1123Label().validate(x)`.
//!
//! Answers: what is wrong with a text of this format? The checks are those of names and schemas.
use super::{Given, Library, no_overload, text};
use crate::cluster::cel::url::Url;
use crate::cluster::cel::value::Value;
use crate::cluster::crd::format as formats;
use crate::cluster::kind::NameRule;
use crate::cluster::names;

/// A format by its name.
#[derive(Debug)]
pub(crate) struct Format {
    name: &'static str,
    faults: fn(&str) -> Vec<String>,
    /// The length of the pattern, for costs.
    pub(in crate::cluster::cel) pattern: u64,
}

static FORMATS: [Format; 13] = [
    Format { name: "dns1123Label", faults: label, pattern: 30 },
    Format { name: "dns1123Subdomain", faults: subdomain, pattern: 60 },
    Format { name: "dns1035Label", faults: names::old_label_faults, pattern: 30 },
    Format { name: "qualifiedName", faults: names::label_key_faults, pattern: 60 },
    Format { name: "dns1123LabelPrefix", faults: |text| label(&ended(text)), pattern: 30 },
    Format { name: "dns1123SubdomainPrefix", faults: |text| subdomain(&ended(text)), pattern: 60 },
    Format { name: "dns1035LabelPrefix", faults: |text| names::old_label_faults(&ended(text)), pattern: 30 },
    Format { name: "labelValue", faults: names::label_value_faults, pattern: 40 },
    Format { name: "uri", faults: |text| Url::read(text).err().into_iter().collect(), pattern: 1103 },
    Format {
        name: "uuid",
        faults: |text| refused("uuid", text, "does not match the UUID format"),
        pattern: 67,
    },
    Format { name: "byte", faults: |text| refused("byte", text, "invalid base64"), pattern: 84 },
    Format { name: "date", faults: |text| refused("date", text, "invalid date"), pattern: 101 },
    Format { name: "datetime", faults: |text| refused("date-time", text, "invalid datetime"), pattern: 101 },
];

fn label(text: &str) -> Vec<String> {
    // A dot is an invalid letter here; it does not separate parts of a name.
    names::faults(&text.replace('.', "!"), NameRule::Label)
}

fn subdomain(text: &str) -> Vec<String> {
    names::faults(text, NameRule::Subdomain)
}

/// A name that will be completed may end in a dash.
fn ended(text: &str) -> String {
    text.strip_suffix('-').map_or_else(|| text.to_owned(), |text| format!("{text}a"))
}

fn refused(format: &str, text: &str, words: &str) -> Vec<String> {
    if formats::holds(format, text) { Vec::new() } else { vec![words.to_owned()] }
}

pub(super) fn add(library: &mut Library) {
    const NAMED: [(&str, super::Run); 13] = [
        ("format.dns1123Label", |_| Ok(Value::Format(&FORMATS[0]))),
        ("format.dns1123Subdomain", |_| Ok(Value::Format(&FORMATS[1]))),
        ("format.dns1035Label", |_| Ok(Value::Format(&FORMATS[2]))),
        ("format.qualifiedName", |_| Ok(Value::Format(&FORMATS[3]))),
        ("format.dns1123LabelPrefix", |_| Ok(Value::Format(&FORMATS[4]))),
        ("format.dns1123SubdomainPrefix", |_| Ok(Value::Format(&FORMATS[5]))),
        ("format.dns1035LabelPrefix", |_| Ok(Value::Format(&FORMATS[6]))),
        ("format.labelValue", |_| Ok(Value::Format(&FORMATS[7]))),
        ("format.uri", |_| Ok(Value::Format(&FORMATS[8]))),
        ("format.uuid", |_| Ok(Value::Format(&FORMATS[9]))),
        ("format.byte", |_| Ok(Value::Format(&FORMATS[10]))),
        ("format.date", |_| Ok(Value::Format(&FORMATS[11]))),
        ("format.datetime", |_| Ok(Value::Format(&FORMATS[12]))),
    ];
    for (name, run) in NAMED {
        library.globals(&[(name, name, "", "format", run)]);
    }
    library.globals(&[("format-named", "format.named", "string", "optional(format)", |given| {
        let named = FORMATS.iter().find(|format| format.name == text(&given[0]));
        Ok(named.map_or(Value::Optional(None), |format| Value::some(Value::Format(format))))
    })]);
    library.members(&[("format-validate", "validate", "format, string", "optional(list(string))", validate)]);
}

fn validate(given: &[Value]) -> Given {
    let Value::Format(format) = &given[0] else { return no_overload() };
    let faults = (format.faults)(text(&given[1]));
    let faults = (!faults.is_empty()).then(|| faults.iter().map(Value::text).collect());
    Ok(faults.map_or(Value::Optional(None), Value::some))
}
