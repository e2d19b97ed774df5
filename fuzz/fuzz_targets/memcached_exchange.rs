#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| dyno_fuzz::memcached_exchange(data));
