//! One request's head, as far as the replay server needs it.
//!
//! Answers "what is asked?" It reads no body, nothing that the server answers has one, and of the head only whether
//! metadata are asked for: the server then sends whole objects by that name, as it measures clients and not itself.

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::tcp::ReadHalf;

/// Method, path and query of a request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// Whether metadata alone are asked for.
    pub(super) is_for_metadata: bool,
    /// Whether protobuf is asked for.
    pub(super) is_for_protobuf: bool,
    query: Vec<(String, String)>,
}

impl Request {
    /// Reads the next one; `None` when the client has closed the connection or speaks something else.
    pub(super) async fn read(reader: &mut BufReader<ReadHalf<'_>>) -> std::io::Result<Option<Self>> {
        let mut first = String::new();
        reader.read_line(&mut first).await?;
        let (mut is_for_metadata, mut is_for_protobuf) = (false, false);
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line).await? {
                0 => return Ok(None),
                _ if line.trim_end().is_empty() => break,
                _ => {
                    is_for_metadata |= line.contains("PartialObjectMetadata");
                    is_for_protobuf |= line.contains("application/vnd.kubernetes.protobuf");
                }
            }
        }
        let mut words = first.split_whitespace();
        let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Ok(Some(Self {
            method: method.to_owned(),
            path: path.to_owned(),
            is_for_metadata,
            is_for_protobuf,
            query: pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        }))
    }

    /// A value of the query, as it stands there.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// A number in the query.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.value(key).and_then(|value| value.parse().ok())
    }
}
