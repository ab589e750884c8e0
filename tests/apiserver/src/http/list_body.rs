//! A list as bytes: head, items, tail, in pieces that are sent while the next one is made.
//!
//! Answers: which bytes is this page on the wire? The page itself comes from the core.
//! 1. Items are copied from their stored encoding, messages from those that are kept with the objects.
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
use serde_json::{Value, json};

use super::respond::{self, COMPRESS_FROM};
use crate::cluster::ResourceId;
use crate::cluster::encoding::{Encoding, Representation, yaml_of};
use crate::cluster::kind::Kind;
use crate::cluster::list::Page;
use crate::cluster::object::Object;
use crate::cluster::printer::is_printed;
use crate::cluster::representation::Form;
use crate::cluster::status::ApiError;
use crate::fault_state::{Dial, Switch};
use crate::protobuf::answer::{self, Type};
use crate::world::{Inner, World};

const PIECE: usize = 64 * 1024;
/// A slowed list sends one piece in this time.
const SLOW_STEP: Duration = Duration::from_millis(50);

/// A page that is being sent.
#[derive(Debug)]
pub(crate) struct ListBytes {
    representation: Representation,
    head: Option<Bytes>,
    items: Items,
    next: usize,
    tail: Option<Bytes>,
    resource: ResourceId,
}

/// What is written between head and tail.
#[derive(Debug)]
enum Items {
    /// Texts of JSON, made when they are sent; the prefix stands in each.
    Texts { objects: Vec<Arc<Object>>, kind: Arc<Kind>, prefix: String },
    /// Messages: the head contains their length, so they exist before it is written.
    Messages(Vec<Bytes>),
}

impl ListBytes {
    pub(crate) fn new(kind: &Arc<Kind>, representation: Representation, page: Page) -> Self {
        let metadata = metadata(kind, representation.form, &page);
        match representation.encoding {
            Encoding::Json => Self::json(kind, representation, &metadata, page.objects),
            Encoding::Yaml => {
                let text = yaml_of(&Self::json(kind, representation, &metadata, page.objects).whole());
                let items = Items::Messages(Vec::new());
                Self {
                    representation,
                    head: Some(text),
                    items,
                    next: 0,
                    tail: None,
                    resource: kind.resource.clone(),
                }
            }
            Encoding::Protobuf => Self::protobuf(kind, representation, &metadata, &page.objects),
        }
    }

    fn json(
        kind: &Arc<Kind>,
        representation: Representation,
        metadata: &Value,
        objects: Vec<Arc<Object>>,
    ) -> Self {
        let mut head = representation.form.list_head(kind, metadata);
        let no_rows =
            objects.is_empty() && matches!(representation.form, Form::Table(_)) && !is_printed(kind);
        if no_rows {
            head.truncate(head.len() - 1);
        }
        let tail = Some(Bytes::from_static(if no_rows { b"null}\n" } else { b"]}\n" }));
        let prefix = representation.form.item_prefix(kind);
        let (head, items) = (Some(head.into()), Items::Texts { objects, kind: Arc::clone(kind), prefix });
        Self { representation, head, items, next: 0, tail, resource: kind.resource.clone() }
    }

    fn protobuf(
        kind: &Arc<Kind>,
        representation: Representation,
        metadata: &Value,
        objects: &[Arc<Object>],
    ) -> Self {
        let messages: Vec<Bytes> =
            objects.iter().map(|object| representation.message(kind, object)).collect();
        let len = messages.iter().map(|message| answer::item_len(message.len())).sum();
        let head = match representation.form {
            Form::Metadata => answer::list_head(Type::METADATA_LIST, metadata, len),
            _ => {
                let representation = Type { api_version: &kind.api_version(), kind: &kind.list_kind };
                answer::list_head(representation, metadata, len)
            }
        };
        let (head, tail) = (Some(head.freeze()), Some(Bytes::from_static(answer::TAIL)));
        let (items, resource) = (Items::Messages(messages), kind.resource.clone());
        Self { representation, head, items, next: 0, tail, resource }
    }

    /// Makes the list longer by about this many bytes without meaning.
    fn pad(&mut self, bytes: usize) {
        match self.representation.encoding {
            Encoding::Json => {
                let tail = self.tail.take().unwrap_or_default();
                self.tail = Some([vec![b' '; bytes].as_slice(), &tail].concat().into());
            }
            Encoding::Yaml => {
                let comment = [b"#".as_slice(), &vec![b' '; bytes.saturating_sub(2)], b"\n"].concat();
                self.tail = Some(comment.into());
            }
            Encoding::Protobuf => {
                self.tail = Some([answer::TAIL, &answer::padding(bytes)].concat().into());
            }
        }
    }

    fn len(&self) -> usize {
        let items: usize = match &self.items {
            Items::Texts { objects, kind, prefix } => {
                objects.iter().map(|object| self.representation.form.item_len(kind, prefix, object) + 1).sum()
            }
            Items::Messages(messages) => messages.iter().map(|message| answer::item_len(message.len())).sum(),
        };
        let around = |part: &Option<Bytes>| part.as_ref().map_or(0, Bytes::len);
        items + around(&self.head) + around(&self.tail)
    }

    fn count(&self) -> usize {
        match &self.items {
            Items::Texts { objects, .. } => objects.len(),
            Items::Messages(messages) => messages.len(),
        }
    }

    /// The next piece; none after the last.
    fn piece(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::with_capacity(PIECE + 16 * 1024);
        if let Some(head) = self.head.take() {
            out.put_slice(&head);
        }
        let count = self.count();
        while out.len() < PIECE && self.next < count {
            match &self.items {
                Items::Texts { objects, kind, prefix } => {
                    if self.next > 0 {
                        out.put_u8(b',');
                    }
                    self.representation.form.put_item(&mut out, kind, prefix, &objects[self.next]);
                }
                Items::Messages(messages) => answer::put_item(&mut out, &messages[self.next]),
            }
            self.next += 1;
        }
        if self.next == count
            && let Some(tail) = self.tail.take()
        {
            out.put_slice(&tail);
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

fn metadata(kind: &Kind, form: Form, page: &Page) -> Value {
    let mut metadata = json!({});
    // A value that is computed for each request has no version.
    if !kind.resource.is("", "componentstatuses") {
        metadata["resourceVersion"] = json!(page.revision.to_string());
    }
    if let Some(token) = &page.continue_token {
        metadata["continue"] = json!(token);
    } else if kind.custom && !matches!(form, Form::Table(_)) {
        metadata["continue"] = json!("");
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = json!(remaining);
    }
    metadata
}

/// Answers a list.
///
/// # Errors
/// 500 if a fault switch says that it is too big.
pub(crate) fn answer(world: &Arc<World>, mut list: ListBytes, gzip: bool) -> Result<HttpResponse, ApiError> {
    let size = |inner: &Inner, dial| inner.faults.size(dial, &list.resource);
    let (rate, held, most, padding) = world.with(|inner| {
        let held = inner.faults.holds(Switch::HoldListTails, &list.resource);
        let (rate, padding) = (size(inner, Dial::ListRate), size(inner, Dial::ListPadding));
        if held {
            inner.faults.count_switch(Switch::HoldListTails, &list.resource, 1);
        }
        for (dial, _) in
            [(Dial::ListRate, rate), (Dial::ListPadding, padding)].iter().filter(|dial| dial.1.is_some())
        {
            inner.faults.count_setting(*dial, &list.resource);
        }
        (rate, held, size(inner, Dial::ListLimit), padding)
    });
    if let Some(bytes) = padding {
        list.pad(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
    let len = list.len();
    if let Some(most) = most.filter(|most| len as u64 > *most) {
        world.with(|inner| inner.faults.count_setting(Dial::ListLimit, &list.resource));
        let message = format!(
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({len} vs. {most})"
        );
        return Err(ApiError::untyped(message));
    }
    Ok(if rate.is_some() || held {
        let resource = list.resource.clone();
        let mut head = respond::head_in(200, list.representation.encoding);
        let outgoing = Outgoing { world: Arc::clone(world), resource, rest: list.whole(), rate, at: 0 };
        head.streaming(futures_util::stream::unfold(outgoing, throttled))
    } else {
        faithful(list, len, gzip)
    })
}

fn faithful(list: ListBytes, len: usize, gzip: bool) -> HttpResponse {
    if len <= COMPRESS_FROM {
        return respond::body(200, list.representation.encoding, list.whole());
    }
    let mut head = respond::head_in(200, list.representation.encoding);
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
