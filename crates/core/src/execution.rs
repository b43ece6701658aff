//! The bus of an executing instruction: loads look into the store buffer and then the caches, stores wait to commit.

use crate::banks::Banks;
use crate::{
    Exit, HtmAbort, LogFlush, Outcome, PendingStore, PersistentStores, Port, StoreBuffer, store_buffer::Forward,
    tlb::Tlbs, translations::Translations,
};
use durasim_isa::{
    Access, AccessFault, AccessFaultKind, AmoOp, Bus, CacheBlockOp, Counter, FenceSet, HTM_DEPTH_MAX, HTM_STARTED,
    HtmOperation, LogRegister, Marker, Stop,
};
use durasim_types::{
    CheckRegisters, CheckVerdict, CheckedAccess, CoreId, Cycle, FilterOperation, LINE_BYTES, LineAddr, PAGE_BYTES,
    PhysAddr, StoreKind, TxId,
};
use serde::{Deserialize, Serialize};

/// The most instructions of an LR/SC sequence that has to succeed in the end (RISC-V unprivileged ISA, "Eventual Success
/// of Store-Conditional Instructions").
const CONSTRAINED_INSTRUCTIONS: u64 = 16;

/// Work that an instruction leaves for its commit.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum AtCommit {
    Store(PendingStore),
    /// A store that crosses a line: two stores, the lower addresses first.
    Split(PendingStore, PendingStore),
    Persist(Persist),
    Block(CacheBlockOp, LineAddr),
    Log(LogFlush),
    Fence(FenceSet),
    FenceI,
    /// A hardware transaction begins; after an abort the register holds the status.
    HtmBegin(u8),
    HtmEnd,
    HtmAbort(HtmAbort),
    Marker(Marker, u64),
    /// ECALL or EBREAK: the machine takes over.
    Environment(Exit),
    /// Stores of zeros to a whole line; the first of them.
    Zeros(PendingStore),
}

/// A store that persists, or two of them if it crosses a line, with what follows at its commit.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Persist {
    pub low: PendingStore,
    pub high: Option<PendingStore>,
    /// Cache-block operations of the lines follow.
    pub cleans: bool,
    /// A fence follows that orders writes before writes.
    pub fence: bool,
}

/// The parts of a core that memory instructions use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MemoryUnit {
    pub id: CoreId,
    pub buffer: StoreBuffer,
    /// Translations of the pages of loads; empty on a machine with TLBs, where no access takes the short way. Snapshots hold it, because the
    /// short way counts the wait of a load for a narrower store under another cause than the long one does.
    pub reads: Translations,
    #[serde(skip)]
    pub writes: Translations,
    #[serde(skip)]
    pub code: Translations,
    /// On machines that have them.
    pub tlbs: Option<Box<Tlbs>>,
    pub open_tx: Option<TxId>,
    /// Whether a hardware transaction is open.
    pub in_hardware_tx: bool,
    /// The transaction that stores belong to: the open one, unless it is suspended.
    pub store_tx: Option<TxId>,
    /// The last SC has failed: the next LR gets a lease, so that its SC succeeds. One lease for one failure: a thread
    /// that waits for another one with LR alone does not hold it up.
    pub sc_failed: bool,
    /// Up to this count of instructions no other core acts: an LR with a lease has been executed and its SC follows.
    pub lease_end: u64,
    pub forward_latency: Cycle,
    pub forwards: u64,
    pub banks: Option<Banks>,
}

impl MemoryUnit {
    #[inline]
    pub(crate) fn translate<P: Port>(
        &mut self,
        port: &mut P,
        addr: u64,
        access: Access,
    ) -> Result<PhysAddr, AccessFault> {
        let known = match access {
            Access::Read => &mut self.reads,
            Access::Write => &mut self.writes,
            Access::Execute => &mut self.code,
        };
        if let Some(phys) = known.get(addr) {
            return Ok(phys);
        }
        if let Some(tlbs) = &mut self.tlbs {
            return tlbs.translate(port, addr, access);
        }
        let phys = port.translate(addr, access)?;
        known.put(addr, phys);
        Ok(phys)
    }

    /// An access to an address that is mapped could begin in cycle `at`: when it begins, its translation being known.
    #[inline]
    pub(crate) fn access_begins<P: Port>(
        &mut self,
        port: &mut P,
        addr: u64,
        access: Access,
        at: Cycle,
    ) -> Result<Cycle, AccessFault> {
        match &mut self.tlbs {
            Some(tlbs) => tlbs.access_begins(port, self.id, addr, access, at),
            None => Ok(at),
        }
    }

    /// Translates an access that may be on two pages.
    #[inline]
    pub(crate) fn access_of_bytes_begins<P: Port>(
        &mut self,
        port: &mut P,
        addr: u64,
        bytes: u8,
        access: Access,
        at: Cycle,
    ) -> Result<Cycle, AccessFault> {
        let first = self.access_begins(port, addr, access, at)?;
        let last = addr.wrapping_add(u64::from(bytes.max(1)) - 1);
        if self.tlbs.is_none() || last / PAGE_BYTES == addr / PAGE_BYTES {
            return Ok(first);
        }
        Ok(self.access_begins(port, last, access, at)?.max(first))
    }

    /// Loads bytes in cycle `at` that do not cross a line; their value and the cycle in which it is there.
    #[inline(always)]
    pub(crate) fn load<P: Port>(&mut self, port: &mut P, addr: PhysAddr, len: u8, at: &mut Cycle) -> (u64, Cycle) {
        loop {
            match self.buffer.forward(addr, len) {
                Forward::Miss => {
                    if let Some(banks) = &mut self.banks {
                        *at = banks.take(addr, *at);
                    }
                    return port.load(self.id, addr, len, self.open_tx, *at);
                }
                Forward::Hit(value, ready) => {
                    self.forwards += 1;
                    return (value, (*at).max(ready) + self.forward_latency);
                }
                // It waits until those bytes have left.
                Forward::Partial(n) => *at = (*at).max(self.buffer.drain_first(self.id, port, n)),
            }
        }
    }

    /// Loads a block for a log register in cycle `at`: one access of the L1D, unless the store buffer has all of it.
    fn load_block<P: Port>(&mut self, port: &mut P, addr: PhysAddr, at: &mut Cycle) -> ([u64; 4], Cycle) {
        loop {
            let words: [Forward; 4] = std::array::from_fn(|i| self.buffer.forward(addr.plus(8 * i as u64), 8));
            let partial = words.iter().filter_map(|word| if let Forward::Partial(n) = word { Some(*n) } else { None });
            if let Some(n) = partial.max() {
                // It waits until those bytes have left.
                *at = (*at).max(self.buffer.drain_first(self.id, port, n));
                continue;
            }
            let (mut block, mut done) = ([0; 4], *at);
            if words.contains(&Forward::Miss) {
                if let Some(banks) = &mut self.banks {
                    *at = banks.take(addr, *at);
                }
                (block, done) = port.load_block(self.id, addr, self.open_tx, *at);
            }
            for (word, forward) in block.iter_mut().zip(words) {
                if let Forward::Hit(value, ready) = forward {
                    self.forwards += 1;
                    *word = value;
                    done = done.max((*at).max(ready) + self.forward_latency);
                }
            }
            return (block, done);
        }
    }

    /// Stores belong to this transaction from now on.
    pub(crate) fn begin(&mut self, tx: TxId) {
        (self.open_tx, self.store_tx) = (Some(tx), Some(tx));
    }

    /// Whether others can abort what the core executes.
    #[inline(always)]
    pub(crate) fn can_be_aborted(&self) -> bool {
        self.open_tx.is_some() | self.in_hardware_tx
    }

    /// No transaction is open any more.
    pub(crate) fn end(&mut self) {
        (self.open_tx, self.store_tx) = (None, None);
    }

    /// Whether a transaction is open to which stores do not belong.
    pub(crate) fn is_suspended(&self) -> bool {
        self.open_tx.is_some() && self.store_tx.is_none()
    }

    pub(crate) fn flush_translations(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.code.clear();
        if let Some(tlbs) = &mut self.tlbs {
            tlbs.forget_known();
        }
    }
}

/// The bus of one instruction issued in cycle `at`.
pub(crate) struct Execution<'a, P> {
    pub unit: &'a mut MemoryUnit,
    pub port: &'a mut P,
    pub at: Cycle,
    /// Cycle in which the result of a load or atomic operation is available.
    pub done: Cycle,
    pub at_commit: Option<AtCommit>,
    /// The line that a load or atomic operation is for.
    pub line: Option<LineAddr>,
    /// Cycle in which the access began, if it is no load: later than `at` if it waited for its translation.
    pub begun: Cycle,
    /// Cycle in which the check of an access is decided, or a change of filters is complete.
    pub known: Cycle,
    /// The hardware has checked the access.
    pub checked: bool,
    pub instructions: u64,
}

impl<P: Port> Execution<'_, P> {
    /// Loads bytes that do not cross a line.
    #[inline(never)]
    fn load_within(&mut self, addr: PhysAddr, len: u8) -> (u64, Cycle) {
        self.unit.load(self.port, addr, len, &mut self.at)
    }

    /// The store of an instruction, and the rest of it in the next line if it crosses one.
    fn stores(
        &mut self,
        addr: u64,
        bytes: u8,
        value: u64,
    ) -> Result<(PendingStore, Option<PendingStore>), AccessFault> {
        let phys = self.unit.translate(self.port, addr, Access::Write)?;
        let first = in_first_line(addr, bytes);
        let tx = self.unit.store_tx;
        let mut low = PendingStore::plain(phys, first, value, tx);
        let mut high = None;
        if first != bytes {
            let rest = self.unit.translate(self.port, addr + u64::from(first), Access::Write)?;
            low.data &= (1 << (8 * first)) - 1;
            high = Some(PendingStore::plain(rest, bytes - first, value >> (8 * first), tx));
        }
        self.begun = self.unit.access_of_bytes_begins(self.port, addr, bytes, Access::Write, self.at)?;
        Ok((low, high))
    }

    fn atomic(
        &mut self,
        addr: u64,
        bytes: u8,
        operand: u64,
        access: Access,
        mut update: impl FnMut(u64) -> Option<u64>,
    ) -> Result<u64, AccessFault> {
        if !addr.is_multiple_of(u64::from(bytes)) {
            return Err(AccessFault { addr, access, why: AccessFaultKind::Misaligned });
        }
        let phys = self.unit.translate(self.port, addr, access)?;
        self.line = Some(phys.line());
        // The core has let all earlier stores leave.
        self.at = self.at.max(self.unit.buffer.left());
        let at = self.unit.access_begins(self.port, addr, access, self.at)?;
        self.begun = at;
        let place = PendingStore::plain(phys, bytes, operand, self.unit.store_tx);
        let (old, outcome) = self.port.atomic(self.unit.id, &place, access == Access::Write, at, &mut update);
        match outcome {
            Outcome::Done(cycle) => self.done = cycle,
            Outcome::Aborted(cycle, code) => {
                self.done = cycle;
                self.unit.buffer.abort(cycle, code);
            }
            Outcome::Pending => unreachable!("an atomic operation is done in one step"),
        }
        Ok(old)
    }
}

/// Bytes of an access that are in the line of its first byte.
#[inline]
fn in_first_line(addr: u64, bytes: u8) -> u8 {
    (LINE_BYTES - addr % LINE_BYTES).min(u64::from(bytes)) as u8
}

impl<P: Port> Bus for Execution<'_, P> {
    #[inline]
    fn load(&mut self, addr: u64, bytes: u8) -> Result<u64, AccessFault> {
        let phys = self.unit.translate(self.port, addr, Access::Read)?;
        let first = in_first_line(addr, bytes);
        if first == bytes {
            let (value, done) = self.load_within(phys, bytes);
            self.done = done;
            return Ok(value);
        }
        let rest = self.unit.translate(self.port, addr + u64::from(first), Access::Read)?;
        let (low, low_done) = self.load_within(phys, first);
        let (high, high_done) = self.load_within(rest, bytes - first);
        self.done = low_done.max(high_done) + 1;
        Ok(low | high << (8 * first))
    }

    #[inline]
    fn store(&mut self, addr: u64, bytes: u8, value: u64) -> Result<(), AccessFault> {
        self.at_commit = Some(match self.stores(addr, bytes, value)? {
            (low, None) => AtCommit::Store(low),
            (low, Some(high)) => AtCommit::Split(low, high),
        });
        Ok(())
    }

    fn zero_block(&mut self, addr: u64) -> Result<(), AccessFault> {
        let (first, _) = self.stores(addr - addr % LINE_BYTES, 8, 0)?;
        self.at_commit = Some(AtCommit::Zeros(first));
        Ok(())
    }

    fn has_checks(&self) -> bool {
        self.port.has_checks()
    }

    fn check(&mut self, registers: &CheckRegisters, access: &CheckedAccess) -> Result<CheckVerdict, Stop> {
        let filters = registers.0[CheckRegisters::FILTERS];
        let first = self.unit.translate(self.port, filters, Access::Read)?.line();
        let (verdict, known) = self.port.check(self.unit.id, first, registers, access, self.at);
        (self.known, self.checked) = (known, true);
        Ok(verdict)
    }

    fn update_filters(
        &mut self,
        registers: &CheckRegisters,
        operation: FilterOperation,
        object: u64,
    ) -> Result<u64, Stop> {
        let filters = registers.0[CheckRegisters::FILTERS];
        let first = self.unit.translate(self.port, filters, Access::Write)?.line();
        // The core has let all earlier stores leave.
        self.at = self.at.max(self.unit.buffer.left());
        let (value, done) =
            self.port.change_filters(self.unit.id, first, operation, object, self.at, self.instructions);
        self.done = done;
        Ok(value)
    }

    /// A store that persists. Where it crosses a line each part in persistent memory does so, and the last of these
    /// alone waits for them.
    fn store_as(&mut self, addr: u64, bytes: u8, value: u64, kind: StoreKind) -> Result<(), AccessFault> {
        let (mut low, mut high) = self.stores(addr, bytes, value)?;
        low.checked = self.checked;
        if let Some(high) = &mut high {
            high.checked = self.checked;
        }
        let fence = kind == StoreKind::CleanAndFence;
        let (mut cleans, mut waits) = (false, false);
        let mut kind = kind;
        for part in high.as_mut().into_iter().chain([&mut low]) {
            if kind == StoreKind::Plain {
                break;
            }
            match self.port.persistent_stores(part.addr.line()) {
                PersistentStores::Plain => {}
                PersistentStores::Separate => (cleans, waits) = (true, fence),
                PersistentStores::Combined { holds_commit } => {
                    waits |= fence && holds_commit;
                    part.kind = std::mem::replace(&mut kind, StoreKind::Clean);
                }
            }
        }
        self.at_commit = Some(AtCommit::Persist(Persist { low, high, cleans, fence: waits }));
        Ok(())
    }

    fn load_reserved(&mut self, addr: u64, bytes: u8) -> Result<u64, AccessFault> {
        let old = self.atomic(addr, bytes, 0, Access::Read, |_| None)?;
        let phys = self.unit.translate(self.port, addr, Access::Read)?;
        self.port.reserve(self.unit.id, phys.line());
        if std::mem::take(&mut self.unit.sc_failed) {
            self.unit.lease_end = self.instructions + CONSTRAINED_INSTRUCTIONS;
        }
        Ok(old)
    }

    fn store_conditional(&mut self, addr: u64, bytes: u8, value: u64) -> Result<bool, AccessFault> {
        if !addr.is_multiple_of(u64::from(bytes)) {
            return Err(AccessFault { addr, access: Access::Write, why: AccessFaultKind::Misaligned });
        }
        let phys = self.unit.translate(self.port, addr, Access::Write)?;
        self.unit.lease_end = 0;
        if self.port.take_reservation(self.unit.id) != Some(phys.line()) {
            self.done = self.at + 1;
            self.unit.sc_failed = true;
            return Ok(false);
        }
        self.atomic(addr, bytes, value, Access::Write, |_| Some(value))?;
        Ok(true)
    }

    fn amo(&mut self, addr: u64, bytes: u8, op: AmoOp, operand: u64) -> Result<u64, AccessFault> {
        self.atomic(addr, bytes, operand, Access::Write, |old| op.apply(bytes, old, operand))
    }

    fn fence(&mut self, set: FenceSet) {
        self.at_commit = Some(AtCommit::Fence(set));
    }

    fn fence_i(&mut self) {
        self.at_commit = Some(AtCommit::FenceI);
    }

    fn cache_block(&mut self, op: CacheBlockOp, addr: u64) -> Result<(), AccessFault> {
        // A cache-block operation needs the rights of a load or a store; a read right is enough (Zicbom, section 2.5).
        let phys = self.unit.translate(self.port, addr, Access::Read)?;
        self.at_commit = Some(if self.unit.in_hardware_tx {
            AtCommit::HtmAbort(HtmAbort::CacheBlock)
        } else {
            AtCommit::Block(op, phys.line())
        });
        self.begun = self.unit.access_begins(self.port, addr, Access::Read, self.at)?;
        Ok(())
    }

    fn log_load(&mut self, addr: u64) -> Result<[u64; 4], Stop> {
        if !self.port.has_log_operations() {
            return Err(Stop::NoLogOperations);
        }
        let phys = self.unit.translate(self.port, addr, Access::Read)?;
        let (block, done) = self.unit.load_block(self.port, phys, &mut self.at);
        self.done = done;
        Ok(block)
    }

    fn log_flush(&mut self, register: &LogRegister) -> Result<(), Stop> {
        if !self.port.has_log_operations() {
            return Err(Stop::NoLogOperations);
        }
        let addr = self.unit.translate(self.port, register.addr, Access::Read)?;
        self.at_commit = Some(AtCommit::Log(LogFlush { addr, old: register.old, tx: self.unit.open_tx }));
        self.begun = self.unit.access_begins(self.port, register.addr, Access::Read, self.at)?;
        Ok(())
    }

    fn hardware_transaction(&mut self, operation: HtmOperation) -> Result<u64, Stop> {
        if !self.port.has_hardware_transactions() {
            return Err(Stop::NoHardwareTransactions);
        }
        let is_open = self.unit.in_hardware_tx;
        match operation {
            HtmOperation::Begin { rd } => {
                if self.port.htm_depth(self.unit.id) >= HTM_DEPTH_MAX {
                    return Err(Stop::NestedTooDeep);
                }
                self.at_commit = Some(AtCommit::HtmBegin(rd));
                Ok(HTM_STARTED)
            }
            HtmOperation::End if !is_open => Err(Stop::NoOpenTransaction),
            HtmOperation::End => {
                self.at_commit = Some(AtCommit::HtmEnd);
                Ok(0)
            }
            HtmOperation::Abort { code } => {
                self.at_commit = is_open.then_some(AtCommit::HtmAbort(HtmAbort::Requested(code)));
                Ok(0)
            }
            HtmOperation::Test => Ok(is_open.into()),
        }
    }

    fn counter(&mut self, counter: Counter) -> u64 {
        match counter {
            Counter::Cycle => self.at,
            Counter::Time => self.port.time_ns(self.at),
            Counter::Instret => self.instructions,
        }
    }

    fn marker(&mut self, marker: Marker, argument: u64) {
        self.at_commit = Some(AtCommit::Marker(marker, argument));
    }
}
