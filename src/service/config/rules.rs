//! All keys of the configuration, with their allowed values and defaults.
//!
//! Answers "which keys are there?". `config/informerd.toml` gives the reason of each default. Invariants:
//! 1. The name of a key for a time has the unit in it.
//! 2. Each kind has one informer, so that the printed lines of one object have one order.

use std::net::IpAddr;
use std::time::Duration;

use toml::de::DeValue;

use super::error::Error;
use super::reader::{Document, Rule, Section};
use super::{
    Colour, Config, DemoConfig, EarlyRetries, Format, InformerConfig, Kept, OutputConfig, ProbesConfig,
    RunConfig,
};
use crate::service::kinds::WatchedKind;
use informer_core::delta_fifo::QueueOrder;
use informer_core::listener::{Policy, WhenFull};

const FORMAT: Rule<Format> =
    Rule { key: "format", allowed: r#""text" or "json""#, default: r#""text""#, read: format };
const COLOUR: Rule<Colour> =
    Rule { key: "colour", allowed: r#""auto", "always" or "never""#, default: r#""auto""#, read: colour };
const STATUS: Rule<u64> = Rule {
    key: "status_seconds",
    allowed: "whole seconds from 1 to 3600",
    default: "5",
    read: |value| whole(value, 1, 3_600),
};
const ENABLED: Rule<bool> =
    Rule { key: "enabled", allowed: "true or false", default: "true", read: |value| value.as_bool() };
const ADDRESS: Rule<IpAddr> = Rule {
    key: "address",
    allowed: "an IP address of this machine",
    default: r#""127.0.0.1""#,
    read: |value| value.as_str()?.parse().ok(),
};
const PORT: Rule<u64> = Rule {
    key: "port",
    allowed: "a port from 0 to 65535, 0 for a free one",
    default: "0",
    read: |value| whole(value, 0, 65_535),
};
const STALE: Rule<u64> = Rule {
    key: "unready_when_stale_seconds",
    allowed: "whole seconds from 0 to 31536000, 0 for never",
    default: "0",
    read: |value| whole(value, 0, 31_536_000),
};
const FOR: Rule<u64> = Rule {
    key: "for_seconds",
    allowed: "whole seconds from 0 to 31536000, 0 for no end",
    default: "0",
    read: |value| whole(value, 0, 31_536_000),
};
const DRAIN: Rule<u64> = Rule {
    key: "drain_seconds",
    allowed: "whole seconds from 1 to 600",
    default: "10",
    read: |value| whole(value, 1, 600),
};
const KIND: Rule<String> = Rule {
    key: "kind",
    allowed: "the name of a kind, as kubectl takes it",
    default: r#""Pod""#,
    read: nonempty,
};
const GROUP: Rule<String> =
    Rule { key: "group", allowed: r#"an API group such as "apps""#, default: r#""""#, read: text };
const VERSION: Rule<String> =
    Rule { key: "version", allowed: r#"an API version such as "v1""#, default: r#""""#, read: text };
const PLURAL: Rule<String> = Rule {
    key: "plural",
    allowed: r#"the name in API paths, such as "widgets""#,
    default: r#""""#,
    read: text,
};
const NAMESPACES: Rule<Vec<String>> = Rule {
    key: "namespaces",
    allowed: "a list of namespaces, [] for all",
    default: "[]",
    read: |value| value.as_array()?.iter().map(|item| nonempty(item.get_ref())).collect(),
};
const LABELS: Rule<String> =
    Rule { key: "labels", allowed: r#"a selector such as "app=web""#, default: r#""""#, read: text };
const FIELDS: Rule<String> = Rule {
    key: "fields",
    allowed: r#"a selector such as "spec.nodeName=node-1""#,
    default: r#""""#,
    read: text,
};
const RESYNC: Rule<u64> = Rule {
    key: "resync_seconds",
    allowed: "whole seconds from 0 to 86400, 0 for never",
    default: "0",
    read: |value| whole(value, 0, 86_400),
};
const EARLY_FIRST: Rule<u64> = Rule {
    key: "early_first_seconds",
    allowed: "whole seconds from 1 to 30",
    default: "1",
    read: |value| whole(value, 1, 30),
};
const EARLY_LONGEST: Rule<u64> = Rule {
    key: "early_longest_seconds",
    allowed: "whole seconds from 1 to 30",
    default: "15",
    read: |value| whole(value, 1, 30),
};
const EARLY_FOR: Rule<u64> = Rule {
    key: "early_for_seconds",
    allowed: "whole seconds from 0 to 86400, 0 for never",
    default: "600",
    read: |value| whole(value, 0, 86_400),
};
const REPRESENTATION: Rule<Option<Kept>> = Rule {
    key: "representation",
    allowed: r#""auto", "typed", "dynamic" or "metadata""#,
    default: r#""auto""#,
    read: kept,
};
const QUEUE_ORDER: Rule<QueueOrder> = Rule {
    key: "queue_order",
    allowed: r#""in-order" or "per-key""#,
    default: r#""in-order""#,
    read: queue_order,
};
const POLICY: Rule<Option<WhenFull>> = Rule {
    key: "policy",
    allowed: r#""coalesce", "restate" or "disconnect""#,
    default: r#""coalesce""#,
    read: when_full,
};
const BACKLOG: Rule<u64> = Rule {
    key: "backlog_bytes",
    allowed: "a number of bytes from 65536 to 1073741824",
    default: "16777216",
    read: |value| whole(value, 1 << 16, 1 << 30),
};
const PODS: Rule<u64> = Rule {
    key: "pods",
    allowed: "a number from 1 to 10000",
    default: "300",
    read: |value| whole(value, 1, 10_000),
};
const CHANGES: Rule<u64> = Rule {
    key: "changes_per_second",
    allowed: "a number from 1 to 1000",
    default: "30",
    read: |value| whole(value, 1, 1_000),
};
const SEED: Rule<u64> = Rule {
    key: "seed",
    allowed: "a number from 0 to 9223372036854775807",
    default: "7",
    read: |value| whole(value, 0, i64::MAX as u64),
};

/// The configuration, and the keys that the text leaves out.
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
        Some(Kept::Typed) if !kind.has_type() => {
            let message = format!(r#"{} has no built-in type; allowed: "dynamic", "metadata""#, kind.name());
            return Err(section.contradiction("representation", message));
        }
        Some(kept) => kept,
        None => Kept::Auto,
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

fn whole(value: &DeValue<'_>, least: u64, most: u64) -> Option<u64> {
    let integer = value.as_integer()?;
    let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok()?;
    (least..=most).contains(&number).then_some(number)
}

fn text(value: &DeValue<'_>) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn nonempty(value: &DeValue<'_>) -> Option<String> {
    text(value).filter(|text| !text.is_empty())
}

fn format(value: &DeValue<'_>) -> Option<Format> {
    match value.as_str()? {
        "text" => Some(Format::Text),
        "json" => Some(Format::Json),
        _ => None,
    }
}

fn colour(value: &DeValue<'_>) -> Option<Colour> {
    match value.as_str()? {
        "auto" => Some(Colour::Auto),
        "always" => Some(Colour::Always),
        "never" => Some(Colour::Never),
        _ => None,
    }
}

fn kept(value: &DeValue<'_>) -> Option<Option<Kept>> {
    match value.as_str()? {
        "auto" => Some(None),
        "typed" => Some(Some(Kept::Typed)),
        "dynamic" => Some(Some(Kept::Dynamic)),
        "metadata" => Some(Some(Kept::Metadata)),
        _ => None,
    }
}

fn queue_order(value: &DeValue<'_>) -> Option<QueueOrder> {
    match value.as_str()? {
        "in-order" => Some(QueueOrder::InOrder),
        "per-key" => Some(QueueOrder::PerKey),
        _ => None,
    }
}

/// What happens when the backlog of a policy that delivers every change is full; `Some(None)` for "coalesce".
fn when_full(value: &DeValue<'_>) -> Option<Option<WhenFull>> {
    match value.as_str()? {
        "coalesce" => Some(None),
        "restate" => Some(Some(WhenFull::Restate)),
        "disconnect" => Some(Some(WhenFull::Disconnect)),
        _ => None,
    }
}
