//! The moments of a run at which power may fail between a persist event and the next one (M6), and the images that are taken there.
//!
//! Stores add images, and a step that makes some of them certain takes images away. So the images of an interval are those just before
//! each such step, and those at its end.

use super::Persistency;
use super::images::{IMAGES_MAX, ImageSet, Images};
use super::persists::Persists;
use super::run::ModelledRun;
use crate::byte_oracle::ByteOracle;
use crate::history::{HistoryRecorder, RecordedMoment};
use crate::persistency_model::PersistencyModel;
use crate::store_log::StoreRecorder;
use crate::timeline_recorder::{TimelineMoment, TimelineRecorder};
use durasim_types::{CoreId, Cycle, DataRange, Journal, LineAddr, Pages, Rng, Site, TxId, Write};

/// Stores of a run that are not durable for certain at one time. A run with more is refused: 300 MB.
const PENDING_MAX: usize = 1 << 20;
/// Draws for each image that is wanted: some draws give the same one.
const DRAWS_PER_IMAGE: u64 = 8;

/// The images of an interval that are taken.
#[derive(Clone, Debug)]
pub(crate) enum ModelChoice {
    /// Those with these numbers.
    These(Vec<u64>),
    /// Number 0, and this many others, drawn with a seed; all, if there are no more.
    Drawn { others: u64, seed: u64 },
    /// All of them.
    All,
}

/// The reason for taking no image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There are more than can be enumerated.
    TooMany,
    /// There are only this many.
    NoSuchImage(u64),
    /// More stores are not durable for certain than are kept.
    TooManyStores,
}

impl Refusal {
    /// The sentence about a persist event and a model.
    pub fn sentence(self, event: u64, model: PersistencyModel) -> String {
        let model = model.name();
        match self {
            Refusal::TooMany => format!(
                "persist event {event} has more than {IMAGES_MAX} images under {model}, or too many sets of stores to count \
                 them: clean lines earlier, or make the run smaller"
            ),
            Refusal::NoSuchImage(images) => format!("persist event {event} has {images} images under {model}"),
            Refusal::TooManyStores => format!(
                "before persist event {event} more than {PENDING_MAX} stores are not durable for certain under {model}: \
                 clean lines earlier, or make the run smaller"
            ),
        }
    }
}

/// The moment of an image, as the recorders count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrashMoment {
    /// The reports of the program about its operations so far.
    pub reported: RecordedMoment,
    /// Steps in the log of stores, if there is one.
    pub steps: Option<usize>,
}

/// A moment at which power may fail.
struct Moment {
    persists: Persists,
    oracle: ByteOracle,
    crash: CrashMoment,
    timeline: Option<TimelineMoment>,
}

/// An image that the model permits.
pub(crate) struct PermittedImage {
    pub number: u64,
    /// Persistent memory.
    pub pmem: Pages,
    /// The byte oracle of its moment.
    pub oracle: ByteOracle,
    pub moment: CrashMoment,
}

/// The recorders of a run that is crashed under a model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorders {
    pub history: HistoryRecorder,
    pub stores: Option<StoreRecorder>,
    pub timeline: Option<TimelineRecorder>,
}

/// A run that is crashed under a model.
pub(crate) struct ModelState {
    run: ModelledRun,
    /// Those of the interval so far.
    moments: Vec<Moment>,
    /// Whether images of this interval are taken.
    is_wanted: bool,
    recorders: Recorders,
}

impl ModelState {
    /// A run that begins on this persistent memory.
    pub fn new(persistency: &Persistency, initial: Pages, recorders: Recorders) -> Self {
        let run = ModelledRun::new(persistency, initial);
        // The first event is not known to be wanted before it comes.
        ModelState { run, moments: Vec::new(), is_wanted: true, recorders }
    }

    pub fn model(&self) -> PersistencyModel {
        self.run.model()
    }

    /// A persist event has happened. The interval of the first one begins with the run.
    pub fn interval_begins(&mut self, event: u64, is_wanted: bool) {
        if event > 1 || !is_wanted {
            self.moments.clear();
        }
        self.is_wanted = is_wanted;
    }

    /// A core is about to finish a fence: what is permitted just before is noted, if it is no longer permitted after it.
    pub fn before_fence(&mut self, core: CoreId, now: &ByteOracle) {
        if self.is_wanted && !self.run.certain_at_fence(core).is_empty() {
            self.note(now);
        }
    }

    /// As [`ModelState::before_fence`], of a clean.
    pub fn before_clean(&mut self, line: LineAddr, now: &ByteOracle) {
        if self.is_wanted && !self.run.certain_at_clean(line).is_empty() {
            self.note(now);
        }
    }

    fn note(&mut self, now: &ByteOracle) {
        let Recorders { history, stores, timeline } = &self.recorders;
        self.moments.push(Moment {
            persists: self.run.persists().clone(),
            oracle: now.clone(),
            crash: CrashMoment { reported: history.moment(), steps: stores.as_ref().map(StoreRecorder::steps) },
            timeline: timeline.as_ref().map(TimelineRecorder::moment),
        });
    }

    /// The oracles of the moments so far.
    pub fn oracles(&mut self) -> impl Iterator<Item = &mut ByteOracle> {
        self.moments.iter_mut().map(|moment| &mut moment.oracle)
    }

    /// The interval of an event ends: the images of a choice.
    ///
    /// # Errors
    /// The reason for taking none.
    pub fn interval_ends(&mut self, choice: &ModelChoice, now: &ByteOracle) -> Result<Vec<PermittedImage>, Refusal> {
        if self.run.persists().pending_count() > PENDING_MAX {
            return Err(Refusal::TooManyStores);
        }
        self.note(now);
        let moments = std::mem::take(&mut self.moments);
        let persists: Vec<&Persists> = moments.iter().map(|moment| &moment.persists).collect();
        let chosen = chosen(choice, &persists)?;
        if let (Some(timeline), [(_, set)]) = (&self.recorders.timeline, chosen.as_slice())
            && let Some(moment) = moments[set.moment].timeline.clone()
        {
            timeline.power_failed_at(moment, &set.pages(&persists));
        }
        let permitted = |(number, set): (u64, ImageSet)| {
            let Moment { oracle, crash, .. } = &moments[set.moment];
            PermittedImage { number, pmem: set.pages(&persists), oracle: oracle.clone(), moment: *crash }
        };
        Ok(chosen.into_iter().map(permitted).collect())
    }
}

/// The images of a choice, with their numbers.
fn chosen(choice: &ModelChoice, moments: &[&Persists]) -> Result<Vec<(u64, ImageSet)>, Refusal> {
    let images = Images::of(moments);
    let numbered = |number: u64| Some((number, images.get(number, moments)?));
    match (choice, images.count()) {
        (ModelChoice::These(numbers), count) => {
            let found = numbers.iter().map(|&number| numbered(number));
            found.collect::<Option<Vec<_>>>().ok_or(Refusal::NoSuchImage(count.unwrap_or(u64::MAX)))
        }
        (ModelChoice::All, None) => Err(Refusal::TooMany),
        (ModelChoice::All, Some(count)) => Ok((0..count).filter_map(numbered).collect()),
        (ModelChoice::Drawn { others, seed }, count) => {
            let mut rng = Rng::new(*seed);
            let most = others.saturating_add(1);
            if let Some(count) = count.filter(|count| *count <= most) {
                return Ok((0..count).filter_map(numbered).collect());
            }
            let bound = count.unwrap_or(u64::from(u32::MAX));
            let mut found: Vec<(u64, ImageSet)> = numbered(0).into_iter().collect();
            for _ in 0..others.saturating_mul(DRAWS_PER_IMAGE) {
                if found.len() as u64 == most {
                    break;
                }
                let drawn = numbered(1 + rng.below(bound - 1));
                let is_new = |(_, set): &(u64, ImageSet)| found.iter().all(|(_, other)| other != set);
                let drawn = drawn.filter(is_new);
                found.extend(drawn);
            }
            found.sort_by_key(|(number, _)| *number);
            Ok(found)
        }
    }
}

/// The steps that a model looks at.
impl Journal for ModelState {
    fn moment(&mut self, core: CoreId, _cycle: Cycle) {
        self.run.moment(core);
    }

    fn site(&mut self, site: Site) {
        self.run.site(site);
    }

    fn data_range(&mut self, _range: DataRange) {}

    fn begin(&mut self, _tx: TxId) {}

    fn store(&mut self, _tx: Option<TxId>, write: Write) {
        self.run.store(&write);
    }

    fn cleaned(&mut self, core: CoreId, line: LineAddr) {
        self.run.cleaned(core, line);
    }

    fn fenced(&mut self, core: CoreId) {
        self.run.fenced(core);
    }

    fn committing(&mut self, _tx: TxId) {}

    fn acknowledged(&mut self, _tx: TxId) {}

    fn aborted(&mut self, _tx: TxId) {}
}
