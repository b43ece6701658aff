//! A machine in a file: all of its state with what it was built from, so that it continues exactly as it would have.
//!
//! The file: the magic, the version of the format and the length of the header (4 bytes each, little-endian), the header
//! (JSON: what the machine is and what runs on it), the state (postcard, compressed with zstd), and the BLAKE3 hash of
//! all before it. The hash finds files that were cut or damaged; a file that was made on purpose is trusted.

use super::Machine;
use super::kept_call_stacks::KeptCallStacks;
use super::scheduler::{DrainReason, InterruptedStep, Scheduler};
use crate::setup::config::MachineConfig;
use crate::setup::pauses::Pauses;
use crate::setup::plan::Plan;
use crate::setup::program::Program;
use crate::setup::request::Prepared;
use crate::statistics::measurements::Measurements;
use crate::system::{System, state};
use durasim_contract::Variant;
use durasim_core::Core;
use durasim_kernel::{Process, SavedProcess, read_file, replace_file};
use durasim_types::{ConfigError, Domain, Error};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"DSIMSNAP";
/// Changes with the form of the header or of anything in the state.
const FORMAT: u32 = 13;
const PREFIX_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
const COMPRESSION_LEVEL: i32 = 3;

/// Description of a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotDescription {
    /// The version that wrote it, which alone can read it.
    pub durasim_version: String,
    /// The machine.
    pub machine: MachineConfig,
    /// The variant of the registry.
    pub design: String,
    /// The persistence domain.
    pub domain: Domain,
    /// The design's parameters, complete.
    pub spec: Value,
    /// The program.
    pub program: ProgramId,
    /// The hash of the pool file that the run started with.
    pub pool_hash: Option<String>,
    /// The snapshot point at which it was taken.
    pub mark: Option<u64>,
    /// Start of the run, if that was not the program's first instruction on this machine.
    pub start: Option<Value>,
    /// Instructions executed.
    pub instructions: u64,
    /// The cycle reached.
    pub cycle: u64,
    /// Length of the state before it was compressed.
    state_bytes: u64,
}

/// Identity of a program: a program continues with what it was started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramId {
    /// Its name.
    pub elf_name: String,
    /// BLAKE3 of its bytes.
    pub elf_digest: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment.
    pub env: Vec<String>,
    /// Seed of everything random.
    pub seed: u64,
}

impl ProgramId {
    fn of(program: &Program) -> Self {
        ProgramId {
            elf_name: program.elf_name.clone(),
            elf_digest: blake3::hash(&program.elf).to_hex().to_string(),
            args: program.args.clone(),
            env: program.env.clone(),
            seed: program.seed,
        }
    }
}

/// A machine at rest in memory.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its description.
    pub about: SnapshotDescription,
    state: Vec<u8>,
    /// BLAKE3 of the file that it was read from.
    file_hash: Option<String>,
}

#[derive(Serialize)]
struct Written<'a> {
    system: state::Written<'a>,
    process: SavedProcess,
    cores: &'a [Core],
    measure: &'a Measurements,
    scheduler: &'a Scheduler,
    pauses: &'a Pauses,
    drain_reasons: &'a [Option<DrainReason>],
    interrupted_step: &'a Option<InterruptedStep>,
}

#[derive(Deserialize)]
struct Read {
    system: state::Read,
    process: SavedProcess,
    cores: Vec<Core>,
    measure: Measurements,
    scheduler: Scheduler,
    pauses: Pauses,
    drain_reasons: Vec<Option<DrainReason>>,
    interrupted_step: Option<InterruptedStep>,
}

fn refuse(problem: impl Into<String>) -> ConfigError {
    ConfigError::new("from", problem)
}

impl Machine {
    /// The machine as it is now, between two steps. It was built from `prepared`.
    ///
    /// # Errors
    /// Open files of the host that cannot be read.
    pub fn save(&self, prepared: &Prepared, mark: Option<u64>) -> Result<Snapshot, Error> {
        let state = Written {
            system: self.system.state(),
            process: self.process.save()?,
            cores: &self.cores,
            measure: &self.measure,
            scheduler: &self.scheduler,
            pauses: &self.pauses,
            drain_reasons: &self.drain_reasons,
            interrupted_step: &self.interrupted_step,
        };
        let state = postcard::to_stdvec(&state).expect("plain data has a binary form");
        let about = SnapshotDescription {
            durasim_version: env!("CARGO_PKG_VERSION").into(),
            machine: prepared.config.clone(),
            design: prepared.plan.variant.name.into(),
            domain: prepared.plan.domain,
            spec: prepared.plan.spec.clone(),
            program: ProgramId::of(&prepared.program),
            pool_hash: prepared.pool_hash.clone(),
            mark,
            start: prepared.start.clone(),
            instructions: self.instructions(),
            cycle: self.cycle(),
            state_bytes: state.len() as u64,
        };
        Ok(Snapshot { about, state, file_hash: None })
    }

    /// The machine of a snapshot, which was taken of one built from the same request ([`Snapshot::fits`]).
    ///
    /// # Errors
    /// A state that does not belong to this machine, and a root folder that is missing or one too many.
    pub fn restore(snapshot: &Snapshot, prepared: &Prepared) -> Result<Machine, Error> {
        let read: Read = match postcard::take_from_bytes(&snapshot.state) {
            Ok((read, [])) => read,
            _ => return Err(refuse("the snapshot does not hold the state of a machine").into()),
        };
        let Prepared { config, plan, program, .. } = prepared;
        if read.cores.len() != usize::from(config.hardware_threads()) {
            return Err(refuse("the snapshot holds a machine with another number of cores").into());
        }
        let mut system = System::new(config, plan)?;
        system.put_state(&plan.variant, &plan.spec, read.system)?;
        Ok(Machine {
            system,
            process: Process::restore(read.process, program.root.as_deref())?,
            cores: read.cores,
            measure: read.measure,
            scheduler: read.scheduler,
            pauses: read.pauses,
            drain_reasons: read.drain_reasons,
            interrupted_step: read.interrupted_step,
            stop_at_snapshot_point: None,
            stops_after_region: false,
            cycles_max: u64::MAX,
            context_switch_cycles: config.core.context_switch_cycles,
            skew_cycles: config.skew_cycles,
            physical_cores: config.cores.into(),
            executes_singly: false,
            inserted: program.inserted.clone(),
            call_stacks: KeptCallStacks::default(),
        })
    }
}

impl Snapshot {
    /// Refuses to continue with another program than the snapshot's, or with other arguments.
    ///
    /// # Errors
    /// The difference.
    pub fn check_program(&self, prepared: &Prepared) -> Result<(), ConfigError> {
        let (old, new) = (&self.about.program, ProgramId::of(&prepared.program));
        if old.elf_digest != new.elf_digest {
            let problem = format!(
                "the snapshot is of another build of {} than {} runs: a snapshot of {} serves variants with the same guest \
                 code only; --pool hands persistent data to other programs",
                old.elf_name, prepared.plan.variant.name, self.about.design
            );
            return Err(refuse(problem));
        }
        let differs = |what: &str, old: &dyn std::fmt::Debug, new: &dyn std::fmt::Debug| {
            Err(refuse(format!("the program of the snapshot was started with {what} {old:?}, not {new:?}")))
        };
        if old.args != new.args {
            return differs("the arguments", &old.args, &new.args);
        }
        if old.env != new.env {
            return differs("the environment", &old.env, &new.env);
        }
        if old.seed != new.seed {
            return differs("the seed", &old.seed, &new.seed);
        }
        Ok(())
    }

    /// Whether the snapshot's machine, design and domain are those of `prepared`, so that it continues exactly.
    pub fn fits(&self, prepared: &Prepared) -> bool {
        let bare = |config: &MachineConfig| MachineConfig {
            name: String::new(),
            description: String::new(),
            design: Default::default(),
            ..config.clone()
        };
        bare(&self.about.machine) == bare(&prepared.config)
            && self.about.design == prepared.plan.variant.name
            && self.about.domain == prepared.plan.domain
            && self.about.spec == prepared.plan.spec
    }

    /// The resolved request of the snapshot's machine, for the program of `prepared`.
    ///
    /// # Errors
    /// A variant that is not in the registry, or does not fit the machine any more.
    pub fn prepared(&self, registry: &[Variant], prepared: &Prepared) -> Result<Prepared, Error> {
        let variant = registry.iter().find(|variant| variant.name == self.about.design);
        let variant =
            variant.ok_or_else(|| refuse(format!("the design {} of the snapshot is unknown", self.about.design)))?;
        let plan = Plan::new(&self.about.machine, variant, self.about.domain)?;
        if plan.spec != self.about.spec {
            return Err(
                refuse(format!("{} has other parameters than when the snapshot was taken", variant.name)).into()
            );
        }
        Ok(Prepared {
            config: self.about.machine.clone(),
            plan,
            program: prepared.program.clone(),
            pool_hash: self.about.pool_hash.clone(),
            start: self.about.start.clone(),
            snapshot_hash: None,
        })
    }

    /// Writes the host file `path`: the whole file or, on any error, none, with an older file left as it was.
    ///
    /// # Errors
    /// The host's.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let host_io = |e: io::Error| Error::HostIo { path: path.display().to_string(), problem: e.to_string() };
        replace_file(path, |out| self.encode(out)).map_err(host_io)
    }

    /// Writes the bytes of the file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn encode(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut hashed = Hashed { out, hasher: blake3::Hasher::new() };
        let header = serde_json::to_vec(&self.about).expect("a header is plain data");
        hashed.write_all(MAGIC)?;
        hashed.write_all(&FORMAT.to_le_bytes())?;
        hashed.write_all(&u32::try_from(header.len()).expect("a header is short").to_le_bytes())?;
        hashed.write_all(&header)?;
        let mut compressed = zstd::Encoder::new(&mut hashed, COMPRESSION_LEVEL)?;
        compressed.write_all(&self.state)?;
        compressed.finish()?;
        let Hashed { out, hasher } = hashed;
        out.write_all(hasher.finalize().as_bytes())
    }

    /// Reads the host file `path`.
    ///
    /// # Errors
    /// A file that cannot be read, that is none of ours, or is truncated or damaged.
    pub fn read(path: &Path) -> Result<Snapshot, Error> {
        let name = path.display();
        let data = read_file(path, MAGIC, u64::MAX).map_err(|e| refuse(format!("{name} cannot be read: {e}")))?;
        Ok(Snapshot::decode(&name.to_string(), &data)?)
    }

    /// Reads the bytes of a file; `name` is used in the sentences of refusals.
    ///
    /// # Errors
    /// Bytes that are no snapshot of ours, are truncated or damaged.
    pub fn decode(name: &str, data: &[u8]) -> Result<Snapshot, ConfigError> {
        let truncated = || refuse(format!("{name} is truncated"));
        let corrupt = || refuse(format!("{name} is truncated or damaged: its contents do not match its checksum"));
        let seen = data.len().min(MAGIC.len());
        if seen == 0 || data[..seen] != MAGIC[..seen] {
            return Err(refuse(format!("{name} is not a snapshot")));
        }
        let word = |at: usize| data.get(at..at + 4).map(|w| u32::from_le_bytes(w.try_into().expect("four bytes")));
        let format = word(8).ok_or_else(truncated)?;
        if format != FORMAT {
            let problem = format!("{name} has snapshot format {format}; this version of durasim reads format {FORMAT}");
            return Err(refuse(problem));
        }
        let body = PREFIX_BYTES + word(12).ok_or_else(truncated)? as usize;
        if data.len() < body + HASH_BYTES {
            return Err(truncated());
        }
        let (content, hash) = data.split_at(data.len() - HASH_BYTES);
        if blake3::hash(content).as_bytes()[..] != *hash {
            return Err(corrupt());
        }
        let about: Value = serde_json::from_slice(&content[PREFIX_BYTES..body]).map_err(|_| corrupt())?;
        let (written_by, ours) = (about["durasim_version"].as_str().unwrap_or("?"), env!("CARGO_PKG_VERSION"));
        if written_by != ours {
            return Err(refuse(format!("{name} was written by durasim {written_by}; this is {ours}")));
        }
        let about: SnapshotDescription = serde_json::from_value(about).map_err(|e| refuse(format!("{name}: {e}")))?;
        let state = zstd::decode_all(&content[body..]).map_err(|_| corrupt())?;
        if state.len() as u64 != about.state_bytes {
            return Err(corrupt());
        }
        let file_hash = blake3::Hash::from_slice(hash).map_err(|_| corrupt())?.to_hex().to_string();
        Ok(Snapshot { about, state, file_hash: Some(file_hash) })
    }

    /// The hash of the file that it was read from; nothing if it was taken just now.
    pub fn file_hash(&self) -> Option<&str> {
        self.file_hash.as_deref()
    }
}

/// Hashes what passes through.
struct Hashed<'a> {
    out: &'a mut dyn Write,
    hasher: blake3::Hasher,
}

impl Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.hasher.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
