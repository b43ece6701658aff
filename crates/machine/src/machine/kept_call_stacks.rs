//! The call stacks of the instructions whose requests a journal gets, for causes of violations.

use super::Machine;
use crate::setup::memory_map::is_pmem;
use crate::system::System;
use durasim_core::{EarlierStores, InstructionOrigin};
use durasim_kernel::{CallStacks, Process, StackRegisters, Viewed};
use durasim_types::CallStackId;
use std::sync::{Arc, Mutex};

/// The call stacks that a machine keeps, if it keeps them. A fork does not.
#[derive(Default)]
pub(crate) struct KeptCallStacks(Option<Arc<Mutex<CallStacks>>>);

impl KeptCallStacks {
    /// The calls that have led to this instruction. Stores leave a core in their order, so memory has those that were made before
    /// the instruction, and `earlier` the others.
    #[inline]
    pub fn find(
        &self,
        system: &System,
        process: &mut Process,
        origin: &InstructionOrigin,
        earlier: Option<&dyn EarlierStores>,
    ) -> CallStackId {
        match &self.0 {
            None => CallStackId::default(),
            Some(call_stacks) => unwind(call_stacks, system, process, origin, earlier),
        }
    }
}

#[cold]
fn unwind(
    call_stacks: &Mutex<CallStacks>,
    system: &System,
    process: &mut Process,
    origin: &InstructionOrigin,
    earlier: Option<&dyn EarlierStores>,
) -> CallStackId {
    let InstructionOrigin { pc, return_address, stack_pointer, frame_pointer } = *origin;
    let space = process.space();
    let load = |addr: u64| {
        let place = space.view(addr).and_then(Viewed::frame).filter(|place| !is_pmem(place.line()))?;
        let mut bytes = system.newest_word(place)?;
        if let Some(earlier) = earlier {
            earlier.put_over(place, &mut bytes);
        }
        Some(u64::from_le_bytes(bytes))
    };
    let registers = StackRegisters { return_address, stack_pointer, frame_pointer };
    call_stacks.lock().expect("no thread panics while it unwinds").find(pc, registers, load)
}

impl Machine {
    /// From now on a journal gets the call stacks of the instructions of its steps, which are found there.
    pub fn keep_call_stacks(&mut self, call_stacks: Arc<Mutex<CallStacks>>) {
        self.call_stacks.0 = Some(call_stacks);
    }
}
