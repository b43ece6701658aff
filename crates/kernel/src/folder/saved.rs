//! Saving a root folder, and what a program has changed in it.

use super::{Name, RootFolder};
use crate::host::HostFolder;
use durasim_types::Error;
use std::io;
use std::sync::Arc;

/// The most bytes that are read from the host to save files that are open or changed.
const SAVED_MAX_BYTES: u64 = 4 << 30;

/// A path at which a program has changed something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// A file was created, written or got other rights.
    Written {
        /// Its path, from the root on.
        path: String,
        /// All of it.
        bytes: Vec<u8>,
    },
    /// A folder was created.
    Folder {
        /// Its path.
        path: String,
    },
    /// A symbolic link was created.
    Link {
        /// Its path.
        path: String,
        /// The target of a symbolic link.
        target: String,
    },
    /// An object of the host's folder is now at another path.
    Moved {
        /// The path now.
        path: String,
        /// The path on the host.
        from: String,
    },
    /// An object of the host's folder was removed or moved away.
    Removed {
        /// The path.
        path: String,
    },
}

fn host_io(path: &str, error: &io::Error) -> Error {
    Error::HostIo { path: path.to_string(), problem: error.to_string() }
}

impl RootFolder {
    /// A copy that needs no host for any file that is open or was changed.
    pub(crate) fn loaded(&self) -> Result<RootFolder, Error> {
        let mut loaded = self.clone();
        let mut room_bytes = SAVED_MAX_BYTES;
        for file in Arc::make_mut(&mut loaded.files).values_mut() {
            let name = file.names.first().or(file.host_path.as_ref()).cloned().unwrap_or("a removed file".into());
            let bytes = file.host_bytes();
            room_bytes = room_bytes.checked_sub(bytes).ok_or_else(|| Error::HostIo {
                path: name.clone(),
                problem: format!(
                    "the program has it open with {bytes} bytes; files of more than {SAVED_MAX_BYTES} bytes in all cannot \
                     be saved"
                ),
            })?;
            file.load().map_err(|e| host_io(&name, &e))?;
        }
        loaded.moves = self.host.as_ref().map(|host| host.moves()).unwrap_or_default();
        loaded.host = None;
        Ok(loaded)
    }

    /// Whether the program was given a folder.
    pub(crate) fn exists(&self) -> bool {
        self.exists
    }

    /// Puts the folder of the host below again. Where it is as it was before the program moved something in it, it is
    /// taken as it is.
    pub(crate) fn attach(&mut self, host: Option<HostFolder>) {
        let moves = std::mem::take(&mut self.moves);
        if let Some(host) = &host {
            moves.into_iter().for_each(|(first, today)| host.find_at(first, today));
        }
        self.host = host.map(Arc::new);
    }

    /// The changes of the program, by path.
    pub(crate) fn changes(&self) -> Result<Vec<FileChange>, Error> {
        let mut changes = Vec::new();
        for (path, name) in self.names.iter() {
            let path = path.clone();
            changes.push(match name {
                Name::Absent => FileChange::Removed { path },
                Name::Folder => FileChange::Folder { path },
                Name::Symlink(target) => FileChange::Link { path, target: target.clone() },
                Name::Host(from) if *from != path => FileChange::Moved { path, from: from.clone() },
                Name::File(id) => {
                    let file = self.file(*id);
                    match &file.host_path {
                        _ if file.changed => {
                            let bytes = file.read(0, u64::MAX).map_err(|e| host_io(&path, &e))?;
                            FileChange::Written { path, bytes }
                        }
                        Some(from) if *from != path => FileChange::Moved { path, from: from.clone() },
                        _ => continue,
                    }
                }
                Name::Host(_) => continue,
            });
        }
        Ok(changes)
    }
}
