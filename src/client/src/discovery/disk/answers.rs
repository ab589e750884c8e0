//! The file of one answer in kubectl's HTTP cache. Its name is the SHA-256 of the URL. It contains the
//! SHA-256 of the rest, then an HTTP response; a wrong sum makes it a miss (client-go's `sumDiskCache`).
//!
//! A written file depends on the Accept header, which is kubectl's: kubectl uses the file after the server
//! has confirmed its ETag.

use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderMap, Response, header};
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

use crate::discovery::documents::{self, Root};
use crate::discovery::fetch::ACCEPT;
use crate::discovery::memory::Tagged;

/// client-go adds this to each discovery request.
const QUERY: &str = "?timeout=32s";
const CONTENT_OF_KUBECTL: &str = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

pub(super) fn file_name(url: &str, path: &str) -> String {
    let sum = digest(&SHA256, format!("{url}{path}{QUERY}").as_bytes());
    sum.as_ref().iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// `None` if kubectl does not know the form.
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

/// `None` unless the file is whole and has an aggregated document with an ETag.
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

/// Go writes an answer of unknown length in chunks.
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
