//! Which resource is meant by the name that a fault, or a call of the handle, is given.
//!
//! Answers: what does `deploy` mean on this server, and what is the error for an unknown name?
//! 1. A name is read as kubectl reads it: plural, singular, short name or kind, with or without its group.
//! 2. A resource that the server does not serve is refused, so that no fault waits for requests that never come. Three
//!    more kinds of names are known: those announced by `expect_resource`, of definitions removed by
//!    `withdraw_definition`, and those that a fault was set for while they were served.
//!
//! Next: `../faults.rs` counts how often a fault has taken effect.
use super::Faults;
use crate::cluster::ResourceId;
use crate::world::Inner;

/// Why a fault could not be set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// The server has no resource of this name: the fault would never take effect.
    #[error(
        "the server has no resource {name:?}{}; one that a definition adds later is announced by expect_resource",
        .nearest.as_ref().map(|name| format!(" (did you mean {name}?)")).unwrap_or_default()
    )]
    UnknownResource {
        /// The given name.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
    },
}

/// The verbs that requests for resources have.
const VERBS: [&str; 8] = ["list", "watch", "get", "create", "update", "patch", "delete", "deletecollection"];

impl Inner {
    /// The resource of this name.
    ///
    /// # Errors `UnknownResource`, with the most similar name.
    pub(crate) fn resource(&self, name: &str) -> Result<ResourceId, FaultError> {
        let registry = &self.cluster.registry;
        if let Some(served) = registry.named(name) {
            return Ok(served.clone());
        }
        let id = ResourceId::parse(&name.to_ascii_lowercase());
        if self.faults.has_met(&id) {
            return Ok(id);
        }
        let nearest = registry.nearest(name).map(ToString::to_string);
        Err(FaultError::UnknownResource { name: name.to_owned(), nearest })
    }
}

impl Faults {
    /// The same switches, for one resource only. It is named as for kubectl: `deployments.apps`,
    /// `deployments`, `deploy`. It does not affect switches that concern a whole server or name their
    /// resource themselves.
    ///
    /// # Panics If the server has no such resource: the switches would never take effect. `expect_resource`
    /// announces one that a definition adds later; `try_of` returns an error instead.
    #[must_use]
    #[track_caller]
    pub fn of(&self, resource: &str) -> Self {
        self.try_of(resource).unwrap_or_else(|error| panic!("{error}"))
    }

    /// As `of`, for names that come from outside the program.
    ///
    /// # Errors
    /// `FaultError::UnknownResource` if the server has no such resource.
    pub fn try_of(&self, resource: &str) -> Result<Self, FaultError> {
        let place = self.world.with(|inner| inner.resource(resource))?;
        Ok(Self { place: Some(place), ..self.clone() })
    }

    /// Announces a resource that a definition will add later, by plural and group, so that faults can be set for it now.
    /// It is known until `clear`.
    ///
    /// ```
    /// # let server = informer_apiserver::ApiServer::builder().start_blocking()?;
    /// server.faults().expect_resource("widgets.example.com")?;
    /// server.faults().of("widgets.example.com").fail_next(1, 503);     // takes effect when the definition is there
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `FaultError::UnknownResource` if it is not a plural and the group of a definition, which has a dot in it.
    pub fn expect_resource(&self, resource: &str) -> Result<(), FaultError> {
        let id = ResourceId::parse(resource);
        let group_has_a_dot = id.group.split('.').filter(|part| !part.is_empty()).count() > 1;
        if id.plural.is_empty() || !group_has_a_dot {
            let nearest = Some("widgets.example.com, a plural and its group".to_owned());
            return Err(FaultError::UnknownResource { name: resource.to_owned(), nearest });
        }
        self.set(|faults| {
            faults.expected.insert(id);
        });
        Ok(())
    }

    /// Refuses a verb on the resource of `of` with 403, or stops refusing it.
    ///
    /// # Panics
    /// If no request has this verb.
    #[track_caller]
    pub(crate) fn forbid(&self, verb: &str, on: bool) {
        assert!(VERBS.contains(&verb), "no request has the verb {verb:?}: it is one of {VERBS:?}");
        let Some(resource) = self.place.clone() else { return };
        self.set(|faults| {
            if on {
                faults.deny(verb.to_owned(), resource);
            } else {
                faults.denied.remove(&(verb.to_owned(), resource));
            }
        });
    }
}
