//! The folder of the host that a program sees as `/`, as it was before the program that writes to it changed it.
//!
//! One process at most writes to the folder; forks of it may continue to read there. What the writer is about to change is
//! kept here first, as long as another process shares the folder with it, so that only the writer sees its changes.

use ::syscalls::Errno;
use cap_std::fs::{Dir, MetadataExt, OpenOptions, PermissionsExt};
use durasim_types::PAGE_BYTES;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// Device and inode on the host: equal for two paths that name the same file. Never shown to the program.
pub(crate) type FileKey = (u64, u64);

type Page = [u8; PAGE_BYTES as usize];

/// The Linux error for an error of the host. Found by kind first: the numbers of other hosts differ.
pub(crate) fn errno(error: &io::Error) -> Errno {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound => Errno::ENOENT,
        Kind::AlreadyExists => Errno::EEXIST,
        Kind::PermissionDenied => Errno::EACCES,
        Kind::NotADirectory => Errno::ENOTDIR,
        Kind::IsADirectory => Errno::EISDIR,
        Kind::DirectoryNotEmpty => Errno::ENOTEMPTY,
        Kind::StorageFull => Errno::ENOSPC,
        Kind::QuotaExceeded => Errno::EDQUOT,
        Kind::FileTooLarge => Errno::EFBIG,
        Kind::ReadOnlyFilesystem => Errno::EROFS,
        Kind::InvalidInput | Kind::InvalidFilename => Errno::EINVAL,
        Kind::ResourceBusy => Errno::EBUSY,
        Kind::CrossesDevices => Errno::EXDEV,
        _ => Errno::EIO,
    }
}

/// A path as the folder of the host takes it.
pub(crate) fn relative(path: &str) -> &str {
    match path.trim_start_matches('/') {
        "" => ".",
        inside => inside,
    }
}

/// The object that a path names on the host; symbolic links are not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostEntry {
    Absent,
    File {
        key: FileKey,
        size_bytes: u64,
        mode: u32,
    },
    Folder,
    Symlink(String),
    /// A pipe would block the simulator; a device of the host is none of the program's business.
    Other,
}

/// A file of the host as it was when it was first opened.
#[derive(Debug)]
pub(crate) struct HostFile {
    file: File,
    key: FileKey,
    size_bytes: u64,
    mode: u32,
    /// Pages as they were before the writer changed them.
    before: Mutex<BTreeMap<u64, Box<Page>>>,
}

impl HostFile {
    pub(crate) fn key(&self) -> FileKey {
        self.key
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The bits of the rights.
    pub(crate) fn mode(&self) -> u32 {
        self.mode
    }

    /// Reads at `offset` up to the end; what the host has cut off in the meantime reads as zero.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let before = locked(&self.before);
        let inside = self.size_bytes.saturating_sub(offset).min(bytes.len() as u64) as usize;
        bytes.fill(0);
        read_at(&self.file, offset, &mut bytes[..inside])?;
        let end = offset + inside as u64;
        for (&number, page) in before.range(offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES)) {
            let (start, stop) = (offset.max(number * PAGE_BYTES), end.min((number + 1) * PAGE_BYTES));
            let in_page = (start - number * PAGE_BYTES) as usize..(stop - number * PAGE_BYTES) as usize;
            bytes[(start - offset) as usize..(stop - offset) as usize].copy_from_slice(&page[in_page]);
        }
        Ok(())
    }

    /// Keeps pages that are about to change.
    pub(crate) fn keep(&self, pages: Range<u64>) -> io::Result<()> {
        let mut before = locked(&self.before);
        for number in pages.start..pages.end.min(self.size_bytes.div_ceil(PAGE_BYTES)) {
            if let Entry::Vacant(place) = before.entry(number) {
                let mut page = Box::new([0; PAGE_BYTES as usize]);
                read_at(&self.file, number * PAGE_BYTES, &mut page[..])?;
                place.insert(page);
            }
        }
        Ok(())
    }
}

/// Reads as many bytes as there are.
fn read_at(file: &File, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it holds the lock")
}

/// The object of a path that the writer has changed.
#[derive(Debug)]
enum OriginalEntry {
    /// The earlier object; the host may have another there now. Of a folder, only what is kept too was in it. Files
    /// are open, so that they outlive their names; one that could not be opened is none.
    Was(HostEntry, Option<Arc<HostFile>>),
    /// It is still on the host, at this path.
    At(String),
}

#[derive(Debug, Default)]
struct HostOriginals {
    /// By the path that everything had at first.
    names: BTreeMap<String, OriginalEntry>,
    /// All files that are open: all holders have to see the same pages kept.
    files: BTreeMap<FileKey, Weak<HostFile>>,
}

/// The object that the host has at a path today.
enum CurrentPath<'a> {
    Was(&'a HostEntry, Option<&'a Arc<HostFile>>),
    At(String),
}

impl HostOriginals {
    fn find(&self, path: &str) -> CurrentPath<'_> {
        if let Some(OriginalEntry::Was(found, file)) = self.names.get(path) {
            return CurrentPath::Was(found, file.as_ref());
        }
        let mut end = path.len();
        while !self.names.is_empty() && end > 0 {
            match self.names.get(&path[..end]) {
                Some(OriginalEntry::At(today)) => return CurrentPath::At(format!("{today}{}", &path[end..])),
                // Inside of something that is gone.
                Some(OriginalEntry::Was(..)) => return CurrentPath::Was(&HostEntry::Absent, None),
                None => end = path[..end].rfind('/').unwrap_or(0),
            }
        }
        CurrentPath::At(path.to_string())
    }
}

/// A folder of the host. Nothing outside of it can be reached. Paths start with `/`; the folder itself is the empty path.
///
/// [`look`](Self::look), [`open`](Self::open) and [`list`](Self::list) take the path that something had at first, and
/// find it wherever the writer has moved it.
#[derive(Debug)]
pub(crate) struct HostFolder {
    dir: Dir,
    before: Mutex<HostOriginals>,
}

impl HostFolder {
    pub(crate) fn new(dir: Dir) -> Self {
        HostFolder { dir, before: Mutex::default() }
    }

    /// For changes by the one process that may make them, with the paths of today.
    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The earlier object of `path`.
    pub(crate) fn look(&self, path: &str) -> io::Result<HostEntry> {
        let before = locked(&self.before);
        match before.find(path) {
            CurrentPath::Was(found, _) => Ok(found.clone()),
            CurrentPath::At(today) => self.look_now(&before, &today),
        }
    }

    fn look_now(&self, before: &HostOriginals, path: &str) -> io::Result<HostEntry> {
        let metadata = match self.dir.symlink_metadata(relative(path)) {
            Ok(metadata) => metadata,
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(HostEntry::Absent);
            }
            Err(e) => return Err(e),
        };
        if metadata.is_file() {
            let key = (metadata.dev(), metadata.ino());
            let open = before.files.get(&key).and_then(Weak::upgrade);
            let size_bytes = open.as_ref().map_or(metadata.len(), |file| file.size_bytes);
            let mode = open.map_or(metadata.permissions().mode() & 0o777, |file| file.mode);
            return Ok(HostEntry::File { key, size_bytes, mode });
        }
        if metadata.is_symlink() {
            let target = self.dir.read_link_contents(relative(path))?;
            // A target that is not UTF-8 could not be shown to the program.
            return Ok(target.into_os_string().into_string().map_or(HostEntry::Other, HostEntry::Symlink));
        }
        Ok(if metadata.is_dir() { HostEntry::Folder } else { HostEntry::Other })
    }

    /// Opens the regular file that `path` stood for, to read it.
    pub(crate) fn open(&self, path: &str) -> io::Result<Arc<HostFile>> {
        let mut before = locked(&self.before);
        match before.find(path) {
            CurrentPath::Was(_, Some(file)) => Ok(file.clone()),
            CurrentPath::Was(HostEntry::Absent, _) => Err(io::ErrorKind::NotFound.into()),
            CurrentPath::Was(..) => Err(io::ErrorKind::PermissionDenied.into()),
            CurrentPath::At(today) => self.open_now(&mut before, &today),
        }
    }

    fn open_now(&self, before: &mut HostOriginals, path: &str) -> io::Result<Arc<HostFile>> {
        let file = self.dir.open(relative(path))?;
        let metadata = file.metadata()?;
        let key = (metadata.dev(), metadata.ino());
        if let Some(open) = before.files.get(&key).and_then(Weak::upgrade) {
            return Ok(open);
        }
        let opened = Arc::new(HostFile {
            file: file.into_std(),
            key,
            size_bytes: metadata.len(),
            mode: metadata.permissions().mode() & 0o777,
            before: Mutex::default(),
        });
        before.files.retain(|_, file| file.strong_count() > 0);
        before.files.insert(key, Arc::downgrade(&opened));
        Ok(opened)
    }

    /// Opens a file to write to it, as the one process that may.
    pub(crate) fn open_writer(&self, path: &str, create: bool) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(create);
        Ok(self.dir.open_with(relative(path), &options)?.into_std())
    }

    /// The writer is about to put something else or nothing at `path`. If that is where the host has what had the path
    /// `first` at first, it is kept for `others`, or without others forgotten.
    pub(crate) fn give_up(&self, first: &str, path: &str, others: bool) -> io::Result<()> {
        let mut before = locked(&self.before);
        if !matches!(before.find(first), CurrentPath::At(today) if today == path) {
            return Ok(());
        }
        let kept = match self.look_now(&before, path)? {
            found @ HostEntry::File { .. } if others => {
                OriginalEntry::Was(found, self.open_now(&mut before, path).ok())
            }
            found if others => OriginalEntry::Was(found, None),
            // An object that is put there later never had this path.
            _ if before.names.contains_key(first) => OriginalEntry::Was(HostEntry::Absent, None),
            _ => return Ok(()),
        };
        before.names.insert(first.to_string(), kept);
        Ok(())
    }

    /// The writer has moved what the host has at `from`, which had the path `first` at first, to `to`.
    pub(crate) fn moved(&self, first: Option<&str>, from: &str, to: &str) {
        let mut before = locked(&self.before);
        let inside = format!("{from}/");
        for kept in before.names.values_mut() {
            if let OriginalEntry::At(today) = kept
                && (today == from || today.starts_with(&inside))
            {
                *today = format!("{to}{}", &today[from.len()..]);
            }
        }
        if let Some(first) = first
            && !matches!(before.names.get(first), Some(OriginalEntry::Was(..)))
        {
            before.names.insert(first.to_string(), OriginalEntry::At(to.to_string()));
        }
    }

    /// The object at the path `first` at first is at `today`, if anything is there.
    pub(crate) fn find_at(&self, first: String, today: String) {
        let mut before = locked(&self.before);
        if self.look_now(&before, &today).is_ok_and(|found| found != HostEntry::Absent) {
            before.names.insert(first, OriginalEntry::At(today));
        }
    }

    /// The present paths of objects that the writer has moved, by the path that they had at first.
    pub(crate) fn moves(&self) -> BTreeMap<String, String> {
        let before = locked(&self.before);
        let moves = before.names.iter().filter_map(|(first, kept)| match kept {
            OriginalEntry::At(today) => Some((first.clone(), today.clone())),
            OriginalEntry::Was(..) => None,
        });
        moves.collect()
    }

    fn names_now(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.dir.read_dir(relative(path))? {
            // A name that is not UTF-8 could not be opened anyway.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    /// The names that were in the folder `path`.
    pub(crate) fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let before = locked(&self.before);
        let mut names = match before.find(path) {
            CurrentPath::Was(..) => Vec::new(),
            CurrentPath::At(today) => self.names_now(&today)?,
        };
        let prefix = format!("{path}/");
        let kept = before.names.range(prefix.clone()..).take_while(|(kept, _)| kept.starts_with(&prefix));
        for (name, kept) in kept.map(|(path, kept)| (&path[prefix.len()..], kept)).filter(|(n, _)| !n.contains('/')) {
            names.retain(|n| n != name);
            if !matches!(kept, OriginalEntry::Was(HostEntry::Absent, _)) {
                names.push(name.to_string());
            }
        }
        Ok(names)
    }
}
