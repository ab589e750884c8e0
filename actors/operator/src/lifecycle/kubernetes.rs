//! Parts of an operator that speak with an API server: the election and the recorder of events.
//!
//! Answers "in which phase do they begin and end?". Read next: `election.rs`; `recorder.rs`.

mod election;
mod recorder;
