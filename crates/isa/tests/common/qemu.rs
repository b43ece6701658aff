//! qemu-riscv64 as the reference, where it is installed.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// No test program runs nearly as long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The first version that has all extensions of this crate and a CPU without others.
const VERSION_MIN: u32 = 9;

/// A guest CPU with the extensions of this crate and no others. It does compare and swap of 16 bytes too.
const CPU: &str = "rv64i,m=true,a=true,f=true,d=true,c=true,zicsr=true,zifencei=true,zicntr=true,zihintpause=true,\
                   zihintntl=true,zba=true,zbb=true,zbs=true,zicond=true,zicbom=true,zicboz=true,zfhmin=true,zacas=true";

/// The user-mode emulator on PATH, if there is one that is new enough.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["qemu-riscv64", "qemu-riscv64-static"];
    let mut files = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    files.find(|file| file.is_file() && version(file).is_some_and(|version| version >= VERSION_MIN))
}

fn version(qemu: &PathBuf) -> Option<u32> {
    let output = Command::new(qemu).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_once("version ")?.1.split_once('.')?.0.parse().ok()
}

/// The standard output of the program.
pub fn run(qemu: &PathBuf, elf: &[u8]) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let program = folder.path().join("program");
    std::fs::write(&program, elf).map_err(|e| e.to_string())?;
    make_executable(&program)?;
    let mut child = Command::new(qemu)
        .args(["-cpu", CPU])
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
