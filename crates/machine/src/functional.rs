//! Functional execution: a program on flat memory, without caches, timing or a durability design. This is how guest
//! recovery and checks run on the image that a crash left.

use crate::MachineConfig;
use crate::machine::{PoolContents, Program, process_config};
use crate::system::{DRAM_BASE, PMEM_BASE, Plan};
use durasim_guest::{Output, PhysMemory, PmemPool, Process, SyscallOutcome};
use durasim_isa::{
    Access, AmoOp, BlockCache, Bus, CacheBlockOp, Counter, Fault, FaultKind, FenceSet, Flow, Hart, Marker, Stop,
    disassemble, execute,
};
use durasim_types::{DataRange, Error, GuestFault, PAGE_BYTES, Pages, PhysAddr};

/// How a functional run ended.
#[derive(Clone, Debug)]
pub struct FunctionalEnding {
    /// The exit code; `None` if the limit of instructions was reached or the output stopped the program.
    pub exit_code: Option<i32>,
    /// Instructions executed.
    pub instructions: u64,
    /// `/pmem/` afterwards.
    pub pool: PoolContents,
    /// The data range the program declared.
    pub data_range: Option<DataRange>,
}

struct Flat {
    dram: Pages,
    pmem: Pages,
}

impl Flat {
    #[inline]
    fn pages(&mut self, addr: PhysAddr) -> &mut Pages {
        if addr.0 >= PMEM_BASE.0 { &mut self.pmem } else { &mut self.dram }
    }
}

impl PhysMemory for Flat {
    fn read(&mut self, addr: PhysAddr, bytes: &mut [u8]) {
        self.pages(addr).read(addr, bytes);
    }

    fn write(&mut self, addr: PhysAddr, bytes: &[u8]) {
        self.pages(addr).write(addr, bytes);
    }
}

const TLB_ENTRIES: usize = 64;
/// Instructions between two looks at whether the program is to be stopped.
const LOOK_PERIOD: u64 = 1 << 20;

struct FlatBus {
    memory: Flat,
    process: Process,
    /// Page and frame of cached translations, for reads and for writes.
    tlb: [[(u64, u64); TLB_ENTRIES]; 2],
    reservation: Option<u64>,
    instructions: u64,
    data_base: Option<PhysAddr>,
    data_range: Option<DataRange>,
}

impl FlatBus {
    fn clear_translations(&mut self) {
        self.tlb = [[(u64::MAX, 0); TLB_ENTRIES]; 2];
    }

    #[inline]
    fn translate(&mut self, addr: u64, access: Access) -> Result<PhysAddr, Fault> {
        let page = addr / PAGE_BYTES;
        let entry = &mut self.tlb[usize::from(access == Access::Write)][page as usize % TLB_ENTRIES];
        if entry.0 != page {
            let phys = self.process.space().translate(addr, access)?;
            *entry = (page, phys.0 - addr % PAGE_BYTES);
        }
        Ok(PhysAddr(entry.1 + addr % PAGE_BYTES))
    }

    fn aligned(addr: u64, bytes: u8, access: Access) -> Result<(), Fault> {
        if addr.is_multiple_of(u64::from(bytes)) {
            Ok(())
        } else {
            Err(Fault { addr, access, why: FaultKind::Misaligned })
        }
    }
}

impl Bus for FlatBus {
    fn load(&mut self, addr: u64, bytes: u8) -> Result<u64, Fault> {
        let mut word = [0; 8];
        let first = (PAGE_BYTES - addr % PAGE_BYTES).min(u64::from(bytes)) as usize;
        let phys = self.translate(addr, Access::Read)?;
        self.memory.read(phys, &mut word[..first]);
        if first < bytes as usize {
            let rest = self.translate(addr + first as u64, Access::Read)?;
            self.memory.read(rest, &mut word[first..bytes as usize]);
        }
        Ok(u64::from_le_bytes(word))
    }

    fn store(&mut self, addr: u64, bytes: u8, value: u64) -> Result<(), Fault> {
        let word = value.to_le_bytes();
        let first = (PAGE_BYTES - addr % PAGE_BYTES).min(u64::from(bytes)) as usize;
        let phys = self.translate(addr, Access::Write)?;
        if first < bytes as usize {
            let rest = self.translate(addr + first as u64, Access::Write)?;
            self.memory.write(rest, &word[first..bytes as usize]);
        }
        self.memory.write(phys, &word[..first]);
        Ok(())
    }

    fn load_reserved(&mut self, addr: u64, bytes: u8) -> Result<u64, Fault> {
        Self::aligned(addr, bytes, Access::Read)?;
        let value = self.load(addr, bytes)?;
        self.reservation = Some(addr);
        Ok(value)
    }

    fn store_conditional(&mut self, addr: u64, bytes: u8, value: u64) -> Result<bool, Fault> {
        Self::aligned(addr, bytes, Access::Write)?;
        self.translate(addr, Access::Write)?;
        if self.reservation.take() != Some(addr) {
            return Ok(false);
        }
        self.store(addr, bytes, value)?;
        Ok(true)
    }

    fn amo(&mut self, addr: u64, bytes: u8, op: AmoOp, operand: u64) -> Result<u64, Fault> {
        Self::aligned(addr, bytes, Access::Write)?;
        self.translate(addr, Access::Write)?;
        let old = self.load(addr, bytes)?;
        self.store(addr, bytes, op.apply(bytes, old, operand))?;
        Ok(old)
    }

    fn fence(&mut self, _set: FenceSet) {}

    fn fence_i(&mut self) {}

    fn cache_block(&mut self, _op: CacheBlockOp, addr: u64) -> Result<(), Fault> {
        self.translate(addr, Access::Read).map(drop)
    }

    fn counter(&mut self, _counter: Counter) -> u64 {
        self.instructions
    }

    fn marker(&mut self, marker: Marker, argument: u64) {
        match marker {
            Marker::DataBase => self.data_base = self.translate(argument, Access::Read).ok(),
            Marker::DataSize => {
                self.data_range = self.data_base.map(|base| DataRange { base, size_bytes: argument });
            }
            _ => {}
        }
    }
}

/// Runs a program to its end or up to `max_instructions`. One instruction takes one nanosecond of the guest's clock.
///
/// # Errors
/// What is refused before the first instruction, and faults of the guest.
pub fn run_functionally(
    config: &MachineConfig,
    plan: &Plan,
    program: &Program,
    max_instructions: u64,
    output: &mut dyn Output,
) -> Result<FunctionalEnding, Error> {
    let (files, pmem) = match &program.pool {
        Some(pool) => (pool.files.clone(), pool.pages.clone()),
        None => {
            let pages = Pages::new(PMEM_BASE, config.pmem.capacity_mib << 20);
            (PmemPool::new(plan.geometry.pmem_data_bytes), pages)
        }
    };
    let mut memory = Flat { dram: Pages::new(DRAM_BASE, config.dram.capacity_mib << 20), pmem };
    let (process, mut hart) = Process::load(process_config(config, plan, program), files, &mut memory)?;
    let mut bus = FlatBus {
        memory,
        process,
        tlb: [[(u64::MAX, 0); TLB_ENTRIES]; 2],
        reservation: None,
        instructions: 0,
        data_base: None,
        data_range: None,
    };
    let exit_code = interpret(&mut hart, &mut bus, max_instructions, output)?;
    let FlatBus { memory, process, instructions, data_range, .. } = bus;
    let pool = PoolContents { files: process.into_pool(), pages: memory.pmem };
    Ok(FunctionalEnding { exit_code, instructions, pool, data_range })
}

fn interpret(
    hart: &mut Hart,
    bus: &mut FlatBus,
    max_instructions: u64,
    output: &mut dyn Output,
) -> Result<Option<i32>, Error> {
    let mut blocks = BlockCache::new();
    let mut next_look = LOOK_PERIOD;
    while bus.instructions < max_instructions {
        if bus.instructions >= next_look {
            next_look = bus.instructions + LOOK_PERIOD;
            if output.stopped() {
                return Ok(None);
            }
        }
        let pc = hart.pc;
        let found = blocks.get(pc, |addr| {
            let phys = bus.process.space().translate(addr, Access::Execute)?;
            let mut half = [0; 2];
            bus.memory.read(phys, &mut half);
            Ok(u16::from_le_bytes(half))
        });
        let block = match found {
            Ok(block) => block,
            Err(stop) => return Err(fault(hart.pc, bus, stop).into()),
        };
        let mut system_call = false;
        let mut code_changed = false;
        for &inst in blocks.insts(block) {
            bus.instructions += 1;
            match execute(hart, inst, bus) {
                Ok(Flow::Next) => hart.pc += u64::from(inst.len),
                Ok(Flow::Jump(target)) => hart.pc = target,
                Ok(Flow::Ecall) => system_call = true,
                Ok(Flow::Ebreak) => return Err(message(hart.pc, bus, "the program ran into an ebreak".into()).into()),
                Err(stop) => return Err(fault(hart.pc, bus, stop).into()),
            }
            code_changed = inst.class() == durasim_isa::Class::FenceI;
        }
        if code_changed {
            blocks.clear();
        }
        if system_call {
            let (epoch, code_epoch) = (bus.process.space().epoch(), bus.process.space().code_epoch());
            let now_ns = bus.instructions;
            let outcome = bus.process.syscall(hart, &mut bus.memory, now_ns, output)?;
            if bus.process.space().epoch() != epoch {
                bus.clear_translations();
            }
            if bus.process.space().code_epoch() != code_epoch {
                blocks.clear();
            }
            if let SyscallOutcome::Exit(code) = outcome {
                return Ok(Some(code));
            }
        }
    }
    Ok(None)
}

fn message(pc: u64, bus: &FlatBus, what: String) -> GuestFault {
    GuestFault { pc, what, last_syscall: bus.process.last_syscall().map(str::to_owned) }
}

fn fault(pc: u64, bus: &mut FlatBus, stop: Stop) -> GuestFault {
    let what = match stop {
        Stop::Fault(fault) => bus.process.space().describe(&fault),
        Stop::Illegal => {
            let mut bits = 0;
            for half in [0, 2] {
                if let Ok(phys) = bus.process.space().translate(pc + half, Access::Execute) {
                    let mut bytes = [0; 2];
                    bus.memory.read(phys, &mut bytes);
                    bits |= u32::from(u16::from_le_bytes(bytes)) << (8 * half);
                }
            }
            format!("illegal instruction: {}", disassemble(bits))
        }
    };
    message(pc, bus, what)
}
