//! A list as bytes: head, items, tail, in pieces small enough to be sent while the next is made.
//!
//! Answers: what does this page look like on the wire? The page itself comes from the core.
//! 1. Items are copied from their stored encoding.
//! 2. A small list is one body with a length; a big one is streamed, as gzip if the client takes it.
//! 3. Fault switches can slow a list down, refuse or lengthen it, or keep its last byte back until it is released.
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_ENCODING, VARY};
use bytes::{BufMut, Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, json};

use super::respond;
use crate::cluster::kind::{Kind, ResourceId};
use crate::cluster::list::Page;
use crate::cluster::printer::is_printed;
use crate::cluster::representation::Form;
use crate::cluster::status::ApiError;
use crate::fault_state::{Dial, Switch};
use crate::world::{Inner, World};

/// From this size on an answer is compressed, if the client takes it.
pub(crate) const COMPRESS_FROM: usize = 128 * 1024;
const PIECE: usize = 64 * 1024;
/// A slowed list sends one piece in this time.
const SLOW_STEP: Duration = Duration::from_millis(50);

/// A page on its way out.
#[derive(Debug)]
pub(crate) struct ListBytes {
    page: Page,
    kind: Arc<Kind>,
    form: Form,
    prefix: String,
    head: Option<String>,
    tail: Option<&'static str>,
    /// Blanks before the tail, as a fault switch asks.
    padding: usize,
    resource: ResourceId,
    next: usize,
}

impl ListBytes {
    pub(crate) fn new(kind: &Arc<Kind>, form: Form, page: Page) -> Self {
        let mut metadata = Map::new();
        // What is asked afresh each time has no version.
        if !kind.resource.is("", "componentstatuses") {
            metadata.insert("resourceVersion".into(), json!(page.revision.to_string()));
        }
        if let Some(token) = &page.continue_token {
            metadata.insert("continue".into(), json!(token));
        } else if kind.custom && !matches!(form, Form::Table(_)) {
            metadata.insert("continue".into(), json!(""));
        }
        if let Some(remaining) = page.remaining {
            metadata.insert("remainingItemCount".into(), json!(remaining));
        }
        let mut head = form.list_head(kind, &json!(metadata));
        let no_rows = page.objects.is_empty() && matches!(form, Form::Table(_)) && !is_printed(kind);
        if no_rows {
            head.truncate(head.len() - 1);
        }
        let tail = if no_rows { "null}\n" } else { "]}\n" };
        let prefix = form.item_prefix(kind);
        let resource = kind.resource.clone();
        let kind = Arc::clone(kind);
        Self { page, kind, form, prefix, head: Some(head), tail: Some(tail), padding: 0, resource, next: 0 }
    }

    fn len(&self) -> usize {
        let items: usize = self
            .page
            .objects
            .iter()
            .map(|object| self.form.item_len(&self.kind, &self.prefix, object) + 1)
            .sum();
        items + self.head.as_ref().map_or(0, String::len) + self.padding + self.tail.map_or(0, str::len)
    }

    /// The next piece; none after the last.
    fn piece(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::with_capacity(PIECE + 16 * 1024);
        if let Some(head) = self.head.take() {
            out.put_slice(head.as_bytes());
        }
        while out.len() < PIECE && self.next < self.page.objects.len() {
            if self.next > 0 {
                out.put_u8(b',');
            }
            self.form.put_item(&mut out, &self.kind, &self.prefix, &self.page.objects[self.next]);
            self.next += 1;
        }
        if self.next == self.page.objects.len()
            && let Some(tail) = self.tail.take()
        {
            out.put_bytes(b' ', self.padding);
            out.put_slice(tail.as_bytes());
        }
        (!out.is_empty()).then(|| out.freeze())
    }

    fn whole(mut self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.len());
        while let Some(piece) = self.piece() {
            out.put_slice(&piece);
        }
        out.freeze()
    }
}

/// Answers a list.
///
/// # Errors
/// 500 if a fault switch says that it is too big.
pub(crate) fn answer(world: &Arc<World>, mut list: ListBytes, gzip: bool) -> Result<HttpResponse, ApiError> {
    let size = |inner: &Inner, dial| inner.faults.size(dial, &list.resource);
    let (rate, held, most, padding) = world.with(|inner| {
        let held = inner.faults.holds(Switch::HoldListTails, &list.resource);
        (size(inner, Dial::ListRate), held, size(inner, Dial::ListLimit), size(inner, Dial::ListPadding))
    });
    list.padding = padding.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let len = list.len();
    if let Some(most) = most.filter(|most| len as u64 > *most) {
        let message = format!(
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({len} vs. {most})"
        );
        return Err(ApiError::untyped(message));
    }
    Ok(if rate.is_some() || held {
        let resource = list.resource.clone();
        let outgoing = Outgoing { world: Arc::clone(world), resource, rest: list.whole(), rate, at: 0 };
        respond::head(200).streaming(futures_util::stream::unfold(outgoing, throttled))
    } else {
        faithful(list, len, gzip)
    })
}

fn faithful(list: ListBytes, len: usize, gzip: bool) -> HttpResponse {
    if len <= COMPRESS_FROM {
        return respond::object(200, list.whole());
    }
    let mut head = respond::head(200);
    if !gzip {
        let pieces = futures_util::stream::unfold(list, |mut list| async {
            tokio::task::yield_now().await;
            list.piece().map(|piece| (Ok::<_, std::io::Error>(piece), list))
        });
        return head.streaming(pieces);
    }
    head.insert_header((CONTENT_ENCODING, "gzip"));
    head.insert_header((VARY, "Accept-Encoding"));
    let encoder = GzEncoder::new(Vec::with_capacity(PIECE), Compression::fast());
    head.streaming(futures_util::stream::unfold((list, Some(encoder)), |state| async {
        tokio::task::yield_now().await;
        compressed(state)
    }))
}

type Compressing = (ListBytes, Option<GzEncoder<Vec<u8>>>);

fn compressed((mut list, encoder): Compressing) -> Option<(std::io::Result<Bytes>, Compressing)> {
    let mut encoder = encoder?;
    loop {
        let Some(piece) = list.piece() else {
            return Some((encoder.finish().map(Bytes::from), (list, None)));
        };
        if let Err(error) = encoder.write_all(&piece) {
            return Some((Err(error), (list, None)));
        }
        if !encoder.get_ref().is_empty() {
            let ready = std::mem::take(encoder.get_mut());
            return Some((Ok(Bytes::from(ready)), (list, Some(encoder))));
        }
    }
}

/// A list under a fault switch.
#[derive(Debug)]
struct Outgoing {
    world: Arc<World>,
    resource: ResourceId,
    rest: Bytes,
    rate: Option<u64>,
    at: u64,
}

async fn throttled(mut list: Outgoing) -> Option<(std::io::Result<Bytes>, Outgoing)> {
    if list.rest.is_empty() {
        return None;
    }
    if list.rest.len() == 1 {
        list.world.until(|faults| !faults.holds(Switch::HoldListTails, &list.resource)).await;
    }
    let mut most = list.rest.len();
    if let Some(rate) = list.rate {
        if list.at > 0 {
            tokio::time::sleep(SLOW_STEP).await;
        }
        most = most.min((rate / 20).max(1) as usize);
        list.at += most as u64;
    }
    if most == list.rest.len() && most > 1 {
        most -= 1;
    }
    let piece = list.rest.split_to(most);
    Some((Ok(piece), list))
}
