//! The loop predictor.

use serde::{Deserialize, Serialize};
use std::hash::Hasher;

use super::{scramble, step};

pub(super) const LOOP_WAYS: usize = 4;
const LOOP_CONFIDENCE: u8 = 3;
const LOOP_AGE: u8 = 7;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Loop {
    /// Odd; 0 in an entry without a loop.
    tag: u16,
    /// Executions of the branch per visit of the loop, the exit included; 0 while unknown.
    trips: u16,
    /// Executions in the present visit.
    done: u16,
    /// Visits in a row with the same count.
    confidence: u8,
    /// Attempts to replace this entry that it still survives.
    age: u8,
    /// Direction while the loop continues.
    body_taken: bool,
}

/// Recognises loops that always run the same number of times, however long and whatever their bodies do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Loops {
    entries: Vec<Loop>,
    /// From 0 up, a confident loop overrides TAGE.
    trust: i8,
}

impl Loops {
    pub(super) fn new(entries: usize) -> Self {
        Loops { entries: vec![Loop::default(); entries], trust: -1 }
    }

    /// The final direction, where `tage` is what TAGE says. With `stays_taken` the branch is learnt as taken if that was
    /// predicted.
    pub(super) fn predict_and_train(&mut self, pc: u64, taken: bool, stays_taken: bool, tage: bool) -> bool {
        let code = scramble(pc >> 1);
        let first = (code as usize & (self.entries.len() / LOOP_WAYS - 1)) * LOOP_WAYS;
        let set = &mut self.entries[first..first + LOOP_WAYS];
        let tag = (code >> 16) as u16 | 1;
        let Some(entry) = set.iter_mut().find(|entry| entry.tag == tag) else {
            if tage != (taken || stays_taken && tage) {
                // The branch most likely left its loop just now, so the next execution starts a visit.
                let fresh = Loop { tag, age: LOOP_AGE, body_taken: !taken, ..Loop::default() };
                match set.iter_mut().find(|entry| entry.tag == 0 || entry.age == 0) {
                    Some(victim) => *victim = fresh,
                    None => set.iter_mut().for_each(|entry| entry.age -= 1),
                }
            }
            return tage;
        };
        let mut predicted = tage;
        let guess = entry.body_taken != (entry.done + 1 == entry.trips);
        if entry.confidence == LOOP_CONFIDENCE && self.trust >= 0 {
            predicted = guess;
        }
        let taken = taken || stays_taken && predicted;
        if entry.confidence == LOOP_CONFIDENCE {
            if guess != tage {
                step(&mut self.trust, guess == taken, -64, 63);
                if guess == taken {
                    entry.age = LOOP_AGE;
                }
            }
            if guess != taken {
                entry.tag = 0;
                return predicted;
            }
        }
        entry.train(taken);
        predicted
    }

    pub(super) fn digest(&self, h: &mut dyn Hasher) {
        for entry in &self.entries {
            h.write_u16(entry.tag);
            h.write_u16(entry.trips);
            h.write_u16(entry.done);
            h.write(&[entry.confidence, entry.age, entry.body_taken.into()]);
        }
        h.write_u8(self.trust as u8);
    }
}

impl Loop {
    fn train(&mut self, taken: bool) {
        let visit = self.done + 1;
        if taken == self.body_taken {
            self.done = visit;
            // Endless, as far as 16 bits can count: give the entry up.
            if visit == u16::MAX {
                self.tag = 0;
            }
        } else if visit < 3 {
            // TAGE does as well on so short a loop, or the direction of the body was guessed wrong.
            self.tag = 0;
        } else {
            self.confidence = if visit == self.trips { (self.confidence + 1).min(LOOP_CONFIDENCE) } else { 0 };
            self.trips = visit;
            self.done = 0;
        }
    }
}
