//! Stores outside of transactions: what a program may rely on after a fence, on a machine that keeps to it and on one that
//! does not; and stores inside a suspended transaction, which are of this kind.

mod campaigns;
mod promises;
mod suspension;
mod text;
