//! Probes as a part of an operator. Healthy: the runtime is, no part was given up, none reports itself as unhealthy. Ready: the
//! operator misses nothing. After a drain the address is free.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};

use super::{Operator, OperatorView, Part, PartContext, PartError};
use crate::probes::{ProbeSocket, Probed};

impl Part for ProbeSocket {
    fn name(&self) -> Arc<str> {
        format!("probes at {}", self.address()).into()
    }

    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>> {
        let socket = self.try_clone();
        async move {
            let served = socket?.serve(context.operator())?;
            context.ready();
            context.stopping().await;
            served.end().await;
            Ok(())
        }
        .boxed()
    }

    fn end(&self) {
        self.close();
    }
}

impl Probed for OperatorView {
    fn unhealthy(&self) -> Vec<String> {
        let of_runtime = self.runtime().unhealthy();
        Self::unhealthy(self).into_iter().chain(of_runtime).collect()
    }

    fn unready(&self) -> Vec<String> {
        Self::unready(self)
    }

    fn details(&self) -> Vec<String> {
        let parts = self.status().to_string();
        parts.lines().map(str::to_owned).chain(Probed::details(self.runtime())).collect()
    }
}

impl Probed for Operator {
    fn unhealthy(&self) -> Vec<String> {
        Probed::unhealthy(self.view())
    }

    fn unready(&self) -> Vec<String> {
        Probed::unready(self.view())
    }

    fn details(&self) -> Vec<String> {
        Probed::details(self.view())
    }
}
