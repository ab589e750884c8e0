//! GET: one object, a list, a watch.
//!
//! Answers a read from the core; waits only for a version that is slightly ahead.
//! 1. The head of a watch is sent before its first event.
//! 2. For a version ahead of the store it waits up to 3 s, then answers 504.
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header::CONTENT_TYPE;
use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt as _, iter, unfold};

use super::accept::Answer;
use super::ask::Ask;
use super::list_body::{self, ListBytes};
use super::respond;
use super::watch_body::WatchStream;
use crate::cluster::encoding::Encoding;
use crate::cluster::options::{ListOptions, Version, WatchOptions, get_version};
use crate::cluster::status::ApiError;
use crate::cluster::watch::Start;
use crate::fault_state::Switch;

/// A watch that names no timeout lasts this long, up to twice.
const MIN_WATCH_SECONDS: u64 = 1800;

impl Ask {
    fn namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref()
    }

    async fn fresh(&self, version: Version) {
        if let Some(version) = self.world.with(|inner| inner.cluster.awaited(version)) {
            self.world.fresh(version).await;
        }
    }
}

pub(crate) async fn get(ask: &Ask) -> Result<HttpResponse, ApiError> {
    let representation = ask.representation(Answer::Object)?;
    let version = get_version(&ask.query)?;
    ask.fresh(version).await;
    let name = ask.target.name.as_deref().unwrap_or_default();
    let object = ask.world.with(|inner| match inner.cluster.awaited(version) {
        Some(version) => {
            Err(ApiError::too_large_version(version, inner.cluster.revision(), ask.kind.is_cached()))
        }
        None => inner.cluster.get(&ask.kind, ask.namespace().unwrap_or_default(), name),
    })?;
    ask.answer(200, representation, &object)
}

pub(crate) async fn list(ask: Ask) -> Result<HttpResponse, ApiError> {
    let representation = ask.representation(Answer::List)?;
    let options = ListOptions::parse(&ask.query, &ask.kind)?;
    ask.fresh(options.version).await;
    let listing = ask.world.with(|inner| inner.cluster.list(&ask.kind, ask.namespace(), &options))?;
    ask.check_form(representation, Answer::List)?;
    let bytes = ListBytes::new(&ask.kind, representation, listing.page());
    list_body::answer(&ask.world, bytes, ask.gzip)
}

/// An accepted watch: a stream, or the one line with which it ends at once.
#[derive(Debug)]
pub(crate) enum Watched {
    Stream(Box<WatchStream>),
    Line(Bytes),
}

impl Watched {
    pub(crate) fn chunks(self) -> impl Stream<Item = std::io::Result<Bytes>> {
        match self {
            Self::Stream(stream) => unfold(*stream, WatchStream::next).left_stream(),
            Self::Line(line) => iter([Ok(line)]).right_stream(),
        }
    }
}

pub(crate) async fn watch(ask: Ask) -> Result<HttpResponse, ApiError> {
    let (watched, encoding) = watched(ask).await?;
    let chunks = watched.chunks();
    let mut head = respond::head_in(200, encoding);
    if encoding == Encoding::Protobuf {
        head.insert_header((CONTENT_TYPE, format!("{};stream=watch", encoding.media_type())));
    }
    Ok(head.streaming(chunks))
}

/// Opens a watch; returns the language of its events.
///
/// # Errors
/// Those of its options, and 504 for a watch-list from a version that does not come.
pub(crate) async fn watched(ask: Ask) -> Result<(Watched, Encoding), ApiError> {
    let representation = ask.representation(Answer::Watch)?;
    let watch_list = ask.world.with(|inner| {
        let refused = inner.faults.holds(Switch::RefuseWatchList, &ask.kind.resource);
        if refused && ask.query.iter().any(|(name, _)| name == "sendInitialEvents") {
            inner.faults.count_switch(Switch::RefuseWatchList, &ask.kind.resource, 1);
        }
        !refused
    });
    let mut options = WatchOptions::parse(&ask.query, &ask.kind, watch_list)?;
    if let Some(name) = &ask.target.name {
        options.selector = options.selector.of_name(name)?;
    }
    if options.initial_events == Some(true) {
        ask.fresh(options.version).await;
    }
    let (start, shared, seconds) = ask.world.with(|inner| {
        let stored = inner.cluster.registry.stored(&ask.kind.storage);
        let shared = stored.is_some_and(|stored| stored.api_version() == ask.kind.api_version());
        let drawn = MIN_WATCH_SECONDS + inner.rng.below(MIN_WATCH_SECONDS);
        let start = inner.cluster.watch(&ask.kind, ask.namespace(), &options);
        (start, shared, options.timeout_seconds.unwrap_or(drawn))
    });
    let unwritable = ask.asks_for_no_events();
    let opened = match start? {
        Start::Open(opened) => opened,
        Start::TooOld(error) => {
            let line = representation.encoding.error_event(&error.to_status());
            return Ok((Watched::Line(line), representation.encoding));
        }
    };
    let timeout = Duration::from_secs(seconds);
    let mut stream = WatchStream::new(&ask.world, &ask.kind, opened, shared, timeout);
    stream.representation = representation;
    stream.bookmarks = options.bookmarks;
    stream.unwritable = unwritable;
    stream.connection = ask.connection;
    Ok((Watched::Stream(Box::new(stream)), representation.encoding))
}
