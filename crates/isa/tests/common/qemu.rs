//! qemu-riscv64 as the reference, where it is installed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The user-mode emulator on PATH, if there is one.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["qemu-riscv64", "qemu-riscv64-static"];
    std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name))).find(|file| file.is_file())
}

/// What the program writes to its standard output. The guest CPU has no extensions beyond those of this crate.
pub fn run(qemu: &PathBuf, elf: &[u8]) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let program = folder.path().join("program");
    std::fs::write(&program, elf).map_err(|e| e.to_string())?;
    make_executable(&program)?;
    let output = Command::new(qemu)
        .args(["-cpu", "rv64,v=false,zba=false,zbb=false,zbc=false,zbs=false"])
        .arg(&program)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(format!("qemu: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    Ok(output.stdout)
}

#[cfg(unix)]
fn make_executable(program: &std::path::Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).map_err(|e| e.to_string())
}

#[cfg(not(unix))]
fn make_executable(_program: &std::path::Path) -> Result<(), String> {
    Ok(())
}
