//! How many requests may be answered at once: those that read, and those that change something.
//!
//! Answers: may this request be answered now? Off unless asked for, because few tests need an overloaded server.
//! 1. Administrators (`system:masters`) and watches are always admitted, as by a real server without priorities.
//! 2. A request that is not admitted is refused at once, as plain text with `Retry-After: 1`, before its rights are
//!    checked.
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::user::User;
use crate::cluster::status::ApiError;

const PRIVILEGED: &str = "system:masters";

/// The number of requests that may be in flight.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    reading: Option<Arc<Semaphore>>,
    changing: Option<Arc<Semaphore>>,
}

/// A permit of the server, held until it is dropped; nothing if requests are not counted.
pub(crate) type Place = Option<OwnedSemaphorePermit>;

impl Limits {
    /// This many requests of each sort; 0 for any number.
    pub(crate) fn new(reading: usize, changing: usize) -> Self {
        let room = |places: usize| {
            (places > 0).then(|| Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))))
        };
        Self { reading: room(reading), changing: room(changing) }
    }

    /// Admits a request; `verb` is that of the API, or the method in lower case.
    ///
    /// # Errors 429 if too many requests are in flight.
    pub(crate) fn admit(&self, verb: &str, user: &User) -> Result<Place, ApiError> {
        let room = match verb {
            "get" | "list" => &self.reading,
            "watch" => return Ok(None),
            _ => &self.changing,
        };
        let Some(room) = room.as_ref().filter(|_| !user.groups.iter().any(|group| group == PRIVILEGED))
        else {
            return Ok(None);
        };
        let place = Arc::clone(room).try_acquire_owned();
        place.map(Some).map_err(|_full| ApiError::by_code(429).with_retry_after(1).into_plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_21_a_request_above_the_limit_is_refused_at_once_and_administrators_are_admitted() {
        let limits = Limits::new(1, 2);
        let jane = User::new("jane").group("dev");
        let taken = limits.admit("list", &jane).unwrap();
        assert!(taken.is_some());
        let full = limits.admit("get", &jane).unwrap_err();
        assert_eq!((full.code(), full.retry_after(), full.is_plain()), (429, Some(1), true));
        assert!(limits.admit("watch", &jane).unwrap().is_none());
        assert!(limits.admit("get", &User::new("root").group("system:masters")).unwrap().is_none());
        let changing = [limits.admit("create", &jane).unwrap(), limits.admit("delete", &jane).unwrap()];
        assert!(limits.admit("patch", &jane).is_err());
        drop((taken, changing));
        assert!(limits.admit("get", &jane).is_ok() && limits.admit("patch", &jane).is_ok());
        assert!(Limits::default().admit("get", &jane).unwrap().is_none());
    }
}
