//! The in-memory API server with its demo workload, in builds that have one.
//!
//! Answers "which server is read if no cluster is configured?". It is the only server that informerd writes to. The
//! workload changes the server's store directly; the client only reads. Invariant:
//! 1. Without the feature `embedded` there is no such server, and starting one is an error.

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
    /// Starts the server and the workload; returns the configuration of a client that reads it.
    pub(super) fn start(config: &DemoConfig) -> Result<(Option<Self>, Config), Error> {
        let demo = crate::service::demo::Demo::start(config)?;
        let client = Config::new(demo.url())?;
        Ok((Some(Self { demo }), client))
    }

    /// Ends the changes; the server keeps running.
    pub(super) fn stop_workload(&self) {
        self.demo.stop_workload();
    }

    /// A description for people.
    pub(super) fn announcement(&self) -> [String; 2] {
        self.demo.announcement()
    }
}

#[cfg(not(feature = "embedded"))]
impl OwnServer {
    pub(super) fn start(_config: &DemoConfig) -> Result<(Option<Self>, Config), Error> {
        Err(crate::service::target::NoCluster::NotConfigured.into())
    }

    pub(super) fn stop_workload(&self) {
        match self.absent {}
    }

    pub(super) fn announcement(&self) -> [String; 2] {
        match self.absent {}
    }
}
