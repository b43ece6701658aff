//! The saved form of arrays of any length: serde itself knows those of up to 32 elements.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

pub(crate) fn serialize<T: Serialize, S: Serializer, const N: usize>(
    array: &[T; N],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    array.as_slice().serialize(serializer)
}

pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>, const N: usize>(
    deserializer: D,
) -> Result<[T; N], D::Error> {
    let values = Vec::deserialize(deserializer)?;
    values.try_into().map_err(|v: Vec<T>| D::Error::custom(format!("{} values where {N} belong", v.len())))
}
