//! Makes the files of `corpus/` from real ones: programs, machine files, pools, snapshots, and what power failures left.
//!
//! `cargo run --release -p durasim-robustness --example make_corpus -- MARKERS UNDO REDO AHEAD [ELF...]`: a workload built for
//! markers, that workload with an undo, a redo and a write-ahead log (`durasim.toolchain.build`), and small programs
//! for the loader.

use durasim_contract::{Backend, CrashImage};
use durasim_designs::VARIANTS;
use durasim_kernel::{PmemPool, PoolFile};
use durasim_machine::{
    Captured, Machine, MachineConfig, Observer, PMEM_BASE, Plan, PowerFailureOptions, Program, System, presets,
};
use durasim_robustness::{call_byte, guest_image, path_byte, quiesced_machine, recovery_input, small_program};
use durasim_types::PersistEvent;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use syscalls::riscv64::Sysno;

/// The place in the header of a pool that names the place of its logs (guest/include/durasim/layout.h).
const LOG_OFFSET: u64 = 48;

fn put(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    std::fs::create_dir_all(&folder).expect("the corpus can be written");
    std::fs::write(folder.join(name), bytes).expect("the corpus can be written");
}

/// Takes images at some events.
struct Camera {
    every: u64,
    images: Arc<Mutex<Vec<CrashImage>>>,
}

impl Observer for Camera {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        if event.number % self.every == self.every / 2 {
            // Some of them with too little energy.
            let energy_bytes = event.number.is_multiple_of(3).then_some(event.number % 4096);
            let cut = PowerFailureOptions { energy_bytes, ..PowerFailureOptions::default() };
            self.images
                .lock()
                .expect("no thread panics while it holds the images")
                .push(system.power_failure(&cut).image);
        }
        true
    }
}

/// Images of a run of the workload under each variant, taken at every this many events.
fn images(variant: usize, elf: &[u8], arguments: &[&str], every: u64) -> Vec<CrashImage> {
    let config = MachineConfig::parse("tiny", presets::text("tiny").expect("a preset"), &[]).expect("a preset");
    let plan =
        Plan::new(&config, &VARIANTS[variant], VARIANTS[variant].default_domain()).expect("a preset fits its variants");
    let args = arguments.iter().map(|&text| text.to_owned()).collect();
    let program = Program { elf: elf.to_vec(), elf_name: "program".into(), args, seed: 1, ..Program::default() };
    let mut machine = Machine::new(&config, &plan, &program).expect("the workload can be loaded");
    let images = Arc::new(Mutex::new(Vec::new()));
    machine.system_mut().observe(Box::new(Camera { every, images: images.clone() }));
    let mut output = Captured::default();
    machine.run(None, &mut output).expect("the workload runs");
    println!("{}: {}", VARIANTS[variant].name, output.text().trim());
    drop(machine);
    std::mem::take(&mut *images.lock().expect("no thread panics while it holds the images"))
}

/// The last of these pools with the state of its log, the word it begins with, of the pool before.
fn set_back(pools: &[CrashImage]) -> CrashImage {
    let state = |pool: &CrashImage| PMEM_BASE.plus(pool.read_u64(PMEM_BASE.plus(LOG_OFFSET)));
    let (earlier, last) = (&pools[pools.len() - 2], &pools[pools.len() - 1]);
    let mut changed = last.clone();
    changed.pmem.write(state(last), &earlier.read_u64(state(earlier)).to_le_bytes());
    changed
}

/// Programs of system calls. The bytes after a call are those that `system_calls` reads: paths, then what else varies.
fn calls() {
    const HERE: u8 = 0;
    let open = |path: &str, flags: u8| vec![call_byte(Some(Sysno::openat)), path_byte(path), HERE, flags];
    let on = |sysno: Sysno, rest: &[u8]| [&[call_byte(Some(sysno))], rest].concat();
    let at = |sysno: Sysno, path: &str, rest: &[u8]| on(sysno, &[&[path_byte(path), HERE], rest].concat());
    let two = |sysno: Sysno, from: &str, to: &str, rest: &[u8]| {
        on(sysno, &[&[path_byte(from), path_byte(to), HERE], rest].concat())
    };
    // Indices into the flags of openat: read, read and write, create.
    let (read, change, create) = (0, 2, 3);
    let plain = [open("file", change), on(Sysno::read, &[3]), on(Sysno::write, &[3]), on(Sysno::ftruncate, &[3, 9, 0])];
    let folders = [
        at(Sysno::mkdirat, "d/e/new", &[]),
        two(Sysno::renameat2, "d/e", "new", &[HERE, 0]),
        at(Sysno::unlinkat, "d/file", &[0]),
        on(Sysno::chdir, &[path_byte("d"), 0, 0]),
        open(".", read),
        on(Sysno::getdents64, &[3]),
        on(Sysno::getcwd, &[]),
    ];
    let links = [
        two(Sysno::symlinkat, "../outside", "link", &[]),
        open("link/secret", read),
        on(Sysno::read, &[3]),
        at(Sysno::readlinkat, "out", &[]),
        two(Sysno::linkat, "absolute", "new", &[HERE, 1]),
        at(Sysno::newfstatat, "up/outside/secret", &[0]),
        open("out/new", create),
        on(Sysno::truncate, &[path_byte("d/deep"), 5, 0]),
    ];
    let dots = [
        open("../outside/secret", read),
        on(Sysno::pread64, &[3, 0, 0]),
        open("TOP/outside/secret", change),
        two(Sysno::renameat2, "file", "../outside/secret", &[HERE, 0]),
        at(Sysno::unlinkat, "/../outside/secret", &[0]),
        at(Sysno::statx, "d/../../outside/secret", &[0]),
        open("../../../../../../../../etc/passwd", read),
        on(Sysno::read, &[4]),
    ];
    let mapping =
        [open("file", change), on(Sysno::mmap, &[0, 16, 0, 3]), on(Sysno::msync, &[]), on(Sysno::fsync, &[3])];
    let fork = [vec![call_byte(None)], plain.concat(), folders.concat(), mapping.concat()];
    for (name, program) in [
        ("plain", plain.concat()),
        ("folders", folders.concat()),
        ("links", links.concat()),
        ("dots", dots.concat()),
        ("mapping", mapping.concat()),
        ("fork", fork.concat()),
    ] {
        put("system_calls", name, &program);
    }
    put("root_too_high", "plain", &[open("file", read), on(Sysno::read, &[3]), on(Sysno::fsync, &[3])].concat());
    put("root_too_high", "close", &[open("d/e", read), on(Sysno::close, &[3])].concat());
}

/// Inputs that the bodies with a planted bug survive.
fn canaries() {
    put("parser_with_a_bug", "table", b"TABLE\x03\x05first\x06second\x05third");
    let record =
        |offset: u32, word: u64| [&[1][..], &offset.to_le_bytes(), &8u16.to_le_bytes(), &word.to_le_bytes()].concat();
    let homes = [PMEM_BASE.0 + 4096, PMEM_BASE.0 + 8192];
    let log = [record(0, 2), record(64, homes[0]), record(128, homes[1])].concat();
    put("careless_recovery", "two-entries", &[&[0, 0, 0, 0][..], &log].concat());
}

/// The images that power failures leave to the recoveries of logs in software.
fn pools_with_logs(run: &[&str], undo: &[u8], redo: &[u8], ahead: &[u8]) {
    let pool = [run, &["--pool-bytes", "65536", "--log-bytes", "4096"]].concat();
    for (name, target, kind, elf) in [
        ("swl-flush", "guest_recovery", "undo", undo),
        ("sp-indirect", "guest_redo_recovery", "redo", redo),
        ("sp", "guest_write_ahead_recovery", "write-ahead", ahead),
    ] {
        let variant = VARIANTS.iter().position(|variant| variant.name == name).expect("a variant");
        let taken = images(variant, elf, &pool, 97);
        for (n, image) in taken.iter().enumerate().take(18).filter(|(n, _)| n % 3 == 1) {
            put(target, &format!("{kind}-{n}"), &guest_image(&image.pmem));
        }
        if kind == "undo" {
            put(target, "state-set-back", &guest_image(&set_back(&taken).pmem));
        }
    }
}

fn main() {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [markers, undo, redo, ahead, programs @ ..] = files.as_slice() else { panic!("four workloads are needed") };
    let read = |path: &PathBuf| std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (markers, undo, redo, ahead) = (read(markers), read(undo), read(redo), read(ahead));
    let run = ["run", "--populate", "12", "--ops", "16"];

    // Images for recovery: of each variant a few, the richest.
    for (number, variant) in VARIANTS.iter().enumerate() {
        let elf = if variant.backend == Backend::MARKERS { &markers } else { continue };
        let mut inputs: Vec<Vec<u8>> =
            images(number, elf, &run, 37).iter().map(|image| recovery_input(variant, image)).collect();
        inputs.sort_by_key(|input| (std::cmp::Reverse(input.len().min(6000)), input.clone()));
        inputs.dedup();
        inputs.retain(|input| input.len() <= 12_000);
        for (n, input) in inputs.iter().take(6).enumerate() {
            put("recovery", &format!("{}-{n}", variant.name), input);
        }
    }
    pools_with_logs(&run, &undo, &redo, &ahead);

    for &(name, text) in presets::PRESETS {
        put("configuration", name, text.as_bytes());
    }
    put("configuration", "overrides", b"# --set\nl2.ways=8\ndesign.hercules.tx_id_bits=10\npmem.capacity_mib=32\n");

    put("elf_loader", "small", &small_program());
    for path in programs {
        put("elf_loader", &path.file_name().expect("a file").to_string_lossy(), &read(path));
    }

    let mut files = PmemPool::new(1 << 20);
    for (name, bytes) in [("tree", 5000), ("empty", 0), ("log", 4096)] {
        files.create(name);
        files.resize(name, bytes).expect("there is room");
    }
    let pages: BTreeMap<_, _> = [(0, Box::new([7; 4096])), (2, Box::new([1; 4096]))].into();
    let mut written = Vec::new();
    let pool = PoolFile { files: files.clone(), pages, written_by: "opt".into() };
    pool.encode(&mut written).expect("memory takes everything");
    put("pool_file", "three-files", &written);
    written.clear();
    PoolFile { files, pages: BTreeMap::new(), written_by: "tc".into() }.encode(&mut written).expect("as above");
    put("pool_file", "no-pages", &written);

    calls();
    canaries();
    put("snapshot_file", "file", &quiesced_machine(0).1);
    for (number, variant) in VARIANTS.iter().enumerate() {
        put("snapshot_file", &format!("state-{}", variant.name), &[number as u8, 0x40, 0, 0, 1, 0, 2, 0, 0xff]);
    }

    let text = 0x400;
    let code = &markers[text.min(markers.len())..][..2048.min(markers.len() - text)];
    put("decoder", "workload", code);
    let some = [0x0000_0013u32, 0x00b5_3023, 0x0ff0_000f, 0x1005_2573, 0x0205_200f, 0x0073_7553, 0x4001_8082];
    put("decoder", "some", &some.map(u32::to_le_bytes).concat());
}
