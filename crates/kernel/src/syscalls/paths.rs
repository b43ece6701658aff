//! The object that a path of the program names.

use super::{Call, Stop};
use crate::files::{Device, Kind};
use ::syscalls::Errno;

const AT_FDCWD: i32 = -100;

/// The object that a path names, whether it exists or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathTarget {
    /// A path inside the root folder, absolute and without `.` and `..`.
    Host(String),
    /// The folder `/pmem`.
    PmemFolder,
    /// The file of that name under `/pmem/`.
    Pmem(String),
    /// `/dev/null`, `/dev/zero`, or `/dev/random` and `/dev/urandom`.
    Device(Device),
    /// `/proc/self/exe`.
    Executable,
}

/// Joins `path` to the absolute `folder` and resolves `.` and `..` by name; `..` of the root is the root.
///
/// By name means that `link/..` is the folder that holds `link`, whatever it points to. The host resolves symbolic
/// links afterwards, inside the root folder only.
fn join(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let start = if path.starts_with('/') { "" } else { folder };
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

fn place(path: String) -> PathTarget {
    match path.as_str() {
        "/pmem" => PathTarget::PmemFolder,
        "/dev/null" => PathTarget::Device(Device::Null),
        "/dev/zero" => PathTarget::Device(Device::Zero),
        "/dev/random" | "/dev/urandom" => PathTarget::Device(Device::Random),
        "/proc/self/exe" => PathTarget::Executable,
        _ => match path.strip_prefix("/pmem/") {
            Some(name) => PathTarget::Pmem(name.to_string()),
            None => PathTarget::Host(path),
        },
    }
}

impl Call<'_> {
    /// The object that `path` names, relative to the open folder `folder_fd`.
    pub(super) fn resolve(&mut self, folder_fd: i32, path: &str) -> Result<PathTarget, Stop> {
        if path.is_empty() {
            return Err(Errno::ENOENT.into());
        }
        let folder = if path.starts_with('/') || folder_fd == AT_FDCWD {
            self.process.files.cwd.clone()
        } else {
            match &self.process.files.get(folder_fd)?.kind {
                Kind::Folder { path, .. } => path.clone(),
                _ => return Err(Errno::ENOTDIR.into()),
            }
        };
        let place = place(join(&folder, path));
        match &place {
            // The namespace under /pmem/ is flat.
            PathTarget::Pmem(name) if name.contains('/') => Err(Errno::ENOENT.into()),
            PathTarget::Pmem(name) if name.len() > 255 => Err(Errno::ENAMETOOLONG.into()),
            _ => Ok(place),
        }
    }

    /// The object that the path at `addr` names.
    pub(super) fn place_at(&mut self, folder_fd: i32, addr: u64) -> Result<PathTarget, Stop> {
        let path = self.text_from(addr)?;
        self.resolve(folder_fd, &path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_never_leave_the_root() {
        assert_eq!(join("/", "../../etc/passwd"), "/etc/passwd");
        assert_eq!(join("/a/b", "../c/./d//"), "/a/c/d");
        assert_eq!(join("/a", "/x/.."), "/");
        assert_eq!(place(join("/", "pmem/../pmem/tree")), PathTarget::Pmem("tree".into()));
        assert_eq!(place(join("/pmem", ".")), PathTarget::PmemFolder);
    }
}
