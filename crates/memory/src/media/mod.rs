//! Media: how long an access takes, given all accesses that are booked already.
//!
//! Cores run ahead, so accesses do not come in the order of their times. Media therefore never hold a "current time":
//! an access is placed at the first time, not before the one it asks for, at which everything it needs is free.

mod config;
mod ddr;
mod fixed;
mod module;
mod recent;
mod stt_ram;
mod timing;

pub use config::{AddressMapping, MediaConfig, MediaKind, PagePolicy};
pub use ddr::RowStats;
pub(crate) use ddr::{Ddr, Policy, Queues};
pub use module::ModuleStats;
pub use timing::{DdrTiming, DdrTimingConfig};

use crate::trace::{Command, Trace};
use durasim_types::Picos;
use fixed::Fixed;
use module::Module;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hash::Hasher;
use stt_ram::SttRam;

/// Whether an access reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// The event up to which a request takes its entry of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EntryUntil {
    /// Its command. A read of media with rows leaves its entry with the command that opens its row, if there is one.
    Command,
    /// The arrival of its data: that of a read at the controller, that of a write in the cells.
    Data,
}

/// An access that has its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// The time at which its first command is given.
    pub start_ps: Picos,
    /// A read: when its last data is there. A write: when the cells hold it.
    pub done_ps: Picos,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Model {
    Fixed(Fixed),
    SttRam(SttRam),
    Ddr(Ddr),
    Module(Module),
}

/// The media of one controller. Lines are counted from the first one of the controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Media {
    model: Model,
    #[serde(skip)]
    trace: Trace,
}

impl Media {
    /// Idle media. `salt` is added to lines before media of the fixed kind spread them over banks.
    /// `queues` are those of the controller in front of media with rows.
    pub fn new(config: &MediaConfig, queues: Option<Queues>, salt: u64) -> Self {
        let config = config.completed();
        let model = match config.kind {
            MediaKind::Fixed => Model::Fixed(Fixed::new(&config, salt)),
            MediaKind::SttRam => Model::SttRam(SttRam::new(&config)),
            MediaKind::Ddr3 | MediaKind::Ddr4 => {
                Model::Ddr(Ddr::new(&config, queues.expect("a controller of such media gives its queues")))
            }
            MediaKind::PmemModule => Model::Module(Module::new(&config)),
        };
        Media { model, trace: Trace::default() }
    }

    /// The bank of a line, over all ranks. Less than 1024.
    #[inline]
    pub fn bank(&self, line: u64) -> usize {
        match &self.model {
            Model::Fixed(fixed) => fixed.bank(line),
            Model::SttRam(stt_ram) => stt_ram.bank(line),
            Model::Ddr(ddr) => ddr.bank(line),
            Model::Module(module) => module.bank(line),
        }
    }

    /// Media with rows, whose requests are scheduled command by command, and where their commands are noted.
    #[inline]
    pub fn rows(&mut self) -> Option<(&mut Ddr, &mut Trace)> {
        match &mut self.model {
            Model::Ddr(ddr) => Some((ddr, &mut self.trace)),
            Model::Fixed(_) | Model::SttRam(_) | Model::Module(_) => None,
        }
    }

    /// Whether the media have rows.
    #[inline]
    pub fn has_rows(&self) -> bool {
        matches!(self.model, Model::Ddr(_))
    }

    /// Whether an access that waits never starts earlier for what is booked meanwhile. A block in a buffer of a module may let a
    /// write of its lines start earlier; media with rows order their writes themselves.
    #[inline]
    pub fn starts_only_get_later(&self) -> bool {
        matches!(self.model, Model::Fixed(_) | Model::SttRam(_))
    }

    /// The first time, not before `at_ps`, at which an access of media without rows could start.
    #[inline]
    pub fn first_start(&self, line: u64, direction: Direction, at_ps: Picos) -> Picos {
        match &self.model {
            Model::Fixed(fixed) => fixed.first_start(fixed.bank(line), direction, at_ps),
            Model::SttRam(stt_ram) => stt_ram.first_start(line, direction, at_ps),
            Model::Ddr(_) => unreachable!("media with rows are scheduled"),
            Model::Module(module) => module.first_start(line, direction, at_ps),
        }
    }

    /// Gives an access to media without rows its place, the first one not before `at_ps`.
    #[inline]
    pub fn access(&mut self, line: u64, direction: Direction, at_ps: Picos) -> Access {
        match &mut self.model {
            Model::Fixed(fixed) => fixed.access(line, direction, at_ps, &mut self.trace),
            Model::SttRam(stt_ram) => stt_ram.access(line, direction, at_ps, &mut self.trace),
            Model::Ddr(_) => unreachable!("media with rows are scheduled"),
            Model::Module(module) => module.access(line, direction, at_ps, &mut self.trace),
        }
    }

    /// The work of the buffers of modules.
    pub fn module_stats(&self) -> Option<ModuleStats> {
        match &self.model {
            Model::Module(module) => Some(module.stats),
            Model::Fixed(_) | Model::SttRam(_) | Model::Ddr(_) => None,
        }
    }

    /// Counters start again from zero.
    pub fn reset_stats(&mut self) {
        match &mut self.model {
            Model::Module(module) => module.stats = ModuleStats::default(),
            Model::Fixed(_) | Model::SttRam(_) | Model::Ddr(_) => {}
        }
    }

    /// Keeps commands from now on.
    pub fn start_trace(&mut self) {
        self.trace.start();
    }

    /// The commands since then and those for requests that wait, in the order of their times, with refreshes up to `until_ps`.
    pub fn take_trace(&mut self, until_ps: Picos) -> Vec<Command> {
        if !self.trace.is_on() {
            return Vec::new();
        }
        if let Model::Ddr(ddr) = &self.model {
            ddr.note_rest(until_ps, &mut self.trace);
        }
        let mut commands = self.trace.take();
        commands.sort_unstable();
        commands
    }

    /// Feeds what is booked into a digest.
    pub fn digest(&self, hasher: &mut dyn Hasher) {
        match &self.model {
            Model::Fixed(fixed) => fixed.digest(hasher),
            Model::SttRam(stt_ram) => stt_ram.digest(hasher),
            Model::Ddr(ddr) => ddr.digest(hasher),
            Model::Module(module) => module.digest(hasher),
        }
    }
}

/// The number below `banks`, a power of two, that all bits of `row` make together: what a bank is permuted by.
fn folded(row: u64, banks: u32) -> u32 {
    let bits = banks.trailing_zeros();
    let (mut rest, mut folded) = (row, 0);
    while bits > 0 && rest != 0 {
        folded ^= rest & u64::from(banks - 1);
        rest >>= bits;
    }
    folded as u32
}
