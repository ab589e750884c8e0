//! How many bytes the objects of an informer have, and in which fields, by samples.
//!
//! A source says what it has read of the first 32 objects of an informer, then of one in 256; the rest costs an
//! addition. Means follow a population that changes: after 4,096 samples each counts half.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::locked::Guarded;

const FIRST: u64 = 32;
const EVERY: u64 = 256;
const MOST_SAMPLES: u64 = 4_096;
/// Paths of one informer; the bytes of others count only in the whole.
const MOST_FIELDS: usize = 64;
/// Of one informer in a text.
const SHOWN_FIELDS: usize = 3;

/// The bytes of one object, as its source has read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a source outside this crate makes it")]
pub struct ObjectSample {
    /// As the server sent it.
    pub sent: u64,
    /// Without the fields that are cut.
    pub text: u64,
    /// In the cache, if the representation knows that.
    pub kept: Option<u64>,
    /// Of the text: paths of fields with their bytes.
    pub fields: Vec<(String, u64)>,
}

/// What the caches of a runtime hold: `runtime.memory()`, of the prelude. Shows itself as a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryReport {
    /// The informers of Kubernetes resources, those first whose objects have the most bytes.
    pub informers: Vec<InformerMemory>,
}

/// What the objects of one informer weigh. Bytes are means of the samples, for one object.
///
/// A cache of texts takes [`Self::kept`] for each object and some 200 bytes; a cache of types takes several times
/// [`Self::text`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InformerMemory {
    /// Its name.
    pub informer: Arc<str>,
    /// Objects in its cache.
    pub objects: u64,
    /// How many objects the means are of; 0 if none has been decoded yet, or if its sources tell nothing.
    pub samples: u64,
    /// As the server sends it.
    pub sent: u64,
    /// Its JSON without the fields that are cut.
    pub text: u64,
    /// Its body in the cache: of texts, packed texts and controllers; `None` for types, whose size is not known.
    pub kept: Option<u64>,
    /// The fields of the text, the largest first: members, and of `metadata`, `spec` and `status` their members.
    pub fields: Vec<FieldBytes>,
}

/// The bytes of one field, with its name and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldBytes {
    /// As `Prune` takes it: `spec.containers`.
    pub path: Arc<str>,
    /// In the mean object.
    pub bytes: u64,
}

impl InformerMemory {
    /// Which share of the text these fields are, from 0 to 1: so much less has a text without them. A path counts
    /// with all fields below it; one that is below a path of [`Self::fields`] counts nothing.
    pub fn share_of(&self, paths: &[&str]) -> f64 {
        let is_below = |field: &str, path: &str| {
            field.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let cut = self.fields.iter().filter(|field| paths.iter().any(|path| is_below(&field.path, path)));
        cut.map(|field| field.bytes).sum::<u64>() as f64 / self.text.max(1) as f64
    }

    /// Of all its objects: their bodies if their size is known, else their texts.
    pub fn bytes(&self) -> u64 {
        self.kept.unwrap_or(self.text).saturating_mul(self.objects)
    }
}

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<32} {:>9} {:>10} {:>10} {:>10}  largest fields of the text",
            "informer", "objects", "bytes sent", "as text", "kept"
        )?;
        for of in &self.informers {
            let kept = of.kept.map_or_else(|| "as a type".to_owned(), |kept| kept.to_string());
            write!(f, "{:<32} {:>9} {:>10} {:>10} {kept:>10}  ", of.informer, of.objects, of.sent, of.text)?;
            let largest: Vec<&str> = of.fields.iter().take(SHOWN_FIELDS).map(|field| &*field.path).collect();
            for path in &largest {
                write!(f, "{path} {:.0} %, ", of.share_of(&[path]) * 100.0)?;
            }
            match largest.is_empty() {
                true => writeln!(f, "none was read yet")?,
                false => writeln!(f, "without these {:.0} % less", of.share_of(&largest) * 100.0)?,
            }
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Sizes {
    decoded: AtomicU64,
    sums: Guarded<Sums>,
}

#[derive(Debug, Clone, Default)]
struct Sums {
    samples: u64,
    sent: u64,
    text: u64,
    kept: Option<u64>,
    fields: BTreeMap<Arc<str>, u64>,
}

impl Sizes {
    pub(crate) fn is_sampled(&self) -> bool {
        let before = self.decoded.fetch_add(1, Ordering::Relaxed);
        before < FIRST || before.is_multiple_of(EVERY)
    }

    pub(crate) fn note(&self, sample: ObjectSample) {
        self.sums.with(|sums| sums.add(sample));
    }

    pub(crate) fn note_kept(&self, mean: u64) {
        self.sums.with(|sums| sums.kept = Some(mean.saturating_mul(sums.samples)));
    }

    pub(crate) fn of(&self, informer: Arc<str>, objects: u64) -> InformerMemory {
        let sums = self.sums.with(|sums| sums.clone());
        let mean = |sum: u64| sum / sums.samples.max(1);
        let mut fields: Vec<FieldBytes> =
            sums.fields.into_iter().map(|(path, sum)| FieldBytes { path, bytes: mean(sum) }).collect();
        fields.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.path.cmp(&other.path)));
        InformerMemory {
            informer,
            objects,
            samples: sums.samples,
            sent: mean(sums.sent),
            text: mean(sums.text),
            kept: sums.kept.map(mean),
            fields,
        }
    }
}

impl Sums {
    fn add(&mut self, sample: ObjectSample) {
        if self.samples == MOST_SAMPLES {
            self.samples /= 2;
            self.sent /= 2;
            self.text /= 2;
            self.kept = self.kept.map(|kept| kept / 2);
            self.fields.values_mut().for_each(|bytes| *bytes /= 2);
        }
        self.samples += 1;
        self.sent = self.sent.saturating_add(sample.sent);
        self.text = self.text.saturating_add(sample.text);
        if let Some(kept) = sample.kept {
            self.kept = Some(self.kept.unwrap_or_default().saturating_add(kept));
        }
        for (path, bytes) in sample.fields {
            if let Some(sum) = self.fields.get_mut(&*path) {
                *sum = sum.saturating_add(bytes);
            } else if self.fields.len() < MOST_FIELDS {
                self.fields.insert(path.into(), bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(text: u64, fields: &[(&str, u64)]) -> ObjectSample {
        let fields = fields.iter().map(|(path, bytes)| ((*path).to_owned(), *bytes)).collect();
        ObjectSample { sent: text * 2, text, kept: Some(text / 4), fields }
    }

    #[test]
    fn the_first_objects_are_samples_and_then_one_in_256() {
        let sizes = Sizes::default();
        let sampled = (0..10_000).filter(|_| sizes.is_sampled()).count() as u64;
        assert_eq!(sampled, FIRST + 10_000 / EVERY);
    }

    #[test]
    fn a_report_says_the_means_and_what_is_left_without_some_fields() {
        let sizes = Sizes::default();
        sizes.note(sample(
            1_000,
            &[("spec.containers", 400), ("status.conditions", 100), ("status.phase", 20)],
        ));
        sizes.note(sample(
            3_000,
            &[("spec.containers", 1_200), ("metadata.annotations", 500), ("spec.containersX", 2)],
        ));
        let pods = sizes.of("pods".into(), 10);
        assert_eq!(
            (pods.samples, pods.sent, pods.text, pods.kept, pods.bytes()),
            (2, 4_000, 2_000, Some(500), 5_000)
        );
        let fields: Vec<_> = pods.fields.iter().map(|field| (&*field.path, field.bytes)).collect();
        assert_eq!(
            fields,
            [
                ("spec.containers", 800),
                ("metadata.annotations", 250),
                ("status.conditions", 50),
                ("status.phase", 10),
                ("spec.containersX", 1)
            ]
        );
        assert_eq!(pods.share_of(&["spec.containers"]), 0.4);
        assert_eq!(pods.share_of(&["status", "spec.none"]), 0.03);
        let text = MemoryReport { informers: vec![pods, Sizes::default().of("nodes".into(), 0)] }.to_string();
        assert!(text.contains("spec.containers 40 %, metadata.annotations 12 %, status.conditions 2 %, without these 55 % less"), "{text}");
        assert!(text.ends_with("none was read yet\n"), "{text}");
    }

    #[test]
    fn newer_samples_count_more_and_a_thousand_paths_take_no_more_room_than_64() {
        let sizes = Sizes::default();
        for at in 0..MOST_SAMPLES {
            sizes.note(sample(100, &[(&format!("data.{at}"), 1)]));
        }
        assert_eq!(sizes.of("maps".into(), 1).fields.len(), MOST_FIELDS);
        for _ in 0..MOST_SAMPLES {
            sizes.note(sample(1_000, &[]));
        }
        let text = sizes.of("maps".into(), 1).text;
        assert!(text > 700, "a plain mean says 550: {text}");
    }
}
