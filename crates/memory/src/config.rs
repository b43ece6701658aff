//! Parameters of a memory: its controllers and its media.

use crate::media::MediaConfig;
use crate::range::in_range;
use durasim_types::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// More controllers than any memory may have.
pub const CONTROLLERS_MAX: u16 = 8;

/// When writes leave the write pending queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WritePolicy {
    /// A write starts as soon as its bank and the channel are free, whatever the reads of other banks do. Reads go first
    /// in that they take their bank when they arrive. There is no drain.
    #[default]
    WhenFree,
    /// A write starts only while no read waits or is in service, or while the queue drains. A drain begins when the
    /// queue is filled to a high threshold and ends when it is down to a low one; reads that arrive meanwhile wait
    /// until its last write has started. TC (DAC 2017), table 2, has this policy.
    ReadFirst,
}

/// The queues of a controller. Every controller of a memory has its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ControllerConfig {
    /// Reads in flight at most.
    pub read_queue_entries: u32,
    /// Entries of the write pending queue.
    pub write_queue_entries: u32,
    /// Whether a write joins a waiting entry of the same line and cause.
    pub coalesce_writes: bool,
    /// When writes leave the queue.
    pub write_policy: WritePolicy,
    /// `read-first` only: a drain begins when so much of the write pending queue is filled. 80 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_start_percent: Option<u32>,
    /// `read-first` only: a drain ends when no more than so much of the queue waits. 50 if not given (DEVIATIONS.md,
    /// write-drain).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_stop_percent: Option<u32>,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        ControllerConfig {
            read_queue_entries: 64,
            write_queue_entries: 64,
            coalesce_writes: true,
            write_policy: WritePolicy::WhenFree,
            drain_start_percent: None,
            drain_stop_percent: None,
        }
    }
}

impl ControllerConfig {
    /// Gives values to what was not set and has a meaning here.
    fn complete(&mut self) {
        if self.write_policy == WritePolicy::ReadFirst {
            self.drain_start_percent.get_or_insert(80);
            let start = self.drain_start_percent.unwrap_or(80);
            self.drain_stop_percent.get_or_insert(start.saturating_sub(1).min(50));
        }
    }

    fn check(&self, field: &str) -> Result<(), ConfigError> {
        in_range(field, "read_queue_entries", self.read_queue_entries.into(), 1, 4096)?;
        in_range(field, "write_queue_entries", self.write_queue_entries.into(), 1, 4096)?;
        let thresholds =
            [("drain_start_percent", self.drain_start_percent), ("drain_stop_percent", self.drain_stop_percent)];
        for (name, value) in thresholds {
            if value.is_some() && self.write_policy != WritePolicy::ReadFirst {
                let problem = "only the write policy 'read-first' has a drain";
                return Err(ConfigError::new(format!("{field}.{name}"), problem));
            }
        }
        let mut complete = self.clone();
        complete.complete();
        if let (Some(start), Some(stop)) = (complete.drain_start_percent, complete.drain_stop_percent) {
            in_range(field, "drain_start_percent", start.into(), 1, 100)?;
            if stop >= start {
                let problem = format!("{stop} is not below drain_start_percent, which is {start}");
                return Err(ConfigError::new(format!("{field}.drain_stop_percent"), problem));
            }
        }
        Ok(())
    }
}

/// One kind of memory of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryConfig {
    /// Capacity in MiB, over all controllers.
    pub capacity_mib: u64,
    /// Controllers, each with queues, banks and a channel of its own: 1 to 8.
    pub controllers: u16,
    /// So many bytes belong to one controller before the next one's turn comes: a power of two from 64 to 4096. Of no
    /// effect with one controller. 4096 is how platforms interleave modules of persistent memory (Yang et al., "An
    /// Empirical Guide to the Behavior and Use of Scalable Persistent Memory", FAST 2020, section 2; DEVIATIONS.md, interleaving).
    pub interleave_bytes: u64,
    /// The queues of each controller.
    pub controller: ControllerConfig,
    /// The media behind each controller.
    pub media: MediaConfig,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        MemoryConfig {
            capacity_mib: 0,
            controllers: 1,
            interleave_bytes: 4096,
            controller: ControllerConfig::default(),
            media: MediaConfig::default(),
        }
    }
}

impl MemoryConfig {
    /// Gives values to what was not set: what the kind of media and the policy of writes have, and nothing else.
    pub fn complete(&mut self) {
        self.controller.complete();
        self.media.complete();
    }

    /// Refuses what cannot be built; `field` is the path of this section.
    ///
    /// # Errors
    /// The field and what is allowed.
    pub fn check(&self, field: &str) -> Result<(), ConfigError> {
        in_range(field, "capacity_mib", self.capacity_mib, 1, 1 << 21)?;
        in_range(field, "controllers", self.controllers.into(), 1, CONTROLLERS_MAX.into())?;
        if !self.interleave_bytes.is_power_of_two() || !(64..=4096).contains(&self.interleave_bytes) {
            let problem = format!("{} is not a power of two from 64 to 4096", self.interleave_bytes);
            return Err(ConfigError::new(format!("{field}.interleave_bytes"), problem));
        }
        self.controller.check(&format!("{field}.controller"))?;
        self.media.check(&format!("{field}.media"))
    }
}
