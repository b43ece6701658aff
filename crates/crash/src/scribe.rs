//! Who writes down what became of a few lines in a replayed trial: their stores and persist events, where their copies
//! lay when the power failed, and what recovery made of them.
//!
//! A replay is told twice. The first time the scribe learns which lines matter, the second time it follows those.

use crate::byte_oracle::ByteOracle;
use crate::case::Blow;
use crate::history::HistoryRecorder;
use crate::story::{Chapter, CopySeen, Happening, Loss, PowerFailure, Program, RecoveryWrite, Seen, Trace, words};
use durasim_design::{CrashImage, Geometry, ImageWrite, LevelId, LineTag, RecoveryReport};
use durasim_machine::{Copy, Place, System};
use durasim_types::{CoreId, Cycle, EventKind, Journal, Line, LineAddr, Pages, PersistEvent, PhysAddr, TxId, Write};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

/// Stores and events of a line that are told, the last ones.
const HAPPENINGS_MAX: usize = 60;
/// Places of a structure or region that name a line.
const TRACES_MAX: usize = 4;
const WORD_BYTES: usize = 8;

/// What is known of a transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tale {
    pub core: u16,
    pub begun: Cycle,
    pub committing: Option<Cycle>,
    pub acknowledged: Option<Cycle>,
    pub aborted: Option<Cycle>,
    /// Lines in the order of its first stores to them.
    pub lines: Vec<LineAddr>,
    /// Its stores to lines that are followed, with what was there before, to take them back.
    stores: Vec<(PhysAddr, u8, u64, u64)>,
}

/// A life that is being written down.
#[derive(Debug, Default)]
struct Life {
    program: Program,
    /// Core and cycle of what the journal tells next.
    moment: (u16, Cycle),
    regions: Vec<(&'static str, PhysAddr, u64)>,
    names: Option<HistoryRecorder>,
    transactions: BTreeMap<TxId, Tale>,
    /// The last transaction that stored something.
    last: Option<TxId>,
    newest: BTreeMap<LineAddr, Line>,
    happenings: BTreeMap<LineAddr, VecDeque<(u64, Happening)>>,
    marks: Vec<(u64, TxId, Happening)>,
    left_out: u64,
    order: u64,
    failure: Option<PowerFailure>,
    copies: BTreeMap<LineAddr, Vec<Copy>>,
    image: Option<CrashImage>,
    closed: bool,
}

#[derive(Debug, Default)]
struct Tape {
    /// The lines that are followed; `None`: it is to be found out which matter.
    lines: Option<Vec<LineAddr>>,
    life: Life,
    chapters: Vec<Chapter>,
    in_question: Vec<LineAddr>,
    /// Transactions of the last life that ran the program's operations.
    transactions: BTreeMap<TxId, Tale>,
    last: Option<TxId>,
    names: Option<HistoryRecorder>,
    data_base: Option<PhysAddr>,
    data_bytes: u64,
    /// In the end: each line, and what it may be.
    end: BTreeMap<LineAddr, (Line, Vec<Line>)>,
    recovery_begins: usize,
}

/// What a replay has told.
#[derive(Default)]
pub(crate) struct Told {
    pub chapters: Vec<Chapter>,
    /// Lines to which the oracle of bytes objects, or which recovery left in two ways.
    pub in_question: Vec<LineAddr>,
    pub transactions: BTreeMap<TxId, Tale>,
    pub last: Option<TxId>,
    pub names: Option<HistoryRecorder>,
    pub end: BTreeMap<LineAddr, (Line, Vec<Line>)>,
    pub data_base: Option<PhysAddr>,
    pub data_bytes: u64,
}

impl Told {
    /// Where a line lies in the program's data.
    pub fn data_offset(&self, line: LineAddr) -> Option<u64> {
        let offset = line.base().0.checked_sub(self.data_base?.0)?;
        (offset < self.data_bytes).then_some(offset)
    }
}

/// Writes a replay down. Clones write on the same tape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scribe(Arc<Mutex<Tape>>);

impl Scribe {
    /// Finds out which lines matter.
    pub fn searching() -> Self {
        Scribe::default()
    }

    /// Follows these lines.
    pub fn following(lines: &[LineAddr]) -> Self {
        Scribe(Arc::new(Mutex::new(Tape { lines: Some(lines.to_vec()), ..Tape::default() })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Tape) -> T) -> T {
        act(&mut self.0.lock().expect("nobody panics with the tape"))
    }

    /// What was written.
    pub fn told(&self) -> Told {
        self.with(|tape| Told {
            chapters: std::mem::take(&mut tape.chapters),
            in_question: std::mem::take(&mut tape.in_question),
            transactions: std::mem::take(&mut tape.transactions),
            last: tape.last,
            names: tape.names.take(),
            end: std::mem::take(&mut tape.end),
            data_base: tape.data_base,
            data_bytes: tape.data_bytes,
        })
    }

    /// A life begins.
    pub fn life_begins(&self, program: Program, pmem: Pages, geometry: &Geometry, names: Option<&HistoryRecorder>) {
        let regions = geometry.regions.iter().map(|region| (region.name, region.base, region.size_bytes)).collect();
        self.with(|tape| {
            let mut newest = BTreeMap::new();
            for &line in tape.lines.iter().flatten() {
                newest.insert(line, pmem.line(line));
            }
            tape.life = Life { program, regions, newest, names: names.cloned(), ..Life::default() };
        });
    }

    /// A persist event of the life.
    pub fn event(&self, event: &PersistEvent, system: &System) {
        self.with(|tape| {
            let Tape { lines: Some(lines), life, .. } = tape else { return };
            if life.failure.is_none() && !life.closed {
                life.event(lines, event, system);
            }
        });
    }

    /// The power fails after this event, and leaves this.
    pub fn power_fails(&self, event: &PersistEvent, blow: Blow, image: &CrashImage, system: &System) {
        self.with(|tape| {
            let life = &mut tape.life;
            life.failure = Some(PowerFailure::of(event, blow));
            life.closed = blow.takes_back();
            for &line in tape.lines.iter().flatten() {
                life.copies.insert(line, system.copies(line));
            }
            life.image = Some(image.clone());
        });
    }

    /// The life has ended; what is acknowledged by now counts.
    pub fn life_ends(&self) {
        self.with(|tape| {
            let mut life = std::mem::take(&mut tape.life);
            if let Some(lines) = &tape.lines {
                let chapter = life.chapter(lines);
                tape.chapters.extend(chapter);
            }
            if life.program != Program::Recovery {
                (tape.transactions, tape.last, tape.names) = (life.transactions, life.last, life.names);
            }
        });
    }

    /// The hardware's recovery begins: what is told of it may be dropped again.
    pub fn recovery_begins(&self) {
        self.with(|tape| tape.recovery_begins = tape.chapters.len());
    }

    /// What was told since is not of this trial: it was tried to compare with.
    pub fn forget_recovery(&self) {
        self.with(|tape| tape.chapters.truncate(tape.recovery_begins));
    }

    /// The hardware's recovery has run, to its end or to the write at which it was cut.
    pub fn recovered(&self, image: &mut CrashImage, cut: Option<u64>, report: Option<&RecoveryReport>) {
        let log = image.take_log();
        self.with(|tape| {
            let Some(lines) = &tape.lines else { return };
            let writes_total = log.len() as u64;
            let mut writes = Vec::new();
            for (number, write) in (1..).zip(&log) {
                writes.extend(recovery_write(lines, number, write));
            }
            let seen = lines.iter().map(|&line| Seen::of(line, &image.pmem)).collect();
            let told = |f: fn(&RecoveryReport) -> u64| report.map_or(0, f);
            tape.chapters.push(Chapter::HardwareRecovery {
                cut_at_write: cut,
                writes_total,
                replayed: told(|r| r.replayed),
                discarded: told(|r| r.discarded),
                losses: report.map(|r| r.losses.clone()).unwrap_or_default(),
                writes,
                lines: seen,
            });
        });
    }

    /// The program's own recovery has run.
    pub fn program_recovered(&self, after: &Pages) {
        self.with(|tape| {
            let Some(lines) = &tape.lines else { return };
            let seen = lines.iter().map(|&line| Seen::of(line, after)).collect();
            tape.chapters.push(Chapter::ProgramRecovery { lines: seen });
        });
    }

    /// These lines are in question.
    pub fn question(&self, lines: Vec<LineAddr>) {
        self.with(|tape| tape.in_question = lines);
    }

    /// The end: what the oracle of bytes has looked at.
    pub fn judged(&self, oracle: &ByteOracle, pmem: &Pages) {
        let in_question = oracle.lines_in_question(pmem);
        self.with(|tape| {
            if let Some(range) = oracle.data() {
                (tape.data_base, tape.data_bytes) = (Some(range.base), range.size_bytes);
            }
            tape.in_question = in_question;
            for &line in tape.lines.iter().flatten() {
                tape.end.insert(line, (pmem.line(line), oracle.allowed(line)));
            }
        });
    }
}

fn recovery_write(lines: &[LineAddr], number: u64, write: &ImageWrite) -> Vec<RecoveryWrite> {
    let ImageWrite::Pmem(addr, bytes) = write else { return Vec::new() };
    let (begin, end) = (addr.0, addr.0 + bytes.len() as u64);
    let concerned = lines.iter().filter(|line| line.base().0 < end && begin < line.base().0 + size_of::<Line>() as u64);
    let one = |line: &LineAddr| {
        let (mut data, mut mask) = ([0; size_of::<Line>()], 0);
        for (at, byte) in (begin..).zip(bytes).filter(|(at, _)| PhysAddr(*at).line() == *line) {
            data[PhysAddr(at).offset()] = *byte;
            mask |= 1 << PhysAddr(at).offset();
        }
        RecoveryWrite { number, line: line.base().0, words: words(&data, mask) }
    };
    concerned.map(one).collect()
}

/// The value of so many bytes of a line.
fn value(line: &Line, offset: usize, len: u8) -> u64 {
    let mut bytes = [0; WORD_BYTES];
    bytes[..len as usize].copy_from_slice(&line[offset..offset + len as usize]);
    u64::from_le_bytes(bytes)
}

/// Whether a word is the address of a line, as designs write it down: of its first byte, or the line's number.
fn names(word: &[u8], line: LineAddr) -> bool {
    word == line.base().0.to_le_bytes() || word == line.0.to_le_bytes()
}

impl Life {
    fn next(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    fn tell(&mut self, line: LineAddr, happening: Happening) {
        let order = self.next();
        let told = self.happenings.entry(line).or_default();
        told.push_back((order, happening));
        if told.len() > HAPPENINGS_MAX {
            told.pop_front();
            self.left_out += 1;
        }
    }

    fn mark(&mut self, tx: TxId, what: &str, cycle: Cycle, event: Option<u64>) {
        if self.transactions.get(&tx).is_some_and(|tale| !tale.stores.is_empty()) {
            let order = self.next();
            let behind = self.failure.is_some();
            let happening = Happening { event, tx: Some(tx.0), behind, ..Happening::new(what, cycle) };
            self.marks.push((order, tx, happening));
        }
    }

    fn event(&mut self, lines: &[LineAddr], event: &PersistEvent, system: &System) {
        let what = event.kind.name();
        let happening = Happening {
            event: Some(event.number),
            core: event.core.map(|core| core.0),
            cause: event.cause.map(|cause| cause.name().to_owned()),
            ..Happening::new(what, event.cycle)
        };
        let line = event.addr.line();
        if lines.contains(&line) {
            self.tell(line, Happening { line: Some(line.base().0), ..happening });
            return;
        }
        if event.kind == EventKind::Commit {
            let by_core = |tale: &&Tale| event.core.is_some_and(|core| core.0 == tale.core) && tale.is_committing();
            let tx = self.transactions.iter().rev().find(|(_, tale)| by_core(tale)).map(|(tx, _)| *tx);
            if let Some(tx) = tx {
                self.mark(tx, what, event.cycle, Some(event.number));
            }
            return;
        }
        let inside = |region: &&(&str, PhysAddr, u64)| (region.1.0..region.1.0 + region.2).contains(&event.addr.0);
        let Some(&(name, base, _)) = self.regions.iter().find(inside) else { return };
        // Of what is written there the newest version that has left the caches tells whose it is.
        let copies = system.copies(line);
        let Some(copy) = copies.iter().find(|copy| matches!(copy.place, Place::Queue { .. } | Place::Media)) else {
            return;
        };
        for &wanted in lines {
            let named = copy.data.chunks_exact(WORD_BYTES).any(|word| names(word, wanted));
            let copied = self.newest.get(&wanted).is_some_and(|newest| *newest == copy.data && *newest != [0; 64]);
            if named || copied {
                let how = if copied { "a copy of the line" } else { "names the line" };
                let place = format!("{name}+{:#x}, {how}", event.addr.0 - base.0);
                self.tell(wanted, Happening { line: Some(wanted.base().0), place: Some(place), ..happening.clone() });
            }
        }
    }

    /// A store by a core has been made, or is being made.
    fn store(&mut self, tx: Option<TxId>, write: &Write) {
        let (core, cycle) = self.moment;
        let line = write.addr.line();
        let Some(newest) = self.newest.get_mut(&line) else { return };
        let offset = write.addr.offset();
        let old = value(newest, offset, write.len);
        newest[offset..offset + write.len as usize].copy_from_slice(&write.data.to_le_bytes()[..write.len as usize]);
        let (data, new) = (*newest, value(newest, offset, write.len));
        if let Some(tale) = tx.and_then(|tx| self.transactions.get_mut(&tx)) {
            tale.stores.push((write.addr, write.len, old, new));
            if tale.stores.len() == 1 {
                let (tx, begun) = (tx.expect("a tale is of a transaction"), tale.begun);
                self.mark(tx, "begin", begun, None);
            }
        }
        if self.failure.is_some() {
            self.overtake(line, CoreId(core), data);
        }
        let happening = Happening {
            line: Some(line.base().0),
            core: Some(core),
            tx: tx.map(|tx| tx.0),
            offset: Some(offset as u64),
            size_bytes: Some(u64::from(write.len)),
            old: Some(format!("{old:#x}")),
            new: Some(format!("{new:#x}")),
            behind: self.failure.is_some(),
            ..Happening::new("store", cycle)
        };
        self.tell(line, happening);
    }

    /// The power fails before the next event, but behind this store: it is in the L1D of its core, which has the line
    /// alone.
    fn overtake(&mut self, line: LineAddr, core: CoreId, data: Line) {
        let Some(copies) = self.copies.get_mut(&line) else { return };
        let own = Place::Cache(LevelId::L1d, Some(core));
        copies.retain(|copy| match copy.place {
            Place::Cache(level, Some(other)) => other == core && level != LevelId::L1d,
            _ => true,
        });
        copies.insert(0, Copy { place: own, dirty: true, tag: LineTag::NONE, mask: u64::MAX, data });
    }

    fn take_back(&mut self, tx: TxId) {
        let Some(tale) = self.transactions.get_mut(&tx) else { return };
        for (addr, len, old, new) in std::mem::take(&mut tale.stores).into_iter().rev() {
            let Some(newest) = self.newest.get_mut(&addr.line()) else { continue };
            if value(newest, addr.offset(), len) == new {
                newest[addr.offset()..addr.offset() + len as usize].copy_from_slice(&old.to_le_bytes()[..len as usize]);
            }
        }
    }

    fn chapter(&mut self, lines: &[LineAddr]) -> Option<Chapter> {
        let (failure, image) = (self.failure.take()?, self.image.take()?);
        let told: BTreeSet<u64> =
            self.happenings.values().flatten().filter_map(|(_, happening)| happening.tx).collect();
        let marks =
            self.marks.drain(..).filter(|(_, tx, _)| told.contains(&tx.0)).map(|(order, _, mark)| (order, mark));
        let mut happenings: Vec<(u64, Happening)> = self.happenings.values().flatten().cloned().chain(marks).collect();
        happenings.sort_by_key(|(order, _)| *order);
        let mut copies = Vec::new();
        for &line in lines {
            let left = image.pmem.line(line);
            copies.extend(
                self.copies.remove(&line).unwrap_or_default().iter().map(|copy| CopySeen::of(line, copy, &left)),
            );
        }
        let traces = lines.iter().flat_map(|&line| self.traces(line, &image)).collect();
        Some(Chapter::Life {
            program: self.program,
            happenings: happenings.into_iter().map(|(_, happening)| happening).collect(),
            happenings_left_out: self.left_out,
            failure,
            copies,
            left: lines.iter().map(|&line| Seen::of(line, &image.pmem)).collect(),
            traces,
            loss: Loss { dirty_shutdown: image.dirty_shutdown },
        })
    }

    /// Where nonvolatile structures and regions of the design name a line.
    fn traces(&self, line: LineAddr, image: &CrashImage) -> Vec<Trace> {
        let mut traces = Vec::new();
        let mut look = |place: &str, begin: u64, bytes: &[u8]| {
            for (at, _) in bytes.chunks_exact(WORD_BYTES).enumerate().filter(|(_, word)| names(word, line)) {
                let offset = begin + (at * WORD_BYTES) as u64;
                traces.push(Trace { line: line.base().0, place: place.to_owned(), offset });
            }
        };
        for (name, bytes) in &image.structures {
            look(name, 0, bytes);
        }
        for (name, base, size_bytes) in &self.regions {
            for (addr, page) in image.pmem.touched().filter(|(addr, _)| (base.0..base.0 + size_bytes).contains(&addr.0))
            {
                look(name, addr.0 - base.0, page);
            }
        }
        traces.truncate(TRACES_MAX);
        traces
    }
}

impl Tale {
    fn is_committing(&self) -> bool {
        self.committing.is_some() && self.acknowledged.is_none() && self.aborted.is_none()
    }

    /// What it was when the power failed.
    pub fn state(&self) -> &'static str {
        match (self.aborted, self.acknowledged, self.committing) {
            (Some(_), ..) => "aborted",
            (_, Some(_), _) => "acknowledged",
            (.., Some(_)) => "committing",
            _ => "open",
        }
    }
}

impl Journal for Scribe {
    fn moment(&mut self, core: CoreId, cycle: Cycle) {
        self.with(|tape| tape.life.moment = (core.0, cycle));
    }

    fn data_range(&mut self, range: durasim_types::DataRange) {
        self.with(|tape| (tape.data_base, tape.data_bytes) = (Some(range.base), range.size_bytes));
    }

    fn begin(&mut self, tx: TxId) {
        self.open(|life| {
            let (core, begun) = life.moment;
            life.transactions.insert(tx, Tale { core, begun, ..Tale::default() });
        });
    }

    fn store(&mut self, tx: Option<TxId>, write: Write) {
        self.open(|life| {
            if let Some((tx, tale)) = tx.and_then(|tx| Some((tx, life.transactions.get_mut(&tx)?))) {
                life.last = Some(tx);
                if !tale.lines.contains(&write.addr.line()) {
                    tale.lines.push(write.addr.line());
                }
            }
            life.store(tx, &write);
        });
    }

    fn committing(&mut self, tx: TxId) {
        self.open(|life| {
            let cycle = life.moment.1;
            if let Some(tale) = life.transactions.get_mut(&tx).filter(|tale| tale.committing.is_none()) {
                tale.committing = Some(cycle);
                life.mark(tx, "committing", cycle, None);
            }
        });
    }

    fn acknowledged(&mut self, tx: TxId) {
        self.open(|life| {
            let cycle = life.moment.1;
            if let Some(tale) = life.transactions.get_mut(&tx) {
                tale.acknowledged = Some(cycle);
            }
            life.mark(tx, "acknowledged", cycle, None);
        });
    }

    fn aborted(&mut self, tx: TxId) {
        self.open(|life| {
            let cycle = life.moment.1;
            if let Some(tale) = life.transactions.get_mut(&tx) {
                tale.aborted = Some(cycle);
            }
            life.mark(tx, "aborted", cycle, None);
            life.take_back(tx);
        });
    }
}

impl Scribe {
    fn open(&self, act: impl FnOnce(&mut Life)) {
        self.with(|tape| {
            if !tape.life.closed {
                act(&mut tape.life);
            }
        });
    }
}
