#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| durasim_robustness::recovery(data));
