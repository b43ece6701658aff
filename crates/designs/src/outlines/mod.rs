//! Outlines of designs to come. They only compile, against the contract as it is planned ([`planned`]). Nothing here is
//! registered, and nothing of it is built outside of tests: each outline shows by a short scenario of its paper that the planned shapes
//! carry its mechanisms. An outline that becomes a design moves to a file of its own, and what it needs of `planned` to
//! `crates/design`.

mod htm;
mod htm_tests;
mod planned;
