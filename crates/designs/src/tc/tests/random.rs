//! Random transactions on shared lines, with crashes.

use super::small;
use crate::tc::Tc;
use crate::tc::spec::{Coalesce, TcSpec};
use crate::testing::{Bench, word};
use durasim_contract::{AbortCause, Gate, LineTag, Token, Wait};
use durasim_types::{Rng, TxId};

/// A word of the random runs: what a crash now must bring back, what the program sees, and who holds its lock.
#[derive(Clone, Copy, Default)]
struct Word {
    committed: u64,
    visible: u64,
    owner: Option<u64>,
}

/// A transaction that is to end.
struct Ending {
    tx: u64,
    commits: bool,
    wait: Option<Token>,
}

/// Threads on three cores run transactions over few lines of eight words. A word belongs to one open transaction at a
/// time, as under a lock; lines are shared at random. Threads change cores, writes are delivered late, the design is
/// saved and loaded, power fails.
struct RandomRun {
    seed: u64,
    rng: Rng,
    bench: Bench<Tc>,
    world: [[Word; 8]; RandomRun::LINES as usize],
    tags: [LineTag; RandomRun::LINES as usize],
    open: Vec<u64>,
    ending: Vec<Ending>,
}

impl RandomRun {
    const CORES: u64 = 3;
    const LINES: u64 = 5;

    fn new(seed: u64) -> RandomRun {
        let mut rng = Rng::new(seed);
        let coalesce = if rng.below(2) == 0 { Coalesce::None } else { Coalesce::Line };
        let entries = 3 + rng.below(10) as u32;
        let overflow_percent = [50, 90, 100][rng.below(3) as usize];
        let tx_id_bits = [3, 4, 6][rng.below(3) as usize];
        let spec = TcSpec { coalesce, overflow_percent, tx_id_bits, shadow_lines: 32, ..small(entries) };
        RandomRun {
            seed,
            rng,
            bench: Bench::new(spec, Self::CORES as u16),
            world: Default::default(),
            tags: [LineTag::NONE; Self::LINES as usize],
            open: Vec::new(),
            ending: Vec::new(),
        }
    }

    fn run(mut self) {
        for step in 1..400 {
            let core = self.rng.below(Self::CORES) as u16;
            // Ends take their time; meanwhile the other cores continue.
            if !self.ending.is_empty() && self.rng.below(2) == 0 && !self.end_first(core) {
                continue;
            }
            match self.rng.below(20) {
                0..2 if self.open.len() + self.ending.len() < 5 => {
                    self.bench.begin(core, step);
                    self.open.push(step);
                }
                2..12 => self.store(core, step),
                12..14 => self.ask_for_an_end(),
                14..17 => {
                    self.bench.deliver();
                }
                17 => self.look_at_a_line(step),
                18 => self.bench.save_and_load(),
                _ => self.fail_power(step),
            }
        }
    }

    fn pick_open(&mut self) -> Option<u64> {
        (!self.open.is_empty()).then(|| self.open[self.rng.below(self.open.len() as u64) as usize])
    }

    /// Stores the number of the step to a random word, in a transaction if one is open.
    fn store(&mut self, core: u16, step: u64) {
        let (number, index) = (self.rng.below(Self::LINES) as usize, self.rng.below(8) as usize);
        let tx = self.pick_open();
        let slot = &mut self.world[number][index];
        if slot.owner.is_some() && slot.owner != tx {
            return;
        }
        // A plain store to a line that is not persistent is no affair of the design.
        if tx.is_none() && !self.tags[number].is_some() {
            return;
        }
        self.bench.store(core, word(number as u64, index as u64), step, tx, &mut self.tags[number]);
        slot.visible = step;
        match tx {
            Some(_) => slot.owner = tx,
            None => slot.committed = step,
        }
    }

    fn ask_for_an_end(&mut self) {
        let Some(tx) = self.pick_open() else { return };
        self.ending.push(Ending { tx, commits: self.rng.below(4) > 0, wait: None });
        self.open.retain(|other| *other != tx);
    }

    /// Tries to end the transaction that is first in line, and returns whether it has ended.
    fn end_first(&mut self, core: u16) -> bool {
        let Ending { tx, commits, wait } = self.ending[0];
        if wait.is_some_and(|token| self.bench.outstanding(token)) {
            self.bench.deliver();
            return false;
        }
        let gate = self.bench.call(core, |design, cx, out| match commits {
            true => design.tx_commit(cx, TxId(tx), out),
            false => design.tx_abort(cx, TxId(tx), AbortCause::Requested(1), out),
        });
        if let Gate::Retry(Wait::Acked(token)) = gate {
            self.ending[0].wait = Some(token);
            self.ending.rotate_left(1);
            return false;
        }
        self.ending.remove(0);
        for slot in self.world.iter_mut().flatten().filter(|slot| slot.owner == Some(tx)) {
            slot.owner = None;
            if commits {
                slot.committed = slot.visible;
            } else {
                slot.visible = slot.committed;
            }
        }
        if !commits {
            self.miss_what_the_abort_discarded(tx);
        }
        true
    }

    fn miss_what_the_abort_discarded(&mut self, tx: u64) {
        for (number, tag) in (0..).zip(&mut self.tags) {
            if self.bench.design.belongs_to(*tag, TxId(tx)) {
                *tag = self.bench.miss(number).1;
            }
        }
    }

    /// A miss of a random line brings the words that the program sees.
    fn look_at_a_line(&mut self, step: u64) {
        let number = self.rng.below(Self::LINES);
        let (data, tag) = self.bench.miss(number);
        // Until an abort is done, its words may be seen as they were before or as they are.
        let leaving = |slot: &Word| self.ending.iter().any(|end| !end.commits && slot.owner == Some(end.tx));
        for (found, slot) in data.iter().zip(&self.world[number as usize]).filter(|(_, slot)| !leaving(slot)) {
            assert_eq!(*found, slot.visible, "seed {}, step {step}", self.seed);
        }
        self.tags[number as usize] = tag;
    }

    /// Recovery brings back what is committed; the run continues as if power had not failed.
    fn fail_power(&mut self, step: u64) {
        let pmem = self.bench.recovered(&[], false);
        for (number, expected) in (0..).zip(&self.world) {
            let found: [u64; 8] = std::array::from_fn(|index| pmem.read_u64(word(number, index as u64)));
            let expected = expected.map(|slot| slot.committed);
            assert_eq!(found, expected, "seed {}, step {step}, line {number}", self.seed);
        }
    }
}

#[test]
fn random_transactions_on_shared_lines_are_atomic_and_durable() {
    for seed in 0..300 {
        RandomRun::new(seed).run();
    }
}
