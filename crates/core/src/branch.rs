//! The branch prediction unit: direction, targets and return addresses.
//!
//! * Conditional branches: TAGE (Seznec and Michaud, "A case for (partially) TAgged GEometric history length branch
//!   predictors", JILP 8, 2006): a bimodal base and tagged tables indexed with ever longer global histories; the
//!   longest match provides the prediction. A loop predictor may override it (Seznec, "A 256 Kbits L-TAGE branch
//!   predictor", JILP 9, 2007).
//! * Targets of direct branches: a set-associative branch target buffer (BTB), LRU, full tags.
//! * Targets of indirect branches: a tagged table indexed with global history (one table of the ITTAGE idea, section 5
//!   of the JILP 2006 paper), else the last target in the BTB.
//! * Returns: a circular return address stack that overwrites its oldest entry.
//!
//! The core model executes in program order without a wrong path, so each branch is predicted and trained in one
//! step: histories are never speculative and need no repair. That favours the predictor a little over hardware,
//! which trains at commit. Everything is integer arithmetic; the only pseudo-random choice (which table receives a
//! new entry) comes from a shift register with a fixed seed.

use std::hash::Hasher;

use durasim_isa::{Class, Inst};
use durasim_types::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use history::{HISTORY_BITS_MAX, History, LANES};
use loops::{LOOP_WAYS, Loops};
use tage::Tage;
use target::{Btb, Indirect};

mod history;
mod loops;
mod tage;
mod target;
#[cfg(test)]
mod tests;

/// Sizes of the branch prediction unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PredictorConfig {
    /// 2-bit counters of the bimodal base; a power of two, 16 to 1048576.
    pub base_entries: u32,
    /// Global history length of each tagged table in bits, strictly increasing, 1 to 1000; at most 15 tables, none
    /// leaves the bimodal base alone.
    pub history_bits: Vec<u32>,
    /// Entries of each tagged table; a power of two, 16 to 65536.
    pub tagged_entries: u32,
    /// Width of the tags of the tagged tables in bits, 4 to 15.
    pub tag_bits: u32,
    /// Conditional branches between two ageings of the useful counters, 1024 to 2^30.
    pub useful_ageing_branches: u32,
    /// Entries of the 4-way loop predictor; a power of two, 4 to 4096, or 0 for none.
    pub loop_entries: u32,
    /// Entries of the branch target buffer, at most 1048576; entries divided by ways is a power of two.
    pub btb_entries: u32,
    /// Ways of the branch target buffer, 1 to 64.
    pub btb_ways: u32,
    /// Entries of the history-indexed table of indirect targets; a power of two, 16 to 65536, or 0 for none.
    pub indirect_entries: u32,
    /// Global history that indexes the table of indirect targets in bits, 1 to 1000.
    pub indirect_history_bits: u32,
    /// Entries of the return address stack, 1 to 1024.
    pub ras_entries: u32,
    /// A compressed conditional branch that was predicted taken is learnt as taken, whatever it did: a defect of gem5 24.0
    /// (gem5/gem5#1405), for comparisons with it.
    pub compressed_branches_stay_taken: bool,
}

impl Default for PredictorConfig {
    fn default() -> Self {
        PredictorConfig {
            base_entries: 8192,
            history_bits: vec![4, 8, 17, 35, 72, 150],
            tagged_entries: 1024,
            tag_bits: 11,
            useful_ageing_branches: 1 << 18,
            loop_entries: 64,
            btb_entries: 4096,
            btb_ways: 4,
            indirect_entries: 512,
            indirect_history_bits: 24,
            ras_entries: 32,
            compressed_branches_stay_taken: false,
        }
    }
}

impl PredictorConfig {
    /// Refuses what cannot be built; `field` is the path of this section.
    pub fn check(&self, field: &str) -> Result<(), ConfigError> {
        let refuse = |name: &str, problem: String| Err(ConfigError::new(format!("{field}.{name}"), problem));
        let range = |name: &str, value: u32, low: u32, high: u32| {
            if (low..=high).contains(&value) {
                return Ok(());
            }
            refuse(name, format!("{value} is not between {low} and {high}"))
        };
        let power = |name: &str, value: u32, low: u32, high: u32| {
            if value.is_power_of_two() && (low..=high).contains(&value) {
                return Ok(());
            }
            refuse(name, format!("{value} is not a power of two between {low} and {high}"))
        };
        power("base_entries", self.base_entries, 16, 1 << 20)?;
        if self.history_bits.len() >= LANES {
            return refuse("history_bits", format!("{} tables are more than {}", self.history_bits.len(), LANES - 1));
        }
        for &bits in &self.history_bits {
            range("history_bits", bits, 1, HISTORY_BITS_MAX)?;
        }
        if let Some(pair) = self.history_bits.windows(2).find(|pair| pair[0] >= pair[1]) {
            return refuse("history_bits", format!("{} does not increase after {}", pair[1], pair[0]));
        }
        power("tagged_entries", self.tagged_entries, 16, 1 << 16)?;
        range("tag_bits", self.tag_bits, 4, 15)?;
        range("useful_ageing_branches", self.useful_ageing_branches, 1024, 1 << 30)?;
        if self.loop_entries != 0 {
            power("loop_entries", self.loop_entries, LOOP_WAYS as u32, 4096)?;
        }
        range("btb_ways", self.btb_ways, 1, 64)?;
        range("btb_entries", self.btb_entries, self.btb_ways, 1 << 20)?;
        let sets = self.btb_entries / self.btb_ways;
        if sets * self.btb_ways != self.btb_entries || !sets.is_power_of_two() {
            let problem = format!("{} is not {} ways times a power of two", self.btb_entries, self.btb_ways);
            return refuse("btb_entries", problem);
        }
        if self.indirect_entries != 0 {
            power("indirect_entries", self.indirect_entries, 16, 1 << 16)?;
        }
        range("indirect_history_bits", self.indirect_history_bits, 1, HISTORY_BITS_MAX)?;
        range("ras_entries", self.ras_entries, 1, 1024)
    }
}

/// Kind of a control transfer. The link registers x1 and x5 distinguish calls and returns, as the
/// hints of the RISC-V unprivileged specification for `jalr` have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchKind {
    /// `beq` and its kin.
    Conditional,
    /// `jal` that does not link.
    Direct,
    /// A call whose target is in the instruction: `jal` that links.
    Call,
    /// `jalr` that links.
    IndirectCall,
    /// `jalr` that neither links nor returns.
    Indirect,
    /// `jalr` through a link register that does not link.
    Return,
}

impl BranchKind {
    /// The kind of an instruction that transfers control.
    pub fn of(inst: Inst) -> Self {
        match inst.class() {
            Class::Branch => BranchKind::Conditional,
            Class::Jump if inst.is_call() => BranchKind::Call,
            Class::Jump => BranchKind::Direct,
            _ if inst.is_return() => BranchKind::Return,
            _ if inst.is_call() => BranchKind::IndirectCall,
            _ => BranchKind::Indirect,
        }
    }
}

/// Outcome of one prediction; at most one of the two is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prediction {
    /// The direction, or the target of an indirect branch or return, was wrong: found out at execution.
    pub mispredicted: bool,
    /// A taken direct branch, its direction predicted well, whose target was not in the BTB: decode finds it, at the
    /// price of a short bubble.
    pub btb_miss: bool,
}

/// The branch prediction unit of one core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Predictor {
    history: History,
    tage: Tage,
    loops: Option<Loops>,
    btb: Btb,
    indirect: Option<Indirect>,
    returns: Vec<u64>,
    returns_top: usize,
    compressed_branches_stay_taken: bool,
}

impl Predictor {
    /// An untrained predictor.
    ///
    /// # Panics
    /// If [`PredictorConfig::check`] refuses `config`.
    pub fn new(config: &PredictorConfig) -> Self {
        config.check("predictor").expect("the configuration was checked before");
        Predictor {
            history: History::new(config),
            tage: Tage::new(config),
            loops: (config.loop_entries > 0).then(|| Loops::new(config.loop_entries as usize)),
            btb: Btb::new(config.btb_entries as usize, config.btb_ways as usize),
            indirect: (config.indirect_entries > 0)
                .then(|| Indirect::new(config.indirect_entries as usize, config.history_bits.len())),
            returns: vec![0; config.ras_entries as usize],
            returns_top: 0,
            compressed_branches_stay_taken: config.compressed_branches_stay_taken,
        }
    }

    /// A second predictor that has learnt the same; they share their large tables until one of them learns more.
    pub fn fork(&mut self) -> Self {
        Predictor {
            history: self.history.clone(),
            tage: self.tage.fork(),
            loops: self.loops.clone(),
            btb: self.btb.fork(),
            indirect: self.indirect.clone(),
            returns: self.returns.clone(),
            returns_top: self.returns_top,
            compressed_branches_stay_taken: self.compressed_branches_stay_taken,
        }
    }

    /// Predicts the branch at `pc`, then trains with what it did: `taken` (true for all but conditional branches), its
    /// `target` when taken, and `next_pc`, the address of the following instruction, which a call returns to.
    pub fn predict_and_train(
        &mut self,
        pc: u64,
        kind: BranchKind,
        taken: bool,
        target: u64,
        next_pc: u64,
    ) -> Prediction {
        match kind {
            BranchKind::Conditional => {
                let stays_taken = self.compressed_branches_stay_taken && next_pc == pc + 2;
                let predicted = self.direction(pc, taken, stays_taken);
                let mispredicted = predicted != taken;
                let learnt = taken || stays_taken && predicted;
                self.history.push(pc, learnt);
                let btb_miss = learnt && self.btb.exchange(pc, target) != Some(target) && !mispredicted;
                Prediction { mispredicted, btb_miss }
            }
            // The branches before a plain jump already imply that it is reached: it adds nothing to the history.
            BranchKind::Direct => self.direct(pc, target),
            BranchKind::Call => {
                self.call(next_pc);
                let prediction = self.direct(pc, target);
                // Call sites differ in their address only, and callees depend on their callers.
                self.history.push(pc, parity(pc));
                prediction
            }
            BranchKind::IndirectCall => {
                self.call(next_pc);
                self.indirect(pc, target)
            }
            BranchKind::Indirect => self.indirect(pc, target),
            BranchKind::Return => {
                let predicted = self.returns[self.returns_top];
                self.returns_top = self.returns_top.checked_sub(1).unwrap_or(self.returns.len() - 1);
                Prediction { mispredicted: predicted != target, btb_miss: false }
            }
        }
    }

    /// Feeds all state into a digest.
    pub fn digest(&self, h: &mut dyn Hasher) {
        self.history.digest(h);
        self.tage.digest(h);
        if let Some(loops) = &self.loops {
            loops.digest(h);
        }
        self.btb.digest(h);
        if let Some(indirect) = &self.indirect {
            indirect.digest(h);
        }
        self.returns.iter().for_each(|&address| h.write_u64(address));
        h.write_u64(self.returns_top as u64);
    }

    fn direction(&mut self, pc: u64, taken: bool, stays_taken: bool) -> bool {
        let tage = self.tage.predict_and_train(pc, taken, stays_taken, &self.history);
        match &mut self.loops {
            Some(loops) => loops.predict_and_train(pc, taken, stays_taken, tage),
            None => tage,
        }
    }

    fn direct(&mut self, pc: u64, target: u64) -> Prediction {
        Prediction { mispredicted: false, btb_miss: self.btb.exchange(pc, target) != Some(target) }
    }

    fn indirect(&mut self, pc: u64, target: u64) -> Prediction {
        let last = self.btb.exchange(pc, target);
        let predicted = match &mut self.indirect {
            Some(table) => table.predict_and_train(pc, target, last, &self.history),
            None => last,
        };
        // Three bits, so that the history distinguishes the targets of a switch.
        let code = scramble(target >> 1);
        for bit in 29..32 {
            self.history.push(pc, code >> bit & 1 != 0);
        }
        Prediction { mispredicted: predicted != Some(target), btb_miss: false }
    }

    fn call(&mut self, return_address: u64) {
        self.returns_top = (self.returns_top + 1) % self.returns.len();
        self.returns[self.returns_top] = return_address;
    }
}

/// Multiplies by an odd constant and keeps the well mixed upper half: spreads addresses over tables.
fn scramble(value: u64) -> u32 {
    (value.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

fn parity(value: u64) -> bool {
    value.count_ones() & 1 != 0
}

/// Moves a saturating counter one step up or down within `low..=high`, without a branch: `up` is often hard to predict
/// for the host too.
#[inline(always)]
fn step(counter: &mut i8, up: bool, low: i8, high: i8) {
    *counter = (*counter + 2 * i8::from(up) - 1).clamp(low, high);
}

/// A tag wider than any that can be asked for.
const NO_TAG: u16 = 0xFFFF;
