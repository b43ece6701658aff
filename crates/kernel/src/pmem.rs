//! The namespace of `/pmem/`: which file lies where in the part of the persistent memory that holds pools.
//!
//! The namespace itself is not simulated memory. It changes atomically and is durable at once, as the metadata of a
//! DAX file system is; what the files contain lives in the machine and obeys its persistence domain.

use durasim_types::{ConfigError, PAGE_BYTES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::ops::Range;

/// The place of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extent {
    /// First byte, counted from the start of the pmem data area; a multiple of the page size.
    pub offset_bytes: u64,
    /// Length of the file. The pages up to the next multiple of the page size belong to it.
    pub size_bytes: u64,
}

impl Extent {
    /// One past the last byte of the last page of the file.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.size_bytes.next_multiple_of(PAGE_BYTES)
    }
}

/// The reason to refuse a change of the namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PmemError {
    /// No file of that name.
    NotFound,
    /// No free run of pages is long enough, or another file follows directly.
    NoSpace,
}

/// The files under `/pmem/`, each one extent of the pmem data area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PmemPool {
    capacity_bytes: u64,
    files: BTreeMap<String, Extent>,
}

impl PmemPool {
    /// A namespace without files over an area of `capacity_bytes`.
    pub fn new(capacity_bytes: u64) -> Self {
        PmemPool { capacity_bytes, files: BTreeMap::new() }
    }

    /// The size of the area.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Changes the size of the area.
    pub(crate) fn set_capacity(&mut self, capacity_bytes: u64) -> Result<(), ConfigError> {
        self.capacity_bytes = capacity_bytes;
        self.check()
    }

    /// The files by name.
    pub fn files(&self) -> impl Iterator<Item = (&str, Extent)> {
        self.files.iter().map(|(name, &extent)| (name.as_str(), extent))
    }

    /// The extent of the file `name`.
    pub fn get(&self, name: &str) -> Option<Extent> {
        self.files.get(name).copied()
    }

    /// Adds an empty file, if there is none of that name.
    pub fn create(&mut self, name: &str) {
        self.files.entry(name.to_string()).or_default();
    }

    /// Gives the file `name` the size `size_bytes`. An empty file is placed in the lowest free run of pages; another
    /// one grows in place or not at all. Returns the bytes of the area that the file no longer holds: the caller has
    /// to clear them, since new files read as zero.
    pub fn resize(&mut self, name: &str, size_bytes: u64) -> Result<Range<u64>, PmemError> {
        let old = self.get(name).ok_or(PmemError::NotFound)?;
        if size_bytes > self.capacity_bytes {
            return Err(PmemError::NoSpace);
        }
        let offset_bytes = if old.size_bytes == 0 { self.lowest_gap(size_bytes)? } else { old.offset_bytes };
        let new = Extent { offset_bytes, size_bytes };
        let limit = self.next_offset_after(name, offset_bytes).unwrap_or(self.capacity_bytes);
        if new.end_bytes() > limit {
            return Err(PmemError::NoSpace);
        }
        self.files.insert(name.to_string(), new);
        Ok(if size_bytes < old.size_bytes { offset_bytes + size_bytes..old.end_bytes() } else { 0..0 })
    }

    /// Removes the file `name`. Returns the bytes that it held, which the caller has to clear.
    pub fn remove(&mut self, name: &str) -> Result<Range<u64>, PmemError> {
        let old = self.files.remove(name).ok_or(PmemError::NotFound)?;
        Ok(old.offset_bytes..old.end_bytes())
    }

    /// Gives the file `from` the name `to`, which must be free.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), PmemError> {
        let extent = self.files.remove(from).ok_or(PmemError::NotFound)?;
        self.files.insert(to.to_string(), extent);
        Ok(())
    }

    /// Feeds capacity, names and extents to `digest`, in the order of the names.
    pub fn digest(&self, digest: &mut dyn Hasher) {
        digest.write_u64(self.capacity_bytes);
        digest.write_u64(self.files.len() as u64);
        for (name, extent) in &self.files {
            digest.write_u64(name.len() as u64);
            digest.write(name.as_bytes());
            digest.write_u64(extent.offset_bytes);
            digest.write_u64(extent.size_bytes);
        }
    }

    /// Refuses a namespace that could not have grown by the operations above: extents that overlap, leave the area or
    /// start inside a page.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |problem: String| Err(ConfigError::new("pool", problem));
        let mut end = 0;
        for (name, extent) in self.placed() {
            if extent.offset_bytes % PAGE_BYTES != 0 || extent.offset_bytes < end {
                return refuse(format!("the file /pmem/{name} overlaps another or does not start at a page"));
            }
            let fits = extent.offset_bytes.checked_add(extent.size_bytes).is_some_and(|e| e <= self.capacity_bytes);
            if !fits {
                return refuse(format!("the file /pmem/{name} leaves the {} bytes of the pool", self.capacity_bytes));
            }
            end = extent.end_bytes();
        }
        Ok(())
    }

    /// The files that have pages, by offset.
    fn placed(&self) -> Vec<(&str, Extent)> {
        let mut placed: Vec<_> = self.files().filter(|(_, extent)| extent.size_bytes > 0).collect();
        placed.sort_by_key(|(_, extent)| extent.offset_bytes);
        placed
    }

    fn lowest_gap(&self, size_bytes: u64) -> Result<u64, PmemError> {
        let wanted = size_bytes.next_multiple_of(PAGE_BYTES);
        let mut start = 0;
        for (_, extent) in self.placed() {
            if extent.offset_bytes - start >= wanted {
                return Ok(start);
            }
            start = extent.end_bytes();
        }
        if self.capacity_bytes - start >= wanted { Ok(start) } else { Err(PmemError::NoSpace) }
    }

    fn next_offset_after(&self, name: &str, offset_bytes: u64) -> Option<u64> {
        let others = self.files().filter(|(n, e)| *n != name && e.size_bytes > 0 && e.offset_bytes >= offset_bytes);
        others.map(|(_, extent)| extent.offset_bytes).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = PAGE_BYTES;

    #[test]
    fn files_are_placed_first_fit_and_grow_only_in_place() {
        let mut pool = PmemPool::new(8 * PAGE);
        for name in ["a", "b", "c"] {
            pool.create(name);
        }
        assert_eq!(pool.resize("a", PAGE + 1), Ok(0..0));
        assert_eq!(pool.resize("b", 2 * PAGE), Ok(0..0));
        assert_eq!(pool.get("b"), Some(Extent { offset_bytes: 2 * PAGE, size_bytes: 2 * PAGE }));
        assert_eq!(pool.resize("a", 2 * PAGE), Ok(0..0), "the second page was its own");
        assert_eq!(pool.resize("a", 3 * PAGE), Err(PmemError::NoSpace), "b follows");
        assert_eq!(pool.resize("b", 3 * PAGE), Ok(0..0));
        assert_eq!(pool.resize("c", 4 * PAGE), Err(PmemError::NoSpace));
        assert_eq!(pool.resize("c", u64::MAX), Err(PmemError::NoSpace));
        assert_eq!(pool.remove("a"), Ok(0..2 * PAGE));
        assert_eq!(pool.resize("c", 2 * PAGE), Ok(0..0));
        assert_eq!(pool.get("c").unwrap().offset_bytes, 0);
        pool.check().unwrap();
    }

    #[test]
    fn shrinking_returns_the_bytes_to_clear() {
        let mut pool = PmemPool::new(8 * PAGE);
        pool.create("a");
        pool.resize("a", 3 * PAGE).unwrap();
        assert_eq!(pool.resize("a", 100), Ok(100..3 * PAGE));
        assert_eq!(pool.resize("a", 0), Ok(0..PAGE));
        assert_eq!(pool.resize("b", 0), Err(PmemError::NotFound));
    }

    #[test]
    fn digest_sees_names_and_extents() {
        let of = |pool: &PmemPool| {
            let mut digest = durasim_types::Digest::default();
            pool.digest(&mut digest);
            digest.hex()
        };
        let mut pool = PmemPool::new(8 * PAGE);
        let empty = of(&pool);
        pool.create("a");
        let named = of(&pool);
        pool.resize("a", 5).unwrap();
        assert!(empty != named && named != of(&pool));
        let again = pool.clone();
        pool.rename("a", "b").unwrap();
        assert_ne!(of(&again), of(&pool));
    }

    #[test]
    fn impossible_namespaces_are_refused() {
        let parse = |text: &str| serde_json::from_str::<PmemPool>(text).unwrap().check();
        let overlap = r#"{"capacity_bytes":16384,"files":{"a":{"offset_bytes":0,"size_bytes":5000},
            "b":{"offset_bytes":4096,"size_bytes":1}}}"#;
        assert!(parse(overlap).unwrap_err().problem.contains("overlaps"));
        let outside =
            r#"{"capacity_bytes":16384,"files":{"a":{"offset_bytes":12288,"size_bytes":18446744073709551615}}}"#;
        assert!(parse(outside).unwrap_err().problem.contains("leaves"));
    }
}
