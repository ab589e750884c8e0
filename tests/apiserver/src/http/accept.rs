//! Reading the Accept header: in which form and language does the client want its answer?
//!
//! Answers with a `Representation`, or with 406 where nothing fits. Ranges are read by `ranges.rs`.
//! 1. The best range wins for which there is an offer. Errors are written in the language of the best range without a
//!    form.
//! 2. A list must be asked for as `PartialObjectMetadataList`, one object as `PartialObjectMetadata`; a watch takes
//!    both, but as the list form it ends at its first event. The wrong one of them is chosen and refused at the end:
//!    no later range is tried.
//! 3. Custom kinds are sent in protobuf only as metadata, Tables not at all, and YAML has no streams.
//! 4. For built-in kinds a stricter check reads the header, with error texts of its own.
use super::ask::Ask;
use super::ranges::{Range, Target, ranges};
use crate::cluster::encoding::{Encoding, Representation};
use crate::cluster::options::value;
use crate::cluster::printer::{Include, TableForm};
use crate::cluster::representation::Form;
use crate::cluster::status::ApiError;

/// What a real server offers, for the text of a refusal.
const OFFERED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const STREAMS: &str = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// What kind of answer the form is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Object,
    List,
    Watch,
}

/// The first offer that a range accepts and `allows` admits, with the target that the range names. `version`
/// is that of the options, where a range may ask for it.
fn negotiate<'a>(
    header: &'a str,
    version: &str,
    allows: impl Fn(Encoding, Option<Target<'a>>) -> bool,
) -> Option<(Encoding, Option<Target<'a>>)> {
    if header.is_empty() {
        return Some((Encoding::Json, None));
    }
    let offer = |range: Range<'a>| {
        let target = range.target();
        let fits = |encoding: &Encoding| {
            range.takes(encoding.media_type())
                && range.streams(*encoding != Encoding::Yaml)
                && range.of_version(version)
                && allows(*encoding, target)
        };
        Encoding::ALL.into_iter().find(fits).map(|encoding| (encoding, target))
    };
    ranges(header).into_iter().find_map(offer)
}

/// The language of a refusal; JSON where nothing fits.
pub(crate) fn of_status(header: Option<&str>) -> Encoding {
    let chosen = negotiate(header.unwrap_or_default(), "", |_, target| target.is_none());
    chosen.map_or(Encoding::Json, |(encoding, _)| encoding)
}

/// The language of a document that comes in no other form. `strict` says whether the stricter check applies.
///
/// # Errors
/// 406 if nothing fits.
pub(crate) fn of_document(header: Option<&str>, strict: bool) -> Result<Encoding, ApiError> {
    let header = header.unwrap_or_default();
    if strict && !passes(header, &Encoding::ALL.map(Encoding::media_type)) {
        return Err(ApiError::not_acceptable(OFFERED));
    }
    let chosen = negotiate(header, "", |_, target| target.is_none());
    chosen.map(|(encoding, _)| encoding).ok_or_else(|| ApiError::only_accepted(OFFERED))
}

/// The language of discovery, and whether it is aggregated.
///
/// # Errors
/// 406 if nothing fits.
pub(crate) fn of_discovery(header: Option<&str>, strict: bool) -> Result<(Encoding, bool), ApiError> {
    let header = header.unwrap_or_default();
    let aggregated = Target { kind: "APIGroupDiscoveryList", group: "apidiscovery.k8s.io", version: "v2" };
    let allows = |_, target: Option<Target<'_>>| target.is_none_or(|target| target == aggregated);
    match negotiate(header, "", allows) {
        Some((encoding, Some(_))) => Ok((encoding, true)),
        _ => of_document(Some(header), strict).map(|encoding| (encoding, false)),
    }
}

/// `/version`, which is JSON only.
///
/// # Errors 406 for a client that does not accept that.
pub(crate) fn json_only(header: Option<&str>) -> Result<(), ApiError> {
    let json = Encoding::Json.media_type();
    if passes(header.unwrap_or_default(), &[json]) { Ok(()) } else { Err(ApiError::not_acceptable(json)) }
}

/// Whether the strict check admits this header: it does not know `application/*`.
fn passes(header: &str, offered: &[&str]) -> bool {
    let fits = |range: &str| {
        let media = range.split(';').next().unwrap_or_default().trim_matches(' ');
        media == "*/*" || offered.contains(&media)
    };
    header.is_empty() || header.split(',').any(fits)
}

/// Which part of an object is shown.
fn form_of(target: Option<Target<'_>>) -> Option<Form> {
    let Some(target) = target else { return Some(Form::Full) };
    match (target.kind, target.group, target.version) {
        ("PartialObjectMetadataList" | "PartialObjectMetadata", "meta.k8s.io", "v1") => Some(Form::Metadata),
        ("Table", "meta.k8s.io", version @ ("v1" | "v1beta1")) => {
            let beta = version == "v1beta1";
            Some(Form::Table(TableForm { beta, include: Include::default(), headers: true, now: 0 }))
        }
        _ => None,
    }
}

/// Chooses the representation of an answer, and returns the kind that the chosen range names.
///
/// # Errors 406 if the header allows nothing that is offered.
fn chosen(header: &str, answer: Answer, custom: bool) -> Result<(Representation, &str), ApiError> {
    if !custom && !passes(header, &Encoding::ALL.map(Encoding::media_type)) {
        return Err(ApiError::not_acceptable(&match answer {
            Answer::Object => OFFERED.to_owned(),
            Answer::List | Answer::Watch => format!("{OFFERED}, {STREAMS}"),
        }));
    }
    let allows = |encoding, target| match form_of(target) {
        Some(Form::Full) => !custom || encoding != Encoding::Protobuf,
        Some(Form::Metadata) => true,
        Some(Form::Table(_)) => encoding != Encoding::Protobuf,
        None => false,
    };
    let Some((encoding, target)) = negotiate(header, "v1", allows) else {
        return Err(ApiError::only_accepted(OFFERED));
    };
    if (answer, encoding) == (Answer::Watch, Encoding::Yaml) {
        return Err(ApiError::only_accepted(STREAMS));
    }
    let form = form_of(target).unwrap_or(Form::Full);
    Ok((Representation { form, encoding }, target.map_or("", |target| target.kind)))
}

impl Ask {
    /// The representation that this request asks for, with what its query says about Tables.
    ///
    /// # Errors 406 if the header allows nothing that is offered, 400 for an unknown `includeObject`.
    pub(crate) fn representation(&self, answer: Answer) -> Result<Representation, ApiError> {
        let header = self.accept.as_deref().unwrap_or_default();
        let (representation, _) = chosen(header, answer, self.kind.custom)?;
        let Form::Table(table) = representation.form else { return Ok(representation) };
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
        let form = Form::Table(TableForm { include, now: self.world.now(), ..table });
        Ok(Representation { form, ..representation })
    }

    /// The language of an answer that has no other form.
    ///
    /// # Errors 406 if the header allows nothing that is offered.
    pub(crate) fn encoding(&self) -> Result<Encoding, ApiError> {
        let header = self.accept.as_deref().unwrap_or_default();
        chosen(header, Answer::Object, self.kind.custom).map(|(representation, _)| representation.encoding)
    }

    /// Whether no event of a watch can be written in the requested form: an object has no list form.
    pub(crate) fn asks_for_no_events(&self) -> bool {
        let header = self.accept.as_deref().unwrap_or_default();
        let target = chosen(header, Answer::Watch, self.kind.custom).map_or("", |(_, target)| target);
        target == "PartialObjectMetadataList"
    }

    /// Checks at the end that the answer is one object or a list, as was asked for.
    ///
    /// # Errors
    /// 406 if a list was asked for as one object, or one object as a list.
    pub(crate) fn check_form(&self, representation: Representation, answer: Answer) -> Result<(), ApiError> {
        if representation.form != Form::Metadata {
            return Ok(());
        }
        let header = self.accept.as_deref().unwrap_or_default();
        let (_, target) = chosen(header, answer, self.kind.custom)?;
        let (kind, package) = (&self.kind.kind, self.kind.go_package());
        match (answer, target == "PartialObjectMetadataList") {
            (Answer::Object, true) => Err(ApiError::not_a_list(&if self.kind.custom {
                "unstructured.Unstructured".to_owned()
            } else {
                format!("{package}.{kind}")
            })),
            (Answer::List, false) => Err(ApiError::not_for_a_list(&if self.kind.custom {
                "unstructured.UnstructuredList".to_owned()
            } else {
                format!("{package}.{kind}List")
            })),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

    #[test]
    fn api_36_the_accept_header_chooses_whole_objects_or_metadata() {
        let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        let single = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        for (header, answer, form) in [
            ("", Answer::List, Some(Form::Full)),
            ("*/*", Answer::List, Some(Form::Full)),
            ("application/*", Answer::List, None),
            (metadata, Answer::List, Some(Form::Metadata)),
            (metadata, Answer::Watch, Some(Form::Metadata)),
            (single, Answer::Watch, Some(Form::Metadata)),
            ("application/json;as=Table;v=v2;g=meta.k8s.io,application/json", Answer::List, Some(Form::Full)),
            ("application/json;as=Table;v=v1;g=other", Answer::List, None),
        ] {
            let representation =
                chosen(header, answer, false).ok().map(|(representation, _)| representation.form);
            assert_eq!(representation, form, "{header:?} {answer:?}");
        }
    }

    #[test]
    fn api_38_the_best_range_with_an_offer_chooses_the_language() {
        let table = "as=Table;v=v1;g=meta.k8s.io";
        let metadata = "as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        let both = format!("{PROTOBUF},application/json");
        let json = (Some(Encoding::Json), Some(Encoding::Json));
        for (header, (builtin, custom)) in [
            (both.clone(), (Some(Encoding::Protobuf), Some(Encoding::Json))),
            (PROTOBUF.to_owned(), (Some(Encoding::Protobuf), None)),
            (
                format!("application/json;q=0.1,{PROTOBUF};q=0.9"),
                (Some(Encoding::Protobuf), Some(Encoding::Json)),
            ),
            (format!("{PROTOBUF};{table},application/json;{table}"), json),
            (format!("{PROTOBUF};{metadata}"), (Some(Encoding::Protobuf), Some(Encoding::Protobuf))),
            ("application/yaml;q=0,application/json".to_owned(), json),
            ("*/*,application/yaml".to_owned(), (Some(Encoding::Yaml), Some(Encoding::Yaml))),
            ("application/json;stream=nope".to_owned(), (None, None)),
            ("application/json;sv=v1".to_owned(), json),
            ("application/json;sv=v2".to_owned(), (None, None)),
            ("application/*".to_owned(), (None, Some(Encoding::Json))),
        ] {
            let representation = |custom| {
                chosen(&header, Answer::Object, custom)
                    .ok()
                    .map(|(representation, _)| representation.encoding)
            };
            assert_eq!((representation(false), representation(true)), (builtin, custom), "{header}");
        }
        assert!(chosen("application/yaml,application/json", Answer::Watch, false).is_err());
        assert_eq!(of_status(Some(&format!("{PROTOBUF};{metadata}"))), Encoding::Json);
        assert_eq!(of_status(Some(&both)), Encoding::Protobuf);
    }

    #[test]
    fn api_33_the_first_known_range_chooses_the_form() {
        let new = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        for (header, aggregated) in [
            (String::new(), Some(false)),
            ("*/*".to_owned(), Some(false)),
            (new.to_owned(), Some(true)),
            (format!("{new};profile=nopeer"), Some(true)),
            (format!("{old},{new},application/json"), Some(true)),
            (format!("{old},application/json"), Some(false)),
            (old.to_owned(), None),
        ] {
            let representation = of_discovery(Some(&header), false).ok().map(|(_, aggregated)| aggregated);
            assert_eq!(representation, aggregated, "{header:?}");
        }
    }
}
