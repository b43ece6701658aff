//! Call stacks of the threads of a program, unwound as the call frame information in its ELF says (DWARF 5, section 6.4).

use crate::source_lines::{base_of, section};
use addr2line::gimli::{BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EndianSlice, LittleEndian as Endian};
use addr2line::gimli::{Register, RegisterRule, UnwindContext, UnwindSection, UnwindTableRow};
use durasim_types::CallStackId;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The register of the return address.
const RA: Register = Register(1);
/// The stack pointer.
const SP: Register = Register(2);
/// The frame pointer of a function that has one: s0.
const FP: Register = Register(8);
/// Calls that are followed. Deeper recursion is cut.
const CALLS_MAX: usize = 64;

/// The registers with which unwinding begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackRegisters {
    /// ra.
    pub return_address: u64,
    /// sp.
    pub stack_pointer: u64,
    /// s0.
    pub frame_pointer: u64,
}

/// The call stacks that the steps of a run have.
#[derive(Debug, Default)]
pub struct CallStacks {
    elf: Vec<u8>,
    /// Those that `.debug_frame` describes.
    debug_functions: Functions,
    /// Those that `.eh_frame` describes.
    eh_functions: Functions,
    /// The address of the program's first byte in its own addresses.
    base: u64,
    /// The frames of the instructions that have been asked about.
    frames: BTreeMap<u64, Option<Frame>>,
    /// By number, without the empty one: return addresses, the innermost first.
    stacks: Vec<Vec<u64>>,
    numbers: BTreeMap<Vec<u64>, CallStackId>,
}

/// The functions that a section of call frame information describes, by address: the first address, the one after the last, and
/// the offset of the function's entry (FDE) in the section.
#[derive(Debug, Default)]
struct Functions(Vec<(u64, u64, usize)>);

/// The frame of a function at one of its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    /// The register that the frame is found from, and the offset of the caller's stack pointer from it (the CFA).
    base: (Register, i64),
    return_address: Place,
    frame_pointer: Place,
}

/// The place of what a register held in the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Still in the register.
    Register,
    /// On the stack, at this offset from the caller's stack pointer.
    Stack(i64),
    /// Nowhere.
    Unknown,
}

impl Place {
    fn of(rule: Option<RegisterRule<usize>>) -> Self {
        match rule {
            None | Some(RegisterRule::SameValue) => Place::Register,
            Some(RegisterRule::Offset(offset)) => Place::Stack(offset),
            // An undefined return address ends the stack. No compiler uses the others for these registers.
            Some(_) => Place::Unknown,
        }
    }
}

impl Frame {
    fn of(row: &UnwindTableRow<usize>) -> Option<Self> {
        match *row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } if register == SP || register == FP => Some(Frame {
                base: (register, offset),
                return_address: Place::of(row.register(RA)),
                frame_pointer: Place::of(row.register(FP)),
            }),
            _ => None,
        }
    }
}

impl CallStacks {
    /// The stacks of a program; none yet.
    pub fn of(elf: Vec<u8>) -> Self {
        let base = base_of(&elf);
        // The library checks its bounds; a mistake in it would be no reason to lose a verdict.
        let [debug_functions, eh_functions] = catch_unwind(|| {
            let debug = debug_frame(&elf).map(|(frames, bases)| Functions::of(&frames, &bases));
            let eh = eh_frame(&elf).map(|(frames, bases)| Functions::of(&frames, &bases));
            [debug, eh].map(Option::unwrap_or_default)
        })
        .unwrap_or_default();
        CallStacks { elf, debug_functions, eh_functions, base, ..CallStacks::default() }
    }

    /// The return addresses of a stack, the innermost first.
    pub fn return_addresses(&self, call_stack: CallStackId) -> &[u64] {
        let index = (call_stack.0 as usize).checked_sub(1);
        index.and_then(|index| self.stacks.get(index)).map_or(&[], Vec::as_slice)
    }

    /// The stack of a thread that executes the instruction at `pc` with these registers; `load` gives eight bytes of its memory.
    /// It ends where the call frame information does: in a function without one, or in the outermost one.
    pub fn find(&mut self, pc: u64, registers: StackRegisters, load: impl Fn(u64) -> Option<u64>) -> CallStackId {
        let mut found = Vec::new();
        let (mut pc, mut registers) = (pc, registers);
        while found.len() < CALLS_MAX {
            let Some(caller) = self.caller(pc, registers, found.is_empty(), &load) else { break };
            found.push(caller.return_address);
            // The call is before the address to which it returns.
            (pc, registers) = (caller.return_address - 1, caller);
        }
        if found.is_empty() {
            return CallStackId::default();
        }
        if let Some(&known) = self.numbers.get(&found) {
            return known;
        }
        self.stacks.push(found.clone());
        let number = CallStackId(u32::try_from(self.stacks.len()).expect("a run has fewer stacks"));
        self.numbers.insert(found, number);
        number
    }

    /// The registers of the caller at its call.
    fn caller(
        &mut self,
        pc: u64,
        registers: StackRegisters,
        is_innermost: bool,
        load: impl Fn(u64) -> Option<u64>,
    ) -> Option<StackRegisters> {
        let frame = self.frame(pc)?;
        let from = if frame.base.0 == SP { registers.stack_pointer } else { registers.frame_pointer };
        let stack_pointer = from.wrapping_add_signed(frame.base.1);
        let before = |place: Place, register: u64| match place {
            Place::Register => Some(register),
            Place::Stack(offset) => load(stack_pointer.wrapping_add_signed(offset)),
            Place::Unknown => None,
        };
        // A function that has called another one no longer has its return address in the register.
        let is_overwritten = !is_innermost && frame.return_address == Place::Register;
        let return_address = before(frame.return_address, registers.return_address).filter(|_| !is_overwritten)?;
        let frame_pointer = before(frame.frame_pointer, registers.frame_pointer).unwrap_or_default();
        // Stacks grow down: what does not lead up is no stack.
        let leads_up = stack_pointer > registers.stack_pointer || is_innermost;
        (return_address > 0 && leads_up).then_some(StackRegisters { return_address, stack_pointer, frame_pointer })
    }

    fn frame(&mut self, pc: u64) -> Option<Frame> {
        if let Some(&known) = self.frames.get(&pc) {
            return known;
        }
        let address = pc.wrapping_sub(self.base);
        let frame = catch_unwind(AssertUnwindSafe(|| self.frame_at(address))).ok().flatten();
        self.frames.insert(pc, frame);
        frame
    }

    /// The frame of the function at an address, in the program's own addresses.
    fn frame_at(&self, address: u64) -> Option<Frame> {
        let debug =
            debug_frame(&self.elf).and_then(|(frames, bases)| self.debug_functions.frame_at(&frames, &bases, address));
        debug.or_else(|| {
            let (frames, bases) = eh_frame(&self.elf)?;
            self.eh_functions.frame_at(&frames, &bases, address)
        })
    }
}

impl Functions {
    fn of<'a, S: UnwindSection<EndianSlice<'a, Endian>>>(frames: &S, bases: &BaseAddresses) -> Self {
        let mut functions = Vec::new();
        let mut entries = frames.entries(bases);
        // The first entry that cannot be read ends the section: its length is not known.
        while let Ok(Some(entry)) = entries.next() {
            if let CieOrFde::Fde(entry) = entry
                && let Ok(function) = entry.parse(S::cie_from_offset)
            {
                functions.push((function.initial_address(), function.end_address(), function.offset()));
            }
        }
        functions.sort_unstable();
        Functions(functions)
    }

    /// The frame of the function at an address, if this section has it.
    fn frame_at<'a, S: UnwindSection<EndianSlice<'a, Endian>>>(
        &self,
        frames: &S,
        bases: &BaseAddresses,
        address: u64,
    ) -> Option<Frame> {
        let before = self.0.partition_point(|&(start, ..)| start <= address);
        let &(_, end, offset) = self.0[..before].last()?;
        if address >= end {
            return None;
        }
        let function = frames.fde_from_offset(bases, S::Offset::from(offset), S::cie_from_offset).ok()?;
        let mut context = UnwindContext::new();
        let row = function.unwind_info_for_address(frames, bases, &mut context, address).ok()?;
        Frame::of(row)
    }
}

fn debug_frame(elf: &[u8]) -> Option<(DebugFrame<EndianSlice<'_, Endian>>, BaseAddresses)> {
    let (_, bytes) = section(elf, b".debug_frame")?;
    Some((DebugFrame::new(bytes, Endian), bases_of(elf)))
}

fn eh_frame(elf: &[u8]) -> Option<(EhFrame<EndianSlice<'_, Endian>>, BaseAddresses)> {
    let (base, bytes) = section(elf, b".eh_frame")?;
    Some((EhFrame::new(bytes, Endian), bases_of(elf).set_eh_frame(base)))
}

/// The addresses that call frame information counts from.
fn bases_of(elf: &[u8]) -> BaseAddresses {
    BaseAddresses::default().set_text(section(elf, b".text").map_or(0, |(base, _)| base))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTERS: StackRegisters =
        StackRegisters { return_address: 0x30, stack_pointer: 0x100, frame_pointer: 0x180 };

    fn stacks(frames: [(u64, Option<Frame>); 3]) -> CallStacks {
        CallStacks { frames: frames.into(), ..CallStacks::of(Vec::new()) }
    }

    fn frame(base: (Register, i64), return_address: Place, frame_pointer: Place) -> Option<Frame> {
        Some(Frame { base, return_address, frame_pointer })
    }

    #[test]
    fn a_leaf_has_its_return_address_in_the_register_and_its_callers_on_the_stack() {
        let mut stacks = stacks([
            (0x10, frame((SP, 0), Place::Register, Place::Register)),
            // Its frame is found from the frame pointer.
            (0x2f, frame((FP, 0), Place::Stack(-8), Place::Stack(-16))),
            (0x4f, frame((SP, 32), Place::Unknown, Place::Register)),
        ]);
        let load = |addr| [(0x178, 0x50), (0x170, 0x1f0)].into_iter().find(|(at, _)| *at == addr).map(|(_, word)| word);
        let found = stacks.find(0x10, REGISTERS, load);
        assert_eq!(stacks.return_addresses(found), [0x30, 0x50]);
        assert_eq!(stacks.find(0x10, REGISTERS, load), found, "equal stacks have one number");
        assert_eq!(stacks.return_addresses(CallStackId::default()), [0; 0]);
    }

    #[test]
    fn a_stack_that_leads_nowhere_ends() {
        let same = (0x2f, frame((SP, 0), Place::Stack(-8), Place::Register));
        let mut looping = stacks([(0x10, frame((SP, 0), Place::Register, Place::Register)), same, (0x4f, None)]);
        let found = looping.find(0x10, REGISTERS, |_| Some(0x30));
        assert_eq!(looping.return_addresses(found), [0x30], "the second frame is no further up");
        let unmapped = looping.find(0x2f, REGISTERS, |_| None);
        assert_eq!(unmapped, CallStackId::default());
    }

    #[test]
    fn a_program_without_call_frame_information_has_no_stacks() {
        let mut stacks = CallStacks::of(b"no ELF".to_vec());
        assert_eq!(stacks.find(0x10, REGISTERS, |_| Some(0x30)), CallStackId::default());
    }
}
