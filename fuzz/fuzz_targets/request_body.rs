//! Gives libFuzzer's bytes to [`actix_informer_fuzz::request_body`].
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| actix_informer_fuzz::request_body(data));

#[cfg(not(fuzzing))]
fn main() {
    panic!("only a build that fuzzes has libFuzzer: see README.md");
}
