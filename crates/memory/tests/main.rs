//! The tests of controllers, media and pmem modules.
//! They are one program: each one of its own would be compiled and linked by itself.

mod admission;
mod common;
mod controller;
mod load;
mod measured;
mod module;
mod shared;
mod timing;
mod traces;
mod witness;
