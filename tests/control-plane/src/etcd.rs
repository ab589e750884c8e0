//! Requests to etcd itself: its health, a compaction, and a copy of its data.
//!
//! Question: how does a test make old revisions disappear, or come back? It knows etcd's HTTP gateway and its
//! directory, and nothing of Kubernetes.
//! 1. A compaction is done when the call returns, on disk too.
//! 2. A backup is a value: it may be restored any number of times, until it is dropped.
//!
//! Read next: `control_plane.rs`.

use std::{fs, io, path::Path};

use tempfile::TempDir;

use crate::{
    Error,
    http::{self, Request},
};

/// A copy of etcd's data at one moment; its directory is removed when it is dropped.
#[derive(Debug)]
pub struct EtcdBackup {
    directory: TempDir,
}

impl EtcdBackup {
    /// Copies `data`, which no process may write to meanwhile.
    pub(crate) fn take(data: &Path) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("etcd-backup-").tempdir()?;
        copy(data, directory.path())?;
        Ok(Self { directory })
    }

    /// Replaces `data` by the copy.
    pub(crate) fn put_back(&self, data: &Path) -> io::Result<()> {
        fs::remove_dir_all(data)?;
        create_private(data)?;
        copy(self.directory.path(), data)
    }
}

/// `Ok` when etcd serves; else its answer.
pub(crate) fn health(port: u16) -> Result<(), String> {
    let request = Request { path: "/health", ..Request::default() };
    match http::plain(port, request) {
        Ok(answer) if answer.status == 200 => Ok(()),
        Ok(answer) => Err(format!("{} {}", answer.status, answer.body)),
        Err(error) => Err(error.to_string()),
    }
}

/// Compacts every revision before `revision`.
pub(crate) fn compact(port: u16, revision: u64) -> Result<(), Error> {
    let body = format!(r#"{{"revision":"{revision}","physical":true}}"#);
    let request = Request { path: "/v3/kv/compaction", token: None, body: Some(&body) };
    let answer = http::plain(port, request).map_err(|source| Error::Io { action: "reach etcd", source })?;
    if answer.status == 200 {
        return Ok(());
    }
    Err(Error::Etcd { status: answer.status, body: answer.body })
}

/// etcd wants a directory that only its user can enter.
pub(crate) fn create_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(directory)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            create_private(&target)?;
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
