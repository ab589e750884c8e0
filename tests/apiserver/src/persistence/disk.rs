//! What the log needs of a disk, and the directory that gives it.
//!
//! Answers: between which steps can a crash happen? The log uses files only through `Disk`, so that tests can stop at
//! each of its steps, or let one fail.
//! 1. `create` and `rename` are on the disk when they return; what is appended is after `sync`.
//! 2. One process has a directory at a time: the file `lock` in it is locked until the directory is dropped.
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Files with names, in one place.
pub(crate) trait Disk: Debug + Send + Sync + 'static {
    /// The names of all files.
    fn names(&self) -> io::Result<Vec<String>>;
    /// The content of a file.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;
    /// An empty file of this name, in place of what was there.
    fn create(&self, name: &str) -> io::Result<Box<dyn Append>>;
    /// Renames a file; replaces a file that had the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// The end of a file.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// A file that grows.
pub(crate) trait Append: Debug + Send {
    /// Adds all these bytes.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Waits until the disk has all that was added.
    fn sync(&mut self) -> io::Result<()>;
}

/// A directory of the file system that only this process uses.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Takes a directory, which is made if it is not there.
    ///
    /// # Errors
    /// If another process has it, or it cannot be made.
    pub(crate) fn take(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path.join("lock"))?;
        lock.try_lock().map_err(|error| match error {
            std::fs::TryLockError::Error(error) => error,
            std::fs::TryLockError::WouldBlock => {
                io::Error::new(io::ErrorKind::ResourceBusy, "another server has it")
            }
        })?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    fn sync(&self) -> io::Result<()> {
        // On other systems a directory cannot be opened as a file, and renames are durable anyway.
        if cfg!(unix) { File::open(&self.path)?.sync_all() } else { Ok(()) }
    }
}

impl Disk for Directory {
    fn names(&self) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(&self.path)?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.path.join(name))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Append>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        // The kept objects include Secrets.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(self.path.join(name))?;
        self.sync()?;
        Ok(Box::new(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))?;
        self.sync()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }
}

impl Append for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}
