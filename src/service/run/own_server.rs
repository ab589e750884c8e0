//! The in-memory API server of our own and its workload, in builds that have one.
//!
//! Answers "what do we read when told of no cluster?". This is the only thing that informerd ever writes to: the
//! client that reads has no part in it, the workload changes the store directly.
//! 1. Without the feature `embedded` there is no such server, and none can be asked for.

use crate::client::Config;
use crate::service::config::DemoConfig;
use crate::service::error::Error;

/// A server with a workload.
pub(super) struct OwnServer {
    #[cfg(feature = "embedded")]
    demo: crate::service::demo::Demo,
    #[cfg(not(feature = "embedded"))]
    absent: std::convert::Infallible,
}

#[cfg(feature = "embedded")]
impl OwnServer {
    /// Starts both; gives the way to read it.
    pub(super) fn start(config: &DemoConfig) -> Result<(Option<Self>, Config), Error> {
        let demo = crate::service::demo::Demo::start(config)?;
        let client = Config::new(demo.url())?;
        Ok((Some(Self { demo }), client))
    }

    /// Ends the changes; the server goes on serving.
    pub(super) fn stop_workload(&self) {
        self.demo.stop_workload();
    }

    /// What it is, for people.
    pub(super) fn announcement(&self) -> [String; 2] {
        self.demo.announcement()
    }
}

#[cfg(not(feature = "embedded"))]
impl OwnServer {
    pub(super) fn start(_config: &DemoConfig) -> Result<(Option<Self>, Config), Error> {
        Err(crate::service::target::NoCluster::Untold.into())
    }

    pub(super) fn stop_workload(&self) {
        match self.absent {}
    }

    pub(super) fn announcement(&self) -> [String; 2] {
        match self.absent {}
    }
}
