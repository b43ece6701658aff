//! Pools kept in host files: the contents of the pmem data area with its namespace.
//!
//! Format, version 1, little-endian: the 8 bytes `DURAPOOL`, version (4 bytes), length of the header (4 bytes), header
//! (JSON: capacity, files, writer, number of pages), then for each page that is not all zero its number (8 bytes) and
//! its 4096 bytes, by ascending number, and at last the BLAKE3 hash of everything before it (32 bytes).

use crate::PmemPool;
use crate::whole_file::{read_file, replace_file};
use durasim_types::{ConfigError, Error, PAGE_BYTES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"DURAPOOL";
const VERSION: u32 = 1;
const PAGE: usize = PAGE_BYTES as usize;
const RECORD_BYTES: usize = 8 + PAGE;
const HASH_BYTES: usize = 32;
/// Bytes before the header.
const PREFIX_BYTES: usize = 16;

/// The contents of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolFile {
    /// The namespace, which knows the capacity.
    pub files: PmemPool,
    /// Pages of the pmem data area by page number (offset / 4096). Pages that are not here are all zero.
    pub pages: BTreeMap<u64, Box<[u8; PAGE]>>,
    /// Name of the design variant that ran when the pool was written.
    pub written_by: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    files: PmemPool,
    written_by: String,
    page_count: u64,
}

impl PoolFile {
    /// Size of the pmem data area that the pool was taken from.
    pub fn capacity_bytes(&self) -> u64 {
        self.files.capacity_bytes()
    }

    /// Writes the pool to `out` and returns its hash as 64 hexadecimal digits.
    pub fn encode(&self, out: &mut dyn Write) -> io::Result<String> {
        let stored: Vec<_> = self.pages.iter().filter(|(_, page)| page.iter().any(|&b| b != 0)).collect();
        let header =
            Header { files: self.files.clone(), written_by: self.written_by.clone(), page_count: stored.len() as u64 };
        let header = serde_json::to_vec(&header)?;
        let mut hasher = blake3::Hasher::new();
        let mut put = |bytes: &[u8]| {
            hasher.update(bytes);
            out.write_all(bytes)
        };
        put(MAGIC)?;
        put(&VERSION.to_le_bytes())?;
        put(&(header.len() as u32).to_le_bytes())?;
        put(&header)?;
        for (number, page) in stored {
            put(&number.to_le_bytes())?;
            put(&page[..])?;
        }
        let hash = hasher.finalize();
        out.write_all(hash.as_bytes())?;
        Ok(hash.to_hex().to_string())
    }

    /// Reads a pool from the bytes of a host file. `name` is used in the sentences of refusals; `capacity_bytes` is
    /// the size of the pmem data area of the machine, which the pool has to have been made for.
    pub fn decode(name: &str, data: &[u8], capacity_bytes: u64) -> Result<PoolFile, ConfigError> {
        let refuse = |problem: String| Err(ConfigError::new("pool", problem));
        let truncated = || refuse(format!("{name} is truncated"));
        let corrupt = || refuse(format!("{name} is corrupt: its contents do not match its checksum"));
        let seen = data.len().min(MAGIC.len());
        if seen == 0 || data[..seen] != MAGIC[..seen] {
            return refuse(format!("{name} is not a pool file"));
        }
        if data.len() < PREFIX_BYTES {
            return truncated();
        }
        let word = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().expect("four bytes"));
        if word(8) != VERSION {
            return refuse(format!(
                "{name} has pool format {}; this version of durasim reads format {VERSION}",
                word(8)
            ));
        }
        let Some(header) = data.get(PREFIX_BYTES..PREFIX_BYTES + word(12) as usize) else { return truncated() };
        let Ok(header) = serde_json::from_slice::<Header>(header) else { return corrupt() };
        let body = PREFIX_BYTES + word(12) as usize;
        let expected = (header.page_count as u128) * RECORD_BYTES as u128 + (body + HASH_BYTES) as u128;
        if (data.len() as u128) < expected {
            return truncated();
        }
        let (content, hash) = data.split_at(data.len() - HASH_BYTES);
        if data.len() as u128 != expected || blake3::hash(content).as_bytes()[..] != *hash {
            return corrupt();
        }
        let found = header.files.capacity_bytes();
        if found != capacity_bytes {
            return refuse(format!("{name} holds a pool of {found} bytes; this machine has {capacity_bytes} bytes"));
        }
        header.files.check()?;
        let mut pages = BTreeMap::new();
        for record in content[body..].chunks_exact(RECORD_BYTES) {
            let number = u64::from_le_bytes(record[..8].try_into().expect("eight bytes"));
            if number >= capacity_bytes / PAGE_BYTES {
                return refuse(format!("{name} has page {number}, which lies after its {capacity_bytes} bytes"));
            }
            pages.insert(number, Box::new(record[8..].try_into().expect("a page")));
        }
        Ok(PoolFile { files: header.files, pages, written_by: header.written_by })
    }

    /// More bytes than the file of a pool of this capacity has.
    fn bytes_max(capacity_bytes: u64) -> u64 {
        let pages = capacity_bytes.div_ceil(PAGE_BYTES);
        pages
            .saturating_mul(RECORD_BYTES as u64)
            .saturating_add(u64::from(u32::MAX) + (PREFIX_BYTES + HASH_BYTES) as u64)
    }

    /// Reads the host file `path`; see [`PoolFile::decode`]. Also returns the hash, for the digest of a run.
    pub fn load(path: &Path, capacity_bytes: u64) -> Result<(PoolFile, String), Error> {
        let bytes_max = PoolFile::bytes_max(capacity_bytes);
        let data = read_file(path, MAGIC, bytes_max).map_err(|e| host_io(path, &e))?;
        let pool = PoolFile::decode(&path.display().to_string(), &data, capacity_bytes)?;
        // The last bytes are the hash, as decode has checked.
        let hash = data[data.len() - HASH_BYTES..].iter().map(|b| format!("{b:02x}")).collect();
        Ok((pool, hash))
    }

    /// Writes the host file `path`: the whole new file or, on any error, none, with an older file left as it was.
    /// Returns the hash.
    pub fn save(&self, path: &Path) -> Result<String, Error> {
        replace_file(path, |out| self.encode(out)).map_err(|e| host_io(path, &e))
    }
}

fn host_io(path: &Path, error: &io::Error) -> Error {
    Error::HostIo { path: path.display().to_string(), problem: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u64 = 64 * PAGE_BYTES;

    fn sample() -> PoolFile {
        let mut files = PmemPool::new(CAPACITY);
        files.create("tree");
        files.resize("tree", 10_000).unwrap();
        let mut pages = BTreeMap::new();
        pages.insert(0, Box::new([7; PAGE]));
        pages.insert(2, Box::new([9; PAGE]));
        PoolFile { files, pages, written_by: "hercules".into() }
    }

    fn bytes(pool: &PoolFile) -> Vec<u8> {
        let mut out = Vec::new();
        pool.encode(&mut out).unwrap();
        out
    }

    fn refusal(data: &[u8]) -> String {
        PoolFile::decode("p.pool", data, CAPACITY).unwrap_err().to_string()
    }

    #[test]
    fn comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.pool");
        let pool = sample();
        let hash = pool.save(&path).unwrap();
        assert_eq!(PoolFile::load(&path, CAPACITY).unwrap(), (pool.clone(), hash));
        let mut with_zero_page = pool.clone();
        with_zero_page.pages.insert(1, Box::new([0; PAGE]));
        assert_eq!(bytes(&with_zero_page), bytes(&pool), "pages of zeros are not stored");
    }

    #[test]
    fn each_bad_file_gets_its_own_sentence() {
        let good = bytes(&sample());
        assert_eq!(refusal(b"PK\x03\x04"), "pool: p.pool is not a pool file");
        assert_eq!(refusal(b""), "pool: p.pool is not a pool file");
        let mut other = good.clone();
        other[8] = 2;
        assert_eq!(refusal(&other), "pool: p.pool has pool format 2; this version of durasim reads format 1");
        for cut in [5, 15, 40, 5000, good.len() - 1] {
            assert_eq!(refusal(&good[..cut]), "pool: p.pool is truncated", "cut at {cut}");
        }
        for at in [20, 200, 5000, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(refusal(&bad).starts_with("pool: p.pool is "), "{}", refusal(&bad));
        }
        let longer = [&good[..], &[0]].concat();
        assert!(refusal(&longer).contains("corrupt"));
        let size = PoolFile::decode("p.pool", &good, 2 * CAPACITY).unwrap_err();
        assert_eq!(size.problem, "p.pool holds a pool of 262144 bytes; this machine has 524288 bytes");
    }

    #[test]
    fn what_has_no_end_is_not_read() {
        let error = PoolFile::load(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "/dev/zero: is not a regular file and is not read");
        // Files of two terabytes, without blocks on the disk: one of zeros, one that begins as a pool does.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(2 << 40).unwrap();
        let error = PoolFile::load(&path, 1 << 20).unwrap_err().to_string();
        assert!(error.ends_with("sparse is not a pool file"), "{error}");
        (&file).write_all(MAGIC).unwrap();
        let error = PoolFile::load(&path, 1 << 20).unwrap_err().to_string();
        assert!(error.contains("sparse: has 2199023255552 bytes; no more than"), "{error}");
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.pool");
        std::fs::write(&path, "old").unwrap();
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let failed = replace_file(&path, |out| {
            out.write_all(&[1; 100_000])?;
            Err::<(), _>(full())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

        let error = sample().save(&folder.path().join("no/such/folder/p.pool")).unwrap_err();
        assert!(matches!(&error, Error::HostIo { path, .. } if path.ends_with("p.pool")), "{error}");
        assert_eq!(error.exit_code(), durasim_types::ExitCode::HostIo);
    }
}
