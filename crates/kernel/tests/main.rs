//! The tests of processes, their memory, threads and files.
//! They are one program: each one of its own would be compiled and linked by itself.

mod attributes;
mod common;
mod elf_refusals;
mod events;
mod faults;
mod files;
mod fuzz;
mod handlers;
mod memory;
mod pmem;
mod programs;
mod snapshots;
mod system;
mod threads;
