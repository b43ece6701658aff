//! A machine without caches and time: one hart over flat memory. One instruction takes one nanosecond.
#![allow(dead_code, reason = "each test binary uses its own part")]

use ::syscalls::riscv64::Sysno;
use durasim_isa::{
    Access, AccessFault, AccessFaultKind, AmoOp, BlockCache, Bus, CacheBlockOp, Counter, FenceSet, Flow, Hart, Marker,
    Stop, execute,
};
use durasim_kernel::{FlatMemory, MemoryMap, Output, PhysMemory, PmemPool, Process, ProcessConfig, Stream};
use durasim_kernel::{SyscallOutcome, ThreadId};
use durasim_types::{Error, GuestFault, PAGE_BYTES, PhysAddr};

pub const PMEM_BYTES: u64 = 16 << 20;

pub fn map() -> MemoryMap {
    MemoryMap {
        dram_base: PhysAddr(0x8000_0000),
        dram_bytes: 512 << 20,
        pmem_base: PhysAddr(0x1_0000_0000),
        pmem_data_bytes: PMEM_BYTES,
    }
}

#[derive(Default)]
pub struct Captured {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Output for Captured {
    fn write(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.stdout.extend_from_slice(bytes),
            Stream::Stderr => self.stderr.extend_from_slice(bytes),
        }
    }
}

pub struct World {
    pub process: Process,
    pub memory: FlatMemory,
    pub now_ns: u64,
    pub instructions: u64,
    reservation: Option<u64>,
    code_changed: bool,
}

impl World {
    fn read(&mut self, addr: u64, bytes: u8, access: Access) -> Result<u64, AccessFault> {
        let mut data = [0; 8];
        let in_page = (PAGE_BYTES - addr % PAGE_BYTES).min(u64::from(bytes)) as usize;
        let first = self.process.space().translate(addr, access)?;
        self.memory.read(first, &mut data[..in_page]);
        if in_page < usize::from(bytes) {
            let second = self.process.space().translate(addr + in_page as u64, access)?;
            self.memory.read(second, &mut data[in_page..usize::from(bytes)]);
        }
        Ok(u64::from_le_bytes(data))
    }

    fn aligned(addr: u64, bytes: u8, access: Access) -> Result<(), AccessFault> {
        let why = AccessFaultKind::Misaligned;
        if addr.is_multiple_of(u64::from(bytes)) { Ok(()) } else { Err(AccessFault { addr, access, why }) }
    }
}

impl Bus for World {
    fn load(&mut self, addr: u64, bytes: u8) -> Result<u64, AccessFault> {
        self.read(addr, bytes, Access::Read)
    }

    fn store(&mut self, addr: u64, bytes: u8, value: u64) -> Result<(), AccessFault> {
        let data = value.to_le_bytes();
        let in_page = (PAGE_BYTES - addr % PAGE_BYTES).min(u64::from(bytes)) as usize;
        let first = self.process.space().translate(addr, Access::Write)?;
        if in_page < usize::from(bytes) {
            let second = self.process.space().translate(addr + in_page as u64, Access::Write)?;
            self.memory.write(second, &data[in_page..usize::from(bytes)]);
        }
        self.memory.write(first, &data[..in_page]);
        Ok(())
    }

    fn load_reserved(&mut self, addr: u64, bytes: u8) -> Result<u64, AccessFault> {
        Self::aligned(addr, bytes, Access::Read)?;
        let value = self.load(addr, bytes)?;
        self.reservation = Some(addr);
        Ok(value)
    }

    fn store_conditional(&mut self, addr: u64, bytes: u8, value: u64) -> Result<bool, AccessFault> {
        Self::aligned(addr, bytes, Access::Write)?;
        if self.reservation.take() != Some(addr) {
            return Ok(false);
        }
        self.store(addr, bytes, value)?;
        Ok(true)
    }

    fn amo(&mut self, addr: u64, bytes: u8, op: AmoOp, operand: u64) -> Result<u64, AccessFault> {
        Self::aligned(addr, bytes, Access::Write)?;
        self.process.space().translate(addr, Access::Write)?;
        let old = self.load(addr, bytes)?;
        if let Some(value) = op.apply(bytes, old, operand) {
            self.store(addr, bytes, value)?;
        }
        Ok(old)
    }

    fn fence(&mut self, _: FenceSet) {}

    fn fence_i(&mut self) {
        self.code_changed = true;
    }

    fn cache_block(&mut self, _: CacheBlockOp, addr: u64) -> Result<(), AccessFault> {
        self.process.space().translate(addr, Access::Read).map(|_| ())
    }

    fn counter(&mut self, counter: Counter) -> u64 {
        match counter {
            Counter::Cycle | Counter::Time => self.now_ns,
            Counter::Instret => self.instructions,
        }
    }

    fn marker(&mut self, _: Marker, _: u64) {}
}

pub struct Finished {
    pub status: i32,
    pub out: Captured,
    pub instructions: u64,
    pub now_ns: u64,
    pub process: Process,
    pub memory: FlatMemory,
}

/// Runs a program to its end.
pub fn run(config: ProcessConfig) -> Result<Finished, Error> {
    let pool = PmemPool::new(config.map.pmem_data_bytes);
    run_on(config, pool, FlatMemory::default())
}

/// Runs a program on memory and a pool that exist already.
pub fn run_on(config: ProcessConfig, pool: PmemPool, mut memory: FlatMemory) -> Result<Finished, Error> {
    let (process, mut hart) = Process::load(config, pool, &mut memory)?;
    let mut world = World { process, memory, now_ns: 0, instructions: 0, reservation: None, code_changed: false };
    let mut out = Captured::default();
    let mut blocks = BlockCache::new();
    let mut code_epoch = world.process.space().code_epoch();
    loop {
        let epoch = world.process.space().code_epoch();
        if epoch != code_epoch || world.code_changed {
            blocks.clear();
            code_epoch = epoch;
            world.code_changed = false;
        }
        let fetch = |addr| world.read(addr, 2, Access::Execute).map(|half| half as u16);
        let block = blocks.get(hart.pc, fetch).map_err(|stop| fault(&mut world, &hart, stop))?;
        for &inst in blocks.insts(block) {
            world.instructions += 1;
            world.now_ns += 1;
            match execute(&mut hart, inst, &mut world) {
                Ok(Flow::Next) => hart.pc += u64::from(inst.len),
                Ok(Flow::Jump(target)) => {
                    hart.pc = target;
                    break;
                }
                Ok(Flow::Ecall) => {
                    let World { process, memory, now_ns, .. } = &mut world;
                    match process.syscall(ThreadId::FIRST, &mut hart, memory, *now_ns, &mut out)? {
                        SyscallOutcome::Continue | SyscallOutcome::Yield => {}
                        SyscallOutcome::Sleep { until_ns } => *now_ns = until_ns.max(*now_ns),
                        outcome @ (SyscallOutcome::Wait { .. } | SyscallOutcome::ThreadExit) => {
                            panic!("{outcome:?} of a program without threads")
                        }
                        SyscallOutcome::Exit(status) => {
                            let World { process, memory, now_ns, instructions, .. } = world;
                            return Ok(Finished { status, out, instructions, now_ns, process, memory });
                        }
                    }
                    break;
                }
                Ok(Flow::Ebreak) => return Err(guest_fault(&world, &hart, "ebreak".into()).into()),
                Err(stop) => return Err(fault(&mut world, &hart, stop).into()),
            }
            if world.code_changed {
                break;
            }
        }
    }
}

fn guest_fault(world: &World, hart: &Hart, what: String) -> GuestFault {
    GuestFault { pc: hart.pc, what, last_syscall: world.process.last_syscall().map(str::to_string) }
}

fn fault(world: &mut World, hart: &Hart, stop: Stop) -> GuestFault {
    let what = match stop {
        Stop::AccessFault(fault) => world.process.space().describe(&fault),
        Stop::Illegal => "illegal instruction".into(),
        other => other.to_string(),
    };
    guest_fault(world, hart, what)
}

/// Address of the writable page of [`elf`].
pub const DATA: u64 = 0x20_0000;

/// A small static program: a page of code at 0x10_0000 (one ECALL) and a page of data at [`DATA`].
pub fn elf() -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend(2u16.to_le_bytes());
    bytes.extend(243u16.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(0x10_0400u64.to_le_bytes());
    bytes.extend(64u64.to_le_bytes());
    bytes.extend(0u64.to_le_bytes());
    bytes.extend(5u32.to_le_bytes());
    for half in [64u16, 56, 3, 0, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    // Type and flags, offset, address twice, sizes in file and memory, alignment.
    let note = 4;
    for (kind, flags, offset, vaddr, size) in
        [(1u32, 5u32, 0u64, 0x10_0000u64, 4096u64), (1, 6, 4096, DATA, 4096), (note, 4, 64, 0x10_0040, 8)]
    {
        bytes.extend(kind.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        for word in [offset, vaddr, vaddr, size, size, 4096] {
            bytes.extend(word.to_le_bytes());
        }
    }
    bytes.resize(0x400, 0);
    bytes.extend(0x73u32.to_le_bytes());
    bytes.resize(8192, 0);
    bytes
}

/// The small program, loaded, making whatever system calls a test wants.
pub struct Program {
    pub process: Process,
    pub memory: FlatMemory,
    pub hart: Hart,
    pub out: Captured,
    pub now_ns: u64,
}

/// Loads the small program with a changed configuration.
pub fn program(change: impl FnOnce(&mut ProcessConfig)) -> Program {
    let mut config = ProcessConfig::new("prog", elf(), map());
    change(&mut config);
    let mut memory = FlatMemory::default();
    let pool = PmemPool::new(config.map.pmem_data_bytes);
    let (process, hart) = Process::load(config, pool, &mut memory).unwrap();
    Program { process, memory, hart, out: Captured::default(), now_ns: 0 }
}

impl Program {
    pub fn outcome(&mut self, sysno: Sysno, args: &[u64]) -> Result<SyscallOutcome, GuestFault> {
        self.outcome_of(ThreadId::FIRST, sysno, args)
    }

    /// The outcome of a call by another thread; all use the same registers.
    pub fn outcome_of(&mut self, thread: ThreadId, sysno: Sysno, args: &[u64]) -> Result<SyscallOutcome, GuestFault> {
        self.hart.pc = 0x10_0400;
        self.hart.x[17] = sysno.id() as u64;
        self.hart.x[10..16].fill(0);
        self.hart.x[10..10 + args.len()].copy_from_slice(args);
        self.process.syscall(thread, &mut self.hart, &mut self.memory, self.now_ns, &mut self.out)
    }

    /// Makes a system call that returns: its value, or minus the error number.
    pub fn call(&mut self, sysno: Sysno, args: &[u64]) -> i64 {
        match self.outcome(sysno, args) {
            Ok(SyscallOutcome::Continue) => assert_eq!(self.hart.pc, 0x10_0404),
            other => panic!("{sysno} ended with {other:?}"),
        }
        self.hart.x[10] as i64
    }

    /// Makes a system call that the simulator refuses, and returns the sentence.
    pub fn refused(&mut self, sysno: Sysno, args: &[u64]) -> String {
        let fault = self.outcome(sysno, args).expect_err("must be refused");
        assert_eq!(fault.pc, 0x10_0400);
        fault.what
    }

    /// Calls with `text` at [`DATA`], which stands for the argument of the same value.
    pub fn put(&mut self, text: &str) -> u64 {
        self.poke(DATA, &[text.as_bytes(), &[0]].concat());
        DATA
    }

    pub fn open(&mut self, path: &str, flags: u64) -> i64 {
        let path = self.put(path);
        self.call(Sysno::openat, &[AT_FDCWD, path, flags, 0o644])
    }

    pub fn poke(&mut self, addr: u64, bytes: &[u8]) {
        let Program { process, memory, .. } = self;
        process.space().write(memory, addr, bytes).unwrap();
    }

    pub fn peek(&mut self, addr: u64, len: usize) -> Vec<u8> {
        let Program { process, memory, .. } = self;
        let mut bytes = vec![0; len];
        process.space().read(memory, addr, &mut bytes).unwrap();
        bytes
    }

    pub fn peek_word(&mut self, addr: u64) -> u64 {
        u64::from_le_bytes(self.peek(addr, 8).try_into().unwrap())
    }
}

pub const AT_FDCWD: u64 = -100i64 as u64;
pub const O_RDWR: u64 = 2;
pub const O_CREAT: u64 = 0x40;
