//! The root folder of a program: the folder of the host, and over it what the program has changed.
//!
//! Every change is made to the view of the process itself. The process that was started also makes it on the host, at
//! once; forks of it and processes that were restored never do. The host below is read through
//! [`HostFolder`](crate::host::HostFolder), which forgets nothing that the one writer changes, so that no process ever
//! sees a change of another. What others than the simulator change in the folder is seen where the program has not
//! looked yet.

mod changes;
mod saved;
#[cfg(test)]
mod tests;

use crate::contents::{Contents, WriteScope};
use crate::host::{self, FileKey, HostEntry, HostFolder};
use ::syscalls::Errno;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

pub use saved::FileChange;

/// Symbolic links followed in one path, as in Linux.
const LINKS_MAX: usize = 40;

/// A file that is open or was changed. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct FileId(u64);

/// The object of a path in the view of the process, where that is not simply what the host has there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Name {
    Absent,
    File(FileId),
    /// A folder that the program made: nothing of the host shows through.
    Folder,
    Symlink(String),
    /// The object that the host had at this path at first.
    Host(String),
}

/// The object that a path was found to name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// Nothing, in a folder that exists.
    Absent,
    /// A file that is open or was changed.
    File(FileId),
    /// A file of the host, which had this path there at first.
    HostFile { host_path: String, key: FileKey, size_bytes: u64, mode: u32 },
    /// A folder, and the folder of the host that shows through.
    Folder { below: Option<String> },
    /// A symbolic link with its target.
    Symlink(String),
    /// Neither file nor folder nor link.
    Other,
}

/// The request of a program to `openat`, decoded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenMode {
    pub(crate) write: bool,
    pub(crate) create: bool,
    pub(crate) exclusive: bool,
    pub(crate) truncate: bool,
}

/// The opened object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    File(FileId),
    Folder,
}

/// The root folder as one process sees it. A clone sees the same and never writes to the host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RootFolder {
    #[serde(skip)]
    host: Option<Arc<HostFolder>>,
    /// Whether the program was given a folder.
    exists: bool,
    /// Whether changes are made on the host too. The paths of the process are those of the host then.
    #[serde(skip)]
    writes_to_host: bool,
    names: Arc<BTreeMap<String, Name>>,
    files: Arc<BTreeMap<FileId, Contents>>,
    next_file: u64,
    /// Only of a saved folder: where the host has what the program has moved there, by the path that it had at first.
    moves: BTreeMap<String, String>,
}

impl Clone for RootFolder {
    fn clone(&self) -> Self {
        RootFolder {
            host: self.host.clone(),
            exists: self.exists,
            writes_to_host: false,
            names: self.names.clone(),
            files: self.files.clone(),
            next_file: self.next_file,
            moves: BTreeMap::new(),
        }
    }
}

fn failed(error: io::Error) -> Errno {
    host::errno(&error)
}

/// Folder and name of a path that is not the root.
fn parted(path: &str) -> (&str, &str) {
    path.rsplit_once('/').expect("paths other than the root contain a slash")
}

impl RootFolder {
    /// The folder of the host as a program finds it, or none.
    pub(crate) fn new(host: Option<HostFolder>) -> Self {
        RootFolder {
            exists: host.is_some(),
            host: host.map(Arc::new),
            writes_to_host: true,
            names: Arc::default(),
            files: Arc::default(),
            next_file: 0,
            moves: BTreeMap::new(),
        }
    }

    /// From now on changes stay in memory.
    pub(crate) fn keep_in_memory(&mut self) {
        self.writes_to_host = false;
    }

    /// The folder of the host; without one no file exists.
    fn host(&self) -> Result<&Arc<HostFolder>, Errno> {
        self.host.as_ref().ok_or(Errno::ENOENT)
    }

    /// The reach of a change that is made now.
    fn reach(&self) -> WriteScope {
        match &self.host {
            Some(host) if self.writes_to_host && Arc::strong_count(host) > 1 => WriteScope::SharedHost,
            Some(_) if self.writes_to_host => WriteScope::Host,
            _ => WriteScope::Memory,
        }
    }

    /// The contents of a file.
    pub(crate) fn file(&self, id: FileId) -> &Contents {
        &self.files[&id]
    }

    fn file_mut(&mut self, id: FileId) -> &mut Contents {
        Arc::make_mut(&mut self.files).get_mut(&id).expect("ids name files that are open or named")
    }

    fn add_file(&mut self, contents: Contents) -> FileId {
        let id = FileId(self.next_file);
        self.next_file += 1;
        Arc::make_mut(&mut self.files).insert(id, contents);
        id
    }

    /// A new, empty file in memory that no path names.
    pub(crate) fn add_unnamed(&mut self) -> FileId {
        self.add_file(Contents::empty())
    }

    fn names_mut(&mut self) -> &mut BTreeMap<String, Name> {
        Arc::make_mut(&mut self.names)
    }

    fn on_host(&self, host_path: &str) -> Result<Node, Errno> {
        Ok(match self.host()?.look(host_path).map_err(failed)? {
            HostEntry::Absent => Node::Absent,
            // Another name of a file that is known already.
            HostEntry::File { key, size_bytes, mode } => match self.files.iter().find(|(_, f)| f.key() == Some(key)) {
                Some((&id, _)) => Node::File(id),
                None => Node::HostFile { host_path: host_path.to_string(), key, size_bytes, mode },
            },
            HostEntry::Folder => Node::Folder { below: Some(host_path.to_string()) },
            HostEntry::Symlink(target) => Node::Symlink(target),
            HostEntry::Other => Node::Other,
        })
    }

    /// The object of `path`, in a folder through which `below` shows.
    fn node(&self, path: &str, below: Option<&str>) -> Result<Node, Errno> {
        match (self.names.get(path), below) {
            (Some(Name::Absent), _) | (None, None) => Ok(Node::Absent),
            (Some(&Name::File(id)), _) => Ok(Node::File(id)),
            (Some(Name::Folder), _) => Ok(Node::Folder { below: None }),
            (Some(Name::Symlink(target)), _) => Ok(Node::Symlink(target.clone())),
            (Some(Name::Host(host_path)), _) => self.on_host(host_path),
            (None, Some(below)) => self.on_host(&format!("{below}/{}", parted(path).1)),
        }
    }

    /// Follows `path` from the root on, with `follow` also where its last name is a symbolic link. Returns the path
    /// without links and what is there; the root is the empty path. No link leaves the root.
    pub(crate) fn resolve(&self, path: &str, follow: bool) -> Result<(String, Node), Errno> {
        self.host()?;
        fn parts(path: &str) -> impl DoubleEndedIterator<Item = String> {
            path.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_string)
        }
        let mut rest: VecDeque<String> = parts(path).collect();
        let mut folders = vec![(String::new(), Some(String::new()))];
        let mut links = 0;
        while let Some(part) = rest.pop_front() {
            if part == ".." {
                // Above the root is the root.
                folders.truncate(folders.len().saturating_sub(1).max(1));
                continue;
            }
            let (folder, below) = folders.last().expect("the root stays");
            let here = format!("{folder}/{part}");
            match self.node(&here, below.as_deref())? {
                Node::Symlink(target) if follow || !rest.is_empty() => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(Errno::ELOOP);
                    }
                    if target.starts_with('/') {
                        // The root folder is all that the program has.
                        folders.truncate(1);
                    }
                    parts(&target).rev().for_each(|part| rest.push_front(part));
                }
                Node::Folder { below } => folders.push((here, below)),
                Node::Absent if !rest.is_empty() => return Err(Errno::ENOENT),
                _ if !rest.is_empty() => return Err(Errno::ENOTDIR),
                node => return Ok((here, node)),
            }
        }
        let (folder, below) = folders.pop().expect("the root stays");
        Ok((folder, Node::Folder { below }))
    }

    /// Opens `path`. With `stay` its last name may not be a symbolic link.
    pub(crate) fn open(&mut self, path: &str, mode: OpenMode, stay: bool) -> Result<Opening, Errno> {
        let exclusive = mode.create && mode.exclusive;
        let (path, node) = self.resolve(path, !stay && !exclusive)?;
        let id = match node {
            Node::Folder { .. } => return Ok(Opening::Folder),
            Node::Other => return Err(Errno::EACCES),
            Node::Symlink(_) if stay => return Err(Errno::ELOOP),
            Node::Symlink(_) => return Err(Errno::EEXIST),
            Node::Absent if mode.create => return self.create(path).map(Opening::File),
            Node::Absent => return Err(Errno::ENOENT),
            _ if exclusive => return Err(Errno::EEXIST),
            node => self.known(&path, node)?,
        };
        if mode.write || mode.truncate {
            self.prepare_writing(id, &path)?;
        }
        if mode.truncate {
            self.resize(id, 0)?;
        }
        Ok(Opening::File(id))
    }

    /// The file that `path` was found to name, which is looked at from now on.
    fn known(&mut self, path: &str, node: Node) -> Result<FileId, Errno> {
        match node {
            Node::File(id) => Ok(id),
            Node::HostFile { host_path, .. } => {
                let mut contents = Contents::of(self.host()?.open(&host_path).map_err(failed)?, host_path);
                contents.names.push(path.to_string());
                let id = self.add_file(contents);
                self.names_mut().insert(path.to_string(), Name::File(id));
                Ok(id)
            }
            Node::Folder { .. } => Err(Errno::EISDIR),
            Node::Absent => Err(Errno::ENOENT),
            Node::Symlink(_) | Node::Other => Err(Errno::EACCES),
        }
    }

    fn prepare_writing(&mut self, id: FileId, path: &str) -> Result<(), Errno> {
        match self.reach() {
            WriteScope::Memory if self.file(id).is_writable() => Ok(()),
            WriteScope::Memory => Err(Errno::EACCES),
            _ if self.file(id).writer.is_some() => Ok(()),
            _ => {
                let writer = self.host()?.open_writer(path, false).map_err(failed)?;
                self.file_mut(id).writer = Some(Arc::new(writer));
                Ok(())
            }
        }
    }

    /// Up to `len` bytes of a file at `offset`; fewer only at its end.
    pub(crate) fn read(&self, id: FileId, offset: u64, len: u64) -> Result<Vec<u8>, Errno> {
        self.file(id).read(offset, len).map_err(failed)
    }

    /// Writes to a file that was opened for writing.
    pub(crate) fn write(&mut self, id: FileId, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        let reach = self.reach();
        self.file_mut(id).write(offset, bytes, reach).map_err(failed)
    }

    /// Gives a file that was opened for writing another size.
    pub(crate) fn resize(&mut self, id: FileId, size_bytes: u64) -> Result<(), Errno> {
        let reach = self.reach();
        self.file_mut(id).resize(size_bytes, reach).map_err(failed)
    }

    /// Changes the size of the file that `path` names and returns it. It may have to be [released](Self::release).
    pub(crate) fn truncate(&mut self, path: &str, size_bytes: u64) -> Result<FileId, Errno> {
        let (path, node) = self.resolve(path, true)?;
        let id = self.known(&path, node)?;
        self.prepare_writing(id, &path)?;
        self.resize(id, size_bytes)?;
        Ok(id)
    }

    /// Writes a file to the disk of the host, if its changes go there at all.
    pub(crate) fn sync(&self, id: FileId) -> Result<(), Errno> {
        match (&self.file(id).writer, self.reach()) {
            (None, _) | (_, WriteScope::Memory) => Ok(()),
            (Some(writer), _) => writer.sync_all().map_err(failed),
        }
    }

    /// No descriptor and no mapping leads to the file any more: what neither a name leads to nor was changed is
    /// forgotten.
    pub(crate) fn release(&mut self, id: FileId) {
        let Some(file) = self.files.get(&id) else { return };
        let others_find_it = file.names.len() == 1 && file.is_on_host();
        if !file.names.is_empty() && !others_find_it {
            if file.writer.is_some() {
                self.file_mut(id).writer = None;
            }
            return;
        }
        let file = Arc::make_mut(&mut self.files).remove(&id).expect("found above");
        for (name, host_path) in file.names.into_iter().zip(file.host_path) {
            // Found again without an entry, if none of the folders above has one either.
            let mut folders = name.match_indices('/').map(|(end, _)| &name[..end]);
            if name == host_path && !folders.any(|folder| self.names.contains_key(folder)) {
                self.names_mut().remove(&name);
            } else {
                self.names_mut().insert(name, Name::Host(host_path));
            }
        }
    }

    /// The names in a folder, without `.` and `..`, and what they stand for.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<(String, Node)>, Errno> {
        let (path, node) = self.resolve(path, true)?;
        let Node::Folder { below } = node else { return Err(Errno::ENOTDIR) };
        self.entries(&path, below.as_deref())
    }

    fn entries(&self, path: &str, below: Option<&str>) -> Result<Vec<(String, Node)>, Errno> {
        let mut names = match below {
            Some(below) => self.host()?.list(below).map_err(failed)?,
            None => Vec::new(),
        };
        let prefix = format!("{path}/");
        let own = self.names.range(prefix.clone()..).take_while(|(name, _)| name.starts_with(&prefix));
        names.extend(own.map(|(name, _)| name[prefix.len()..].to_string()).filter(|name| !name.contains('/')));
        names.sort();
        names.dedup();
        let mut entries = Vec::new();
        for name in names {
            match self.node(&format!("{prefix}{name}"), below)? {
                Node::Absent => {}
                node => entries.push((name, node)),
            }
        }
        Ok(entries)
    }
}
