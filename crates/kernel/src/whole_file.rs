//! Host files that are read as a whole, or replaced as a whole: pools, snapshots and programs.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A program of more bytes is not read: a sparse file may be larger than the memory of the host.
const ELF_BYTES_MAX: u64 = 4 << 30;

/// Reads a whole host file of a format whose files begin with `begins`. Of one that begins otherwise, no more than these first
/// bytes: its decoder refuses it. A device or a pipe is refused: it may have no end, or no writer.
///
/// # Errors
/// The object at `path` is no regular file, has more than `bytes_max` bytes, or cannot be read.
pub fn read_file(path: &Path, begins: &[u8], bytes_max: u64) -> io::Result<Vec<u8>> {
    let refuse = |problem: String| Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    let found = std::fs::metadata(path)?;
    if !found.is_file() && !found.is_dir() {
        return refuse("is not a regular file and is not read".into());
    }
    let file = File::open(path)?;
    let mut data = Vec::new();
    (&file).take(begins.len() as u64).read_to_end(&mut data)?;
    if data != begins {
        return Ok(data);
    }
    if found.len() > bytes_max {
        return refuse(format!("has {} bytes; no more than {bytes_max} are read", found.len()));
    }
    file.take(bytes_max).read_to_end(&mut data)?;
    Ok(data)
}

/// Writes a temporary file beside `path` and gives it that name once everything is on the disk. The temporary file
/// is removed if anything fails. What stands at `path` and is not a regular file, such as a device, is left alone.
pub fn replace_file<T>(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<T> {
    if std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file and is not replaced"));
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let mut buffered = io::BufWriter::new(file.as_file_mut());
    let result = write(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(result)
}

/// Reads a program; of a file that is not an ELF, the first bytes.
///
/// # Errors
/// As those of [`read_file`].
pub fn read_elf_file(path: &Path) -> io::Result<Vec<u8>> {
    read_file(path, &object::elf::ELFMAG, ELF_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_an_ordinary_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/null", &place).unwrap();
        for path in [place.as_path(), folder.path()] {
            let refused = replace_file(path, |_| Ok(())).unwrap_err();
            assert!(refused.to_string().contains("not a regular file"), "{refused}");
        }
        assert!(place.is_symlink());
        let file = folder.path().join("file");
        for _ in 0..2 {
            replace_file(&file, |out| out.write_all(b"new")).unwrap();
        }
        assert_eq!(std::fs::read(file).unwrap(), b"new");
    }

    #[test]
    fn no_more_is_read_of_a_program_than_it_may_have() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, "#!/bin/sh").unwrap();
        assert_eq!(read_elf_file(&path).unwrap(), b"#!/b");
        let file = File::create(&path).unwrap();
        (&file).write_all(&object::elf::ELFMAG).unwrap();
        file.set_len(2 << 40).unwrap();
        let refused = read_elf_file(&path).unwrap_err().to_string();
        assert_eq!(refused, "has 2199023255552 bytes; no more than 4294967296 are read");
        assert!(read_elf_file(Path::new("/dev/zero")).unwrap_err().to_string().contains("not a regular file"));
    }
}
