//! A cache of discovery on disk, which kubectl shares (client-go's `discovery/cached/disk`). Every function
//! blocks. In `--cache-dir`, `discovery/<host>_<port>/servergroups.json` and
//! `discovery/<host>_<port>/<group>/<version>/serverresources.json` have the old form; `http/` has the
//! aggregated answers (`disk/answers.rs`).
//!
//! 1. A file that is missing, too old, too large or invalid makes the whole cache a miss. kubectl writes no
//!    file for a version without resources, so its cache of such a server is a miss.
//! 2. A written file appears under its name only when it is complete, and only its owner can read it. Names
//!    that could lead to another place are neither written nor followed.
//! 3. An incomplete discovery is not written: every reader would miss the rest.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::Response;

use super::documents::{DOCUMENT_LIMIT, legacy};
use super::fetch::ROOTS;
use super::memory::Tagged;
use super::model::{DiscoveredGroup, ServerResources, group_version};
use crate::scope::segment;

mod answers;

/// As for kubectl.
pub(super) const TTL: Duration = Duration::from_secs(6 * 60 * 60);
/// How far the clock of another machine may be ahead.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);
/// In bytes, for a document and its headers.
const FILE_LIMIT: u64 = DOCUMENT_LIMIT as u64 + (64 << 10);

const GROUPS: &str = "servergroups.json";
const RESOURCES: &str = "serverresources.json";

#[derive(Debug, Clone)]
pub(super) struct Disk {
    documents: PathBuf,
    answers: PathBuf,
    url: String,
}

#[derive(Debug)]
pub(super) struct Stored {
    pub(super) groups: Vec<DiscoveredGroup>,
    /// The age of the oldest file.
    pub(super) age: Duration,
}

impl Disk {
    pub(super) fn new(directory: &Path, url: &str) -> Self {
        let url = url.trim_end_matches('/');
        Self {
            documents: directory.join("discovery").join(directory_of(url)),
            answers: directory.join("http"),
            url: url.to_owned(),
        }
    }

    pub(super) fn load(&self, ttl: Duration) -> Option<Stored> {
        let (body, mut age) = read(&self.documents.join(GROUPS), ttl)?;
        let mut groups = legacy::groups(&body).ok().filter(|groups| !groups.is_empty())?;
        for group in &mut groups {
            for version in &mut group.versions {
                let path = self.resources_of(&group.name, &version.name)?;
                let (body, of_file) = read(&path, ttl)?;
                age = age.max(of_file);
                version.resources = legacy::resources(&body, (&group.name, &version.name)).ok()?;
            }
        }
        Some(Stored { groups, age })
    }

    /// However old it is: the server recognizes it by its ETag.
    pub(super) fn load_answer(&self, at: usize) -> Option<Tagged> {
        let (file, _) = read(&self.answers.join(answers::file_name(&self.url, ROOTS[at])), Duration::MAX)?;
        answers::read(&file)
    }

    /// Fails at the first file that cannot be written. Earlier files stay: each is complete.
    pub(super) fn store(
        &self,
        resources: &ServerResources,
        bodies: &[Option<Response<Bytes>>; 2],
    ) -> io::Result<()> {
        for (root, answer) in ROOTS.iter().zip(bodies) {
            if let Some(file) = answer.as_ref().and_then(answers::written) {
                write(&self.answers.join(answers::file_name(&self.url, root)), &file)?;
            }
        }
        if resources.complete().is_err() {
            return Ok(());
        }
        for group in &resources.groups {
            for version in &group.versions {
                if let Some(path) = self.resources_of(&group.name, &version.name) {
                    write(&path, &legacy::written_resources(&group.name, version))?;
                }
            }
        }
        // Last, so that it never names a file that does not exist yet.
        write(&self.documents.join(GROUPS), &legacy::written_groups(&resources.groups))
    }

    fn resources_of(&self, group: &str, version: &str) -> Option<PathBuf> {
        segment("version", version).ok()?;
        if !group.is_empty() {
            segment("group", group).ok()?;
        }
        Some(self.documents.join(group_version(group, version)).join(RESOURCES))
    }
}

/// The URL without the scheme, with `_` for characters that a file system might refuse and parts that would
/// lead out of the directory.
fn directory_of(url: &str) -> PathBuf {
    let host = url.replacen("https://", "", 1).replacen("http://", "", 1);
    let safe = |c: char| c.is_ascii_alphanumeric() || "_()/.".contains(c);
    let host: String = host.chars().map(|c| if safe(c) { c } else { '_' }).collect();
    let part = |part: &str| if part == "." || part == ".." { "_".to_owned() } else { part.to_owned() };
    host.split('/').filter(|text| !text.is_empty()).map(part).collect()
}

fn read(path: &Path, ttl: Duration) -> Option<(Vec<u8>, Duration)> {
    let file = fs::File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let age = match metadata.modified().ok()?.elapsed() {
        Ok(age) => age,
        Err(ahead) if ahead.duration() <= CLOCKS_DIFFER => Duration::ZERO,
        Err(_) => return None,
    };
    if age >= ttl || metadata.len() > FILE_LIMIT {
        return None;
    }
    let mut body = Vec::new();
    file.take(FILE_LIMIT).read_to_end(&mut body).ok()?;
    Some((body, age))
}

fn write(path: &Path, body: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    make(directory)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // A process number is not unique: two containers that share the directory may both be process 1.
    replace(path, &directory.join(format!("{name}.{:016x}", fastrand::u64(..))), body)
}

/// `beside` is a name that no file has.
fn replace(path: &Path, beside: &Path, body: &[u8]) -> io::Result<()> {
    let mut file = create(beside)?;
    let written = file.write_all(body).and_then(|()| fs::rename(beside, path));
    if written.is_err() {
        // Only the first error counts.
        drop(fs::remove_file(beside));
    }
    written
}

#[cfg(unix)]
fn make(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

#[cfg(not(unix))]
fn make(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)
}

#[cfg(unix)]
fn create(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn create(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests;
