//! Every example of the documentation, compiled in a crate that depends on nothing but what a user of `actix-informer` has.
//!
//! Answers "does an example still compile when it is pasted into a program?" The build script finds the examples
//! (`extract.rs`) and makes a module of each; a compile error names the module after the example's file and line. That they run is
//! checked where they stand, by the doctests of each crate.

#[allow(warnings, clippy::all)]
mod examples {
    include!(concat!(env!("OUT_DIR"), "/examples.rs"));
}
