#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| durasim_fuzz::snapshot_file(data));
