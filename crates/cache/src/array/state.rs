//! An array in a snapshot: its occupied slots and its counters.

use super::{CacheArray, CacheStats, EMPTY, Meta, Order, WAYS_MAX};
use durasim_contract::{LevelGeometry, LineTag};
use durasim_types::{Cycle, LINE_BYTES, Line, LineAddr};
use serde::{Deserialize, Serialize, Serializer};

/// All that distinguishes an array from a new one.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    geometry: LevelGeometry,
    clock: u64,
    order: Order,
    stats: CacheStats,
    occupied: Vec<Occupied>,
}

/// The contents of one occupied slot.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Occupied {
    slot: u32,
    line: LineAddr,
    age: u64,
    ready: Cycle,
    tag: LineTag,
    dirty: bool,
    exclusive: bool,
    #[serde(with = "serde_bytes")]
    data: Line,
}

impl Serialize for CacheArray {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let occupied = self.slots().map(|slot| {
            let at = slot.0 as usize;
            let &Meta { age, ready, tag, dirty, exclusive } = self.meta.get(at);
            let line = LineAddr(*self.lines.get(at));
            Occupied { slot: slot.0, line, age, ready, tag, dirty, exclusive, data: *self.data.get(at) }
        });
        let occupied = occupied.collect();
        let order = self.order.clone();
        State { geometry: self.geometry, clock: self.clock, order, stats: self.stats, occupied }.serialize(serializer)
    }
}

impl TryFrom<State> for CacheArray {
    type Error = String;

    /// Refuses a state that no run can have produced, so that a damaged snapshot ends in a sentence.
    fn try_from(state: State) -> Result<Self, String> {
        let State { geometry, clock, order, stats, occupied } = state;
        if !geometry.sets.is_power_of_two()
            || geometry.sets.checked_mul(geometry.ways).is_none_or(|slots| slots == 0)
            || geometry.ways as usize > WAYS_MAX
        {
            return Err(format!("no cache has {} sets of {} ways", geometry.sets, geometry.ways));
        }
        let mut array = CacheArray::new(geometry);
        (array.clock, array.order, array.stats) = (clock, order, stats);
        for Occupied { slot, line, age, ready, tag, dirty, exclusive, data } in occupied {
            if line.0 > u64::MAX / LINE_BYTES {
                return Err(format!("no address is in line {:#x} of the cache", line.0));
            }
            let first = array.first_slot(line);
            let at = slot as usize;
            if !(first..first + array.ways_of(line)).contains(&at) {
                return Err(format!("line {line} cannot be in slot {slot} of the cache"));
            }
            if *array.lines.get(at) != EMPTY || array.find(line).is_some() {
                return Err(format!("slot {slot} or line {line} of the cache is there twice"));
            }
            if age > clock {
                return Err(format!("line {line} was used after the clock of the cache"));
            }
            *array.lines.get_mut(at) = line.0;
            *array.meta.get_mut(at) = Meta { age, ready, tag, dirty, exclusive };
            *array.data.get_mut(at) = data;
        }
        Ok(array)
    }
}
