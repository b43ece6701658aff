//! TAGE: a bimodal base and tagged tables of geometric history lengths.

use durasim_cache::Page;
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

use super::history::{HALF, History, LANES};
use super::{NO_TAG, PredictorConfig, scramble, step};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Tagged {
    tag: u16,
    /// -4 to 3, taken from 0 up.
    counter: i8,
    /// 0 to 3: how often this entry was right where the alternative was wrong.
    useful: i8,
}

impl Tagged {
    /// Whether it has not yet shown what it is good for.
    fn is_new(self) -> bool {
        self.useful == 0 && matches!(self.counter, -1 | 0)
    }
}

/// Odd numbers that spread one branch differently over each table.
const MULTIPLIERS: [u16; LANES] = {
    let mut multipliers = [0x9E37u16; LANES];
    let mut lane = 1;
    while lane < LANES {
        multipliers[lane] = multipliers[lane - 1].wrapping_mul(0x6C8D);
        lane += 1;
    }
    multipliers
};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Tage {
    /// -2 to 1, taken from 0 up.
    base: Page<[i8]>,
    /// Table after table, shortest history first.
    tagged: Page<[Tagged]>,
    tables: usize,
    index_bits: u32,
    tag_mask: u16,
    /// The path bits mixed into the index of each table: no more than its history is long.
    path_masks: [u16; LANES],
    /// From 0 up, the alternative is trusted more than a newly allocated entry.
    trust_alternative: i8,
    shift_register: u16,
    ageing_branches: u32,
    branches_to_ageing: u32,
    /// Bit of the useful counters that the next ageing clears.
    ageing_bit: i8,
}

/// Index of the entry of a branch among those of all tables.
fn at(index_bits: u32, table: usize, places: &[u16; LANES]) -> usize {
    table << index_bits | usize::from(places[table])
}

impl Tage {
    pub(super) fn new(config: &PredictorConfig) -> Self {
        let tables = config.history_bits.len();
        let mut path_masks = [0; LANES];
        for (mask, &bits) in path_masks.iter_mut().zip(&config.history_bits) {
            *mask = 0xFFFF >> (16 - bits.min(16));
        }
        Tage {
            base: vec![-1; config.base_entries as usize].into(),
            tagged: vec![Tagged { tag: NO_TAG, counter: 0, useful: 0 }; tables * config.tagged_entries as usize].into(),
            tables,
            index_bits: config.tagged_entries.ilog2(),
            tag_mask: (1 << config.tag_bits) - 1,
            path_masks,
            trust_alternative: 0,
            shift_register: 0xACE1,
            ageing_branches: config.useful_ageing_branches,
            branches_to_ageing: config.useful_ageing_branches,
            ageing_bit: 2,
        }
    }

    /// A second predictor that has learnt the same.
    pub(super) fn fork(&mut self) -> Self {
        self.base.share();
        self.tagged.share();
        self.clone()
    }

    /// Predicts a branch and learns what it did. With `stays_taken` it is learnt as taken if that was predicted.
    pub(super) fn predict_and_train(&mut self, pc: u64, taken: bool, stays_taken: bool, history: &History) -> bool {
        let short = (pc >> 1) as u32;
        let code = scramble(pc >> 1);
        let (mut places, mut tags) = ([0; LANES], [0; LANES]);
        self.hash::<0>(short as u16, code, history, &mut places, &mut tags);
        if self.tables > HALF {
            self.hash::<1>(short as u16, code, history, &mut places, &mut tags);
        }
        let (base, tagged, index_bits) = (self.base.write(), self.tagged.write(), self.index_bits);
        // From the longest history down, so that the bits move up to their places.
        let mut hits = 0u32;
        let mut first = self.tables << index_bits;
        let lanes = self.tables.min(LANES);
        for (&place, &tag) in places[..lanes].iter().zip(&tags[..lanes]).rev() {
            first -= 1 << index_bits;
            hits = hits << 1 | u32::from(tagged[first + usize::from(place)].tag == tag);
        }
        let longest = |hits: u32| hits.checked_ilog2().map(|table| at(index_bits, table as usize, &places));
        let provider_table = hits.checked_ilog2();
        let provider = longest(hits);
        let alternative = longest(provider_table.map_or(0, |table| hits ^ 1 << table));
        let base_place = short as usize & (base.len() - 1);
        let base_taken = base[base_place] >= 0;
        let alternative_taken = alternative.map_or(base_taken, |place| tagged[place].counter >= 0);
        let mut predicted = alternative_taken;
        let mut may_allocate = true;
        if let Some(place) = provider {
            let entry = tagged[place];
            if !entry.is_new() || self.trust_alternative < 0 {
                predicted = entry.counter >= 0;
            }
        }
        let taken = taken || stays_taken && predicted;

        match provider {
            Some(place) => {
                let mut entry = tagged[place];
                let entry_taken = entry.counter >= 0;
                let newly_allocated = entry.is_new();
                // A new entry that is right only needs time, not a competitor with a longer history.
                may_allocate = !(newly_allocated && entry_taken == taken);
                if newly_allocated && entry_taken != alternative_taken {
                    step(&mut self.trust_alternative, alternative_taken == taken, -8, 7);
                }
                // Until the entry has proved useful its alternative may have to take over again: keep it trained.
                if entry.useful == 0 {
                    match alternative {
                        Some(other) => step(&mut tagged[other].counter, taken, -4, 3),
                        None => step(&mut base[base_place], taken, -2, 1),
                    }
                }
                step(&mut entry.counter, taken, -4, 3);
                if entry_taken != alternative_taken {
                    step(&mut entry.useful, entry_taken == taken, 0, 3);
                }
                tagged[place] = entry;
            }
            None => step(&mut base[base_place], taken, -2, 1),
        }
        if predicted != taken && may_allocate {
            self.allocate(provider_table.map_or(0, |table| table as usize + 1), taken, &places, &tags);
        }
        self.branches_to_ageing -= 1;
        if self.branches_to_ageing == 0 {
            self.age();
        }
        predicted
    }

    /// The place within its table and the tag of a branch in each table of one half; the second half is rarely in use.
    /// A loop over arrays, to become vectors.
    #[inline(always)]
    fn hash<const HALF_AT: usize>(
        &self,
        short: u16,
        code: u32,
        history: &History,
        places: &mut [u16; LANES],
        tags: &mut [u16; LANES],
    ) {
        let (path, low, high) = (history.path as u16, code as u16, (code >> 16) as u16);
        let shift = 16 - self.index_bits;
        let mask = u16::MAX >> shift;
        for lane in HALF_AT * HALF..(HALF_AT + 1) * HALF {
            let spread = (path & self.path_masks[lane] ^ low).wrapping_mul(MULTIPLIERS[lane]) >> shift;
            places[lane] = (short ^ history.index.value[lane] ^ spread) & mask;
            tags[lane] = (high ^ history.tag.value[lane] ^ history.tag_narrow.value[lane] << 1) & self.tag_mask;
        }
    }

    /// Claims a useless entry for the branch in one table from `first` up, mostly the shortest that has one; with none,
    /// all candidates lose usefulness, so that the next attempt may find one.
    #[cold]
    fn allocate(&mut self, first: usize, taken: bool, places: &[u16; LANES], tags: &[u16; LANES]) {
        let (tagged, index_bits) = (self.tagged.write(), self.index_bits);
        let mut free = (first..self.tables).filter(|&table| tagged[at(index_bits, table, places)].useful == 0);
        let (shortest, next) = (free.next(), free.next());
        let Some(shortest) = shortest else {
            for table in first..self.tables {
                tagged[at(index_bits, table, places)].useful -= 1;
            }
            return;
        };
        // One in four goes a step further: branches in lockstep would otherwise keep evicting each other.
        self.shift_register = (self.shift_register >> 1) ^ ((self.shift_register & 1) * 0xB400);
        let table = if self.shift_register & 3 == 0 { next.unwrap_or(shortest) } else { shortest };
        let counter = if taken { 0 } else { -1 };
        tagged[at(index_bits, table, places)] = Tagged { tag: tags[table], counter, useful: 0 };
    }

    /// Clears the upper and the lower bit of all useful counters in turn, so that entries of dead code are replaced.
    fn age(&mut self) {
        self.branches_to_ageing = self.ageing_branches;
        self.tagged.write().iter_mut().for_each(|entry| entry.useful &= !self.ageing_bit);
        self.ageing_bit ^= 3;
    }

    pub(super) fn digest(&self, h: &mut dyn Hasher) {
        self.base.read().iter().for_each(|&counter| h.write_u8(counter as u8));
        for entry in self.tagged.read() {
            h.write_u32(
                u32::from(entry.tag) << 16 | u32::from(entry.counter as u8) << 8 | u32::from(entry.useful as u8),
            );
        }
        h.write_u32(self.branches_to_ageing);
        h.write_u16(self.shift_register);
        h.write_u8(self.trust_alternative as u8);
        h.write_u8(self.ageing_bit as u8);
    }
}
