//! The tests of the core beside a memory that does what each test says.
//! They are one program: each one of its own would be compiled and linked by itself.

mod checks;
mod common;
mod log;
mod persistent_stores;
mod stalls;
mod store_buffer;
mod suspension;
mod timing;
mod tlb;
