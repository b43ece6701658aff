//! A machine made smaller by one factor, so that a short run reaches the steady state of a long one: data caches, and what
//! the design says of its own that shrinks with them ([`durasim_contract::Design::SCALED`]). Programs shrink their data by
//! themselves. Latencies, queues of the controllers and everything that one transaction fills stay.

use super::config::MachineConfig;
use durasim_contract::Variant;
use durasim_types::ConfigError;
use serde_json::Value;

/// The largest divisor; a machine that is smaller by more is another machine.
const DIVISOR_MAX: u64 = 1024;

/// The overrides that make `config` smaller by `divisor`, for a run of `variant`. Sizes that are not zero stay above it.
///
/// # Errors
/// A divisor out of range, or a level whose size it does not divide.
pub(crate) fn overrides(config: &MachineConfig, variant: &Variant, divisor: u64) -> Result<Vec<String>, ConfigError> {
    if !(1..=DIVISOR_MAX).contains(&divisor) {
        return Err(ConfigError::new("shrink", format!("{divisor} is not between 1 and {DIVISOR_MAX}")));
    }
    let mut list = Vec::new();
    for (name, level) in config.data_caches() {
        if !level.size_bytes.is_multiple_of(divisor) {
            let problem = format!("{} bytes are not a multiple of the divisor {divisor}", level.size_bytes);
            return Err(ConfigError::new(format!("{name}.size_bytes"), problem));
        }
        list.push(format!("{name}.size_bytes={}", level.size_bytes / divisor));
    }
    let hardware = &variant.hardware;
    let defaults = (hardware.default_spec)();
    let section = config.design.get(hardware.name);
    for &field in hardware.scaled {
        let given = section.and_then(|section| section.get(field)).or_else(|| defaults.get(field));
        let value = given.and_then(Value::as_u64).expect("what shrinks is a number of the design's parameters");
        let smaller = if value == 0 { 0 } else { (value / divisor).max(1) };
        list.push(format!("design.{}.{field}={smaller}", hardware.name));
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::presets;
    use durasim_designs::{VARIANTS, variant};

    fn preset(overrides: &[String]) -> MachineConfig {
        MachineConfig::parse("hercules-tecs23-modern", presets::text("hercules-tecs23-modern").unwrap(), overrides)
            .unwrap()
    }

    #[test]
    fn caches_and_what_designs_name_shrink_and_nothing_else() {
        let whole = preset(&[]);
        let list = overrides(&whole, variant("hercules").unwrap(), 8).unwrap();
        let small = preset(&list);
        assert_eq!((small.l1d.size_bytes, small.l2.unwrap().size_bytes, small.llc.size_bytes), (4096, 32768, 2 << 20));
        assert_eq!((small.l1i, small.pmem.clone()), (whole.l1i, whole.pmem.clone()));
        assert_eq!(small.design["hercules"]["ewpq_entries"], 64);
        assert_eq!(small.design["hercules"]["migration_period_instructions"], 375_000);
        assert_eq!(small.design["tc"], whole.design["tc"]);
    }

    /// Every name is that of a number, for every variant, also where the machine's file sets it.
    #[test]
    fn every_variant_can_be_made_smaller() {
        for variant in VARIANTS {
            let list = overrides(&preset(&[]), variant, 8).unwrap();
            assert_eq!(list.len(), 3 + variant.hardware.scaled.len(), "{}", variant.name);
            crate::setup::plan::Plan::new(&preset(&list), variant, variant.default_domain()).unwrap();
        }
        let set = ["design.hercules.ewpq_entries=80".to_owned(), "design.hercules.log_extension_bytes=0".to_owned()];
        let list = overrides(&preset(&set), variant("hercules").unwrap(), 8).unwrap();
        assert!(list.contains(&"design.hercules.ewpq_entries=10".to_owned()), "{list:?}");
        assert!(list.contains(&"design.hercules.log_extension_bytes=0".to_owned()), "{list:?}");
    }

    #[test]
    fn divisors_that_make_no_machine_are_refused() {
        let refused = |divisor| overrides(&preset(&[]), &VARIANTS[0], divisor).unwrap_err().to_string();
        assert!(refused(0).contains("not between 1 and 1024"));
        assert!(refused(1025).contains("not between 1 and 1024"));
        assert!(refused(3).contains("not a multiple of the divisor 3"));
    }
}
