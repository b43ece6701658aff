#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| durasim_fuzz::guest_recovery(data));
