//! A page that shows what runs on a runtime, with the feature `page`: problems first, then the actors, and the path of an object.
//!
//! [`ProbeSocket::page`](crate::probes::ProbeSocket::page) serves it. A program with a server of its own answers with
//! [`Page::answer`], behind its own access rules.
//!
//! 1. The page is one text file, with no resource from elsewhere.
//! 2. It names objects, kinds, sources, errors of servers and texts of panics. Of an object's body it shows the fields that have
//!    changed since the object is followed; of a Secret no value.
//! 3. `ProbeSocket` serves it only to clients on this machine, under names of this machine: no other web page in a browser can
//!    read it.
//! 4. An answer copies figures under short locks; a search looks at no more than 50,000 keys.

use std::fmt;

use informer_actors::inner::{ListedObject, WeakRuntime, objects_of};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use self::differences::Difference;
use crate::object::ObjectKey;
use crate::path::{PastBody, PastState};
use crate::runtime::Runtime;
use crate::status::Reporting as _;

mod differences;
mod problems;
mod state;
#[cfg(all(test, feature = "test-kit"))]
mod tests;

const HTML: &str = include_str!("page/index.html");
/// In one answer.
const MOST_OBJECTS: usize = 200;

/// The page of one runtime. It does not keep the runtime alive.
#[derive(Clone)]
pub struct Page {
    runtime: WeakRuntime,
    title: String,
}

/// What a request for the page is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageAnswer {
    /// The value of the header `Content-Type`.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

impl Page {
    /// The page of this runtime, under this title.
    pub fn of(runtime: &Runtime, title: impl Into<String>) -> Self {
        Self { runtime: runtime.weak(), title: title.into() }
    }

    /// The answer to a GET of this path and query below the address of the page; `None` if there is nothing.
    /// The paths are `/`, `/state`, `/objects` and `/path`. Serve them side by side, and [`Self::answer_post`]
    /// for POST: the page asks for the other ones by relative names. Without `/events`, it asks for `/state`
    /// each second.
    ///
    /// ```
    /// use actix_informer::page::Page;
    /// use actix_informer::runtime::Runtime;
    ///
    /// let runtime = Runtime::threads().start()?;
    /// let page = Page::of(&runtime, "my operator");
    /// assert!(page.answer("/").is_some_and(|answer| answer.content_type.starts_with("text/html")));
    /// assert!(page.answer("/state").is_some_and(|answer| answer.body.contains("\"problems\":[]")));
    /// assert_eq!(page.answer("/other"), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn answer(&self, target: &str) -> Option<PageAnswer> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match path {
            "/" => Some(PageAnswer {
                content_type: "text/html; charset=utf-8",
                body: HTML.replace("{{title}}", &escaped(&self.title)),
            }),
            "/state" => Some(answered(&self.state())),
            "/objects" => Some(answered(&self.objects(&Query::of(query)))),
            "/path" => Some(answered(&self.path(&Query::of(query), false))),
            _ => None,
        }
    }

    /// The answer to a POST of this path and query: `/path` with `follow=1` or `follow=0` begins or ends the
    /// marks of a key. Let only those send it whom the page is for: check the origin of the request.
    pub fn answer_post(&self, target: &str) -> Option<PageAnswer> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        (path == "/path").then(|| answered(&self.path(&Query::of(query), true)))
    }

    pub(crate) fn state(&self) -> Value {
        match self.runtime.upgrade() {
            Some(runtime) => state::of(&runtime.report(), &runtime.memory(), &self.title),
            None => json!({ "title": self.title, "ended": true, "problems": [] }),
        }
    }

    /// At most [`MOST_OBJECTS`] keys, those behind `behind` that contain `text`.
    fn objects(&self, query: &Query) -> Value {
        let Some(runtime) = self.runtime.upgrade() else { return json!({ "objects": [] }) };
        let behind = query.get("behind").map(key_of);
        let (informer, text) = (query.get("informer").unwrap_or_default(), query.get("text"));
        let found = objects_of(&runtime.registrants(), informer);
        let found = found
            .map(|listing| listing.page(behind.as_ref(), text.unwrap_or_default(), MOST_OBJECTS))
            .unwrap_or_default();
        let shown = |object: &ListedObject| {
            json!({
                "key": object.key.to_string(),
                "version": object.version.to_string(),
                "source": object.source.as_str(),
            })
        };
        json!({ "objects": found.objects.iter().map(shown).collect::<Vec<_>>(), "more": found.more.map(|key| key.to_string()) })
    }

    fn path(&self, query: &Query, may_change: bool) -> Value {
        let Some(runtime) = self.runtime.upgrade() else { return json!({ "marks": [] }) };
        let key = key_of(query.get("key").unwrap_or_default());
        let refused = match query.get("follow").filter(|_| may_change) {
            Some("1") => runtime.paths().follow(&key).err().map(|error| error.to_string()),
            Some(_) => {
                runtime.paths().unfollow(&key);
                None
            }
            None => None,
        };
        let path = runtime.paths().of(&key);
        let mark = |mark: &crate::path::Mark| {
            json!({
                "at": mark.at.as_secs_f64(),
                "hop": mark.hop.name(),
                "place": &*mark.place,
                "by": mark.by.as_deref(),
                "key": mark.key.to_string(),
                "version": mark.version.as_ref().map(ToString::to_string),
                "other": mark.other.as_ref().map(ToString::to_string),
            })
        };
        let states = runtime.paths().states(&key);
        let differences = differences::of(&states);
        let state = |(state, compared): (&PastState, &Option<(Vec<Difference>, usize)>)| {
            json!({
                "at": state.at.as_secs_f64(),
                "informer": &*state.informer,
                "version": state.version.to_string(),
                "deleted": state.body == PastBody::Deleted,
                "tooLarge": matches!(state.body, PastBody::TooLarge(_)),
                "more": compared.as_ref().map(|(_, more)| more),
                "differences": compared.as_ref().map(|(differences, _)| {
                    let shown = |one: &Difference| json!([one.field, one.before, one.after]);
                    differences.iter().map(shown).collect::<Vec<_>>()
                }),
            })
        };
        json!({
            "key": key.to_string(),
            "states": states.iter().zip(&differences).map(state).collect::<Vec<_>>(),
            "at": runtime.now().as_secs_f64(),
            "cut": path.is_cut,
            "refused": refused,
            "followed": runtime.paths().is_followed(&key),
            "marks": path.marks.iter().map(mark).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("title", &self.title).finish_non_exhaustive()
    }
}

fn answered(value: &Value) -> PageAnswer {
    PageAnswer { content_type: "application/json", body: value.to_string() }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// `namespace/name` or `name`; with a cluster, `cluster|namespace/name`.
fn key_of(text: &str) -> ObjectKey {
    text.parse().unwrap_or_else(|_| ObjectKey::cluster(text))
}

/// Decoded.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(query: &str) -> Self {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(name, value)| (name.to_owned(), decoded(value))).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}
