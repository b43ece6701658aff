//! The causes of violations, as JSON users see them.

use super::missing_step::Missing;
use serde::{Deserialize, Serialize};

/// A function with a place in its source; null is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Frame {
    /// The function.
    pub function: Option<String>,
    /// The file, as the compiler was given it.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its address.
    pub pc: u64,
    /// Its place in the source.
    pub at: Frame,
    /// The functions into which the compiler has put that one, the innermost first.
    pub inlined_into: Vec<Frame>,
    /// The places of the calls that have led to it, the innermost first, with the functions into which the compiler has put
    /// them. They end where the program has no call frame information; at most 64 calls are followed.
    pub callers: Vec<Frame>,
    /// The guest's thread.
    pub thread: u32,
}

/// A store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorePlace {
    /// Its instruction.
    #[serde(flatten)]
    pub place: Place,
    /// Its address in persistent memory.
    pub address: u64,
    /// Its offset in the declared data; null if it is outside.
    pub data_offset: Option<u64>,
    /// Its length in bytes.
    pub size_bytes: u8,
    /// The stored value, in hexadecimal.
    pub value: String,
    /// Its transaction; null outside of any.
    pub tx: Option<u64>,
}

/// The step that relied on a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relied {
    /// `commit`: the acknowledgement of its transaction; `fence`: one that has waited for the clean of its line; `store`: a
    /// store that is durable, without which all would be well.
    pub kind: String,
    /// Its instruction.
    #[serde(flatten)]
    pub place: Place,
    /// The clean that made that store durable; null if its line was evicted, or if it is no store.
    pub cleaned_by: Option<Place>,
}

/// An operation that the machine has inserted to test a cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsertedOperation {
    /// `clean`, `clean-and-fence` or `fence`.
    pub what: String,
    /// The instruction after which it follows.
    #[serde(flatten)]
    pub place: Place,
}

/// The campaign with these operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tested {
    /// Its trials.
    pub trials: u64,
    /// Its violations, of all causes.
    pub violations: u64,
}

/// A cause of violations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Violations that have it, among those that were examined.
    pub violations: u64,
    /// The first of them, as `--replay` takes it.
    pub first: String,
    /// `lost`: the stores are not in the image; `torn`: a line that the medium was writing was torn; `later`: they come
    /// after what relied on them was durable; `early`: they are in the image and should not be.
    pub what: String,
    /// The missing step.
    pub missing: Missing,
    /// The stores, one for each line of the source. Without any one of them the image would still be wrong.
    pub stores: Vec<StorePlace>,
    /// The step that relied on them; null if that is not known.
    pub relied: Option<Relied>,
    /// The operations that the machine inserts; empty if no clean and no fence would do.
    pub inserted: Vec<InsertedOperation>,
    /// Whether the violations vanish with these operations.
    pub confirmed: bool,
    /// The campaign that tested it; null if none has.
    pub tested: Option<Tested>,
    /// The reason why a cause is not confirmed; null if it is.
    pub unconfirmed_because: Option<String>,
}

/// The causes of the violations of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Causes {
    /// In the order in which they were found.
    pub found: Vec<Cause>,
    /// Violations that were examined.
    pub examined: u64,
    /// Those of them without a cause among the stores.
    pub unexplained: u64,
    /// Violations that were not examined.
    pub not_examined: u64,
    /// A sentence about what the debug information of the program lacks; null if it names lines.
    pub debug_information: Option<String>,
    /// The reason why no cause was looked for; null if it was.
    pub not_searched: Option<String>,
}
