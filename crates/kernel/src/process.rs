//! A process: an address space, open files, signal dispositions and its threads.

use crate::files::FileTable;
use crate::folder::{FileChange, OpenMode, Opening, RootFolder};
use crate::host::HostFolder;
use crate::limits::{Controls, Limits};
use crate::signals::Signals;
use crate::space::{AddressSpace, Backing, page_down, page_up};
use crate::threads::{ThreadEvent, ThreadId, Threads, Waiting, WaitsFor};
use crate::{MemoryMap, PhysMemory, PmemPool, elf, stack};
use ::syscalls::Errno;
use ::syscalls::riscv64::Sysno;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use durasim_isa::Hart;
use durasim_types::{ConfigError, Error, PAGE_BYTES, Rng};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Bytes of a dynamic linker that are read; none is nearly as long.
const INTERPRETER_MAX_BYTES: u64 = 64 << 20;

/// The program to run and its view of the world.
#[derive(Clone, Debug)]
pub struct ProcessConfig {
    /// The bytes of the executable.
    pub elf: Vec<u8>,
    /// Its name: `argv[0]`, and the subject of refusals.
    pub elf_name: String,
    /// The target of `/proc/self/exe`; without one, the name in the root folder.
    pub exe_link: Option<String>,
    /// The arguments after `argv[0]`.
    pub args: Vec<String>,
    /// The environment, each `NAME=value`.
    pub env: Vec<String>,
    /// The folder of the host that the program sees as `/`. Without one there are no files but those under `/pmem/`
    /// and a few devices.
    pub root: Option<PathBuf>,
    /// Whether the program changes files of that folder on the host; else its changes stay in memory.
    pub writes_to_root: bool,
    /// Seed of `getrandom`, `/dev/urandom` and `AT_RANDOM`.
    pub seed: u64,
    /// The memories of the machine.
    pub map: MemoryMap,
    /// The bytes of its standard input.
    pub stdin: Vec<u8>,
    /// Number of cores that the program sees, 1 to 64.
    pub cores: u32,
}

impl ProcessConfig {
    /// Runs `elf` without arguments, environment, files or input, with seed 1 on one core.
    pub fn new(elf_name: impl Into<String>, elf: Vec<u8>, map: MemoryMap) -> Self {
        ProcessConfig {
            elf,
            elf_name: elf_name.into(),
            exe_link: None,
            args: Vec::new(),
            env: Vec::new(),
            root: None,
            writes_to_root: true,
            seed: 1,
            map,
            stdin: Vec::new(),
            cores: 1,
        }
    }
}

/// The heap that `brk` moves.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Heap {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// A running program.
///
/// The process that was loaded makes its changes below the root folder on the host, at once, if it is to
/// ([`ProcessConfig::writes_to_root`]). A clone of it, which is what [`Process::fork`] gives, and a process that was
/// [restored](Process::restore) never write to the host: they keep their changes in memory. No process sees the changes
/// of another, in any order of their runs: what the loaded one is about to change on the host is kept for its clones
/// before. [`Process::changed_files`] lists what a process has changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Process {
    pub(crate) space: AddressSpace,
    pub(crate) pool: PmemPool,
    pub(crate) files: FileTable,
    pub(crate) heap: Heap,
    pub(crate) signals: Signals,
    pub(crate) threads: Threads,
    pub(crate) random: Rng,
    pub(crate) exe_link: String,
    pub(crate) cores: u32,
    /// The flags that the program has set with `personality`.
    pub(crate) personality: u32,
    /// Whether threads that wait for files have to look again, because a timer or an epoll was changed.
    pub(crate) looks_again: bool,
    pub(crate) limits: Limits,
    /// Settings of `prctl` that nothing depends on.
    pub(crate) controls: Controls,
    #[serde(with = "syscall_name")]
    pub(crate) last_syscall: Option<Sysno>,
}

/// A process as [`Process::save`] took it, for a file. The memory of the guest is not in it: it belongs to the machine.
///
/// It holds all bytes of the files under the root folder that were open or that the program had changed, with positions
/// and flags, and the rest of the standard input. The rest of the root folder is not in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedProcess(Process);

impl Process {
    /// Puts the program into memory and returns it with the registers it starts with. `pool` is the namespace of
    /// `/pmem/`; the contents of its files must already be in the persistent memory.
    ///
    /// Refuses (`Error::Config`) an ELF that is not an RV64 executable, one whose dynamic linker is not in the root folder,
    /// a pool of another size than `config.map.pmem_data_bytes`, a root that is not a folder, and programs that exceed
    /// the DRAM.
    pub fn load(config: ProcessConfig, pool: PmemPool, mem: &mut dyn PhysMemory) -> Result<(Process, Hart), Error> {
        let image = elf::parse(&config.elf_name, &config.elf)?;
        if pool.capacity_bytes() != config.map.pmem_data_bytes {
            let (found, wanted) = (pool.capacity_bytes(), config.map.pmem_data_bytes);
            let problem = format!("the pool has {found} bytes; this machine has {wanted} bytes");
            return Err(ConfigError::new("pool", problem).into());
        }
        pool.check()?;
        if !(1..=64).contains(&config.cores) {
            return Err(ConfigError::new("cores", "a program sees 1 to 64 cores").into());
        }
        let mut root = RootFolder::new(config.root.as_deref().map(open_root).transpose()?);
        if !config.writes_to_root {
            root.keep_in_memory();
        }

        let mut space = AddressSpace::new(config.map)?;
        load_segments(&mut space, mem, &config.elf_name, &image)?;
        let linker = match &image.interpreter {
            None => None,
            Some(path) => Some((path, read_interpreter(&mut root, &config.elf_name, path)?)),
        };
        let linker = match &linker {
            None => None,
            Some((path, data)) => {
                let linker = elf::parse_interpreter(path, data, &image)?;
                load_segments(&mut space, mem, path, &linker)?;
                Some((linker.base, linker.entry))
            }
        };
        let (linker_base, entry) = linker.unwrap_or((0, image.entry));
        let mut random = Rng::new(config.seed);
        let argv = [vec![config.elf_name.clone()], config.args].concat();
        let sp = stack::build(&mut space, mem, &image, linker_base, &argv, &config.env, &mut random)?;
        let rooted = || if argv[0].starts_with('/') { argv[0].clone() } else { format!("/{}", argv[0]) };
        let heap_start = page_up(image.segments.iter().map(|s| s.vaddr + s.size_bytes).max().unwrap_or(0));

        let mut hart = Hart { pc: entry, ..Hart::default() };
        hart.x[2] = sp;
        let mut threads = Threads::new(config.cores);
        threads.get_mut(ThreadId::FIRST).name_after(&config.elf_name);
        let process = Process {
            space,
            pool,
            files: FileTable::new(root, config.stdin),
            heap: Heap { start: heap_start, end: heap_start },
            signals: Signals::default(),
            threads,
            random,
            exe_link: config.exe_link.unwrap_or_else(rooted),
            cores: config.cores,
            personality: 0,
            looks_again: false,
            limits: Limits::default(),
            controls: Controls::default(),
            last_syscall: None,
        };
        Ok((process, hart))
    }

    /// A process that continues from here by itself and never writes to the host. It costs a few microseconds, whatever the
    /// program has in memory and in files.
    pub fn fork(&self) -> Process {
        self.clone()
    }

    /// From now on changes of files stay in memory, as those of a fork do.
    pub fn keep_files_in_memory(&mut self) {
        self.files.root.keep_in_memory();
    }

    /// The process for a file, as it is now.
    ///
    /// Refuses ([`Error::HostIo`]) if a file that the program has open cannot be read, or if such files hold more than
    /// 4 GiB in all that only the host has.
    pub fn save(&self) -> Result<SavedProcess, Error> {
        let mut saved = self.clone();
        saved.files.root = self.files.root.loaded()?;
        Ok(SavedProcess(saved))
    }

    /// The process that was saved. `root` is the folder of the host where the program finds files that are not in the
    /// snapshot; it is only read. The memory of the guest has to be that of the same moment.
    ///
    /// Refuses ([`Error::Config`]) a root where the saved process had none, none where it had one, and one that is not a
    /// folder.
    pub fn restore(saved: SavedProcess, root: Option<&Path>) -> Result<Process, Error> {
        let SavedProcess(mut process) = saved;
        let refuse = |problem: &str| Err(ConfigError::new("root", problem).into());
        match (process.files.root.exists(), root) {
            (true, None) => {
                return refuse("the saved program had a root folder: pass the root folder to continue with");
            }
            (false, Some(_)) => return refuse("the saved program had no root folder: leave root out"),
            _ => process.files.root.attach(root.map(open_root).transpose()?),
        }
        Ok(process)
    }

    /// The process moves to a machine with other memories; their contents move with it. Both start where they did.
    ///
    /// Refuses memories that are too small for what the program has.
    pub fn move_to(&mut self, map: MemoryMap) -> Result<(), ConfigError> {
        self.pool.set_capacity(map.pmem_data_bytes)?;
        self.space.move_to(map)
    }

    /// The changes of the program in its root folder since it was loaded, by path: the only way to the files that a
    /// fork or a restored process wrote.
    ///
    /// Stores through shared mappings are there once the program or [`Process::write_back_files`] has written them back.
    pub fn changed_files(&self) -> Result<Vec<FileChange>, Error> {
        self.files.root.changes()
    }

    /// The address space.
    pub fn space(&mut self) -> &mut AddressSpace {
        &mut self.space
    }

    /// The effects of system calls on other threads since the last call, in order. Asked after every system call.
    pub fn take_events(&mut self) -> Vec<ThreadEvent> {
        self.threads.take_events()
    }

    /// The threads that wait: for a futex, then for files, the longest waiting first.
    pub fn waiting(&self) -> Vec<Waiting> {
        self.threads.waiting()
    }

    /// One sentence about a program none of whose threads can run again. `pc` gives the pc of a thread as its registers
    /// have it: after the ECALL of a wait for a futex, at that of another wait.
    pub fn describe_deadlock(&self, pc: impl Fn(ThreadId) -> u64) -> String {
        let one = |w: &Waiting| {
            let (pc, on) = match w.on {
                WaitsFor::Futex(vaddr) => (pc(w.thread).wrapping_sub(4), format!("the futex at {vaddr:#x}")),
                WaitsFor::Files => (pc(w.thread), "a file, pipe or signal".to_string()),
            };
            format!("thread {} at pc {pc:#x} waits for {on}", w.thread)
        };
        let all: Vec<String> = self.waiting().iter().map(one).collect();
        format!("deadlock: every thread waits: {}", all.join(", "))
    }

    /// The cores that `thread` may run on, bit n for core n: what `sched_setaffinity` asked for, else all.
    ///
    /// # Panics
    /// If `thread` does not exist or has ended.
    pub fn affinity(&self, thread: ThreadId) -> u64 {
        self.threads.get(thread).affinity
    }

    /// `thread` now runs on core `core`, as `getcpu` will report; before it runs on any, that is core 0.
    ///
    /// # Panics
    /// If `thread` does not exist or has ended.
    pub fn runs_on(&mut self, thread: ThreadId, core: u32) {
        self.threads.get_mut(thread).core = core;
    }

    /// The name of the last system call, for the report of a later fault.
    pub fn last_syscall(&self) -> Option<&str> {
        self.last_syscall.map(|sysno| sysno.name())
    }

    /// The namespace of `/pmem/`.
    pub fn pool(&self) -> &PmemPool {
        &self.pool
    }

    /// The namespace of `/pmem/` at the end.
    pub fn into_pool(self) -> PmemPool {
        self.pool
    }

    /// Writes the pages of shared file mappings back to their files, as a kernel does when a process ends.
    /// Exit does this by itself; call it when a run is stopped in another way. Errors of the host are dropped here as
    /// they are there: a program that wants to know calls `msync`.
    pub fn write_back_files(&mut self, mem: &mut dyn PhysMemory) {
        self.files.write_back_all(mem);
    }
}

fn open_root(path: &Path) -> Result<HostFolder, ConfigError> {
    let opened = Dir::open_ambient_dir(path, ambient_authority());
    let refuse = |e| ConfigError::new("root", format!("{} cannot be used as the root folder: {e}", path.display()));
    opened.map(HostFolder::new).map_err(refuse)
}

/// A system call as text.
mod syscall_name {
    use ::syscalls::riscv64::Sysno;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(sysno: &Option<Sysno>, serializer: S) -> Result<S::Ok, S::Error> {
        sysno.map(|sysno| sysno.name()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Sysno>, D::Error> {
        let known = |name: String| {
            name.parse::<Sysno>().map_err(|_| D::Error::custom(format!("there is no system call {name}")))
        };
        Option::<String>::deserialize(deserializer)?.map(known).transpose()
    }
}

/// Reads the dynamic linker at a path in the root folder.
fn read_interpreter(root: &mut RootFolder, name: &str, path: &str) -> Result<Vec<u8>, ConfigError> {
    let refuse = |field: &str, problem: String| Err(ConfigError::new(field, problem));
    if !root.exists() {
        let problem = format!(
            "{name} is dynamically linked: pass the folder with its libraries as root, or link it with -static"
        );
        return refuse("elf", problem);
    }
    let read = |root: &mut RootFolder| {
        let Opening::File(file) = root.open(path, OpenMode::default(), false)? else { return Err(Errno::EISDIR) };
        let data = root.read(file, 0, root.file(file).size_bytes.min(INTERPRETER_MAX_BYTES));
        root.release(file);
        data
    };
    read(root).or_else(|errno| {
        let why = errno.description().unwrap_or("unknown error");
        let problem = format!("{name} needs the dynamic linker {path}, which cannot be read in the root folder: {why}");
        refuse("root", problem)
    })
}

fn load_segments(
    space: &mut AddressSpace,
    mem: &mut dyn PhysMemory,
    name: &str,
    image: &elf::Image,
) -> Result<(), ConfigError> {
    let mut mapped_to = 0;
    for segment in &image.segments {
        let end = page_up(segment.vaddr + segment.size_bytes);
        let mut start = page_down(segment.vaddr);
        if start < mapped_to {
            // Two segments meet within a page, which then has the rights of both.
            let (_, area) = space.area_at(start).expect("the segment before covers it");
            space.protect(start, start + PAGE_BYTES, area.rights.union(segment.rights));
            start += PAGE_BYTES;
        }
        if start < end {
            space.map_area(start, end, segment.rights, Backing::FileCopy);
        }
        mapped_to = end;
        space
            .fill(mem, segment.vaddr, segment.bytes)
            .map_err(|_| ConfigError::new("memory", format!("the DRAM is too small to load {name}")))?;
    }
    Ok(())
}
