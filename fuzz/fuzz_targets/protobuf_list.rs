//! Gives libFuzzer's bytes to [`actix_informer_fuzz::protobuf_list`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| actix_informer_fuzz::protobuf_list(data));
