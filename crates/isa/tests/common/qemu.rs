//! qemu-riscv64 as the reference, where it is installed.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// No test program runs nearly as long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The user-mode emulator on PATH, if there is one.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["qemu-riscv64", "qemu-riscv64-static"];
    std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name))).find(|file| file.is_file())
}

/// The standard output of the program. The guest CPU has no extensions beyond those of this crate.
pub fn run(qemu: &PathBuf, elf: &[u8]) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let program = folder.path().join("program");
    std::fs::write(&program, elf).map_err(|e| e.to_string())?;
    make_executable(&program)?;
    let mut child = Command::new(qemu)
        .args(["-cpu", "rv64,v=false,zba=false,zbb=false,zbc=false,zbs=false"])
        .arg(&program)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    let mut stdout = child.stdout.take().expect("a pipe");
    let reader = std::thread::spawn(move || {
        let mut output = Vec::new();
        stdout.read_to_end(&mut output).map(|_| output)
    });
    let started = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) => break status,
            None if started.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(2)),
            None => {
                // qemu hands SIGTERM to its guest, which may be past caring; SIGKILL it cannot hand on.
                child.kill().and_then(|()| child.wait()).map_err(|e| e.to_string())?;
                return Err(format!("qemu did not end within {PATIENCE:?}"));
            }
        }
    };
    let output = reader.join().expect("a reader that does not panic").map_err(|e| e.to_string())?;
    if status.success() { Ok(output) } else { Err(format!("qemu: {status}")) }
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
