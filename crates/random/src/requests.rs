//! The operations of a port, and what each of them has to return.

use crate::model::{DRAM_REGION, Place, Request, Reserved};
use crate::power_cycle::{PowerCycle, core};
use durasim_contract::Trap;
use durasim_core::{EarlyFlushOutcome, LogFlush, Outcome, PendingStore};
use durasim_isa::{CacheBlockOp, LOG_BLOCK_BYTES};
use durasim_machine::{DRAM_BASE, PMEM_BASE};
use durasim_types::{Cycle, LineAddr, PhysAddr, StoreKind, TxId};

/// The outcome of the log operations for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Logged {
    Yes,
    /// The flush cannot leave ahead of the store in front of it.
    Refused,
    Aborted,
}

/// The starts of the blocks that contain a place.
fn blocks_of(place: Place) -> impl Iterator<Item = PhysAddr> {
    let blocks = place.offset / LOG_BLOCK_BYTES..=(place.offset + place.len - 1) / LOG_BLOCK_BYTES;
    blocks.map(move |block| place.base.plus(block * LOG_BLOCK_BYTES))
}

const CODE_REGION: PhysAddr = DRAM_BASE.plus(2 << 20);

impl PowerCycle {
    /// Any bytes of one line.
    fn place(&mut self) -> Place {
        if self.rng.below(8) == 0
            && let Some(reserved) = self.ports.iter().rev().find_map(|port| port.reserved)
        {
            // Bytes that a port has reserved.
            return reserved.place;
        }
        let dram = self.rng.below(5) == 0;
        let (base, lines) = if dram { (DRAM_REGION, &self.dram_lines) } else { (PMEM_BASE, &self.pmem_lines) };
        let line = lines[self.rng.below(lines.len() as u64) as usize];
        let len = 1 + self.rng.below(8);
        Place { base, offset: line * 64 + self.rng.below(64 - len + 1), len }
    }

    fn word(&mut self) -> Place {
        let place = self.place();
        let word = place.offset / 8 * 8;
        Place { offset: word, len: 8, ..place }
    }

    pub fn step(&mut self, port: usize) -> Result<(), String> {
        if let Some(tx) = &mut self.thread_mut(port).tx {
            tx.left = tx.left.saturating_sub(1);
            if tx.left == 0 {
                return self.end_transaction(port);
            }
        }
        let now = self.ports[port].now;
        let tx = self.tx(port);
        let is_open = self.thread(port).tx.is_some();
        let place = self.place();
        match self.rng.below(100) {
            0..=34 => self.load(port, place),
            35..=67 => self.store(port, place),
            68..=75 if !is_open && self.transactions => self.begin(port),
            68..=71 if is_open => self.end_transaction(port),
            72 if self.may_nest(port) => self.begin(port),
            68..=77 => {
                self.system.prefetch_own(core(port), place.line(), tx, now);
                self.after_request(Some(port))
            }
            78..=80 => self.fetch_code(port, place),
            81..=86 => self.clean(port, place.line(), now),
            87..=90 => {
                let orders_writes = self.rng.below(4) > 0;
                self.request(port, Request::Fence(orders_writes))
            }
            91..=92 => {
                let place = self.word();
                self.swap(port, place)
            }
            93 if self.ports[port].reserved.is_none() => {
                let place = self.word();
                self.load_reserved(port, place)
            }
            93..=94 => self.store_conditional(port),
            95..=96 => self.kernel_write(port, place),
            97..=98 => self.kernel_read(port, place),
            _ => {
                self.ports[port].now = self.system.drain_queues(now);
                self.after_request(Some(port))
            }
        }
    }

    fn end_transaction(&mut self, port: usize) -> Result<(), String> {
        if self.hardware {
            return self.end_hardware(port);
        }
        let id = self.tx(port).expect("the caller saw one");
        if !self.aborts || self.rng.below(4) > 0 {
            return self.request(port, Request::Commit(id));
        }
        let outcome = self.system.tx_abort(core(port), id, 7, self.ports[port].now);
        self.after_request(Some(port))?;
        match outcome {
            Outcome::Aborted(_, code) if code != 7 => Err(format!("an abort with code 7 ended with {code}")),
            Outcome::Aborted(..) => self.ended(port, outcome).map(|_| ()),
            _ => Err("an abort was done, not aborted".into()),
        }
    }

    /// Takes notice of how a request ended that cannot be pending; true if it was done.
    fn ended(&mut self, port: usize, outcome: Outcome) -> Result<bool, String> {
        match outcome {
            Outcome::Pending => Err("a request that cannot be pending is".into()),
            Outcome::Done(cycle) => {
                self.ports[port].now = self.ports[port].now.max(cycle);
                Ok(!self.system.halted())
            }
            Outcome::Aborted(cycle, code) => self.abort_noticed(port, cycle, code).map(|()| false),
        }
    }

    fn compare(&mut self, port: usize, place: Place, found: &[u8], who: &str) -> Result<(), String> {
        self.check_isolation(port, place)?;
        let expected = self.memory.bytes(place);
        if expected == found {
            return Ok(());
        }
        self.check_health()?;
        let now = self.ports[port].now;
        Err(format!(
            "{who} of port {port} read {found:02x?} at {} in cycle {now}, expected {expected:02x?}",
            place.addr()
        ))
    }

    /// With transactions isolated by hardware, no port accesses a line that another one has written and not
    /// committed. Whether one that is inside commit has committed cannot be seen from outside.
    fn check_isolation(&self, port: usize, place: Place) -> Result<(), String> {
        if !self.isolated || !place.is_pmem() && !self.hardware {
            return Ok(());
        }
        for (index, thread) in self.threads.iter().enumerate() {
            let Some(tx) = &thread.tx else { continue };
            let commits = matches!(thread.pending, Some(Request::Commit(_) | Request::HardwareEnd));
            if self.ports[port].thread != Some(index)
                && !tx.aborted
                && !commits
                && tx.undo.iter().any(|(written, _)| written.line() == place.line())
            {
                self.check_health()?;
                let (line, id) = (place.line(), tx.id.0);
                return Err(format!("port {port} got at {line}, which transaction {id} has not committed"));
            }
        }
        Ok(())
    }

    fn is_aborted(&self, port: usize) -> bool {
        self.thread(port).tx.as_ref().is_some_and(|tx| tx.aborted)
    }

    pub fn load(&mut self, port: usize, place: Place) -> Result<(), String> {
        self.tally.loads += 1;
        let (now, tx) = (self.ports[port].now, self.tx(port));
        let (value, done) = self.system.load(core(port), place.addr(), place.len as u8, tx, now);
        self.after_request(Some(port))?;
        if self.rng.below(2) == 0 {
            self.ports[port].now = now.max(done);
        }
        if self.is_aborted(port) {
            // The value is void: the thread notices the abort before it does anything else.
            return self.process_abort(port).map(|_| ());
        }
        self.note_read(port, place);
        self.compare(port, place, &value.to_le_bytes()[..place.len as usize], "a load")
    }

    fn fetch_code(&mut self, port: usize, place: Place) -> Result<(), String> {
        let now = self.ports[port].now;
        if self.rng.below(2) == 0 || place.is_pmem() {
            let line = CODE_REGION.plus(self.rng.below(64) * 64).line();
            self.system.fetch_code(core(port), line, now);
            return self.after_request(Some(port));
        }
        // Data that is executed: decoded before its line is asked for, or from a line that the front end has.
        if self.rng.below(2) == 0 {
            self.system.fetch_code(core(port), place.line(), now);
            self.after_request(Some(port))?;
        }
        let place = Place { offset: place.offset / 2 * 2, len: 2, ..place };
        let found = self.system.decode(core(port), place.addr(), now).to_le_bytes();
        self.after_request(Some(port))?;
        self.compare(port, place, &found, "a decoded instruction")
    }

    /// Names to the judge the store that the next events of this port may belong to.
    pub fn expect_store(&mut self, port: usize, place: Option<Place>) {
        let expected = place.filter(|place| place.is_pmem()).map(|place| (place.addr(), place.len));
        self.shared.lock().expect("no holder panics with it").expect_store(port, expected);
    }

    /// A store of a port has been made: its bytes are the newest, and other ports have lost their reservations.
    pub fn stored(&mut self, port: usize, place: Place, data: &[u8]) -> Result<(), String> {
        self.check_isolation(port, place)?;
        self.check_read_sets(port, place)?;
        let before = self.memory.bytes(place).to_vec();
        self.trace
            .note(|| format!("port {port}: {:?} {} is {data:02x?}, was {before:02x?}", self.tx(port), place.addr()));
        self.memory.write(place, data);
        for (other, state) in self.ports.iter_mut().enumerate() {
            if let Some(reserved) = &mut state.reserved
                && other != port
                && reserved.place.line() == place.line()
            {
                reserved.valid = false;
            }
        }
        let rolls_back = place.is_pmem() || self.hardware;
        if let Some(tx) = self.thread_mut(port).tx.as_mut().filter(|_| rolls_back) {
            tx.undo.push((place, before));
        } else if place.is_pmem() {
            self.shared.lock().expect("no holder panics with it").stored_outside(place.addr(), place.len)?;
        }
        Ok(())
    }

    /// The transaction of a store was aborted. Volatile stores are not rolled back, but by the hardware's own transactions, and this
    /// one may or may not have been made.
    pub fn store_aborted(&mut self, port: usize, place: Place, data: &[u8]) -> Result<(), String> {
        if place.is_pmem() || self.hardware {
            return Ok(());
        }
        let mut found = vec![0; data.len()];
        self.system.read_newest(core(port), place.addr(), &mut found, None, self.ports[port].now);
        if found == data {
            return self.stored(port, place, data);
        }
        self.compare(port, place, &found, "after an abort, the kernel")
    }

    fn locked(&mut self, port: usize, place: Place) -> bool {
        let index = self.ports[port].thread.expect("a thread has the port");
        let held = &mut self.threads[index].locks;
        self.locks.take(self.locking, place, index, held)
    }

    fn store(&mut self, port: usize, place: Place) -> Result<(), String> {
        if !self.locked(port, place) {
            return self.load(port, place);
        }
        if self.logs(port, place).is_some() && self.rng.below(4) == 0 {
            return self.store_two(port, place);
        }
        if !self.log_blocks(port, place)? {
            return Ok(());
        }
        let data = self.data_for(place);
        let persists = self.persists && place.is_pmem() && self.rng.below(3) == 0;
        let request = match persists.then(|| self.rng.below(2)) {
            Some(0) => Request::Persist(place, data, StoreKind::Clean),
            Some(_) => Request::Persist(place, data, StoreKind::CleanAndFence),
            None => Request::Store(place, data),
        };
        self.request(port, request)
    }

    fn data_for(&mut self, place: Place) -> u64 {
        let mut data = [0; 8];
        self.rng.fill(&mut data[..place.len as usize]);
        u64::from_le_bytes(data)
    }

    /// The transaction for which the log operations of programs come before a store to this place.
    fn logs(&self, port: usize, place: Place) -> Option<TxId> {
        self.tx(port).filter(|_| place.is_pmem() && self.system.has_log_operations())
    }

    /// A store that is in the store buffer while the log operations of another one, often to the same blocks, leave ahead
    /// of it.
    fn store_two(&mut self, port: usize, first: Place) -> Result<(), String> {
        let mut second = self.place();
        if self.rng.below(3) > 0 {
            let offset = first.offset / 64 * 64 + self.rng.below(64 - second.len + 1);
            second = Place { base: first.base, offset, len: second.len };
        }
        if !self.log_blocks(port, first)? {
            return Ok(());
        }
        let (tx, data) = (self.tx(port), self.data_for(first));
        // The other block of the line, which is logged only, so that a small table forgets those of the first store.
        let other = Place { base: first.base, offset: (first.offset ^ LOG_BLOCK_BYTES) / 8 * 8, len: 8 };
        let places = [(self.rng.below(2) == 0).then_some(other), Some(second)];
        let mut ahead = true;
        for place in places.into_iter().flatten() {
            ahead = ahead && self.locked(port, place) && self.logs(port, place).is_some();
            let mut blocks = blocks_of(place);
            while ahead && let Some(addr) = blocks.next() {
                match self.log_block(port, addr, Some((first, data)))? {
                    Logged::Yes => {}
                    Logged::Refused => ahead = false,
                    Logged::Aborted => return Ok(()),
                }
            }
        }
        self.request(port, Request::Store(first, data))?;
        let left = self.tx(port) == tx && !self.is_aborted(port) && self.thread(port).pending.is_none();
        if !ahead || !left || self.system.halted() {
            return Ok(());
        }
        self.tally.logged_ahead += 1;
        let data = self.data_for(second);
        self.request(port, Request::Store(second, data))
    }

    /// The log operations before a store, for each block that it touches, where the hardware logs what programs hand
    /// over. The answer false: the transaction was aborted.
    fn log_blocks(&mut self, port: usize, place: Place) -> Result<bool, String> {
        if self.logs(port, place).is_some() {
            for addr in blocks_of(place) {
                if self.log_block(port, addr, None)? == Logged::Aborted {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The log operations for one block. With a store in front of them, which will write these bytes, the flush leaves
    /// ahead of it or not at all.
    fn log_block(&mut self, port: usize, addr: PhysAddr, in_front: Option<(Place, u64)>) -> Result<Logged, String> {
        let tx = self.tx(port);
        let (words, done) = self.system.load_block(core(port), addr, tx, self.ports[port].now);
        self.ports[port].now = self.ports[port].now.max(done);
        self.after_request(Some(port))?;
        if self.is_aborted(port) {
            self.process_abort(port)?;
            return Ok(Logged::Aborted);
        }
        let mut old = words;
        if let Some((place, data)) = in_front {
            for (n, byte) in data.to_le_bytes()[..place.len as usize].iter().enumerate() {
                let at = place.addr().0 + n as u64;
                if (addr.0..addr.0 + LOG_BLOCK_BYTES).contains(&at) {
                    let (word, shift) = ((at - addr.0) / 8, 8 * ((at - addr.0) % 8));
                    let word = &mut old[word as usize];
                    *word = *word & !(0xff << shift) | u64::from(*byte) << shift;
                }
            }
        }
        let flush = LogFlush { addr, old, tx };
        if in_front.is_some() || self.rng.below(2) == 0 {
            let offer = self.system.offer_log_flush(core(port), &flush, self.ports[port].now);
            self.after_request(Some(port))?;
            self.trace.note(|| format!("port {port}: {tx:?} logs {addr} early {offer:?}"));
            match offer {
                EarlyFlushOutcome::Taken(cycle) => return self.logged(port, Outcome::Done(cycle)),
                EarlyFlushOutcome::Aborted(cycle, code) => return self.logged(port, Outcome::Aborted(cycle, code)),
                EarlyFlushOutcome::Refused { .. } if in_front.is_some() => return Ok(Logged::Refused),
                EarlyFlushOutcome::Refused { .. } => {}
            }
        }
        let outcome = loop {
            let outcome = self.system.log_flush(core(port), &flush, self.ports[port].now);
            self.after_request(Some(port))?;
            if outcome != Outcome::Pending {
                break outcome;
            }
            self.ports[port].now = self.system.wait_alone(core(port));
            self.after_request(Some(port))?;
            self.check_health()?;
        };
        self.trace.note(|| format!("port {port}: {tx:?} logs {addr} {outcome:?}"));
        self.logged(port, outcome)
    }

    fn logged(&mut self, port: usize, outcome: Outcome) -> Result<Logged, String> {
        Ok(if self.ended(port, outcome)? { Logged::Yes } else { Logged::Aborted })
    }

    /// An atomic operation that returns what it finds and, with `new`, puts that there.
    fn exchange(&mut self, port: usize, place: Place, owns: bool, new: Option<u64>, who: &str) -> Result<bool, String> {
        if new.is_some() && !self.log_blocks(port, place)? {
            return Ok(false);
        }
        let (now, tx) = (self.ports[port].now, self.tx(port));
        self.expect_store(port, new.map(|_| place));
        let pending = PendingStore::plain(place.addr(), 8, 0, tx);
        let (old, outcome) = self.system.atomic(core(port), &pending, owns, now, &mut |_| new);
        self.after_request(Some(port))?;
        if let (Outcome::Aborted(..), Some(new)) = (outcome, new) {
            self.store_aborted(port, place, &new.to_le_bytes())?;
        }
        let done = self.ended(port, outcome)?;
        if done {
            self.note_read(port, place);
            self.compare(port, place, &old.to_le_bytes(), who)?;
            if let Some(new) = new {
                self.stored(port, place, &new.to_le_bytes())?;
            }
        }
        self.release_if_plain(port);
        Ok(done)
    }

    fn swap(&mut self, port: usize, place: Place) -> Result<(), String> {
        let new = (self.rng.below(3) > 0).then(|| self.rng.next_u64());
        if new.is_some() && !self.locked(port, place) {
            return self.load(port, place);
        }
        let owns = new.is_some() || self.rng.below(2) == 0;
        self.exchange(port, place, owns, new, "an atomic operation").map(|_| ())
    }

    fn load_reserved(&mut self, port: usize, place: Place) -> Result<(), String> {
        self.ports[port].reserved = None;
        self.system.take_reservation(core(port));
        if self.exchange(port, place, false, None, "a load-reserved")? {
            self.system.reserve(core(port), place.line());
            self.ports[port].reserved = Some(Reserved { place, valid: true, undisturbed: true });
        }
        Ok(())
    }

    fn store_conditional(&mut self, port: usize) -> Result<(), String> {
        let Some(reserved) = self.ports[port].reserved else {
            let place = self.word();
            return self.load_reserved(port, place);
        };
        let place = reserved.place;
        if !self.locked(port, place) {
            return self.load(port, place);
        }
        self.ports[port].reserved = None;
        let holds = self.system.take_reservation(core(port)) == Some(place.line());
        if holds && !reserved.valid {
            return Err(format!("port {port} may store to {} though another one has written it", place.addr()));
        }
        if !holds && reserved.undisturbed {
            return Err(format!("port {port} has lost its reservation of {} without a writer", place.addr()));
        }
        self.tally.conditionals[usize::from(!holds)] += 1;
        if holds {
            let new = self.rng.next_u64();
            self.exchange(port, place, true, Some(new), "a store-conditional")?;
        }
        self.release_if_plain(port);
        Ok(())
    }

    fn clean(&mut self, port: usize, line: LineAddr, now: Cycle) -> Result<(), String> {
        if self.in_hardware(port) {
            return self.abort_by_cache_block(port);
        }
        let op = [CacheBlockOp::Clean, CacheBlockOp::Flush, CacheBlockOp::Inval][self.rng.below(3) as usize];
        let last = self.shared.lock().expect("no holder panics with it").last_store();
        self.ports[port].now = now.max(self.system.cache_block(core(port), op, line, now));
        self.trace.note(|| format!("{now} port {port}: {op:?} {line}"));
        if line.base().0 >= PMEM_BASE.0 {
            self.thread_mut(port).cleans.push((line, last, op != CacheBlockOp::Inval));
        }
        self.after_request(Some(port))
    }

    fn kernel_read(&mut self, port: usize, place: Place) -> Result<(), String> {
        if self.trap(port, Trap::SystemCall)? {
            return Ok(());
        }
        let mut bytes = vec![0; place.len as usize];
        let (now, tx) = (self.ports[port].now, self.tx(port));
        self.system.read_newest(core(port), place.addr(), &mut bytes, tx, now);
        self.after_request(Some(port))?;
        if self.is_aborted(port) {
            return self.process_abort(port).map(|_| ());
        }
        self.compare(port, place, &bytes, "the kernel")
    }

    fn kernel_write(&mut self, port: usize, place: Place) -> Result<(), String> {
        if self.trap(port, Trap::SystemCall)? {
            return Ok(());
        }
        if !self.locked(port, place) {
            return self.kernel_read(port, place);
        }
        let mut data = vec![0; place.len as usize];
        self.rng.fill(&mut data);
        // A system call ends the reservation of its hart.
        self.system.take_reservation(core(port));
        self.ports[port].reserved = None;
        let (now, tx) = (self.ports[port].now, self.tx(port));
        self.expect_store(port, Some(place));
        self.system.write_newest(core(port), place.addr(), &data, tx, now);
        self.after_request(Some(port))?;
        if self.is_aborted(port) {
            self.process_abort(port)?;
        } else if !self.system.halted() {
            self.stored(port, place, &data)?;
        }
        self.release_if_plain(port);
        Ok(())
    }
}
