//! Litmus programs with all images that each model permits, and the sentences of the models against the sets that are built.

use super::Persistency;
use super::images::Images;
use super::persists::Persists;
use super::run::ModelledRun;
use crate::persistency_model::PersistencyModel;
use durasim_machine::Instructions;
use durasim_types::{CoreId, LineAddr, Pages, PhysAddr, Rng, Site, Write};
use std::collections::BTreeSet;
use std::sync::Arc;

use Operation::{Clean, Fence, Flush, NonTemporal, Store};
use PersistencyModel::{Epoch, Strict, X86, X86Clflush};

const BASE: PhysAddr = PhysAddr(0x1000);
/// The words of the programs: `X` and `NEAR_X` are in one line.
const X: usize = 0;
const Y: usize = 1;
const NEAR_X: usize = 2;
const OFFSETS: [u64; 3] = [0, 64, 8];

/// A step of a thread, which is on the core with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// Thread, word, value.
    Store(u16, usize, u64),
    NonTemporal(u16, usize, u64),
    /// Thread and a word of the line.
    Clean(u16, usize),
    Flush(u16, usize),
    Fence(u16),
}

fn address(word: usize) -> PhysAddr {
    BASE.plus(OFFSETS[word])
}

fn line(word: usize) -> LineAddr {
    address(word).line()
}

/// The code of all programs: a store, a store after `ntl.all`, and `cbo.flush`.
const PLAIN: u64 = 0x100;
const HINTED: u64 = 0x108;
const FLUSH: u64 = 0x10c;
const CODE: [u32; 4] = [0x00b5_3023, 0x0050_0033, 0x00b5_3023, 0x0025_200f];

fn run_of(model: PersistencyModel, operations: &[Operation]) -> ModelledRun {
    let code: Vec<u8> = CODE.iter().flat_map(|word| word.to_le_bytes()).collect();
    let persistency = Persistency { model, instructions: Arc::new(Instructions::of_code(PLAIN, &code)) };
    let mut run = ModelledRun::new(&persistency, Pages::new(BASE, 0x1000));
    for operation in operations {
        let (thread, pc) = match *operation {
            Store(thread, ..) | Clean(thread, _) | Fence(thread) => (thread, PLAIN),
            NonTemporal(thread, ..) => (thread, HINTED),
            Flush(thread, _) => (thread, FLUSH),
        };
        run.moment(CoreId(thread));
        run.site(Site { pc, thread: thread.into(), ..Site::default() });
        match *operation {
            Store(_, word, data) | NonTemporal(_, word, data) => {
                run.store(&Write { addr: address(word), len: 8, data });
            }
            Clean(_, word) | Flush(_, word) => run.cleaned(CoreId(thread), line(word)),
            Fence(_) => run.fenced(CoreId(thread)),
        }
    }
    run
}

/// The values of the words in an image.
type Values = [u64; 3];

fn values(pages: &Pages) -> Values {
    [X, Y, NEAR_X].map(|word| pages.read_u64(address(word)))
}

/// All images after these operations.
fn images(model: PersistencyModel, operations: &[Operation]) -> BTreeSet<Values> {
    let run = run_of(model, operations);
    let moments = [run.persists()];
    let Images::All(images) = Images::of(&moments) else { panic!("there are few images") };
    let found: BTreeSet<Values> = images.iter().map(|image| values(&image.pages(&moments))).collect();
    assert_eq!(found.len(), images.len(), "each content once");
    found
}

/// The values of `X` and `Y` in all images at any moment of a program.
fn ever(model: PersistencyModel, operations: &[Operation]) -> BTreeSet<(u64, u64)> {
    let moments = (0..=operations.len()).flat_map(|steps| images(model, &operations[..steps]));
    moments.map(|[x, y, _]| (x, y)).collect()
}

/// A program with the values of `X` and `Y` that strict, epoch, x86 and x86-clflush permit at some moment.
type Litmus<'a> = (&'a str, &'a [Operation], [&'a [(u64, u64)]; 4]);

const ALL_FOUR: &[(u64, u64)] = &[(0, 0), (0, 1), (1, 0), (1, 1)];
const IN_ORDER: &[(u64, u64)] = &[(0, 0), (1, 0), (1, 1)];

#[test]
fn litmus_programs_have_the_images_of_each_model() {
    let table: &[Litmus<'_>] = &[
        ("no fence", &[Store(0, X, 1), Store(0, Y, 1)], [IN_ORDER, ALL_FOUR, ALL_FOUR, ALL_FOUR]),
        ("fence alone", &[Store(0, X, 1), Fence(0), Store(0, Y, 1)], [IN_ORDER, IN_ORDER, ALL_FOUR, ALL_FOUR]),
        ("clwb and sfence", &[Store(0, X, 1), Clean(0, X), Fence(0), Store(0, Y, 1)], [IN_ORDER; 4]),
        (
            "clwb without sfence",
            &[Store(0, X, 1), Clean(0, X), Store(0, Y, 1)],
            [IN_ORDER, ALL_FOUR, ALL_FOUR, ALL_FOUR],
        ),
        (
            "sfence after the other store",
            &[Store(0, X, 1), Clean(0, X), Store(0, Y, 1), Fence(0)],
            [IN_ORDER, ALL_FOUR, ALL_FOUR, ALL_FOUR],
        ),
        (
            "clflush is ordered, clflushopt is not",
            &[Store(0, X, 1), Flush(0, X), Store(0, Y, 1)],
            [IN_ORDER, ALL_FOUR, ALL_FOUR, IN_ORDER],
        ),
        (
            "clwb before the store",
            &[Clean(0, X), Store(0, X, 1), Fence(0), Store(0, Y, 1)],
            [IN_ORDER, IN_ORDER, ALL_FOUR, ALL_FOUR],
        ),
        (
            "non-temporal store without sfence",
            &[NonTemporal(0, X, 1), Store(0, Y, 1)],
            [IN_ORDER, ALL_FOUR, ALL_FOUR, ALL_FOUR],
        ),
        ("non-temporal store and sfence", &[NonTemporal(0, X, 1), Fence(0), Store(0, Y, 1)], [IN_ORDER; 4]),
        (
            "message passing without a clean: the fence of the reader is its own",
            &[Store(0, X, 1), Fence(0), Fence(1), Store(1, Y, 1)],
            [IN_ORDER, ALL_FOUR, ALL_FOUR, ALL_FOUR],
        ),
        (
            "message passing with clwb and sfence",
            &[Store(0, X, 1), Clean(0, X), Fence(0), Store(1, Y, 1)],
            [IN_ORDER; 4],
        ),
        (
            "the reader cleans what the writer has stored",
            &[Store(0, X, 1), Clean(1, X), Fence(1), Store(1, Y, 1)],
            [IN_ORDER; 4],
        ),
        (
            "the fence is of another core than the clean",
            &[Store(0, X, 1), Clean(0, X), Fence(1), Store(1, Y, 1)],
            [IN_ORDER, ALL_FOUR, ALL_FOUR, ALL_FOUR],
        ),
    ];
    for (name, operations, permitted) in table {
        for (model, permitted) in PersistencyModel::ALL.iter().zip(permitted) {
            let permitted: BTreeSet<(u64, u64)> = permitted.iter().copied().collect();
            assert_eq!(ever(*model, operations), permitted, "{name} under {}", model.name());
        }
    }
}

/// Two stores to one line, and what is left of them: in order under x86, in any order in an epoch.
#[test]
fn stores_of_one_line_are_ordered_by_the_line_or_by_fences() {
    let at_end = |model, operations: &[Operation]| -> BTreeSet<(u64, u64)> {
        images(model, operations).into_iter().map(|[x, _, near]| (x, near)).collect()
    };
    let in_order: BTreeSet<(u64, u64)> = IN_ORDER.iter().copied().collect();
    let all_four: BTreeSet<(u64, u64)> = ALL_FOUR.iter().copied().collect();
    let stores = [Store(0, X, 1), Store(0, NEAR_X, 1)];
    assert_eq!(at_end(Strict, &stores), in_order);
    assert_eq!(at_end(Epoch, &stores), all_four);
    assert_eq!(at_end(X86, &stores), in_order);
    let non_temporal = [NonTemporal(0, X, 1), NonTemporal(0, NEAR_X, 1)];
    assert_eq!(at_end(X86, &non_temporal), all_four);
    assert_eq!(at_end(Strict, &non_temporal), in_order);
    let then_ordinary = [NonTemporal(0, X, 1), Store(0, NEAR_X, 1)];
    assert_eq!(at_end(X86, &then_ordinary), in_order);
    let of_two_threads = [Store(0, X, 1), Store(1, NEAR_X, 1)];
    assert_eq!(at_end(Epoch, &of_two_threads), all_four);
    assert_eq!(at_end(X86, &of_two_threads), in_order);
}

/// T0: y=1; fence; x=1. T1: x=2; fence; near=1: the stores to `X` order the epochs of both threads.
#[test]
fn stores_of_two_threads_to_one_word_order_their_epochs() {
    let program = [Store(0, Y, 1), Fence(0), Store(0, X, 1), Store(1, X, 2), Fence(1), Store(1, NEAR_X, 1)];
    let expected = BTreeSet::from([[0, 0, 0], [0, 1, 0], [1, 1, 0], [2, 1, 0], [2, 1, 1]]);
    assert_eq!(images(Epoch, &program), expected);
}

/// A store that is durable for certain takes with it all that is before it.
#[test]
fn a_certain_store_makes_earlier_epochs_certain() {
    let program = [Store(0, X, 1), Fence(0), Store(0, Y, 1), Clean(0, Y), Fence(0)];
    assert_eq!(images(Strict, &program), BTreeSet::from([[1, 1, 0]]));
    assert_eq!(images(Epoch, &program), BTreeSet::from([[1, 1, 0]]));
    assert_eq!(images(X86, &program), BTreeSet::from([[0, 1, 0], [1, 1, 0]]));
}

#[test]
fn a_store_across_words_is_one_for_each() {
    let mut run = run_of(X86, &[]);
    run.store(&Write { addr: BASE.plus(60), len: 8, data: 0x0807_0605_0403_0201 });
    let moments = [run.persists()];
    let Images::All(images) = Images::of(&moments) else { panic!("there are few images") };
    let mut found: Vec<(u64, u64)> = images
        .iter()
        .map(|image| image.pages(&moments))
        .map(|pages| (pages.read_u64(BASE.plus(56)), pages.read_u64(BASE.plus(64))))
        .collect();
    found.sort_unstable();
    let (low, high) = (0x0403_0201_0000_0000, 0x0807_0605);
    assert_eq!(found, [(0, 0), (0, high), (low, 0), (low, high)]);
}

/// An image belongs to the latest moment that permits it, and number 0 has what is certain there.
#[test]
fn an_image_of_several_moments_belongs_to_the_latest() {
    let before = run_of(X86, &[Store(0, X, 1), Store(0, Y, 1), Clean(0, X)]);
    let after = run_of(X86, &[Store(0, X, 1), Store(0, Y, 1), Clean(0, X), Fence(0)]);
    let moments = [before.persists(), after.persists()];
    let images = Images::of(&moments);
    assert_eq!(images.count(), Some(4));
    let of = |number| {
        let image = images.get(number, &moments).unwrap();
        let [x, y, _] = values(&image.pages(&moments));
        (image.moment, x, y)
    };
    let mut all: Vec<(usize, u64, u64)> = (0..4).map(of).collect();
    assert_eq!(all[0], (1, 1, 0));
    all.sort_unstable();
    assert_eq!(all, [(0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)]);
    assert!(images.get(4, &moments).is_none());
}

/// Too many images are drawn by number, each one of those that the model permits.
#[test]
fn drawn_images_are_permitted() {
    for model in PersistencyModel::ALL {
        let mut run = run_of(model, &[]);
        for step in 0..200 {
            run.store(&Write { addr: BASE.plus(8 * (step * 37 % 400)), len: 8, data: step + 1 });
            if step % 50 == 49 {
                run.fenced(CoreId(0));
            }
        }
        let moments = [run.persists()];
        let images = Images::of(&moments);
        assert_eq!(images.count().is_none(), model != Strict, "{}", model.name());
        let pages = |number: u64| images.get(number, &moments).unwrap().pages(&moments);
        let stored =
            |pages: &Pages| (0..200).map(|step| pages.read_u64(BASE.plus(8 * (step * 37 % 400))) != 0).collect();
        let sets: BTreeSet<Vec<bool>> = (0..150).map(|number| stored(&pages(number))).collect();
        assert!(sets.len() > 40, "{}: {}", model.name(), sets.len());
        if model == Epoch {
            // The last store of an epoch is durable only with all stores of the epoch before it.
            assert!(sets.iter().all(|set| {
                (1..4).all(|n| !set[50 * n..50 * n + 50].contains(&true) || !set[..50 * n].contains(&false))
            }));
        }
    }
}

/// The sentences of docs/crash.md, read one by one.
mod sentences {
    use super::*;

    /// A store with its place in the program.
    #[derive(Clone, Copy, Debug)]
    struct Made {
        step: usize,
        thread: u16,
        word: usize,
        value: u64,
        is_non_temporal: bool,
    }

    fn stores(operations: &[Operation]) -> Vec<Made> {
        let made = |(step, operation): (usize, &Operation)| match *operation {
            Store(thread, word, value) => Some(Made { step, thread, word, value, is_non_temporal: false }),
            NonTemporal(thread, word, value) => Some(Made { step, thread, word, value, is_non_temporal: true }),
            _ => None,
        };
        operations.iter().enumerate().filter_map(made).collect()
    }

    /// S1, E2 and E3, X1 and X4, without the transitivity.
    fn is_before(model: PersistencyModel, operations: &[Operation], all: &[Made], a: &Made, b: &Made) -> bool {
        if a.step >= b.step {
            return false;
        }
        match model {
            Strict => true,
            Epoch => a.word == b.word || a.thread == b.thread && operations[a.step..b.step].contains(&Fence(a.thread)),
            X86 | X86Clflush => {
                let is_between = |other: &Made| {
                    (a.step + 1..b.step).contains(&other.step)
                        && line(other.word) == line(a.word)
                        && !other.is_non_temporal
                };
                line(a.word) == line(b.word)
                    && (!a.is_non_temporal || !b.is_non_temporal || a.word == b.word || all.iter().any(is_between))
            }
        }
    }

    /// M4 and X3, without what the order adds.
    fn is_certain(model: PersistencyModel, operations: &[Operation], a: &Made) -> bool {
        let later = &operations[a.step + 1..];
        later.iter().enumerate().any(|(at, operation)| match *operation {
            Clean(core, word) | Flush(core, word) if line(word) == line(a.word) => {
                let is_clflush = model == X86Clflush && matches!(operation, Flush(..));
                is_clflush || later[at..].contains(&Fence(core))
            }
            Fence(core) => a.is_non_temporal && core == a.thread,
            _ => false,
        })
    }

    /// All images by the sentences: each set of stores is looked at.
    fn permitted(model: PersistencyModel, operations: &[Operation]) -> BTreeSet<Values> {
        let all = stores(operations);
        let count = all.len();
        let mut before = vec![vec![false; count]; count];
        for a in 0..count {
            for b in 0..count {
                before[a][b] = is_before(model, operations, &all, &all[a], &all[b]);
            }
        }
        for between in 0..count {
            for a in 0..count {
                for b in 0..count {
                    before[a][b] |= before[a][between] && before[between][b];
                }
            }
        }
        let certain: Vec<usize> = (0..count).filter(|&a| is_certain(model, operations, &all[a])).collect();
        let mut found = BTreeSet::new();
        for set in 0..1u32 << count {
            let has = |store: usize| set >> store & 1 == 1;
            let is_closed = (0..count).all(|b| !has(b) || (0..count).all(|a| !before[a][b] || has(a)));
            if is_closed && certain.iter().all(|&store| has(store)) {
                let mut values = [0; 3];
                (0..count).filter(|&store| has(store)).for_each(|store| values[all[store].word] = all[store].value);
                found.insert(values);
            }
        }
        found
    }

    fn drawn(rng: &mut Rng, words: &[usize], has_x86_stores: bool) -> Vec<Operation> {
        let mut value = 0;
        let steps = 3 + rng.below(7);
        let mut operation = || {
            let (thread, word) = (rng.below(2) as u16, words[rng.below(words.len() as u64) as usize]);
            value += 1;
            match rng.below(8) {
                0 if has_x86_stores => NonTemporal(thread, word, value),
                0..=3 => Store(thread, word, value),
                4 => Clean(thread, word),
                5 => Flush(thread, word),
                _ => Fence(thread),
            }
        };
        (0..steps).map(|_| operation()).collect()
    }

    #[test]
    fn the_images_are_those_that_the_sentences_give() {
        let mut rng = Rng::new(1);
        for _ in 0..2000 {
            let program = drawn(&mut rng, &[X, Y, NEAR_X], true);
            for model in PersistencyModel::ALL {
                assert_eq!(images(model, &program), permitted(model, &program), "{} {program:?}", model.name());
            }
        }
    }

    #[test]
    fn the_images_of_one_model_are_among_those_of_another() {
        let mut rng = Rng::new(2);
        let mut are_more = [0; 3];
        for _ in 0..2000 {
            let program = drawn(&mut rng, &[X, Y, NEAR_X], false);
            let [strict, epoch, x86, clflush] = PersistencyModel::ALL.map(|model| images(model, &program));
            assert!(strict.is_subset(&epoch) && strict.is_subset(&x86) && clflush.is_subset(&x86), "{program:?}");
            are_more[0] += usize::from(epoch.len() > strict.len());
            are_more[1] += usize::from(x86.len() > strict.len());
            let apart = drawn(&mut rng, &[X, Y], false);
            let [_, epoch, x86, _] = PersistencyModel::ALL.map(|model| images(model, &apart));
            assert!(epoch.is_subset(&x86), "{apart:?}");
            are_more[2] += usize::from(x86.len() > epoch.len());
        }
        assert!(are_more.iter().all(|count| *count > 100), "{are_more:?}");
    }
}

/// Every set is visited once, also where barriers stand between epochs.
#[test]
fn sets_are_counted_with_all_their_fences() {
    let program = [Store(0, X, 1), Fence(0), Fence(0), Store(0, Y, 1), Fence(0), Store(0, NEAR_X, 1)];
    let run = run_of(Epoch, &program);
    let moments: [&Persists; 1] = [run.persists()];
    assert_eq!(Images::of(&moments).count(), Some(4));
}
