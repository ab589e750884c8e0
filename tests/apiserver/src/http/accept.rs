//! Reading the Accept header: in which form does the client want its answer?
//!
//! Answers with a `Form`, or with 406 where no offered media type fits. JSON is all this server writes.
//! 1. The first acceptable range wins, as clients list their preferences in order.
//! 2. A list must be asked for as `PartialObjectMetadataList`, one object as either; a watch takes both.
use crate::cluster::representation::Form;
use crate::cluster::status::ApiError;

const OFFERED: &str = "application/json, application/json;stream=watch";

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
pub(crate) fn form(header: Option<&str>, answer: Answer) -> Result<Form, ApiError> {
    let Some(header) = header.filter(|header| !header.trim().is_empty()) else { return Ok(Form::Full) };
    let chosen = header.split(',').find_map(|range| one(range, answer));
    chosen.ok_or_else(|| match answer {
        Answer::List if header.contains("as=PartialObjectMetadata;") => ApiError::not_for_a_list(),
        _ => ApiError::not_acceptable(OFFERED),
    })
}

fn one(range: &str, answer: Answer) -> Option<Form> {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    if !matches!(media, "application/json" | "*/*") {
        return None;
    }
    let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
    let parameter = |name: &str| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    match (parameter("as"), answer) {
        (None, _) => Some(Form::Full),
        (Some("PartialObjectMetadataList"), _)
        | (Some("PartialObjectMetadata"), Answer::Object | Answer::Watch) => {
            (parameter("g") == Some("meta.k8s.io") && parameter("v") == Some("v1")).then_some(Form::Metadata)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_36_the_accept_header_chooses_whole_objects_or_metadata() {
        let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
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
            (Some(single), Answer::List, None),
            (Some(table), Answer::List, Some(Form::Full)),
        ] {
            assert_eq!(super::form(header, answer).ok(), form, "{header:?} {answer:?}");
        }
    }
}
