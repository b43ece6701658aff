//! A program for a machine: its executable, arguments and pool, and what it writes.

use super::config::MachineConfig;
use super::inserted::Inserted;
use super::memory_map::{DRAM_BASE, PMEM_BASE};
use super::plan::Plan;
use durasim_kernel::{MemoryMap, Output, PmemPool, PoolFile, ProcessConfig};
use durasim_types::{ConfigError, Error, PAGE_BYTES, Pages};

/// A program for the machine.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The bytes of the executable.
    pub elf: Vec<u8>,
    /// Its name, which is its first argument.
    pub elf_name: String,
    /// Target of its `/proc/self/exe`, if that is not its name.
    pub exe_link: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment.
    pub env: Vec<String>,
    /// The folder of the host that it sees.
    pub root: Option<std::path::PathBuf>,
    /// Whether it changes files of that folder on the host.
    pub root_write: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// The pool it finds under `/pmem/`.
    pub pool: Option<PoolContents>,
    /// Operations that the machine adds to its code; functional runs leave it out.
    pub inserted: Inserted,
}

/// The contents of `/pmem/`: the namespace and the bytes.
#[derive(Clone, Debug)]
pub struct PoolContents {
    /// Names, offsets and sizes.
    pub files: PmemPool,
    /// Persistent memory.
    pub pages: Pages,
}

impl PoolContents {
    /// The contents as a pool file holds them.
    pub fn of_file(file: &PoolFile) -> Self {
        let mut pages = Pages::new(PMEM_BASE, file.capacity_bytes());
        for (number, page) in &file.pages {
            pages.write(PMEM_BASE.plus(number * PAGE_BYTES), &page[..]);
        }
        PoolContents { files: file.files.clone(), pages }
    }

    /// A pool file with these contents, written by the variant `written_by`.
    pub fn to_file(&self, written_by: &str) -> PoolFile {
        let data_bytes = self.files.capacity_bytes();
        let pages = self
            .pages
            .touched()
            .filter(|(addr, _)| addr.0 - PMEM_BASE.0 < data_bytes)
            .map(|(addr, page)| {
                let page: Box<[u8; 4096]> = Box::new(page.try_into().expect("a page has 4096 bytes"));
                ((addr.0 - PMEM_BASE.0) / PAGE_BYTES, page)
            })
            .collect();
        PoolFile { files: self.files.clone(), pages, written_by: written_by.to_owned() }
    }
}

/// The memories as a program on this plan finds them.
pub fn memory_map(config: &MachineConfig, plan: &Plan) -> MemoryMap {
    MemoryMap {
        dram_base: DRAM_BASE,
        dram_bytes: config.dram.capacity_mib << 20,
        pmem_base: PMEM_BASE,
        pmem_data_bytes: plan.geometry.pmem_data_bytes,
    }
}

/// The configuration of a process that runs `program` on this plan.
pub(crate) fn process_config(config: &MachineConfig, plan: &Plan, program: &Program) -> ProcessConfig {
    let map = memory_map(config, plan);
    ProcessConfig {
        args: program.args.clone(),
        env: program.env.clone(),
        root: program.root.clone(),
        writes_to_root: program.root_write,
        seed: program.seed,
        cores: config.hardware_threads().into(),
        exe_link: program.exe_link.clone(),
        ..ProcessConfig::new(program.elf_name.clone(), program.elf.clone(), map)
    }
}

/// Reads an ELF from the host.
///
/// # Errors
/// A file that cannot be read is a wrong argument, not a failure of the host's disk.
pub fn read_elf(path: &std::path::Path) -> Result<Vec<u8>, Error> {
    durasim_kernel::read_elf_file(path)
        .map_err(|e| ConfigError::new("elf", format!("{} cannot be read: {e}", path.display())).into())
}

/// Keeps what a program writes.
#[derive(Clone, Debug, Default)]
pub struct Captured(Vec<u8>);

impl Captured {
    /// Both streams in the order of writing.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// The bytes of both streams in the order of writing.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Output for Captured {
    fn write(&mut self, _: durasim_kernel::Stream, bytes: &[u8]) {
        self.0.extend(bytes);
    }
}
