//! Any bytes as a pool file: refused with one sentence, or a pool whose files lie inside the memory and that can be
//! written and read again.

use crate::assert_is_a_sentence;
use crate::marks::reach;
use crate::memory::{Fenced, small_map};
use crate::small_program::small_program;
use durasim_kernel::{PoolFile, Process, ProcessConfig};
use durasim_machine::PoolContents;
use durasim_types::PAGE_BYTES;

/// Bytes of the checksum at the end.
const HASH_BYTES: usize = 32;

/// Pool files: as they are, and as a forger would make them, that is, with a right checksum.
///
/// # Panics
/// If a bug is found.
pub fn pool_file(data: &[u8]) {
    read(data);
    read(&sealed(data));
}

/// The bytes of a pool file with the checksum that belongs to them.
pub(crate) fn sealed(data: &[u8]) -> Vec<u8> {
    let content = &data[..data.len().saturating_sub(HASH_BYTES)];
    [content, blake3::hash(content).as_bytes()].concat()
}

fn read(data: &[u8]) {
    let capacity_bytes = small_map().pmem_data_bytes;
    let pool = match PoolFile::decode("pool", data, capacity_bytes) {
        Ok(pool) => pool,
        Err(refused) => {
            reach("pool refused");
            return assert_is_a_sentence(&refused.to_string());
        }
    };
    if !pool.pages.is_empty() {
        reach("pool with pages read");
    }
    for (name, extent) in pool.files.files() {
        assert!(extent.size_bytes == 0 || extent.end_bytes() <= capacity_bytes, "{name} leaves the pool");
    }
    assert!(pool.pages.keys().all(|&number| number < capacity_bytes / PAGE_BYTES));
    let contents = PoolContents::of_file(&pool);
    assert_eq!(contents.pages.size_bytes(), capacity_bytes);

    let mut written = Vec::new();
    pool.encode(&mut written).expect("memory takes everything");
    let again = PoolFile::decode("pool", &written, capacity_bytes).expect("what was written can be read");
    assert_eq!((&again.files, &again.written_by), (&pool.files, &pool.written_by));

    // A program finds every file.
    let mut memory = Fenced::new(&small_map());
    memory.pmem = contents.pages;
    let config = ProcessConfig::new("program", small_program(), small_map());
    Process::load(config, pool.files, &mut memory).expect("a pool that was read can be given to a program");
}
