//! Ranges of parameters.

use durasim_types::ConfigError;

/// Refuses a value outside `low..=high`.
pub(crate) fn in_range(section: &str, name: &str, value: u64, low: u64, high: u64) -> Result<(), ConfigError> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(ConfigError::new(format!("{section}.{name}"), format!("{value} is not between {low} and {high}")))
    }
}
