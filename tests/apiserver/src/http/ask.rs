//! A request as its handlers get it.
//!
//! Answers: what was asked, by whom, of which kind? Nothing is decided here.
use std::sync::Arc;

use actix_web::http::header::HeaderName;
use actix_web::{HttpRequest, web};
use bytes::Bytes;
use percent_encoding::percent_decode_str;

use super::connections::Connection;
use super::route::{Route, Target};
use crate::access::user::User;
use crate::cluster::kind::Kind;
use crate::requests::Request;
use crate::world::World;

/// One request, read completely.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) world: Arc<World>,
    pub(crate) user: User,
    pub(crate) target: Target,
    pub(crate) verb: &'static str,
    pub(crate) kind: Arc<Kind>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) accept: Option<String>,
    pub(crate) content_type: String,
    pub(crate) gzip: bool,
    /// The manager whose fields are set.
    pub(crate) manager: String,
    pub(crate) body: Bytes,
    pub(crate) connection: Option<Arc<Connection>>,
}

pub(crate) fn header<'a>(request: &'a HttpRequest, name: &HeaderName) -> Option<&'a str> {
    request.headers().get(name).and_then(|value| value.to_str().ok())
}

/// One request without its body: the content of its request line.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) route: Route,
    /// Empty for what is not a resource.
    pub(crate) verb: &'static str,
}

impl Heard {
    pub(crate) fn of(request: &HttpRequest) -> Self {
        let path = percent_decode_str(request.path()).decode_utf8_lossy().into_owned();
        let query = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
        let query = query.map(web::Query::into_inner).unwrap_or_default();
        let route = Route::parse(&path);
        let method = request.method().as_str().to_owned();
        let verb = match &route {
            Route::Resource(target) => target.verb(&method, &query),
            _ => "",
        };
        Self { method, path, query, route, verb }
    }

    /// The entry in the log.
    pub(crate) fn logged(&self) -> Request {
        let resource = match &self.route {
            Route::Resource(target) => target.resource(),
            _ => String::new(),
        };
        Request {
            number: 0,
            method: self.method.clone(),
            path: self.path.clone(),
            query: self.query.clone(),
            verb: self.verb.to_owned(),
            resource,
        }
    }
}
