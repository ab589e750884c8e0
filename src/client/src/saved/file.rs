//! The file of a saved cache: a database of redb, which is whole after a crash at any moment. All functions block.
//!
//! 1. Objects, dictionaries, version and origin change in one transaction.
//! 2. A dictionary stays in the file as long as an object there needs it.
//! 3. A file of another program, cluster or format is not read, and not overwritten.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
#[cfg(unix)]
use std::fs::Permissions;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use redb::backends::FileBackend;
use redb::{
    Database, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _, TableDefinition,
};

use crate::representation::SavedBody;

const FORMAT: &str = "1";
/// redb's own default is a gibibyte.
const CACHE_BYTES: usize = 16 << 20;

const ABOUT: TableDefinition<&str, &str> = TableDefinition::new("about");
const DICTIONARIES: TableDefinition<u32, &[u8]> = TableDefinition::new("dictionaries");
const OBJECTS: TableDefinition<&str, &[u8]> = TableDefinition::new("objects");
const UNDECODABLE: TableDefinition<&str, (&str, &str)> = TableDefinition::new("undecodable");

/// Separates namespace and name; no name has it.
const BETWEEN: char = '\0';

#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error(transparent)]
    Database(#[from] redb::Error),
    #[error("it cannot be opened: {0}")]
    Open(#[from] io::Error),
    #[error("it is of another cluster, whose namespace kube-system has the uid {0}")]
    OtherCluster(String),
    #[error("it is no saved cache, or one of another version of actix-informer")]
    Foreign,
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    #[error("the informer has other sources, whose objects are not of this file")]
    OtherSources,
    #[error("a text could not be compressed")]
    Unpacked,
    #[error("its thread panicked, or the runtime has ended")]
    Unfinished,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct About {
    /// The uid of the namespace `kube-system`.
    pub(super) cluster: Arc<str>,
    /// Resource, selectors and cut fields.
    pub(super) what: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) version: String,
    /// Seconds since 1970.
    pub(super) saved_at: u64,
}

pub(super) struct Head<'a> {
    pub(super) version: &'a str,
    pub(super) saved_at: u64,
    /// The dictionary of new texts.
    pub(super) newest: Option<u32>,
    /// `None` if it is as before.
    pub(super) set_aside: Option<&'a [SetAside]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) uid: String,
    pub(super) wire_bytes: u32,
    pub(super) body: Vec<u8>,
}

/// An object whose newest version did not decode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetAside {
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) error: String,
}

pub(super) enum Change {
    Put(Entry, SavedBody),
    Delete { namespace: Option<String>, name: String },
}

pub(super) struct File {
    database: Database,
    about: About,
}

type Contents = BTreeMap<u32, Vec<u8>>;
type IsThere<'a> = &'a dyn Fn(Option<&str>, &str) -> bool;
type Result<T> = std::result::Result<T, FileError>;

macro_rules! into_error {
    ($($error:ident),*) => {$(
        impl From<redb::$error> for FileError {
            fn from(error: redb::$error) -> Self {
                Self::Database(error.into())
            }
        }
    )*};
}

into_error!(CommitError, DatabaseError, StorageError, TableError, TransactionError);

impl File {
    /// Opens or makes the file. Refuses what is not a saved cache of this cluster.
    pub(super) fn open(path: &Path, about: About) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let database = Database::builder()
            .set_cache_size(CACHE_BYTES)
            // redb otherwise trusts a damaged page: it serves what is there, or panics.
            .set_check_integrity_on_open(true)
            .create_with_backend(FileBackend::new(file.try_clone()?)?)?;
        let opened = Self { database, about };
        opened.found()?;
        #[cfg(unix)]
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        Ok(opened)
    }

    pub(super) fn about(&self) -> &About {
        &self.about
    }

    /// `None` for a file without content, or with other objects of this cluster: the first write removes them.
    pub(super) fn found(&self) -> Result<Option<Found>> {
        let reading = self.database.begin_read()?;
        if reading.list_tables()?.next().is_none() {
            return Ok(None);
        }
        let about = match reading.open_table(ABOUT) {
            Ok(about) => about,
            Err(redb::TableError::TableDoesNotExist(_)) => return Err(FileError::Foreign),
            Err(error) => return Err(error.into()),
        };
        let text =
            |name| -> Result<Option<String>> { Ok(about.get(name)?.map(|value| value.value().to_owned())) };
        if text("format")?.as_deref() != Some(FORMAT) {
            return Err(FileError::Foreign);
        }
        match text("cluster")? {
            Some(cluster) if *cluster != *self.about.cluster => return Err(FileError::OtherCluster(cluster)),
            _ => {}
        }
        if text("what")?.as_deref() != Some(&*self.about.what) {
            return Ok(None);
        }
        let (version, saved_at) = (text("version")?, text("saved_at")?);
        let saved_at = saved_at.and_then(|seconds| seconds.parse().ok());
        let (Some(version), Some(saved_at)) = (version, saved_at) else { return Ok(None) };
        Ok(Some(Found { version, saved_at }))
    }

    /// By number, and the number of the newest.
    pub(super) fn dictionaries(&self) -> Result<(Contents, Option<u32>)> {
        let reading = self.database.begin_read()?;
        let mut found = BTreeMap::new();
        for entry in reading.open_table(DICTIONARIES)?.iter()? {
            let (number, content) = entry?;
            found.insert(number.value(), content.value().to_vec());
        }
        let newest =
            reading.open_table(ABOUT)?.get("dictionary")?.and_then(|number| number.value().parse().ok());
        Ok((found, newest))
    }

    pub(super) fn undecodable(&self) -> Result<Vec<SetAside>> {
        let reading = self.database.begin_read()?;
        let mut found = Vec::new();
        for entry in reading.open_table(UNDECODABLE)?.iter()? {
            let (key, value) = entry?;
            let (namespace, name) = parts_of(key.value());
            let (version, error) = value.value();
            found.push(SetAside { namespace, name, version: version.to_owned(), error: error.to_owned() });
        }
        Ok(found)
    }

    /// In the order of the keys, until `next` returns false.
    pub(super) fn read(&self, mut next: impl FnMut(Entry) -> bool) -> Result<()> {
        let reading = self.database.begin_read()?;
        for entry in reading.open_table(OBJECTS)?.iter()? {
            let (key, value) = entry?;
            let entry =
                Entry::read(key.value(), value.value()).ok_or(FileError::Damaged("an object has no head"))?;
            if !next(entry) {
                break;
            }
        }
        Ok(())
    }

    /// Returns when everything up to this version is in the file. With `is_there`, the changes are all objects for which it
    /// returns true; the others are removed.
    pub(super) fn write(
        &self,
        head: &Head<'_>,
        changes: impl Iterator<Item = Result<Change>>,
        is_there: Option<IsThere<'_>>,
    ) -> Result<()> {
        let mut writing = self.database.begin_write()?;
        // Without it, redb checks the whole file after a crash, which takes long.
        writing.set_quick_repair(true);
        {
            let mut about = writing.open_table(ABOUT)?;
            let (cluster, what) = (&*self.about.cluster, &*self.about.what);
            let texts = [("format", FORMAT), ("cluster", cluster), ("what", what), ("version", head.version)];
            for (name, text) in texts {
                about.insert(name, text)?;
            }
            about.insert("saved_at", &*head.saved_at.to_string())?;
            about.insert("dictionary", &*head.newest.unwrap_or_default().to_string())?;
            let (mut objects, mut dictionaries) =
                (writing.open_table(OBJECTS)?, writing.open_table(DICTIONARIES)?);
            let (mut put, mut used) = (0_u64, BTreeSet::from_iter(head.newest));
            for change in changes {
                match change? {
                    Change::Put(entry, body) => {
                        put += 1;
                        put_object(&mut objects, &entry)?;
                        if let Some((number, content)) = body.dictionary()
                            && used.insert(number) | dictionaries.get(number)?.is_none()
                        {
                            dictionaries.insert(number, content)?;
                        }
                    }
                    Change::Delete { namespace, name } => {
                        objects.remove(&*key_of(namespace.as_deref(), &name))?;
                    }
                }
            }
            if let Some(is_there) = is_there {
                if objects.len()? != put {
                    objects.retain(|key, _| {
                        let (namespace, name) = parts_of(key);
                        is_there(namespace.as_deref(), &name)
                    })?;
                }
                dictionaries.retain(|number, _| used.contains(&number))?;
            }
            let mut set_aside = writing.open_table(UNDECODABLE)?;
            if let Some(all) = head.set_aside {
                set_aside.retain(|_, _| false)?;
                for one in all {
                    let key = key_of(one.namespace.as_deref(), &one.name);
                    set_aside.insert(&*key, (&*one.version, &*one.error))?;
                }
            }
        }
        writing.commit()?;
        Ok(())
    }
}

/// Writes nothing for an equal value.
fn put_object(objects: &mut redb::Table<'_, &'static str, &'static [u8]>, entry: &Entry) -> Result<()> {
    let (key, value) = (key_of(entry.namespace.as_deref(), &entry.name), entry.value());
    let is_there = objects.get(&*key)?.is_some_and(|there| there.value() == value);
    if !is_there {
        objects.insert(&*key, &*value)?;
    }
    Ok(())
}

fn key_of(namespace: Option<&str>, name: &str) -> String {
    [namespace.unwrap_or_default(), name].join(&BETWEEN.to_string())
}

fn parts_of(key: &str) -> (Option<String>, String) {
    let (namespace, name) = key.split_once(BETWEEN).unwrap_or_default();
    (Some(namespace).filter(|namespace| !namespace.is_empty()).map(str::to_owned), name.to_owned())
}

impl Entry {
    /// Version and uid, each with a zero behind it, the length on the wire, the body.
    fn value(&self) -> Vec<u8> {
        [
            self.version.as_bytes(),
            b"\0",
            self.uid.as_bytes(),
            b"\0",
            &self.wire_bytes.to_le_bytes(),
            &self.body,
        ]
        .concat()
    }

    fn read(key: &str, value: &[u8]) -> Option<Self> {
        let (namespace, name) = parts_of(key);
        let mut parts = value.splitn(3, |byte| *byte == 0);
        let mut text = || Some(std::str::from_utf8(parts.next()?).ok()?.to_owned());
        let (version, uid) = (text()?, text()?);
        let (wire_bytes, body) = parts.next()?.split_first_chunk()?;
        let wire_bytes = u32::from_le_bytes(*wire_bytes);
        Some(Self { namespace, name, version, uid, wire_bytes, body: body.to_vec() })
    }
}

#[cfg(test)]
mod tests;
