//! An operator: probes, caches, controllers and an election start in order, stop in reverse, and fail alone.
//!
//! A part implements [`Part`]; [`task`] makes one of a function, [`controller`] of one that starts a controller.
//!
//! | phase | parts | starts | stops |
//! |---|---|---|---|
//! | probes | [`ProbeSocket`](crate::probes::ProbeSocket), with the feature `probes` | first | last |
//! | caches | informers, [`InformerFactory`](crate::factory::InformerFactory) | next | behind the work |
//! | work | controllers, own tasks | when each cache is ready | behind the election |
//! | election | [`LeaderElection`](crate::leader_election::LeaderElection) | with the work | behind the events: the lease is released |
//! | events | [`Recorder`](crate::events::Recorder) | with the work | when the leader's work has ended: what waits is sent |
//! | work of the leader | controllers, own tasks | when the lease is acquired | first; at once when the lease is lost |
//!
//! A program with `#[tokio::main]`, which ends by SIGINT or SIGTERM:
//!
//! ```no_run
//! use actix_informer::controller::{Controller, Outcome, Request};
//! use actix_informer::operator::{Operator, controller};
//! use actix_informer::prelude::*;
//! # #[cfg(all(feature = "probes", feature = "signals"))]
//! use actix_informer::{probes::ProbeSocket, signals::stop_signal};
//! use k8s_openapi::api::core::v1::Pod;
//!
//! # #[cfg(all(feature = "probes", feature = "signals"))]
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let probes = ProbeSocket::bind("0.0.0.0:8081".parse()?)?; // a taken port ends the program here
//!     let client = Client::from_environment()?;
//!     let runtime = Runtime::threads().start()?;
//!     let factory = InformerFactory::new(&runtime, &client);
//!     let pods = factory.informer::<Pod>()?;
//!     let names = controller("names", move || {
//!         let reconcile = |request: Request<Pod>| async move {
//!             println!("{} exists: {}", request.key(), request.object().is_some());
//!             Ok(Outcome::Done)
//!         };
//!         Controller::builder(&pods).reconcile(reconcile).start()
//!     });
//!     let operator = Operator::builder(&runtime).probes(probes).cache(factory).work(names).start()?;
//!     let report = operator.run_until(stop_signal()?).await;
//!     println!("{report}");
//!     Ok(())
//! }
//! # #[cfg(not(all(feature = "probes", feature = "signals")))]
//! # fn main() {}
//! ```
//!
//! With `#[actix::main]` parts run on the program's system and may send to its actors. Without probes:
//!
//! ```no_run
//! use actix_informer::operator::{Operator, PartContext, task};
//! use actix_informer::prelude::*;
//!
//! #[actix::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let runtime = Runtime::threads().start()?;
//!     let tick = task("tick", |context: PartContext| async move {
//!         context.ready();
//!         loop {
//!             tokio::select! {
//!                 _time_left = context.stopping() => return Ok(()),
//!                 () = tokio::time::sleep(std::time::Duration::from_secs(10)) => println!("tick"),
//!             }
//!         }
//!     });
//!     let operator = Operator::builder(&runtime).work(tick).start()?;
//!     println!("{}", operator.run_until(tokio::signal::ctrl_c()).await);
//!     Ok(())
//! }
//! ```

#[cfg(feature = "client")]
mod factory;
#[cfg(feature = "probes")]
mod probes;

pub use informer_operator::lifecycle::{
    ControllerPart, DrainLimits, NotReady, Operator, OperatorBuilder, OperatorReport, OperatorStatus,
    OperatorView, Part, PartContext, PartEnd, PartError, PartState, PartStatus, Phase, Stage, Stale,
    StaleLimit, StartOperatorError, Task, controller, task,
};
#[cfg(all(test, feature = "probes", feature = "client"))]
mod tests;
