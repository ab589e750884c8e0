//! All keys of the configuration; `config/informerd.toml` gives the reason of each default. The key of a time ends in its unit.
//! Each kind has one informer: the lines of one object have one order.

use std::net::IpAddr;
use std::time::Duration;

use toml::de::DeValue;

use super::reader::{Document, Error, Rule, Section};
use super::{
    Colour, Config, DemoConfig, EarlyRetries, Format, InformerConfig, Kept, OutputConfig, ProbesConfig,
    RunConfig,
};
use crate::kinds::WatchedKind;
use actix_informer::informer::QueueOrder;
use actix_informer::subscription::{Policy, WhenFull};

const FORMAT: Rule<Format> = Rule::new("format", r#""text" or "json""#, r#""text""#, format);
const COLOUR: Rule<Colour> = Rule::new("colour", r#""auto", "always" or "never""#, r#""auto""#, colour);
const STATUS: Rule<u64> = Rule::new("status_seconds", "whole seconds from 1 to 3600", "5", whole::<1, 3_600>);
const ENABLED: Rule<bool> = Rule::new("enabled", "true or false", "true", |value| value.as_bool());
const ADDRESS: Rule<IpAddr> =
    Rule::new("address", "an IP address of this machine", r#""127.0.0.1""#, address);
const PORT: Rule<u64> =
    Rule::new("port", "a port from 0 to 65535, 0 for a free one", "0", whole::<0, 65_535>);
const STALE: Rule<u64> = Rule::new(
    "unready_when_stale_seconds",
    "whole seconds from 0 to 31536000, 0 for never",
    "0",
    whole::<0, 31_536_000>,
);
const FOR: Rule<u64> =
    Rule::new("for_seconds", "whole seconds from 0 to 31536000, 0 for no end", "0", whole::<0, 31_536_000>);
const DRAIN: Rule<u64> = Rule::new("drain_seconds", "whole seconds from 1 to 600", "10", whole::<1, 600>);
const KIND: Rule<String> = Rule::new("kind", "the name of a kind, as kubectl takes it", r#""Pod""#, nonempty);
const GROUP: Rule<String> = Rule::new("group", r#"an API group such as "apps""#, r#""""#, text);
const VERSION: Rule<String> = Rule::new("version", r#"an API version such as "v1""#, r#""""#, text);
const PLURAL: Rule<String> =
    Rule::new("plural", r#"the name in API paths, such as "widgets""#, r#""""#, text);
const NAMESPACES: Rule<Vec<String>> =
    Rule::new("namespaces", "a list of namespaces, [] for all", "[]", names);
const LABELS: Rule<String> = Rule::new("labels", r#"a selector such as "app=web""#, r#""""#, text);
const FIELDS: Rule<String> =
    Rule::new("fields", r#"a selector such as "spec.nodeName=node-1""#, r#""""#, text);
const RESYNC: Rule<u64> =
    Rule::new("resync_seconds", "whole seconds from 0 to 86400, 0 for never", "0", whole::<0, 86_400>);
const EARLY_FIRST: Rule<u64> =
    Rule::new("early_first_seconds", "whole seconds from 1 to 30", "1", whole::<1, 30>);
const EARLY_LONGEST: Rule<u64> =
    Rule::new("early_longest_seconds", "whole seconds from 1 to 30", "15", whole::<1, 30>);
const EARLY_FOR: Rule<u64> =
    Rule::new("early_for_seconds", "whole seconds from 0 to 86400, 0 for never", "600", whole::<0, 86_400>);
const REPRESENTATION: Rule<Kept> =
    Rule::new("representation", r#""auto", "typed", "dynamic" or "metadata""#, r#""auto""#, kept);
const QUEUE_ORDER: Rule<QueueOrder> =
    Rule::new("queue_order", r#""in-order" or "per-key""#, r#""in-order""#, queue_order);
const POLICY: Rule<Option<WhenFull>> =
    Rule::new("policy", r#""coalesce", "restate" or "disconnect""#, r#""coalesce""#, when_full);
const BACKLOG: Rule<u64> = Rule::new(
    "backlog_bytes",
    "a number of bytes from 65536 to 1073741824",
    "16777216",
    whole::<65_536, 1_073_741_824>,
);
const PODS: Rule<u64> = Rule::new("pods", "a number from 1 to 10000", "300", whole::<1, 10_000>);
const CHANGES: Rule<u64> =
    Rule::new("changes_per_second", "a number from 1 to 1000", "30", whole::<1, 1_000>);
const SEED: Rule<u64> =
    Rule::new("seed", "a number from 0 to 9223372036854775807", "7", whole::<0, 9_223_372_036_854_775_807>);

/// With the keys that are absent.
pub(super) fn read(document: &Document<'_>) -> Result<(Config, Vec<String>), Error> {
    let mut root = document.root()?;
    let mut absent = Vec::new();
    let mut section = root.table("output")?;
    let output = OutputConfig {
        format: section.read(&FORMAT)?,
        colour: section.read(&COLOUR)?,
        status_every: Duration::from_secs(section.read(&STATUS)?),
        list_at_end: false,
    };
    absent.extend(section.finish()?);
    let mut section = root.table("probes")?;
    let (enabled, address) = (section.read(&ENABLED)?, section.read(&ADDRESS)?);
    let port = u16::try_from(section.read(&PORT)?).expect("the rule allows no larger number");
    let stale = seconds_unless_zero(section.read(&STALE)?);
    let probes = ProbesConfig::new(enabled, address, port, stale);
    absent.extend(section.finish()?);
    let mut section = root.table("run")?;
    let limit = seconds_unless_zero(section.read(&FOR)?);
    let run = RunConfig { limit, drain: Duration::from_secs(section.read(&DRAIN)?) };
    absent.extend(section.finish()?);
    let mut section = root.table("demo")?;
    let demo = DemoConfig {
        pods: usize::try_from(section.read(&PODS)?).expect("the rule allows no larger number"),
        changes_per_second: u32::try_from(section.read(&CHANGES)?).expect("the rule allows no larger number"),
        seed: section.read(&SEED)?,
    };
    absent.extend(section.finish()?);
    let (informers, missing) = informers(&mut root)?;
    absent.extend(missing);
    root.finish()?;
    Ok((Config { output, probes, run, informers, demo, file: None }, absent))
}

fn informers(root: &mut Section<'_>) -> Result<(Vec<InformerConfig>, Vec<String>), Error> {
    let sections = match root.tables("informer")? {
        Some(sections) => sections,
        None => vec![root.table("informer")?],
    };
    let (mut informers, mut absent) = (Vec::<InformerConfig>::new(), Vec::new());
    for mut section in sections {
        let informer = informer(&mut section)?;
        let same = |other: &InformerConfig| other.kind.same_resource(&informer.kind);
        if informers.iter().any(same) {
            let message =
                "is watched twice; allowed: one informer for each kind, which may have several namespaces";
            return Err(section.contradiction("kind", format!("{} {message}", informer.kind.name())));
        }
        informers.push(informer);
        absent.extend(section.finish()?);
    }
    Ok((informers, absent))
}

fn informer(section: &mut Section<'_>) -> Result<InformerConfig, Error> {
    let kind = section.read(&KIND)?;
    let (group, version, plural) = (section.read(&GROUP)?, section.read(&VERSION)?, section.read(&PLURAL)?);
    let kind = WatchedKind::find(&kind, &group, &version, &plural);
    let namespaces = section.read(&NAMESPACES)?;
    if kind.is_cluster_scoped() && !namespaces.is_empty() {
        let message = format!("a {} is not in a namespace; allowed: [] (the default)", kind.name());
        return Err(section.contradiction("namespaces", message));
    }
    let repeated = namespaces.iter().enumerate().find(|(at, name)| namespaces[..*at].contains(name));
    if let Some((_, name)) = repeated {
        let message = format!("{name:?} is listed twice; allowed: each namespace once");
        return Err(section.contradiction("namespaces", message));
    }
    let representation = match section.read(&REPRESENTATION)? {
        Kept::Typed if !kind.has_type() => {
            let message = format!(r#"{} has no built-in type; allowed: "dynamic", "metadata""#, kind.name());
            return Err(section.contradiction("representation", message));
        }
        kept => kept,
    };
    Ok(InformerConfig {
        kind,
        namespaces,
        labels: section.read(&LABELS)?,
        fields: section.read(&FIELDS)?,
        resync: seconds_unless_zero(section.read(&RESYNC)?),
        early: early(section)?,
        representation,
        queue_order: section.read(&QUEUE_ORDER)?,
        policy: policy(section)?,
    })
}

fn early(section: &mut Section<'_>) -> Result<EarlyRetries, Error> {
    let (first, longest) = (section.read(&EARLY_FIRST)?, section.read(&EARLY_LONGEST)?);
    if longest < first {
        let message = format!("{longest} is less than early_first_seconds, {first}; allowed: at least that");
        return Err(section.contradiction("early_longest_seconds", message));
    }
    let [first, longest, within] = [first, longest, section.read(&EARLY_FOR)?].map(Duration::from_secs);
    Ok(EarlyRetries { first, longest, within })
}

fn policy(section: &mut Section<'_>) -> Result<Policy, Error> {
    let (when_full, bytes) = (section.read(&POLICY)?, section.read(&BACKLOG)?);
    let bytes = usize::try_from(bytes).expect("the rule allows no larger number");
    Ok(when_full.map_or(Policy::Coalesce, |when_full| Policy::Every { bytes, when_full }))
}

fn seconds_unless_zero(seconds: u64) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

fn whole<const LEAST: u64, const MOST: u64>(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok()?;
    (LEAST..=MOST).contains(&number).then_some(number)
}

fn names(value: &DeValue<'_>) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| nonempty(item.get_ref())).collect()
}

fn address(value: &DeValue<'_>) -> Option<IpAddr> {
    value.as_str()?.parse().ok()
}

fn text(value: &DeValue<'_>) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn nonempty(value: &DeValue<'_>) -> Option<String> {
    text(value).filter(|text| !text.is_empty())
}

fn one_of<T: Copy>(value: &DeValue<'_>, words: &[(&str, T)]) -> Option<T> {
    let word = value.as_str()?;
    words.iter().find(|(name, _)| *name == word).map(|(_, meaning)| *meaning)
}

fn format(value: &DeValue<'_>) -> Option<Format> {
    one_of(value, &[("text", Format::Text), ("json", Format::Json)])
}

fn colour(value: &DeValue<'_>) -> Option<Colour> {
    one_of(value, &[("auto", Colour::Auto), ("always", Colour::Always), ("never", Colour::Never)])
}

fn kept(value: &DeValue<'_>) -> Option<Kept> {
    let [auto, typed] = [("auto", Kept::Auto), ("typed", Kept::Typed)];
    one_of(value, &[auto, typed, ("dynamic", Kept::Dynamic), ("metadata", Kept::Metadata)])
}

fn queue_order(value: &DeValue<'_>) -> Option<QueueOrder> {
    one_of(value, &[("in-order", QueueOrder::InOrder), ("per-key", QueueOrder::PerKey)])
}

/// `Some(None)`: "coalesce".
fn when_full(value: &DeValue<'_>) -> Option<Option<WhenFull>> {
    let [restate, disconnect] = [WhenFull::Restate, WhenFull::Disconnect].map(Some);
    one_of(value, &[("coalesce", None), ("restate", restate), ("disconnect", disconnect)])
}
