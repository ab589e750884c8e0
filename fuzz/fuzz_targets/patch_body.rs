//! Gives libFuzzer's bytes to [`actix_informer_fuzz::patch_body`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| actix_informer_fuzz::patch_body(data));
