//! A flat machine: our side of the comparison.

use super::elf::{self, Segment};
use durasim_isa::*;

const WRITE: u64 = 64;
const EXIT: u64 = 93;

pub struct FlatBus {
    pub segments: Vec<Segment>,
    reservation: Option<u64>,
    pub code_changed: bool,
    pub markers: Vec<(Marker, u64)>,
    pub cache_blocks: Vec<(CacheBlockOp, u64)>,
    pub fences: Vec<FenceSet>,
}

impl FlatBus {
    pub fn new(segments: Vec<Segment>) -> Self {
        FlatBus {
            segments,
            reservation: None,
            code_changed: false,
            markers: vec![],
            cache_blocks: vec![],
            fences: vec![],
        }
    }

    #[inline]
    fn place(&mut self, addr: u64, bytes: u8, access: Access) -> Result<&mut [u8], AccessFault> {
        for segment in &mut self.segments {
            let offset = addr.wrapping_sub(segment.base);
            if offset < segment.bytes.len() as u64 && segment.bytes.len() as u64 - offset >= u64::from(bytes) {
                if access == Access::Write && !segment.writable {
                    return Err(AccessFault { addr, access, why: AccessFaultKind::Protected });
                }
                return Ok(&mut segment.bytes[offset as usize..][..usize::from(bytes)]);
            }
        }
        Err(AccessFault { addr, access, why: AccessFaultKind::Unmapped })
    }

    #[inline]
    fn read(&mut self, addr: u64, bytes: u8, access: Access) -> Result<u64, AccessFault> {
        let place = self.place(addr, bytes, access)?;
        Ok(match *place {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_le_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            _ => u64::from_le_bytes((&*place).try_into().unwrap()),
        })
    }

    pub fn fetch(&mut self, addr: u64) -> Result<u16, AccessFault> {
        Ok(self.read(addr, 2, Access::Execute)? as u16)
    }

    pub fn bytes(&mut self, addr: u64, length: usize) -> Vec<u8> {
        (0..length as u64).map(|i| self.read(addr + i, 1, Access::Read).expect("readable") as u8).collect()
    }
}

impl Bus for FlatBus {
    #[inline]
    fn load(&mut self, addr: u64, bytes: u8) -> Result<u64, AccessFault> {
        self.read(addr, bytes, Access::Read)
    }
    #[inline]
    fn store(&mut self, addr: u64, bytes: u8, value: u64) -> Result<(), AccessFault> {
        let place = self.place(addr, bytes, Access::Write)?;
        place.copy_from_slice(&value.to_le_bytes()[..usize::from(bytes)]);
        Ok(())
    }
    fn load_reserved(&mut self, addr: u64, bytes: u8) -> Result<u64, AccessFault> {
        let value = self.load(addr, bytes)?;
        self.reservation = Some(addr);
        Ok(value)
    }
    fn store_conditional(&mut self, addr: u64, bytes: u8, value: u64) -> Result<bool, AccessFault> {
        let stored = self.reservation == Some(addr);
        if stored {
            self.store(addr, bytes, value)?;
        }
        self.reservation = None;
        Ok(stored)
    }
    fn amo(&mut self, addr: u64, bytes: u8, op: AmoOp, operand: u64) -> Result<u64, AccessFault> {
        let old = self.read(addr, bytes, Access::Write)?;
        if let Some(value) = op.apply(bytes, old, operand) {
            self.store(addr, bytes, value)?;
        }
        Ok(old)
    }
    fn fence(&mut self, set: FenceSet) {
        self.fences.push(set);
    }
    fn fence_i(&mut self) {
        self.code_changed = true;
    }
    fn cache_block(&mut self, op: CacheBlockOp, addr: u64) -> Result<(), AccessFault> {
        self.cache_blocks.push((op, addr));
        Ok(())
    }
    fn counter(&mut self, counter: Counter) -> u64 {
        match counter {
            Counter::Cycle => 1000,
            Counter::Time => 2000,
            Counter::Instret => 3000,
        }
    }
    fn marker(&mut self, marker: Marker, argument: u64) {
        self.markers.push((marker, argument));
    }
}

/// The end of a program.
pub struct Outcome {
    pub stdout: Vec<u8>,
    pub exit_code: u64,
    pub executed: u64,
    pub ops: std::collections::BTreeSet<Op>,
}

/// Runs a program that makes no system calls but write and exit; the error names the place where it stopped.
pub fn run(elf: &[u8]) -> Result<Outcome, String> {
    let (entry, segments) = elf::read(elf);
    let mut bus = FlatBus::new(segments);
    let mut hart = Hart { pc: entry, ..Hart::default() };
    let mut cache = BlockCache::new();
    let mut outcome = Outcome { stdout: vec![], exit_code: 0, executed: 0, ops: Default::default() };
    loop {
        let block =
            cache.get(hart.pc, |addr| bus.fetch(addr)).map_err(|stop| format!("fetch at {:#x}: {stop}", hart.pc))?;
        for &inst in cache.insts(block) {
            outcome.executed += 1;
            outcome.ops.insert(inst.op);
            let before = hart.clone();
            let flow = execute(&mut hart, inst, &mut bus).map_err(|stop| {
                assert_eq!(hart, before, "an instruction that stops must not change the hart");
                format!("{inst} at {:#x}: {stop}", hart.pc)
            })?;
            assert_eq!(hart.x[0], 0);
            match flow {
                Flow::Next => hart.pc += u64::from(inst.len),
                Flow::Jump(target) => hart.pc = target,
                Flow::Ebreak => return Err(format!("ebreak at {:#x}", hart.pc)),
                Flow::Ecall => {
                    hart.pc += u64::from(inst.len);
                    match hart.x[17] {
                        WRITE => {
                            outcome.stdout.extend(bus.bytes(hart.x[11], hart.x[12] as usize));
                            hart.x[10] = hart.x[12];
                        }
                        EXIT => {
                            outcome.exit_code = hart.x[10];
                            return Ok(outcome);
                        }
                        other => return Err(format!("system call {other}")),
                    }
                }
            }
        }
        if std::mem::take(&mut bus.code_changed) {
            cache.clear();
        }
    }
}
