//! A variant fitted into a machine: the design's parameters, checked, and the machine's shape with the design in it.

use super::config::{CacheConfig, MachineConfig};
use super::memory_map::PMEM_BASE;
use durasim_contract::{ActiveFault, Checks, Geometry, Hooks, SpecError, Variant};
use durasim_memory::WritePolicy;
use durasim_types::{Clock, ConfigError, Domain, PAGE_BYTES};
use serde_json::Value;
use std::sync::Arc;

/// The parameters of a variant on a machine, resolved and checked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The variant.
    pub variant: Variant,
    /// The domain of the machine.
    pub domain: Domain,
    /// The design's parameters, complete.
    pub spec: Value,
    /// The machine's shape with the design in it.
    pub geometry: Geometry,
    /// The design's checks of accesses, if it has any.
    pub checks: Option<Arc<dyn Checks>>,
}

/// A policy that leaves accepted writes in the queue is for queues that survive.
fn refuse_writes_that_stay(config: &MachineConfig, domain: Domain) -> Result<(), ConfigError> {
    if config.pmem.controller.write_policy != Some(WritePolicy::Gem5) || domain.queue_is_durable() {
        return Ok(());
    }
    let problem =
        format!("'gem5' leaves writes in the queue until others come, and {domain} waits for the media to have them");
    Err(ConfigError::new("pmem.controller.write_policy", problem))
}

impl Plan {
    /// Fits `variant` into the machine.
    ///
    /// # Errors
    /// Parameters of the design that are unknown or out of range, regions that do not fit.
    pub fn new(config: &MachineConfig, variant: &Variant, domain: Domain) -> Result<Self, ConfigError> {
        let hardware = &variant.hardware;
        if domain == Domain::Bbb && hardware.hooks != Hooks::NONE {
            let problem = format!(
                "{} keeps several versions of a line, which the persist buffers of {domain} cannot hold",
                hardware.name
            );
            return Err(ConfigError::new("domain", problem));
        }
        if config.skew_cycles > 0 && variant.backend.compares_clocks {
            let problem = format!(
                "{} orders transactions by the cycle counts of their cores, so no core may run ahead: it has to be 0",
                variant.name
            );
            return Err(ConfigError::new("skew_cycles", problem));
        }
        refuse_writes_that_stay(config, domain)?;
        let refuse = |e: SpecError| refused_by(hardware.name, e);
        let mut spec = (hardware.default_spec)();
        if let Some(section) = config.design.get(hardware.name) {
            let fields = spec.as_object_mut().expect("parameters are an object");
            for (key, value) in section {
                fields.insert(key.clone(), value.clone());
            }
        }
        (hardware.check)(&spec).map_err(refuse)?;
        let pmem_bytes = config.pmem.capacity_mib << 20;
        let mut geometry = Geometry {
            cores: config.hardware_threads(),
            controllers: config.pmem.controllers,
            domain,
            clock: Clock { frequency_mhz: config.frequency_mhz },
            l1d: config.l1d.geometry(),
            l2: config.l2.as_ref().map(CacheConfig::geometry),
            llc: config.llc.geometry(),
            llc_ports: None,
            llc_banks: config.interconnect.addressed_llc_banks(),
            interleave_bytes: config.pmem.interleave_bytes,
            write_queue_entries: config.pmem.controller.write_queue_entries,
            inclusion: config.interconnect.inclusion.into(),
            pmem_base: PMEM_BASE,
            pmem_bytes,
            pmem_data_bytes: pmem_bytes,
            regions: Vec::new(),
            planted: ActiveFault::NONE,
        };
        (hardware.adapt)(&spec, &mut geometry).map_err(refuse)?;
        let requests = (hardware.reserve)(&spec, &geometry).map_err(refuse)?;
        let sizes: Vec<u64> = requests.iter().map(|r| r.size_bytes.next_multiple_of(PAGE_BYTES)).collect();
        let reserved: u64 = sizes.iter().sum();
        if reserved + PAGE_BYTES > pmem_bytes {
            let problem = format!("{} reserves {reserved} bytes of {pmem_bytes}, nothing is left", hardware.name);
            return Err(ConfigError::new("pmem.capacity_mib", problem));
        }
        geometry.pmem_data_bytes = pmem_bytes - reserved;
        let mut base = PMEM_BASE.plus(geometry.pmem_data_bytes);
        for (request, size_bytes) in requests.iter().zip(sizes) {
            geometry.regions.push(durasim_contract::PmRegion { name: request.name, base, size_bytes });
            base = base.plus(size_bytes);
        }
        if geometry.inclusion == durasim_contract::Inclusion::Exclusive {
            // A design that could not work in such a hierarchy gives its reason.
            (hardware.build)(&spec, &geometry).map_err(refuse)?;
            let problem = "exclusive caches are not supported; choose inclusive or non-inclusive";
            return Err(ConfigError::new("interconnect.inclusion", problem));
        }
        let checks = checks_of(variant, &spec, &geometry)?;
        let plan = Plan { variant: *variant, domain, spec, geometry, checks };
        if config.threads_per_core > 1 { plan.check_shared_cores() } else { Ok(plan) }
    }

    /// Refuses what has structures beside each core, which two threads would share.
    fn check_shared_cores(self) -> Result<Self, ConfigError> {
        let hardware = &self.variant.hardware;
        let has_others = hardware.hooks != Hooks::NONE && !hardware.hooks.has(Hooks::HARDWARE_TX);
        let what = match self.domain {
            _ if has_others || self.checks.is_some() => hardware.name.to_owned(),
            Domain::Bbb => self.domain.to_string(),
            _ => return Ok(self),
        };
        let problem = format!("{what} has structures beside each core, which one hardware thread uses: it has to be 1");
        Err(ConfigError::new("threads_per_core", problem))
    }

    /// Plants a fault in the design: for `durasim mutation` alone.
    ///
    /// # Errors
    /// The variant's hardware has no fault of this name.
    pub fn with_planted_fault(mut self, name: &str) -> Result<Self, ConfigError> {
        let known = || self.variant.planted().map(|p| p.name).collect::<Vec<_>>().join(", ");
        let fault = self.variant.planted().find(|p| p.name == name).ok_or_else(|| {
            ConfigError::new("planted", format!("{} has no fault '{name}' (allowed: {})", self.variant.name, known()))
        })?;
        self.geometry.planted = fault.fault();
        self.checks = checks_of(&self.variant, &self.spec, &self.geometry)?;
        Ok(self)
    }
}

fn checks_of(variant: &Variant, spec: &Value, geometry: &Geometry) -> Result<Option<Arc<dyn Checks>>, ConfigError> {
    let checks = (variant.hardware.checks)(spec, geometry).map_err(|e| refused_by(variant.hardware.name, e))?;
    Ok(checks.map(Arc::from))
}

/// The refusal of a design, with its place in the machine file.
pub(crate) fn refused_by(design: &str, e: SpecError) -> ConfigError {
    let field = match e.field.as_str() {
        "" => format!("design.{design}"),
        field => format!("design.{design}.{field}"),
    };
    ConfigError::new(field, e.problem)
}
