use super::*;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use durasim_types::Rng;
use std::path::Path;

/// A root folder and the files that are open in it.
#[derive(Clone)]
struct Side {
    root: RootFolder,
    opened: Vec<FileId>,
}

impl Side {
    fn on(folder: &Path) -> Side {
        let dir = Dir::open_ambient_dir(folder, ambient_authority()).unwrap();
        Side { root: RootFolder::new(Some(HostFolder::new(dir))), opened: Vec::new() }
    }

    fn release(&mut self, orphan: Option<FileId>) {
        if let Some(id) = orphan.filter(|id| !self.opened.contains(id)) {
            self.root.release(id);
        }
    }

    /// Does something, the same for all sides that are given generators in the same state.
    fn act(&mut self, rng: &mut Rng) -> String {
        const NAMES: [&str; 9] = ["/a", "/b", "/c", "/d", "/d/a", "/d/e", "/d/e/a", "/l", "/l/a"];
        let any = |rng: &mut Rng| NAMES[rng.below(NAMES.len() as u64) as usize];
        let path = any(rng);
        match rng.below(13) {
            0..3 => {
                let [write, create, truncate, exclusive, stay] = [1, 2, 4, 5, 5].map(|odds| rng.below(odds + 1) == 0);
                let mode = OpenMode { write: write || truncate, create, exclusive, truncate };
                let result = self.root.open(path, mode, stay);
                if let Ok(Opening::File(id)) = result {
                    if mode.write && rng.below(2) == 0 {
                        self.root.write(id, rng.below(9000), &[rng.next_u64() as u8; 3000]).unwrap();
                    }
                    self.opened.push(id);
                }
                format!("open {path} {mode:?} {:?}", result.map(|opening| opening != Opening::Folder))
            }
            3..5 if !self.opened.is_empty() => {
                let id = self.opened.swap_remove(rng.below(self.opened.len() as u64) as usize);
                let bytes = self.root.read(id, 0, 20_000).unwrap();
                self.release(Some(id));
                format!("close {} {}", bytes.len(), &blake3::hash(&bytes).to_hex()[..8])
            }
            3..6 => {
                let result = self.root.truncate(path, rng.below(10_000));
                self.release(result.ok());
                format!("truncate {path} {:?}", result.map(drop))
            }
            6 => {
                let result = self.root.unlink(path);
                self.release(result.ok().flatten());
                format!("unlink {path} {:?}", result.map(drop))
            }
            7 => format!("mkdir {path} {:?}", self.root.make_folder(path)),
            8 => format!("rmdir {path} {:?}", self.root.remove_folder(path)),
            9..11 => {
                let to = any(rng);
                let result = self.root.rename(path, to);
                self.release(result.ok().flatten());
                format!("rename {path} {to} {:?}", result.map(drop))
            }
            11 => {
                let to = any(rng);
                match rng.below(2) {
                    0 => format!("link {path} {to} {:?}", self.root.link(path, to)),
                    _ => format!("symlink {path} {:?}", self.root.symlink(&to[1..], path)),
                }
            }
            _ => {
                let mode = [0o644, 0o755][rng.below(2) as usize];
                let result = self.root.set_rights(path, mode);
                self.release(result.ok().flatten());
                format!("chmod {path} {mode:o} {:?}", result.map(drop))
            }
        }
    }

    /// All that can be seen from the root on.
    fn seen(&self) -> BTreeMap<String, String> {
        fn visit(side: &mut Side, folder: &str, seen: &mut BTreeMap<String, String>) {
            for (name, node) in side.root.list(folder).unwrap() {
                let path = format!("{folder}/{name}");
                let what = match node {
                    Node::Folder { .. } => {
                        visit(side, &path, seen);
                        "folder".into()
                    }
                    Node::Symlink(target) => format!("to {target}"),
                    _ => {
                        let Ok(Opening::File(id)) = side.root.open(&path, OpenMode::default(), true) else {
                            panic!("{path} is no file")
                        };
                        let bytes = side.root.read(id, 0, u64::MAX).unwrap();
                        let mode = side.root.file(id).mode;
                        side.release(Some(id));
                        format!("{mode:o} {} {}", bytes.len(), &blake3::hash(&bytes).to_hex()[..8])
                    }
                };
                seen.insert(path, what);
            }
        }
        let mut seen = BTreeMap::new();
        visit(&mut self.clone(), "", &mut seen);
        seen
    }

    fn saved_and_restored(&self, folder: &Path) -> Side {
        let bytes = postcard::to_stdvec(&self.root.loaded().unwrap()).unwrap();
        let mut root: RootFolder = postcard::from_bytes(&bytes).unwrap();
        root.attach(Some(HostFolder::new(Dir::open_ambient_dir(folder, ambient_authority()).unwrap())));
        Side { root, opened: self.opened.clone() }
    }
}

fn fill(folder: &Path) {
    std::fs::create_dir_all(folder.join("d/e")).unwrap();
    for (n, name) in ["a", "b", "d/a", "d/e/a"].into_iter().enumerate() {
        std::fs::write(folder.join(name), vec![n as u8 + 1; 5000 * n + 10]).unwrap();
    }
    std::os::unix::fs::symlink("d/e", folder.join("l")).unwrap();
}

/// The view of a fresh look at the folder of the host.
fn on_host(folder: &Path) -> BTreeMap<String, String> {
    Side::on(folder).seen()
}

/// One process that writes to the host and one that does not do the same and see the same. Forks and saved copies of
/// either, taken at any time, see what was there then, whatever the others do and in whatever order, and can continue.
#[test]
fn forks_do_not_see_each_others_changes() {
    let (mut succeeded, mut failed) = (0, 0);
    for seed in 0..40 {
        let (live_folder, memory_folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fill(live_folder.path());
        fill(memory_folder.path());
        let first = on_host(memory_folder.path());
        let (mut live, mut memory) = (Side::on(live_folder.path()), Side::on(memory_folder.path()));
        memory.root.keep_in_memory();
        let mut rng = Rng::new(seed);
        let mut forks: Vec<([Side; 2], Rng, BTreeMap<String, String>)> = Vec::new();
        for step in 0..60 {
            if rng.below(8) == 0 {
                let expected = live.seen();
                let restored = live.saved_and_restored(live_folder.path());
                assert_eq!(restored.seen(), expected, "restored, seed {seed} step {step}");
                assert_eq!(memory.saved_and_restored(memory_folder.path()).seen(), expected, "seed {seed} step {step}");
                forks.push(([live.clone(), memory.clone()], Rng::new(rng.next_u64()), expected));
            }
            let mut same = rng.clone();
            let done = live.act(&mut rng);
            assert_eq!(memory.act(&mut same), done, "seed {seed} step {step}");
            *(if done.contains("Err") { &mut failed } else { &mut succeeded }) += 1;
            let seen = live.seen();
            assert_eq!(memory.seen(), seen, "seed {seed} step {step}: {done}");
            assert_eq!(on_host(live_folder.path()), seen, "seed {seed} step {step}: {done}");
            for ([one, other], rng, expected) in &mut forks {
                assert_eq!(one.seen(), *expected, "seed {seed} step {step}: {done}");
                if rng.below(2) == 0 {
                    let mut same = rng.clone();
                    assert_eq!(one.act(rng), other.act(&mut same), "seed {seed} step {step}");
                    *expected = one.seen();
                    assert_eq!(other.seen(), *expected, "seed {seed} step {step}");
                }
            }
        }
        assert_eq!(on_host(memory_folder.path()), first, "forks never write to the host");
    }
    assert!(succeeded > 800 && failed > 400, "{succeeded} {failed}");
}

#[test]
fn files_that_are_closed_are_forgotten_unless_they_were_changed() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    let mut side = Side::on(folder.path());
    for write in [false, true] {
        for name in ["/a", "/b", "/d/a", "/l/a"] {
            let mode = OpenMode { write, ..OpenMode::default() };
            let Ok(Opening::File(id)) = side.root.open(name, mode, false) else { panic!("{name} is a file") };
            side.root.release(id);
        }
    }
    assert!(side.root.files.is_empty() && side.root.names.is_empty());
}

#[test]
fn changes_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    let mut side = Side::on(folder.path()).clone();
    let Ok(Opening::File(id)) =
        side.root.open("/new", OpenMode { write: true, create: true, ..OpenMode::default() }, false)
    else {
        panic!("it can be created")
    };
    side.root.write(id, 2, b"x").unwrap();
    side.root.unlink("/b").unwrap();
    side.root.rename("/d", "/moved").unwrap();
    side.root.make_folder("/made").unwrap();
    side.root.symlink("new", "/made/link").unwrap();
    let text = |path: &str| path.to_string();
    assert_eq!(
        side.root.changes().unwrap(),
        [
            FileChange::Removed { path: text("/b") },
            FileChange::Removed { path: text("/d") },
            FileChange::Folder { path: text("/made") },
            FileChange::Link { path: text("/made/link"), target: text("new") },
            FileChange::Moved { path: text("/moved"), from: text("/d") },
            FileChange::Written { path: text("/new"), bytes: b"\0\0x".to_vec() },
        ]
    );
}
