//! Changes of names and rights. Each is checked and made in the same way whether it goes to the host or not; what only
//! the host can refuse, it refuses before anything has changed.

use super::{FileId, Name, Node, RootFolder, failed, parted};
use crate::contents::{Contents, WriteScope};
use crate::host::{FileKey, relative};
use ::syscalls::Errno;
use cap_std::fs::{Dir, Permissions, PermissionsExt};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

impl RootFolder {
    /// Makes a change on the host if this process does so, after what was there at `paths` was kept for others. The
    /// result of the change, if it was made.
    fn change_host<T>(&self, paths: &[&str], change: impl FnOnce(&Dir) -> io::Result<T>) -> Result<Option<T>, Errno> {
        let reach = self.reach();
        if reach == WriteScope::Memory {
            return Ok(None);
        }
        let host = self.host()?;
        for path in paths {
            for first in self.path_below(path)?.into_iter().chain(self.first_path(path)?) {
                host.give_up(&first, path, reach == WriteScope::SharedHost).map_err(failed)?;
            }
        }
        change(host.dir()).map(Some).map_err(failed)
    }

    /// Creates the empty file `path`, where nothing is.
    pub(super) fn create(&mut self, path: String) -> Result<FileId, Errno> {
        let host = self.host()?.clone();
        let writer = self.change_host(&[&path], |_| host.open_writer(&path, true))?;
        let mut contents = Contents::empty();
        contents.names.push(path.clone());
        contents.writer = writer.map(Arc::new);
        let id = self.add_file(contents);
        self.names_mut().insert(path, Name::File(id));
        Ok(id)
    }

    /// The path of the host at which it shows through at `path`, unless an entry of `names` says otherwise.
    fn path_below(&self, path: &str) -> Result<Option<String>, Errno> {
        let (folder, name) = parted(path);
        match self.resolve(folder, false)?.1 {
            Node::Folder { below } => Ok(below.map(|below| format!("{below}/{name}"))),
            _ => Ok(None),
        }
    }

    /// The path that what the host has at `path` had at first, if the host has it and the program did not create it.
    fn first_path(&self, path: &str) -> Result<Option<String>, Errno> {
        match self.names.get(path) {
            Some(Name::Host(first)) => Ok(Some(first.clone())),
            Some(Name::File(id)) => Ok(self.file(*id).host_path.clone()),
            Some(Name::Absent | Name::Folder | Name::Symlink(_)) => Ok(None),
            None => self.path_below(path),
        }
    }

    /// Takes the entry of `path` away. Returns the file that it named, which may have to be released.
    fn forget(&mut self, path: &str) -> Option<FileId> {
        let Some(Name::File(id)) = self.names_mut().remove(path) else { return None };
        self.file_mut(id).names.retain(|name| name != path);
        Some(id)
    }

    /// Nothing is at `path` any more, whatever the host has there.
    fn hide(&mut self, path: &str) -> Result<(), Errno> {
        let shows = match self.path_below(path)? {
            Some(below) => self.on_host(&below)? != Node::Absent,
            None => false,
        };
        if shows {
            self.names_mut().insert(path.to_string(), Name::Absent);
        }
        Ok(())
    }

    /// Entries of everything inside of the folder `path`.
    fn names_inside(&self, path: &str) -> Vec<String> {
        let prefix = format!("{path}/");
        let inside = self.names.range(prefix.clone()..).take_while(|(name, _)| name.starts_with(&prefix));
        inside.map(|(name, _)| name.clone()).collect()
    }

    /// Removes the name of a file or link. Returns the file, which may have to be released.
    pub(crate) fn unlink(&mut self, path: &str) -> Result<Option<FileId>, Errno> {
        let (path, node) = self.resolve(path, false)?;
        match node {
            Node::Absent => return Err(Errno::ENOENT),
            Node::Folder { .. } => return Err(Errno::EISDIR),
            _ => {}
        }
        self.change_host(&[&path], |dir| dir.remove_file(relative(&path)))?;
        let orphan = self.forget(&path);
        self.hide(&path)?;
        Ok(orphan)
    }

    /// Creates a folder.
    pub(crate) fn make_folder(&mut self, path: &str) -> Result<(), Errno> {
        let (path, node) = self.resolve(path, false)?;
        if node != Node::Absent {
            return Err(Errno::EEXIST);
        }
        self.change_host(&[&path], |dir| dir.create_dir(relative(&path)))?;
        self.names_mut().insert(path, Name::Folder);
        Ok(())
    }

    /// Removes an empty folder.
    pub(crate) fn remove_folder(&mut self, path: &str) -> Result<(), Errno> {
        let (path, node) = self.resolve(path, false)?;
        let below = match node {
            Node::Absent => return Err(Errno::ENOENT),
            Node::Folder { .. } if path.is_empty() => return Err(Errno::EBUSY),
            Node::Folder { below } => below,
            _ => return Err(Errno::ENOTDIR),
        };
        self.check_empty(&path, below.as_deref())?;
        self.change_host(&[&path], |dir| dir.remove_dir(relative(&path)))?;
        self.forget_folder(&path);
        self.hide(&path)
    }

    fn check_empty(&self, path: &str, below: Option<&str>) -> Result<(), Errno> {
        if self.entries(path, below)?.is_empty() { Ok(()) } else { Err(Errno::ENOTEMPTY) }
    }

    /// Takes the entries of an empty folder away: its own, and those of names that were removed from it.
    fn forget_folder(&mut self, path: &str) {
        for name in self.names_inside(path) {
            self.names_mut().remove(&name);
        }
        self.names_mut().remove(path);
    }

    fn key_of(&self, node: &Node) -> Option<FileKey> {
        match node {
            Node::File(id) => self.file(*id).key(),
            Node::HostFile { key, .. } => Some(*key),
            _ => None,
        }
    }

    /// Renames a file, a link or a folder. Returns the file that was replaced, which may have to be released.
    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Result<Option<FileId>, Errno> {
        let ((from, node), (to, target)) = (self.resolve(from, false)?, self.resolve(to, false)?);
        if node == Node::Absent {
            return Err(Errno::ENOENT);
        }
        if from.is_empty() || to.is_empty() {
            return Err(Errno::EBUSY);
        }
        if from == to {
            return Ok(None);
        }
        let is_folder = matches!(node, Node::Folder { .. });
        match &target {
            _ if is_folder && to.starts_with(&format!("{from}/")) => return Err(Errno::EINVAL),
            Node::Absent => {}
            Node::Folder { below } if is_folder => self.check_empty(&to, below.as_deref())?,
            Node::Folder { .. } => return Err(Errno::EISDIR),
            _ if is_folder => return Err(Errno::ENOTDIR),
            // Two names of one file: both stay.
            Node::File(_) if node == target => return Ok(None),
            _ if self.key_of(&node).is_some_and(|key| self.key_of(&target) == Some(key)) => {
                return Ok(None);
            }
            _ => {}
        }
        let first = self.first_path(&from)?;
        let entry = match self.names.get(&from) {
            Some(entry) => entry.clone(),
            None => Name::Host(first.clone().expect("it is not in `names`, so the host has it")),
        };
        if self.change_host(&[&to], |dir| dir.rename(relative(&from), dir, relative(&to)))?.is_some() {
            self.host()?.moved(first.as_deref(), &from, &to);
        }

        let orphan = self.forget(&to);
        if matches!(target, Node::Folder { .. }) {
            self.forget_folder(&to);
        }
        let inside: Vec<(String, Name)> =
            self.names_inside(&from).into_iter().map(|name| (name.clone(), self.names[&name].clone())).collect();
        for (old, entry) in [(from.clone(), entry)].into_iter().chain(inside) {
            let new = format!("{to}{}", &old[from.len()..]);
            self.names_mut().remove(&old);
            self.place(new, Some(&old), entry);
        }
        self.hide(&from)?;
        Ok(orphan)
    }

    /// Puts an entry at `path`, for a file instead of its name `old`.
    fn place(&mut self, path: String, old: Option<&str>, entry: Name) {
        if let Name::File(id) = entry {
            let file = self.file_mut(id);
            file.names.retain(|name| Some(name.as_str()) != old);
            file.names.push(path.clone());
        }
        self.names_mut().insert(path, entry);
    }

    /// Gives a file or link a second name.
    pub(crate) fn link(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        let ((from, node), (to, target)) = (self.resolve(from, false)?, self.resolve(to, false)?);
        match node {
            Node::Absent => return Err(Errno::ENOENT),
            Node::Folder { .. } | Node::Other => return Err(Errno::EPERM),
            _ if target != Node::Absent => return Err(Errno::EEXIST),
            _ => {}
        }
        if let Node::Symlink(target) = node {
            // Two links that lead to the same place: no program can distinguish them from one with two names.
            return self.symlink(&target, &to);
        }
        // With two names it stays known: one of them may vanish.
        let entry = Name::File(self.known(&from, node)?);
        self.change_host(&[&to], |dir| dir.hard_link(relative(&from), dir, relative(&to)))?;
        self.place(to, None, entry);
        Ok(())
    }

    /// Creates a symbolic link. One that leaves the root at once is not made.
    pub(crate) fn symlink(&mut self, target: &str, path: &str) -> Result<(), Errno> {
        let (path, node) = self.resolve(path, false)?;
        if node != Node::Absent {
            return Err(Errno::EEXIST);
        }
        if target.starts_with('/') {
            return Err(Errno::EACCES);
        }
        if target.is_empty() {
            return Err(Errno::ENOENT);
        }
        self.change_host(&[&path], |dir| dir.symlink(target, relative(&path)))?;
        self.names_mut().insert(path, Name::Symlink(target.to_string()));
        Ok(())
    }

    /// Changes the rights of what `path` names. Returns the file, which may have to be released. Folders always show
    /// the same rights.
    pub(crate) fn set_rights(&mut self, path: &str, mode: u32) -> Result<Option<FileId>, Errno> {
        let (path, node) = self.resolve(path, true)?;
        if let Node::Absent = node {
            return Err(Errno::ENOENT);
        }
        let id = match node {
            Node::File(_) | Node::HostFile { .. } => Some(self.known(&path, node)?),
            _ => None,
        };
        self.change_host(&[], |dir| dir.set_permissions(relative(&path), Permissions::from_mode(mode)))?;
        if let Some(id) = id {
            self.note_rights(id, mode);
        }
        Ok(id)
    }

    /// Changes the rights of an open file.
    pub(crate) fn set_rights_of(&mut self, id: FileId, mode: u32) -> Result<(), Errno> {
        if self.reach() != WriteScope::Memory {
            let rights = std::fs::Permissions::from_mode(mode);
            match (&self.file(id).writer, self.file(id).names.first()) {
                (Some(writer), _) => writer.set_permissions(rights).map_err(failed)?,
                (None, Some(name)) => {
                    let rights = Permissions::from_std(rights);
                    self.host()?.dir().set_permissions(relative(name), rights).map_err(failed)?;
                }
                // Open for reading alone and without a name: no program can find it again.
                (None, None) => {}
            }
        }
        self.note_rights(id, mode);
        Ok(())
    }

    fn note_rights(&mut self, id: FileId, mode: u32) {
        let file = self.file_mut(id);
        (file.mode, file.changed) = (mode, true);
    }
}
