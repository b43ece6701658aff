//! The instruction set of the simulated harts, as a user program sees it: RV64IMAFDC with Zicsr, Zifencei, Zicntr,
//! Zihintpause, Zihintntl, Zicond, Zicbom, Zicboz, Zba, Zbb, Zbs and Zfhmin, compare and swap of up to 8 bytes (of Zacas),
//! and the checked accesses, log operations and hardware transactions of durasim's own. This crate decodes and executes;
//! it knows no time, no caches and no operating system.
//!
//! The order of use: [`BlockCache::get`] fetches and decodes, [`execute`] runs one [`Inst`] on a [`Hart`] against a
//! [`Bus`], and the caller advances `pc` as [`execute`] says. [`Inst::class`], [`Inst::sources`] and [`Inst::dest`]
//! are what a timing model needs.
//!
//! Every extension has a file, except that F, D and Zfhmin share their arithmetic in `float.rs`, and Zicntr, Zihintpause and
//! Zihintntl, which are a few registers, one encoding and hints of RV64I, are with Zicsr and RV64I. Encodings of durasim's own are in
//! `encodings.toml`.

mod a;
mod block;
mod bus;
mod c;
mod checked;
mod d;
mod data_access;
mod decode;
pub mod encodings;
mod execute;
mod f;
mod fields;
mod float;
mod hart;
mod htm;
mod inst;
mod log;
mod log_register;
mod m;
mod op;
mod rv64i;
mod soft_float;
mod stop;
mod zacas;
mod zba;
mod zbb;
mod zbs;
mod zfhmin;
mod zicbom;
mod zicboz;
mod zicond;
mod zicsr;
mod zifencei;

pub use block::{BlockCache, BlockId};
pub use bus::{AmoOp, Bus, CacheBlockOp, Counter, FenceSet, HtmOperation};
pub use data_access::DataAccess;
pub use decode::{decode, disassemble};
pub use encodings::{Marker, SITUATIONS};
pub use execute::execute;
pub use hart::{Flow, Hart};
pub use htm::HTM_STARTED;
pub use inst::Inst;
pub use log_register::{LOG_BLOCK_BYTES, LOG_REGISTERS, LogRegister};
pub use op::{Class, Op};
pub use stop::{Access, AccessFault, AccessFaultKind, HTM_DEPTH_MAX, Illegal, Stop};
