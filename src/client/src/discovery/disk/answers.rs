//! Answers with their ETags, as the file of one answer in kubectl's HTTP cache.
//!
//! Answers "what did the server answer, by which ETag does it know that, and is the file whole?" The name of a file is
//! the SHA-256 of the URL. The file is the SHA-256 of the rest, and the rest is an HTTP response. Invariants:
//! 1. A file whose sum is wrong is a miss (client-go's `sumDiskCache`).
//! 2. What is written here says that it depends on the Accept header, and names ours, which is kubectl's, too: so kubectl uses
//!    it, after the server has confirmed its ETag.

use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderMap, Response, header};
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

use crate::discovery::documents::{self, Root};
use crate::discovery::fetch::ACCEPT;
use crate::discovery::memory::Tagged;

/// What client-go adds to each request of discovery, so that it is a part of the URL.
const QUERY: &str = "?timeout=32s";
/// The content type of an answer that kubectl understands.
const CONTENT_OF_KUBECTL: &str = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The name of the file of this path of the server at this URL.
pub(super) fn file_name(url: &str, path: &str) -> String {
    let sum = digest(&SHA256, format!("{url}{path}{QUERY}").as_bytes());
    sum.as_ref().iter().fold(String::new(), |mut text, byte| {
        // A String takes every text.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The file of an answer; `None` if it is in a form that kubectl does not know.
pub(super) fn written(answer: &Response<Bytes>) -> Option<Vec<u8>> {
    let text = |name| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let content_type = text(header::CONTENT_TYPE).filter(|content| content.ends_with(CONTENT_OF_KUBECTL))?;
    let etag = text(header::ETAG)?;
    let body = answer.body();
    let mut response = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nCache-Control: public\r\nContent-Type: {content_type}\r\nEtag: {etag}\r\n\
         Vary: Accept\r\nX-Varied-Accept: {ACCEPT}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    response.extend_from_slice(body);
    let mut file = digest(&SHA256, &response).as_ref().to_vec();
    file.append(&mut response);
    Some(file)
}

/// The answer in a file, if the file is whole and the answer is an aggregated document with an ETag.
pub(super) fn read(file: &[u8]) -> Option<Tagged> {
    let (sum, response) = file.split_at_checked(SHA256_OUTPUT_LEN)?;
    if digest(&SHA256, response).as_ref() != sum {
        return None;
    }
    let end = memchr::memmem::find(response, b"\r\n\r\n")?;
    let (head, body) = (std::str::from_utf8(&response[..end]).ok()?, &response[end + 4..]);
    let headers = headers(head)?;
    let etag = headers.get(header::ETAG)?.to_str().ok()?.to_owned();
    let is_chunked = headers.get(header::TRANSFER_ENCODING).is_some_and(|value| value == "chunked");
    let body = if is_chunked { joined(body)? } else { body.to_vec() };
    match documents::root(&body).ok()? {
        Root::Aggregated(groups, failed) => Some(Tagged { etag, groups, failed }),
        Root::Legacy(_) => None,
    }
}

/// The headers of a successful answer.
fn headers(head: &str) -> Option<HeaderMap> {
    let mut lines = head.split("\r\n");
    let (protocol, status) = lines.next()?.split_once(' ')?;
    if !protocol.starts_with("HTTP/") || !status.starts_with("200") {
        return None;
    }
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let name = header::HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        headers.append(name, value.trim().parse().ok()?);
    }
    Some(headers)
}

/// The body of an answer in chunks, as Go writes one whose length it did not know.
fn joined(mut chunks: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::with_capacity(chunks.len());
    loop {
        let end = memchr::memmem::find(chunks, b"\r\n")?;
        let size = std::str::from_utf8(&chunks[..end]).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        let rest = &chunks[end + 2..];
        if size == 0 {
            return Some(body);
        }
        let (chunk, after) = rest.split_at_checked(size)?;
        body.extend_from_slice(chunk);
        chunks = after.strip_prefix(b"\r\n")?;
    }
}
