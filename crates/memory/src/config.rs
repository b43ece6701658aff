//! Parameters of a memory: its controllers and its media.

use crate::media::{EntryUntil, MediaConfig, Policy, Queues};
use crate::range::in_range;
use durasim_types::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// More controllers than any memory may have.
pub const CONTROLLERS_MAX: u16 = 8;

/// The time at which writes leave the write pending queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WritePolicy {
    /// Media without rows: a write starts as soon as its bank and the channel are free, whatever the reads of other banks do.
    /// Reads go first in that they take their bank when they arrive. There is no drain.
    #[default]
    WhenFree,
    /// A write starts only while no read waits (media without rows: or is in service), or while the queue drains. A drain begins
    /// when the queue is filled to a high threshold and ends when it is down to a low one; reads that arrive meanwhile wait
    /// until its last write has started. TC (DAC 2017), table 2, has this policy. With media that have rows, writes that began
    /// because no read waited continue down to the low threshold too.
    ReadFirst,
    /// Media with rows: what gem5's memory controller does (`src/mem/mem_ctrl.cc`, `processNextReqEvent`). Without reads, writes begin
    /// when more than `drain_idle_percent` of the queue waits, with reads when more than `drain_start_percent` does. They end
    /// when `drain_writes_min` were served and a read waits, or when that many less than `drain_idle_percent` are left: fewer
    /// stay in the queue until others come.
    Gem5,
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
    /// The time at which writes leave the queue: `read-first` for media with rows, `when-free` for others, if not
    /// given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_policy: Option<WritePolicy>,
    /// `read-first`, `gem5`: writes go before reads when so much of the write pending queue is filled. 80 if not given, with `gem5`
    /// 85 (`write_high_thresh_perc` of its MemCtrl).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_start_percent: Option<u32>,
    /// `read-first` only: a drain ends when no more than so much of the queue waits. 50 if not given (DEVIATIONS.md,
    /// write-drain).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_stop_percent: Option<u32>,
    /// `gem5` only: without reads, writes begin when more than so much of the queue waits. 50 if not given
    /// (`write_low_thresh_perc` of its MemCtrl).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_idle_percent: Option<u32>,
    /// `gem5` only: the number of writes that are served before reads that wait have their turn. 16 if not given
    /// (`min_writes_per_switch` of its MemCtrl).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_writes_min: Option<u32>,
    /// Media with rows: the number of accesses of an open row that go before older requests for another row of the
    /// bank. 16 if not given (`max_accesses_per_row` of gem5's MemInterface).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row_hits_max: Option<u32>,
    /// The event up to which a read takes its entry of the read queue: its first command (`command`, if not given and
    /// the media have rows) or the arrival of its data (`data`, if not given for other media).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_entry_until: Option<EntryUntil>,
    /// The event up to which a write takes its entry of the write pending queue: the command that writes it (`command`)
    /// or the moment at which the cells hold it (`data`, if not given). `command` is refused for `read-first` in front of
    /// media without rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_entry_until: Option<EntryUntil>,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        ControllerConfig {
            read_queue_entries: 64,
            write_queue_entries: 64,
            coalesce_writes: true,
            write_policy: None,
            drain_start_percent: None,
            drain_stop_percent: None,
            drain_idle_percent: None,
            drain_writes_min: None,
            row_hits_max: None,
            read_entry_until: None,
            write_entry_until: None,
        }
    }
}

impl ControllerConfig {
    /// Gives values to what was not set and has a meaning here; `has_rows`: in front of media with rows.
    pub(crate) fn complete(&mut self, has_rows: bool) {
        let default = if has_rows { WritePolicy::ReadFirst } else { WritePolicy::WhenFree };
        match *self.write_policy.get_or_insert(default) {
            WritePolicy::WhenFree => {}
            WritePolicy::ReadFirst => {
                let start = *self.drain_start_percent.get_or_insert(80);
                self.drain_stop_percent.get_or_insert(start.saturating_sub(1).min(50));
            }
            WritePolicy::Gem5 => {
                self.drain_start_percent.get_or_insert(85);
                self.drain_idle_percent.get_or_insert(50);
                self.drain_writes_min.get_or_insert(16);
            }
        }
        if has_rows {
            self.row_hits_max.get_or_insert(16);
            self.read_entry_until.get_or_insert(EntryUntil::Command);
            self.write_entry_until.get_or_insert(EntryUntil::Data);
        }
    }

    /// The numbers of complete queues that the scheduler of media with rows needs.
    pub(crate) fn seen_by_scheduler(&self) -> Queues {
        Queues {
            policy: self.policy(),
            read_entries: self.read_queue_entries as usize,
            read_entry_until: self.read_entry_until.expect("the defaults are in"),
        }
    }

    /// The policy of complete queues in front of media with rows.
    fn policy(&self) -> Policy {
        let row_hits_max = self.row_hits_max.expect("media with rows have it");
        let percent = |percent: Option<u32>| {
            (self.write_queue_entries * percent.expect("the policy has its thresholds")) as usize
        };
        if self.write_policy == Some(WritePolicy::Gem5) {
            let writes_min = self.drain_writes_min.expect("the policy has it") as usize;
            let idle_entries = percent(self.drain_idle_percent) / 100;
            let left_entries = idle_entries.saturating_sub(writes_min + 1);
            return Policy {
                start_entries: percent(self.drain_start_percent) / 100 + 1,
                idle_entries: idle_entries + 1,
                stop_entries: left_entries,
                writes_min,
                idle_stop_entries: left_entries,
                row_hits_max,
            };
        }
        Policy {
            start_entries: percent(self.drain_start_percent).div_ceil(100),
            idle_entries: 1,
            stop_entries: percent(self.drain_stop_percent) / 100,
            writes_min: 0,
            idle_stop_entries: 0,
            row_hits_max,
        }
    }

    fn check(&self, field: &str, has_rows: bool) -> Result<(), ConfigError> {
        in_range(field, "read_queue_entries", self.read_queue_entries.into(), 1, 4096)?;
        in_range(field, "write_queue_entries", self.write_queue_entries.into(), 1, 4096)?;
        let mut complete = self.clone();
        complete.complete(has_rows);
        let policy = complete.write_policy;
        let problem = match policy {
            Some(WritePolicy::WhenFree) if has_rows => {
                Some("media with rows gather writes: 'read-first' and 'gem5' are allowed")
            }
            Some(WritePolicy::Gem5) if !has_rows => {
                Some("media without rows have no such policy: 'when-free' and 'read-first' are allowed")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(ConfigError::new(format!("{field}.write_policy"), problem));
        }
        let (read_first, gem5) = (Some(WritePolicy::ReadFirst), Some(WritePolicy::Gem5));
        if !has_rows && policy == read_first && self.write_entry_until == Some(EntryUntil::Command) {
            let problem = "a drain in front of media without rows gives all its commands at once: 'data' is allowed";
            return Err(ConfigError::new(format!("{field}.write_entry_until"), problem));
        }
        let parameters = [
            (
                "drain_start_percent",
                self.drain_start_percent,
                policy == read_first || policy == gem5,
                "the write policies 'read-first' and 'gem5' have",
            ),
            ("drain_stop_percent", self.drain_stop_percent, policy == read_first, "the write policy 'read-first' has"),
            ("drain_idle_percent", self.drain_idle_percent, policy == gem5, "the write policy 'gem5' has"),
            ("drain_writes_min", self.drain_writes_min, policy == gem5, "the write policy 'gem5' has"),
            ("row_hits_max", self.row_hits_max, has_rows, "media with rows have"),
        ];
        for (name, value, is_allowed, who) in parameters {
            if value.is_some() && !is_allowed {
                return Err(ConfigError::new(format!("{field}.{name}"), format!("only {who} this parameter")));
            }
        }
        let ranges = [
            ("drain_start_percent", complete.drain_start_percent, 1, 100),
            ("drain_idle_percent", complete.drain_idle_percent, 0, 100),
            ("drain_writes_min", complete.drain_writes_min, 1, 4096),
            ("row_hits_max", complete.row_hits_max, 1, 1 << 20),
        ];
        for (name, value, low, high) in ranges {
            value.map_or(Ok(()), |value| in_range(field, name, value.into(), low, high))?;
        }
        for (name, low) in
            [("drain_stop_percent", complete.drain_stop_percent), ("drain_idle_percent", complete.drain_idle_percent)]
        {
            if let (Some(start), Some(low)) = (complete.drain_start_percent, low)
                && low >= start
            {
                let problem = format!("{low} is not below drain_start_percent, which is {start}");
                return Err(ConfigError::new(format!("{field}.{name}"), problem));
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
    /// The number of bytes that belong to one controller before the next one's turn comes: a power of two from 64 to
    /// 4096. Of no effect with one controller. 4096 is how platforms interleave modules of persistent memory (Yang et
    /// al., "An Empirical Guide to the Behavior and Use of Scalable Persistent Memory", FAST 2020, section 2;
    /// DEVIATIONS.md, interleaving).
    pub interleave_bytes: u64,
    /// The queues of each controller.
    pub controller: ControllerConfig,
    /// The media of each controller.
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
        self.controller.complete(self.media.kind.is_ddr());
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
        self.controller.check(&format!("{field}.controller"), self.media.kind.is_ddr())?;
        self.media.check(&format!("{field}.media"))
    }
}
