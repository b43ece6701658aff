//! Bodies with a bug on purpose, one for each way in which the others notice something: a panic, recovery that believes what
//! it reads, a file outside of the root folder.

use crate::bytes::Bytes;
use crate::recovery::Recoverer;
use crate::system_calls::{Root, make_calls};
use durasim_contract::{
    Backend, CrashImage, Design, ErasedDesign, Geometry, HardwareCost, Hooks, Interface, Locking, Promise, RecoveryCut,
    RecoveryReport, RegionRequest, SpecError, Stateful, Variant,
};
use durasim_designs::Opt;
use durasim_types::{Domain, PhysAddr};
use std::sync::OnceLock;

/// A table of contents whose last length is not checked against the file.
///
/// # Panics
/// On the planted bug.
pub fn parser_with_a_bug(data: &[u8]) {
    let Some(entries) = data.strip_prefix(b"TABLE") else { return };
    let Some((&count, mut entries)) = entries.split_first() else { return };
    for n in 0..count {
        let Some((&len, rest)) = entries.split_first() else { return };
        let len = usize::from(len);
        if n + 1 < count && len > rest.len() {
            return;
        }
        entries = &rest[len..];
    }
}

/// Recovery that writes whatever its log says to wherever it says.
struct Careless;

impl Design for Careless {
    const NAME: &'static str = "careless";
    const HOOKS: Hooks = Hooks::NONE;
    type Spec = <Opt as Design>::Spec;

    fn reserve(_: &Self::Spec, _: &Geometry) -> Vec<RegionRequest> {
        vec![RegionRequest { name: "careless_log", size_bytes: 4096 }]
    }

    fn build(spec: &Self::Spec, geometry: &Geometry) -> Result<impl Stateful, SpecError> {
        Opt::build(spec, geometry)
    }

    fn recover(_: &Self::Spec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        let log = geometry.region("careless_log").base;
        let mut report = RecoveryReport::default();
        for entry in 0..image.read_u64(log) {
            let home = PhysAddr(image.read_u64(log.plus(64 + entry % 32 * 64)));
            image.write(home, &[1; 8])?;
            report.lines_written += 1;
        }
        Ok(report)
    }

    fn cost(spec: &Self::Spec, geometry: &Geometry) -> HardwareCost {
        Opt::cost(spec, geometry)
    }
}

const CARELESS: Variant = Variant {
    name: "careless",
    aliases: &[],
    hardware: ErasedDesign::of::<Careless>(),
    backend: Backend::MARKERS,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Adr],
    promise: Promise::Immediate,
    control: true,
    summary: "A design with a planted bug",
    paper: "none",
    assumptions: &[],
    locking: Locking::Nothing,
    path_faults: &[],
    equivalent_faults: &[],
};

/// A variant whose recovery believes what it reads.
///
/// # Panics
/// On the planted bug.
pub fn careless_recovery(data: &[u8]) {
    static RECOVERER: OnceLock<Recoverer> = OnceLock::new();
    let mut input = Bytes(data);
    // The variant's place in inputs of `recovery`.
    input.byte();
    RECOVERER.get_or_init(|| Recoverer::new(&CARELESS)).check(input);
}

/// System calls of a program whose root is one folder too high.
///
/// # Panics
/// On the planted bug.
pub fn root_too_high(data: &[u8]) {
    make_calls(data, Root::OneTooHigh);
}
