//! Any bytes as a snapshot of a machine, and any state as that of a machine: refused with one sentence, or a machine.

use crate::assert_is_a_sentence;
use crate::bytes::Bytes;
use crate::marks::reach;
use crate::pool_file::sealed;
use crate::small_program::small_program;
use durasim_designs::VARIANTS;
use durasim_machine::{Captured, Machine, MachineConfig, Plan, Prepared, Program, Snapshot, presets};
use std::sync::OnceLock;

const MAGIC: &[u8] = b"DSIMSNAP";
const PREFIX_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
const INSTRUCTIONS: u64 = 200;

/// A machine of the variant of that number that has executed a little, in the form of a file, and what it was built from.
///
/// # Panics
/// If there is no such variant.
#[must_use]
pub fn quiesced_machine(variant: usize) -> (Prepared, Vec<u8>) {
    let config = MachineConfig::parse("tiny", presets::text("tiny").expect("a preset"), &[]).expect("a preset");
    let plan =
        Plan::new(&config, &VARIANTS[variant], VARIANTS[variant].default_domain()).expect("a preset fits its variants");
    let mut elf = small_program();
    elf.truncate(0x200);
    // lui a0, DATA; then in a loop: sd a1, 0(a0); addi a1, a1, 1; addi a0, a0, 8.
    elf.extend([0x0020_0537u32, 0x00b5_3023, 0x0015_8593, 0x0085_0513, 0xff5f_f06f].map(u32::to_le_bytes).concat());
    let file_bytes = elf.len() as u64;
    elf[64 + 32..64 + 40].copy_from_slice(&file_bytes.to_le_bytes());
    let program = Program { elf, elf_name: "program".into(), ..Program::default() };
    let prepared = Prepared { config, plan, program, pool_hash: None, start: None, snapshot_hash: None };
    let mut machine = Machine::new(&prepared.config, &prepared.plan, &prepared.program).expect("it can be built");
    machine.run(Some(INSTRUCTIONS), &mut Captured::default()).expect("it runs");
    let mut file = Vec::new();
    machine.save(&prepared, None).expect("no file is open").encode(&mut file).expect("memory takes everything");
    (prepared, file)
}

/// The files of machines at rest, taken apart.
struct AtRest {
    prepared: Prepared,
    head: Vec<u8>,
    state: Vec<u8>,
}

fn at_rest() -> &'static [AtRest] {
    static AT_REST: OnceLock<Vec<AtRest>> = OnceLock::new();
    AT_REST.get_or_init(|| {
        (0..VARIANTS.len())
            .map(|variant| {
                let (prepared, file) = quiesced_machine(variant);
                let body = PREFIX_BYTES + Bytes(&file[12..]).number(4) as usize;
                let state = zstd::decode_all(&file[body..file.len() - HASH_BYTES]).expect("it was compressed");
                AtRest { prepared, head: file[..body].to_vec(), state }
            })
            .collect()
    })
}

/// Snapshot files, as they are and with a right checksum; and files whose state has been changed (the first byte says of
/// the variant of the machine, then places of three bytes and their new contents).
///
/// # Panics
/// If a bug is found.
pub fn snapshot_file(data: &[u8]) {
    if data.starts_with(&MAGIC[..1]) {
        read(data, &at_rest()[0].prepared);
        read(&sealed(data), &at_rest()[0].prepared);
        return;
    }
    let mut input = Bytes(data);
    let AtRest { prepared, head, state } = &at_rest()[usize::from(input.byte()) % VARIANTS.len()];
    let mut state = state.clone();
    while !input.is_over() {
        let at = input.number(3) as usize % state.len();
        state[at] = input.byte();
    }
    let compressed = zstd::encode_all(&state[..], 1).expect("memory takes everything");
    let file = [head.as_slice(), &compressed, &[0; HASH_BYTES]].concat();
    read(&sealed(&file), prepared);
}

fn read(file: &[u8], prepared: &Prepared) {
    let snapshot = match Snapshot::decode("snapshot", file) {
        Ok(snapshot) => snapshot,
        Err(refused) => {
            reach("snapshot refused");
            return assert_is_a_sentence(&refused.to_string());
        }
    };
    let mut written = Vec::new();
    snapshot.encode(&mut written).expect("memory takes everything");
    let again = Snapshot::decode("snapshot", &written).expect("what was written can be read");
    assert_eq!(again.about, snapshot.about);
    // Names of programs come from the file and may have line breaks.
    if let Err(refused) = snapshot.check_program(prepared) {
        assert!(!refused.problem.is_empty());
    }
    let own = match snapshot.prepared(VARIANTS, prepared) {
        Ok(own) => own,
        Err(refused) => return assert!(!refused.to_string().is_empty()),
    };
    if !snapshot.fits(prepared) {
        return;
    }
    match Machine::restore(&snapshot, &own) {
        Ok(_) => reach("machine restored"),
        Err(refused) => {
            reach("state refused");
            assert_is_a_sentence(&refused.to_string());
        }
    }
}
