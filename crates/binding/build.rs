//! Gives the binding the hash of the sources that it is built from, `DURASIM_BUILD`.
//!
//! A hash of the sources, and not the commit: it is the same for equal sources wherever they lie, there is one in a source
//! archive that knows no git, and a commit that changes documents alone rebuilds nothing.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = own.join("../..");
    let manifest = fs::read_to_string(own.join("Cargo.toml"))?;
    // Crates that the binding is not linked with have no part in it: a source archive does not hold them.
    let mut folders: Vec<String> = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("durasim-")?.split_once(".workspace"))
        .map(|(name, _)| format!("crates/{}/src", name.replace('-', "_")))
        .collect();
    folders.extend(["crates/binding/src".to_owned(), "machines".to_owned()]);
    folders.sort();
    let mut hasher = blake3::Hasher::new();
    add(&root, "Cargo.lock", &mut hasher)?;
    for folder in &folders {
        add(&root, folder, &mut hasher)?;
    }
    println!("cargo::rustc-env=DURASIM_BUILD={}", &hasher.finalize().to_hex()[..32]);
    Ok(())
}

/// Adds a file, or all files of a folder in the order of their names.
fn add(root: &Path, name: &str, hasher: &mut blake3::Hasher) -> io::Result<()> {
    let path = root.join(name);
    println!("cargo::rerun-if-changed={}", path.display());
    if path.is_dir() {
        let mut names = fs::read_dir(&path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<String>>>()?;
        names.sort();
        return names.iter().try_for_each(|below| add(root, &format!("{name}/{below}"), hasher));
    }
    let bytes = fs::read(&path)?;
    hasher.update(&(name.len() as u64).to_le_bytes());
    hasher.update(name.as_bytes());
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(&bytes);
    Ok(())
}
