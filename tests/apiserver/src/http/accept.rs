//! Reading the Accept header: in which form does the client want its answer?
//!
//! Answers with a `Form`, or with 406 where no offered media type fits. JSON is all this server writes.
//! 1. The first acceptable range wins, as clients list their preferences in order.
//! 2. A list must be asked for as `PartialObjectMetadataList`, one object as `PartialObjectMetadata`; a watch takes
//!    both, and of the list it ends at its first event.
//!    The wrong one of them is chosen and then refused: no later range is tried.
//! 3. A Table is made of anything; the query says what each row carries.
use crate::cluster::options::value;
use crate::cluster::printer::{Include, TableForm};
use crate::cluster::representation::Form;
use crate::cluster::status::ApiError;

use super::handle::Ask;

/// What a real server offers, for the words of a refusal.
const OFFERED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const STREAMS: &str = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// What kind of answer the form is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Object,
    List,
    Watch,
}

/// Chooses the form of an answer.
///
/// # Errors
/// 406 if the header allows nothing this server can write.
fn form(header: Option<&str>, answer: Answer, custom: bool) -> Result<Form, ApiError> {
    let Some(header) = header.filter(|header| !header.trim().is_empty()) else { return Ok(Form::Full) };
    let chosen = header.split(',').find_map(one);
    chosen.ok_or_else(|| match answer {
        _ if custom => ApiError::only_accepted(OFFERED),
        Answer::Object => ApiError::not_acceptable(OFFERED),
        Answer::List | Answer::Watch => ApiError::not_acceptable(&format!("{OFFERED}{STREAMS}")),
    })
}

fn one(range: &str) -> Option<Form> {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    if !matches!(media, "application/json" | "*/*") {
        return None;
    }
    let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
    let parameter = |name: &str| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    match parameter("as") {
        None => Some(Form::Full),
        Some("PartialObjectMetadataList" | "PartialObjectMetadata") => {
            (parameter("g") == Some("meta.k8s.io") && parameter("v") == Some("v1")).then_some(Form::Metadata)
        }
        Some("Table") if parameter("g") == Some("meta.k8s.io") => {
            let beta = match parameter("v") {
                Some("v1") => false,
                Some("v1beta1") => true,
                _ => return None,
            };
            Some(Form::Table(TableForm { beta, include: Include::default(), headers: true, now: 0 }))
        }
        _ => None,
    }
}

impl Ask {
    /// The form this request wants its answer in, with what its query says of Tables.
    ///
    /// # Errors
    /// 406 if the header allows nothing this server can write, 400 for an unknown `includeObject`.
    pub(crate) fn form(&self, answer: Answer) -> Result<Form, ApiError> {
        let table = match form(self.accept.as_deref(), answer, self.kind.custom)? {
            Form::Table(table) => table,
            Form::Metadata => {
                return self.metadata_of(answer).map_or(Ok(Form::Metadata), Err);
            }
            Form::Full => return Ok(Form::Full),
        };
        let include = match value(&self.query, "includeObject") {
            "" | "Metadata" => Include::Metadata,
            "Object" => Include::Object,
            "None" => Include::Nothing,
            other => {
                return Err(ApiError::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
                )));
            }
        };
        Ok(Form::Table(TableForm { include, now: self.world.now(), ..table }))
    }

    /// Whether the chosen range asks for metadata in a list; none if no range is chosen.
    fn asks_for_metadata_list(&self) -> Option<bool> {
        let header = self.accept.as_deref().unwrap_or_default();
        header.split(',').find_map(|range| one(range).map(|_| range.contains("MetadataList")))
    }

    /// Whether no event of a watch can be written in the form that was asked for: a list is no form of an object.
    pub(crate) fn asks_for_no_events(&self) -> bool {
        self.asks_for_metadata_list() == Some(true)
    }

    /// Why metadata cannot be answered: a list was asked for as one object, or one object as a list.
    fn metadata_of(&self, answer: Answer) -> Option<ApiError> {
        let (kind, package) = (&self.kind.kind, self.kind.go_package());
        match (answer, self.asks_for_metadata_list()?) {
            (Answer::Object, true) => Some(ApiError::not_a_list(&if self.kind.custom {
                "unstructured.Unstructured".to_owned()
            } else {
                format!("{package}.{kind}")
            })),
            (Answer::List, false) => Some(ApiError::not_for_a_list(&if self.kind.custom {
                "unstructured.UnstructuredList".to_owned()
            } else {
                format!("{package}.{kind}List")
            })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_36_the_accept_header_chooses_whole_objects_or_metadata() {
        let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        let single = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        for (header, answer, form) in [
            (None, Answer::List, Some(Form::Full)),
            (Some("*/*"), Answer::List, Some(Form::Full)),
            (Some("application/*"), Answer::List, None),
            (Some("application/vnd.kubernetes.protobuf"), Answer::List, None),
            (Some("application/vnd.kubernetes.protobuf,application/json"), Answer::Watch, Some(Form::Full)),
            (Some(metadata), Answer::List, Some(Form::Metadata)),
            (Some(metadata), Answer::Watch, Some(Form::Metadata)),
            (Some(single), Answer::Watch, Some(Form::Metadata)),
            (
                Some("application/json;as=Table;v=v2;g=meta.k8s.io,application/json"),
                Answer::List,
                Some(Form::Full),
            ),
            (Some("application/json;as=Table;v=v1;g=other"), Answer::List, None),
        ] {
            assert_eq!(super::form(header, answer, false).ok(), form, "{header:?} {answer:?}");
        }
    }
}
