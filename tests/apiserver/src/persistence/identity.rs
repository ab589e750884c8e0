//! What stays the same over restarts of a server: its keys, its seed, its port.
//!
//! Answers: are older tokens, certificates and kubeconfigs still valid? What is created at the first start with a
//! directory is kept there, and used at each later start.
//! 1. The file is replaced as a whole; only its owner may read it.
//! 2. A file that cannot be read is an error: new keys would silently invalidate all credentials.
use std::io;

use serde::{Deserialize, Serialize};

use super::disk::Disk;

const NAME: &str = "identity.json";
const NEW_NAME: &str = "identity.new";

/// Everything of a server that is not in its store. What is missing has not been needed yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Identity {
    /// The seed of uids and generated names.
    pub(crate) seed: Option<u64>,
    /// Where it listened, so that a kubeconfig finds it again.
    pub(crate) port: Option<u16>,
    pub(crate) authority: Option<Pems>,
    /// Signs the tokens of service accounts: PKCS #8, as base64.
    pub(crate) token_key: Option<String>,
    /// The administrator's token, if one had to be created.
    pub(crate) admin_token: Option<String>,
}

/// A certificate and its key, as PEM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pems {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Identity {
    /// What is kept; a new server has nothing.
    ///
    /// # Errors
    /// If there is something that cannot be read.
    pub(crate) fn read(disk: &dyn Disk) -> io::Result<Self> {
        match disk.read(NAME) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                io::Error::new(io::ErrorKind::InvalidData, format!("{NAME} is damaged: {error}"))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Keeps it.
    ///
    /// # Errors Those of the disk; what was kept before is still kept.
    pub(crate) fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        let bytes = serde_json::to_vec_pretty(self).map_err(io::Error::other)?;
        let mut file = disk.create(NEW_NAME)?;
        file.append(&bytes)?;
        file.sync()?;
        disk.rename(NEW_NAME, NAME)
    }
}
