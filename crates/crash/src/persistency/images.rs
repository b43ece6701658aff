//! The images that a model permits at some moments of a run: the sets of stores that are closed under its order (M5), each content once.

use super::persists::{PersistId, Persists};
use durasim_types::{Pages, PhysAddr, Rng};
use std::collections::{BTreeMap, BTreeSet};

/// Images of an event that are enumerated.
pub(crate) const IMAGES_MAX: usize = 4096;
/// Sets of stores that are looked at for them: several may have one content.
const SETS_MAX: usize = 1 << 16;
/// Stores that no order keeps from becoming durable next. With more the sets are too many: each subset of them is one.
const FREE_MAX: usize = 16;

/// An image: that of a moment, with the contents of some words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageSet {
    /// The number of its moment.
    pub moment: usize,
    words: Vec<(PhysAddr, u64)>,
}

impl ImageSet {
    /// Persistent memory.
    pub fn pages(&self, moments: &[&Persists]) -> Pages {
        let mut pages = moments[self.moment].durable().clone();
        for &(word, value) in &self.words {
            if pages.read_u64(word) != value {
                pages.write(word, &value.to_le_bytes());
            }
        }
        pages
    }
}

/// The images of some moments, numbered from 0. Number 0 has only what is durable for certain at the last of them.
#[derive(Clone, Debug)]
pub(crate) enum Images {
    /// All of them, each content once.
    All(Vec<ImageSet>),
    /// More than can be enumerated: any number draws one.
    Drawn,
}

impl Images {
    /// The images of these moments, the latest one last. An image that several moments permit belongs to the latest of
    /// these (M6).
    pub fn of(moments: &[&Persists]) -> Self {
        let words = words(moments);
        let mut known = BTreeSet::new();
        let mut images = Vec::new();
        let mut sets_left = SETS_MAX;
        for (moment, persists) in moments.iter().enumerate().rev() {
            let mut found = |values: &[u64]| {
                if known.insert(values.to_vec()) {
                    images
                        .push(ImageSet { moment, words: words.iter().copied().zip(values.iter().copied()).collect() });
                }
                images.len() <= IMAGES_MAX
            };
            let Some(mut sets) = Sets::of(persists, &words) else { return Images::Drawn };
            if !sets.visit(&mut sets_left, &mut found) {
                return Images::Drawn;
            }
        }
        Images::All(images)
    }

    /// The number of images, if they are enumerated.
    pub fn count(&self) -> Option<u64> {
        match self {
            Images::All(images) => Some(images.len() as u64),
            Images::Drawn => None,
        }
    }

    /// The image with this number; `None` if there are fewer.
    pub fn get(&self, number: u64, moments: &[&Persists]) -> Option<ImageSet> {
        match self {
            Images::All(images) => images.get(usize::try_from(number).ok()?).cloned(),
            Images::Drawn => Some(drawn(number, moments)),
        }
    }
}

/// The words that have other contents in some image than in another one.
fn words(moments: &[&Persists]) -> Vec<PhysAddr> {
    let stored = moments.iter().flat_map(|persists| persists.pending().values().filter_map(|persist| persist.stored));
    stored.map(|stored| stored.word).collect::<BTreeSet<PhysAddr>>().into_iter().collect()
}

/// The image that a number draws: a few stores with all before them, or all but a few with what comes after these.
fn drawn(number: u64, moments: &[&Persists]) -> ImageSet {
    let last = moments.len() - 1;
    if number == 0 {
        return ImageSet { moment: last, words: Vec::new() };
    }
    let mut rng = Rng::new(number);
    let moment = last - rng.below(moments.len() as u64) as usize;
    let pending = moments[moment].pending();
    let ids: Vec<PersistId> = pending.keys().copied().collect();
    let is_sparse = rng.below(2) == 0;
    let few = rng.below(4);
    let chosen: BTreeSet<PersistId> =
        (0..few).filter(|_| !ids.is_empty()).map(|_| ids[rng.below(ids.len() as u64) as usize]).collect();
    let durable = if is_sparse { with_all_before(chosen, moments[moment]) } else { without(&chosen, moments[moment]) };
    let mut words: BTreeMap<PhysAddr, u64> = BTreeMap::new();
    for stored in durable.iter().filter_map(|id| pending[id].stored) {
        let value = words.entry(stored.word).or_insert_with(|| moments[moment].durable().read_u64(stored.word));
        *value = stored.over(*value);
    }
    let durable = moments[moment].durable();
    ImageSet { moment, words: words.into_iter().filter(|(word, value)| durable.read_u64(*word) != *value).collect() }
}

fn with_all_before(chosen: BTreeSet<PersistId>, persists: &Persists) -> BTreeSet<PersistId> {
    let mut found = BTreeSet::new();
    let mut rest: Vec<PersistId> = chosen.into_iter().collect();
    while let Some(id) = rest.pop() {
        if let Some(persist) = persists.pending().get(&id)
            && found.insert(id)
        {
            rest.extend(&persist.after);
        }
    }
    found
}

fn without(left_out: &BTreeSet<PersistId>, persists: &Persists) -> BTreeSet<PersistId> {
    let mut found = BTreeSet::new();
    for (id, persist) in persists.pending() {
        let is_possible = |before: &PersistId| !persists.is_pending(*before) || found.contains(before);
        if !left_out.contains(id) && persist.after.iter().all(is_possible) {
            found.insert(*id);
        }
    }
    found
}

/// A store or a barrier among those of a moment.
struct Member {
    /// The number of its word, what it changes there, and the bytes; `None`: a barrier.
    stored: Option<(usize, u64, u64)>,
    /// Those directly after it.
    next: Vec<usize>,
}

/// The sets of stores of a moment that are closed under the order.
struct Sets {
    members: Vec<Member>,
    /// Of each member, the number of those directly before it that are not in the set.
    missing: Vec<usize>,
    /// The words with the stores of the set.
    values: Vec<u64>,
}

/// A step of the walk over all sets.
enum Walk {
    /// Decide about one of these, which nothing keeps from the set, and then about the others.
    Decide(Vec<usize>),
    /// Put this one into the set, and decide about these and what it makes possible.
    Include(usize, Vec<usize>),
    /// Take this one out of the set; its word had this value.
    Remove(usize, u64),
}

impl Sets {
    /// The sets of a moment; `None` if they are too many to be looked at.
    fn of(persists: &Persists, words: &[PhysAddr]) -> Option<Self> {
        let pending = persists.pending();
        if pending.len() > 2 * IMAGES_MAX {
            return None;
        }
        let places: BTreeMap<PersistId, usize> = pending.keys().copied().zip(0..).collect();
        let stored = |word: PhysAddr| words.binary_search(&word).expect("all words of the moments are listed");
        let mut members: Vec<Member> = pending
            .values()
            .map(|persist| Member {
                stored: persist.stored.map(|store| (stored(store.word), store.mask, store.data)),
                next: Vec::new(),
            })
            .collect();
        let mut missing = vec![0; members.len()];
        for (place, persist) in pending.values().enumerate() {
            let before: BTreeSet<usize> = persist.after.iter().filter_map(|id| places.get(id).copied()).collect();
            missing[place] = before.len();
            before.into_iter().for_each(|before| members[before].next.push(place));
        }
        let values = words.iter().map(|word| persists.durable().read_u64(*word)).collect();
        let sets = Sets { members, missing, values };
        (sets.free().len() <= FREE_MAX).then_some(sets)
    }

    /// Those that nothing keeps from the empty set.
    fn free(&self) -> Vec<usize> {
        (0..self.members.len()).rev().filter(|&place| self.missing[place] == 0).collect()
    }

    /// Calls `found` with the words of each set, the empty one first, until it answers false or no more sets are left to look at.
    /// Whether it was called with all of them.
    fn visit(&mut self, sets_left: &mut usize, found: &mut dyn FnMut(&[u64]) -> bool) -> bool {
        let mut walk = vec![Walk::Decide(self.free())];
        while let Some(step) = walk.pop() {
            match step {
                Walk::Decide(mut free) => match free.pop() {
                    Some(one) => {
                        walk.push(Walk::Include(one, free.clone()));
                        walk.push(Walk::Decide(free));
                    }
                    None => {
                        if *sets_left == 0 || !found(&self.values) {
                            return false;
                        }
                        *sets_left -= 1;
                    }
                },
                Walk::Include(one, mut free) => {
                    let made_possible = self.include(one, &mut walk);
                    free.extend(made_possible.into_iter().rev());
                    walk.push(Walk::Decide(free));
                }
                Walk::Remove(one, value) => self.remove(one, value),
            }
        }
        true
    }

    /// Puts a member into the set, with the barriers that follow; the stores that this makes possible.
    fn include(&mut self, one: usize, walk: &mut Vec<Walk>) -> Vec<usize> {
        let mut included = vec![one];
        let mut possible = Vec::new();
        while let Some(one) = included.pop() {
            let mut before = 0;
            if let Some((word, mask, data)) = self.members[one].stored {
                before = self.values[word];
                self.values[word] = before & !mask | data & mask;
            }
            walk.push(Walk::Remove(one, before));
            for &next in &self.members[one].next {
                self.missing[next] -= 1;
                if self.missing[next] == 0 {
                    let is_barrier = self.members[next].stored.is_none();
                    if is_barrier { included.push(next) } else { possible.push(next) }
                }
            }
        }
        possible.sort_unstable();
        possible
    }

    fn remove(&mut self, one: usize, value: u64) {
        if let Some((word, ..)) = self.members[one].stored {
            self.values[word] = value;
        }
        for &next in &self.members[one].next {
            self.missing[next] += 1;
        }
    }
}
