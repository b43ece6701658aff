//! Links for messages between cores, the banks of the last level and memory controllers. Every message has two ends,
//! and is charged once, from the one to the other.
//!
//! In the topology `uniform` messages take no time here and never wait. A [`Crossbar`] has ports between private caches and
//! the last level, through which their messages pass, for any controller. On a [`Mesh`] everything travels
//! from tile to tile: the path to the controllers asks it for its messages too.

#[cfg(test)]
mod booksim;
mod crossbar;
mod link;
mod mesh;

pub(crate) use mesh::{End, Mesh};

use crate::setup::config::{CleanLineAnswer, MachineConfig, Topology};
use crossbar::Crossbar;
use durasim_types::{CoreId, Cycle, LINE_BYTES, LineAddr, Stats};

/// Kind of a message between private caches and the last level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    /// A request, a permission or a snoop.
    Control,
    /// A line.
    Data,
}

impl MessageKind {
    fn bytes(self) -> u64 {
        if self == MessageKind::Data { LINE_BYTES } else { 0 }
    }
}

super::part::part! {
    /// The part of the memory system that moves messages.
    pub(crate) struct Interconnect saved as SavedInterconnect {
        saved {
            /// The links between private caches and the last level, if messages may have to wait there.
            crossbar: Option<Crossbar>,
            /// The tiles and the links between them, if there are any.
            mesh: Option<Mesh>,
        }
        kept {
            /// Cycles of a request from the L1D to the last level, and of an answer back, where there are no tiles.
            down_cycles: Cycle,
            up_cycles: Cycle,
            clean_line_answer: CleanLineAnswer,
        }
    }
}

impl Interconnect {
    pub(crate) fn new(config: &MachineConfig) -> Self {
        let topology = config.interconnect.topology;
        let private_levels = if config.l2.is_some() { 2 } else { 1 };
        Interconnect {
            down_cycles: private_levels * config.interconnect.request_cycles,
            up_cycles: private_levels * config.interconnect.response_cycles,
            clean_line_answer: config.interconnect.clean_line_answer,
            crossbar: (topology == Topology::Crossbar)
                .then(|| Crossbar::new(&config.interconnect, config.cores as usize)),
            mesh: (topology == Topology::Mesh).then(|| Mesh::new(config)),
        }
    }

    /// The same links with the same bookings.
    pub(crate) fn fork(&self) -> Self {
        Interconnect { crossbar: self.crossbar.clone(), mesh: self.mesh.clone(), ..*self }
    }

    /// The mesh, if there is one.
    pub(crate) fn mesh(&mut self) -> Option<&mut Mesh> {
        self.mesh.as_mut()
    }

    /// The component that answers a cache-block operation on a clean line.
    pub(crate) fn clean_line_answer(&self) -> CleanLineAnswer {
        self.clean_line_answer
    }

    /// A message of the private caches of a core travels to the bank of a line; when all of it is there.
    #[inline]
    pub(crate) fn send_to_llc(&mut self, core: CoreId, line: LineAddr, kind: MessageKind, at: Cycle) -> Cycle {
        match &mut self.mesh {
            Some(mesh) => mesh.send(End::Core(core), End::Bank(line), kind.bytes(), at),
            None => self.enter_llc(core, line, kind, at),
        }
    }

    /// A message of the bank of a line travels to the private caches of a core; when all of it is there.
    #[inline]
    pub(crate) fn send_to_core(&mut self, core: CoreId, line: LineAddr, kind: MessageKind, at: Cycle) -> Cycle {
        match &mut self.mesh {
            Some(mesh) => mesh.send(End::Bank(line), End::Core(core), kind.bytes(), at),
            None => self.enter_core(core, line, kind, at),
        }
    }

    /// A message without data of a design leaves a core for the bank of a line; when it is there.
    pub(crate) fn message_to_bank(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        let down_cycles = if self.mesh.is_some() { 0 } else { self.down_cycles };
        self.send_to_llc(core, line, MessageKind::Control, at + down_cycles)
    }

    /// A message without data of a design leaves the bank of a line for a core; when it is there.
    pub(crate) fn message_from_bank(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        let up_cycles = if self.mesh.is_some() { 0 } else { self.up_cycles };
        self.send_to_core(core, line, MessageKind::Control, at + up_cycles)
    }

    /// The acknowledgement of a line that was pushed down to its bank travels to a core. Where there are no tiles it takes no
    /// time of its own.
    pub(crate) fn acknowledge_push(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        match &mut self.mesh {
            Some(mesh) => mesh.send(End::Bank(line), End::Core(core), MessageKind::Control.bytes(), at),
            None => at,
        }
    }

    /// A message of a core to a controller passes a crossbar to the bank of its line. On a mesh the path to the controllers
    /// charges it from end to end.
    #[inline]
    pub(crate) fn enter_llc(&mut self, core: CoreId, line: LineAddr, kind: MessageKind, at: Cycle) -> Cycle {
        self.crossbar.as_mut().map_or(at, |crossbar| crossbar.send_to_bank(core, line, kind, at))
    }

    /// A message of a controller passes a crossbar from the bank of its line. On a mesh the path has charged it from end to
    /// end.
    #[inline]
    pub(crate) fn enter_core(&mut self, core: CoreId, line: LineAddr, kind: MessageKind, at: Cycle) -> Cycle {
        self.crossbar.as_mut().map_or(at, |crossbar| crossbar.send_to_core(core, line, kind, at))
    }

    /// Cycles that a message of a core takes to the bank of a line before it waits for anything: distance alone.
    #[inline]
    pub(crate) fn cycles_to_llc(&self, core: CoreId, line: LineAddr, kind: MessageKind) -> Cycle {
        self.mesh.as_ref().map_or(0, |mesh| mesh.unloaded_cycles(End::Core(core), End::Bank(line), kind.bytes()))
    }

    pub(crate) fn reset_stats(&mut self) {
        if let Some(crossbar) = &mut self.crossbar {
            crossbar.reset_stats();
        }
        if let Some(mesh) = &mut self.mesh {
            mesh.reset_stats();
        }
    }

    /// Counters of the links.
    pub(crate) fn stats(&self, stats: &mut Stats) {
        if let Some(crossbar) = &self.crossbar {
            crossbar.stats(stats);
        }
        if let Some(mesh) = &self.mesh {
            mesh.stats(stats);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::presets;

    fn interconnect(machine: &str, sets: &[String]) -> Interconnect {
        Interconnect::new(&MachineConfig::parse(machine, presets::text(machine).unwrap(), sets).unwrap())
    }

    /// Lines from bank 15 to core 0, which wait for each other.
    fn sends(on: &mut Interconnect, count: u64) -> Vec<Cycle> {
        (0..count).map(|_| on.send_to_core(CoreId(0), LineAddr(15), MessageKind::Data, 100)).collect()
    }

    #[test]
    fn forks_and_saved_states_have_the_bookings_of_their_original() {
        let crossbar = ["interconnect.topology=crossbar".to_owned()];
        for (machine, sets, cycles) in [("lad-micro19", &[][..], 4), ("tiny", &crossbar, 2)] {
            let mut original = interconnect(machine, sets);
            let first = sends(&mut original, 5);
            assert!(first.windows(2).all(|pair| pair[1] == pair[0] + cycles), "{machine}: {first:?}");
            let mut fork = original.fork();
            let saved = postcard::to_stdvec(&original.state()).unwrap();
            let mut restored = interconnect(machine, sets);
            restored.put_state(postcard::from_bytes(&saved).unwrap());
            let next = sends(&mut original, 3);
            assert_eq!(next[0], first[4] + cycles);
            assert_eq!((sends(&mut fork, 3), sends(&mut restored, 3)), (next.clone(), next));
        }
    }

    #[test]
    fn where_there_are_no_links_messages_take_no_time() {
        let mut uniform = interconnect("tiny", &[]);
        assert!(uniform.mesh().is_none());
        assert_eq!(sends(&mut uniform, 3), [100; 3]);
        assert_eq!(uniform.send_to_llc(CoreId(3), LineAddr(0), MessageKind::Data, 7), 7);
        assert_eq!(uniform.cycles_to_llc(CoreId(3), LineAddr(0), MessageKind::Data), 0);
    }
}
