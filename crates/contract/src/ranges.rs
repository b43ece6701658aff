//! Ranges of parameters: stated once, at the field of the parameters, where the schema of machine files and lists of
//! parameters have them from.

use crate::SpecError;
use schemars::{JsonSchema, schema_for};
use serde::Serialize;

/// Refuses a number outside of the range that `#[schemars(range(..))]` gives its field.
///
/// # Errors
/// The first such field, in the order of their names.
pub fn check_ranges<S: Serialize + JsonSchema>(spec: &S) -> Result<(), SpecError> {
    let values = serde_json::to_value(spec).expect("parameters are plain data");
    let schema = schema_for!(S).to_value();
    for (field, value) in values.as_object().into_iter().flatten() {
        let bound = |name: &str| schema["properties"][field][name].as_u64();
        let (Some(low), Some(high), Some(value)) = (bound("minimum"), bound("maximum"), value.as_u64()) else {
            continue;
        };
        if !(low..=high).contains(&value) {
            return Err(SpecError::new(field.as_str(), format!("{value} is not between {low} and {high}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, JsonSchema)]
    struct Spec {
        #[schemars(range(min = 2, max = 1u64 << 20))]
        entries: u32,
        is_wide: bool,
        /// Any.
        cycles: u64,
    }

    #[test]
    fn a_number_out_of_its_range_is_refused_with_both_ends() {
        let of = |entries| check_ranges(&Spec { entries, is_wide: true, cycles: u64::MAX });
        assert_eq!(of(2), Ok(()));
        assert_eq!(of(1 << 20), Ok(()));
        for entries in [1, (1 << 20) + 1] {
            let refused = of(entries).unwrap_err();
            assert_eq!(refused, SpecError::new("entries", format!("{entries} is not between 2 and 1048576")));
        }
    }
}
