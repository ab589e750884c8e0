//! The token of each request.
//!
//! Answers "which Authorization header now?" A fixed token never changes; a token file is read again when what was
//! read is a minute old. It runs no plugins. Invariants:
//! 1. Callers who need a token at the same time cause one read.
//! 2. A file that cannot be read, or is empty, leaves the old token in use; the next try comes 10 s later.
//! 3. Tokens are shown by no Debug, error or log.
//!
//! Read next: `config.rs`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::config::{Config, Token};
use super::error::{Error, TransportError};

/// How old a read token may be: service account tokens are renewed long before they expire.
const FRESH: Duration = Duration::from_secs(60);
/// When to try again after a failed read.
const RETRY: Duration = Duration::from_secs(10);

/// Where the Authorization header comes from.
#[derive(Debug)]
pub(crate) enum Credentials {
    None,
    Fixed(HeaderValue),
    File(TokenFile),
}

/// A token that is read again.
#[derive(Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
    read: Mutex<Option<Read>>,
}

#[derive(Debug, Clone)]
struct Read {
    header: HeaderValue,
    due: Instant,
}

impl Credentials {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        Ok(match &config.token {
            None => Self::None,
            Some(Token::Fixed(token)) => Self::Fixed(bearer(token).ok_or_else(|| Error::Unusable {
                what: "the token",
                reason: "it has characters that no header can carry".to_owned(),
            })?),
            Some(Token::File(path)) => Self::File(TokenFile { path: path.clone(), read: Mutex::new(None) }),
        })
    }

    /// The header for a request that is sent now. Waits for a file at most.
    pub(crate) async fn header(&self) -> Result<Option<HeaderValue>, TransportError> {
        match self {
            Self::None => Ok(None),
            Self::Fixed(header) => Ok(Some(header.clone())),
            Self::File(file) => match file.header().await {
                Ok(header) => Ok(Some(header)),
                Err(error) => Err(TransportError::Credentials(Arc::new(error))),
            },
        }
    }
}

impl TokenFile {
    async fn header(&self) -> Result<HeaderValue, Error> {
        let mut known = self.read.lock().await;
        if let Some(read) = known.as_ref().filter(|read| Instant::now() < read.due) {
            return Ok(read.header.clone());
        }
        let path = self.path.clone();
        let text =
            tokio::task::spawn_blocking(move || read_token(&path)).await.unwrap_or_else(|_| Err(gone()));
        let (header, lasts) = match (text, known.take()) {
            (Ok(header), _) => (header, FRESH),
            (Err(error), Some(old)) => {
                tracing::warn!(path = %self.path.display(), %error, "token file unreadable, the old token stays");
                (old.header, RETRY)
            }
            (Err(source), None) => {
                return Err(Error::File { what: "token file", path: self.path.clone(), source });
            }
        };
        *known = Some(Read { header: header.clone(), due: Instant::now() + lasts });
        Ok(header)
    }
}

fn gone() -> io::Error {
    io::Error::other("the runtime is shutting down")
}

fn read_token(path: &Path) -> io::Result<HeaderValue> {
    let text = SecretString::from(std::fs::read_to_string(path)?);
    bearer(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it holds no token"))
}

fn bearer(token: &SecretString) -> Option<HeaderValue> {
    let token = token.expose_secret().trim();
    let mut header = HeaderValue::from_str(&format!("Bearer {token}")).ok().filter(|_| !token.is_empty())?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    fn file(path: &Path) -> TokenFile {
        TokenFile { path: path.to_owned(), read: Mutex::new(None) }
    }

    async fn token(file: &TokenFile) -> String {
        file.header().await.unwrap().to_str().unwrap().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn rest_18_a_rotated_token_is_used_after_a_minute_and_a_read_error_keeps_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, "one\n").unwrap();
        let file = file(&path);
        assert_eq!(token(&file).await, "Bearer one");
        std::fs::write(&path, "two").unwrap();
        advance(Duration::from_secs(59)).await;
        assert_eq!(token(&file).await, "Bearer one");
        advance(Duration::from_secs(1)).await;
        assert_eq!(token(&file).await, "Bearer two");
        std::fs::remove_file(&path).unwrap();
        advance(Duration::from_secs(61)).await;
        assert_eq!(token(&file).await, "Bearer two");
        std::fs::write(&path, "three").unwrap();
        advance(RETRY).await;
        assert_eq!(token(&file).await, "Bearer three");
    }

    #[tokio::test]
    async fn a_file_that_was_never_readable_is_a_typed_error_naming_it() {
        let error = file(Path::new("missing-token")).header().await.unwrap_err();
        assert!(
            matches!(&error, Error::File { what: "token file", .. })
                && error.to_string().contains("missing-token")
        );
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn rest_19_a_hundred_callers_cause_one_read() {
        // A FIFO can be read once for each time it is written: a second read would wait for ever.
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let file = Arc::new(file(&path));
        let callers = futures_util::future::join_all((0..100).map(|_| token(&file)));
        let writing = tokio::task::spawn_blocking(move || std::fs::write(path, "one").unwrap());
        let (tokens, written) = tokio::join!(callers, writing);
        written.unwrap();
        assert!(tokens.iter().all(|token| token == "Bearer one"));
    }

    #[test]
    fn rest_17_no_debug_shows_a_token() {
        let header = bearer(&SecretString::from("s3cret")).unwrap();
        let file =
            TokenFile { path: "p".into(), read: Mutex::new(Some(Read { header, due: Instant::now() })) };
        assert!(!format!("{:?}", Credentials::File(file)).contains("s3cret"));
    }
}
