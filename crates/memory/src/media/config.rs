//! Parameters of media. Which of them exist depends on the kind; one that the kind does not have is refused, one that
//! is not given takes the default of the kind.

use crate::media::timing::{DdrTiming, DdrTimingConfig};
use crate::range::in_range;
use durasim_types::{ConfigError, LINE_BYTES, Picos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cells that keep the bits, and how much of them is modelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MediaKind {
    /// One latency for reads, one for writes, banks, and a channel of so much bandwidth.
    #[default]
    Fixed,
    /// STT-RAM on a memory bus: the latencies of its cells, banks in ranks, a data bus that changes ranks.
    SttRam,
    /// DDR3 or memory with its commands: rows that are opened and closed.
    Ddr3,
    /// DDR4 or memory with its commands: DDR3 with groups of banks.
    Ddr4,
    /// A module of persistent memory: cells in blocks of several lines, with buffers in front of them.
    PmemModule,
}

impl MediaKind {
    /// The name in machine files.
    pub const fn name(self) -> &'static str {
        match self {
            MediaKind::Fixed => "fixed",
            MediaKind::SttRam => "stt-ram",
            MediaKind::Ddr3 => "ddr3",
            MediaKind::Ddr4 => "ddr4",
            MediaKind::PmemModule => "pmem-module",
        }
    }

    /// Whether rows are opened and closed by commands.
    pub const fn is_ddr(self) -> bool {
        matches!(self, MediaKind::Ddr3 | MediaKind::Ddr4)
    }
}

/// The state of a row after an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PagePolicy {
    /// It stays open until another row of the bank is wanted, or a refresh.
    Open,
    /// Each access closes it (a read or write with auto-precharge).
    Closed,
}

/// The address bits that choose bank, row and column, from the highest to the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AddressMapping {
    /// Adjacent lines share a row.
    RowRankBankColumn,
    /// Adjacent lines are in different banks, then in different ranks.
    RowColumnRankBank,
}

/// Media of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MediaConfig {
    /// The kind, which decides what else can be set.
    pub kind: MediaKind,
    /// The least cost of one write for the media, in bytes: shorter writes count as this much.
    pub write_granularity_bytes: u32,
    /// `fixed` (150), `stt-ram` (65, TC DAC 2017): latency of a read in nanoseconds. `pmem-module` (195): that of a read that no
    /// buffer answers, of a page with an entry in the table of addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_latency_ns: Option<u64>,
    /// `fixed` (100), `stt-ram` (76, TC DAC 2017): latency of a write in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_latency_ns: Option<u64>,
    /// `fixed`, `stt-ram` (12,800), `pmem-module` (21,328, a channel of 2,666 MT/s): bandwidth of the channel in MB/s (10^6 bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_mb_per_s: Option<u64>,
    /// `fixed`: accesses in service at a time (16), lines are spread over the banks by address. `stt-ram`, `ddr3`, `ddr4`: banks of each
    /// rank (8; `ddr4` 16), a power of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub banks: Option<u32>,
    /// `stt-ram`, `ddr3`, `ddr4`: ranks on the channel (`stt-ram` 4, TC DAC 2017; `ddr3`, `ddr4` 1), a power of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<u32>,
    /// `stt-ram`, `ddr3`, `ddr4`: time for which the data bus is idle between bursts of different ranks, in picoseconds (two
    /// clocks: `stt-ram` and `ddr3` 2,500, `ddr4` 1,250).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank_switch_ps: Option<Picos>,
    /// `ddr4`: groups of banks in a rank (4), a power of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bank_groups: Option<u32>,
    /// `ddr3`, `ddr4`: bytes of a row over all chips of a rank (8192: eight chips with 1 KB each). `fixed`: bytes of adjacent lines
    /// that share a bank (64: none do). A power of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row_bytes: Option<u32>,
    /// `ddr3`, `ddr4`: what becomes of a row after an access (`open`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_policy: Option<PagePolicy>,
    /// `ddr3`, `ddr4`: which bits of an address choose what (`row-rank-bank-column`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address_mapping: Option<AddressMapping>,
    /// `stt-ram`, `ddr3`, `ddr4`: the bits of a row permute the banks, so that a victim does not meet the line that replaces it in
    /// another row of the same bank (true; Zhang, Zhu and Zhang, MICRO 2000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permute_banks: Option<bool>,
    /// `ddr3`, `ddr4`: times between commands, in picoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<DdrTimingConfig>,
    /// `pmem-module`: bytes that the cells read and write at a time (256), a power of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u32>,
    /// `pmem-module`: time of a line between the channel and a buffer, in nanoseconds (87).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_latency_ns: Option<u64>,
    /// `pmem-module`: blocks in the buffer of those that were read (64).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_buffer_blocks: Option<u32>,
    /// `pmem-module`: blocks in the buffer in which written lines are combined (72: of 18 KB, not of 20, every block is written once).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_buffer_blocks: Option<u32>,
    /// `pmem-module`: blocks in flight from that buffer to the cells at a time (16, as in VANS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell_queue_blocks: Option<u32>,
    /// `pmem-module`: pages of 4 KB whose entries of the table of addresses the module holds (4,096).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_pages: Option<u32>,
    /// `pmem-module`: time that a block of another page takes more, in nanoseconds (55). 0: the table delays nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_miss_ns: Option<u64>,
    /// `pmem-module`: bandwidth at which the cells are read, in MB/s (6,600).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell_read_mb_per_s: Option<u64>,
    /// `pmem-module`: bandwidth at which they are written, in MB/s (2,300).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell_write_mb_per_s: Option<u64>,
}

impl Default for MediaConfig {
    fn default() -> Self {
        MediaConfig::of(MediaKind::Fixed)
    }
}

impl MediaConfig {
    /// Media of a kind with nothing set.
    pub fn of(kind: MediaKind) -> Self {
        MediaConfig {
            kind,
            write_granularity_bytes: 64,
            read_latency_ns: None,
            write_latency_ns: None,
            bandwidth_mb_per_s: None,
            banks: None,
            ranks: None,
            rank_switch_ps: None,
            bank_groups: None,
            row_bytes: None,
            page_policy: None,
            address_mapping: None,
            permute_banks: None,
            timing: None,
            block_bytes: None,
            buffer_latency_ns: None,
            read_buffer_blocks: None,
            write_buffer_blocks: None,
            cell_queue_blocks: None,
            table_pages: None,
            table_miss_ns: None,
            cell_read_mb_per_s: None,
            cell_write_mb_per_s: None,
        }
    }

    /// Gives the defaults of the kind to what was not set.
    pub fn complete(&mut self) {
        let kind = self.kind;
        if kind == MediaKind::PmemModule {
            return self.complete_module();
        }
        let (reads_ns, writes_ns) = if kind == MediaKind::SttRam { (65, 76) } else { (150, 100) };
        if !kind.is_ddr() {
            self.read_latency_ns.get_or_insert(reads_ns);
            self.write_latency_ns.get_or_insert(writes_ns);
            self.bandwidth_mb_per_s.get_or_insert(12_800);
        }
        self.banks.get_or_insert(match kind {
            MediaKind::Fixed | MediaKind::Ddr4 => 16,
            MediaKind::SttRam | MediaKind::Ddr3 | MediaKind::PmemModule => 8,
        });
        if kind != MediaKind::Fixed {
            self.ranks.get_or_insert(if kind == MediaKind::SttRam { 4 } else { 1 });
            self.rank_switch_ps.get_or_insert(if kind == MediaKind::Ddr4 { 1250 } else { 2500 });
            self.permute_banks.get_or_insert(true);
        }
        if kind == MediaKind::Ddr4 {
            self.bank_groups.get_or_insert(4);
        }
        if kind == MediaKind::Fixed {
            self.row_bytes.get_or_insert(LINE_BYTES as u32);
        }
        if kind.is_ddr() {
            self.row_bytes.get_or_insert(8192);
            self.page_policy.get_or_insert(PagePolicy::Open);
            self.address_mapping.get_or_insert(AddressMapping::RowRankBankColumn);
            let standard = if kind == MediaKind::Ddr4 { DdrTiming::DDR4_3200AA } else { DdrTiming::DDR3_1600K };
            self.timing.get_or_insert_default().complete(&standard);
        }
    }

    fn complete_module(&mut self) {
        self.read_latency_ns.get_or_insert(195);
        self.buffer_latency_ns.get_or_insert(87);
        self.bandwidth_mb_per_s.get_or_insert(21_328);
        self.block_bytes.get_or_insert(256);
        self.read_buffer_blocks.get_or_insert(64);
        self.write_buffer_blocks.get_or_insert(72);
        self.cell_queue_blocks.get_or_insert(16);
        self.table_pages.get_or_insert(4096);
        self.table_miss_ns.get_or_insert(55);
        self.cell_read_mb_per_s.get_or_insert(6_600);
        self.cell_write_mb_per_s.get_or_insert(2_300);
    }

    /// The media of a kind with all its defaults.
    pub fn completed(&self) -> Self {
        let mut complete = self.clone();
        complete.complete();
        complete
    }

    /// The times between commands, of media that have commands.
    pub fn ddr_timing(&self) -> Option<DdrTiming> {
        let complete = self.completed();
        complete.timing.as_ref().and_then(DdrTimingConfig::completed)
    }

    /// Time a line occupies the channel of media without commands.
    pub fn transfer_ps(&self) -> Picos {
        (LINE_BYTES * 1_000_000).div_ceil(self.bandwidth_mb_per_s.unwrap_or(12_800))
    }

    /// Time that the cells of a module take for a block at this bandwidth.
    pub(crate) fn block_ps(&self, mb_per_s: Option<u64>) -> Picos {
        (u64::from(self.block_bytes.unwrap_or(256)) * 1_000_000).div_ceil(mb_per_s.unwrap_or(1))
    }

    /// Refuses what cannot be built.
    pub(crate) fn check(&self, field: &str) -> Result<(), ConfigError> {
        self.check_kind(field)?;
        in_range(field, "write_granularity_bytes", self.write_granularity_bytes.into(), 1, 4096)?;
        let optional = |name: &str, value: Option<u64>, low: u64, high: u64| {
            value.map_or(Ok(()), |value| in_range(field, name, value, low, high))
        };
        optional("read_latency_ns", self.read_latency_ns, 1, 1_000_000)?;
        optional("write_latency_ns", self.write_latency_ns, 1, 1_000_000)?;
        optional("bandwidth_mb_per_s", self.bandwidth_mb_per_s, 1, 10_000_000)?;
        let banks_max = if self.kind == MediaKind::Fixed { 1024 } else { 64 };
        optional("banks", self.banks.map(u64::from), 1, banks_max)?;
        optional("ranks", self.ranks.map(u64::from), 1, 16)?;
        optional("rank_switch_ps", self.rank_switch_ps, 0, 1_000_000)?;
        optional("row_bytes", self.row_bytes.map(u64::from), LINE_BYTES, 1 << 20)?;
        optional("bank_groups", self.bank_groups.map(u64::from), 1, 16)?;
        optional("block_bytes", self.block_bytes.map(u64::from), LINE_BYTES, 4096)?;
        optional("buffer_latency_ns", self.buffer_latency_ns, 1, 1_000_000)?;
        optional("read_buffer_blocks", self.read_buffer_blocks.map(u64::from), 1, 4096)?;
        optional("write_buffer_blocks", self.write_buffer_blocks.map(u64::from), 1, 4096)?;
        optional("cell_queue_blocks", self.cell_queue_blocks.map(u64::from), 1, 4096)?;
        optional("table_pages", self.table_pages.map(u64::from), 1, 1 << 20)?;
        optional("table_miss_ns", self.table_miss_ns, 0, 1_000_000)?;
        optional("cell_read_mb_per_s", self.cell_read_mb_per_s, 1, 10_000_000)?;
        optional("cell_write_mb_per_s", self.cell_write_mb_per_s, 1, 10_000_000)?;
        let powers = [
            ("banks", self.banks.filter(|_| self.kind != MediaKind::Fixed)),
            ("ranks", self.ranks),
            ("bank_groups", self.bank_groups),
            ("row_bytes", self.row_bytes),
            ("block_bytes", self.block_bytes),
        ];
        for (name, value) in powers {
            if let Some(value) = value.filter(|value| !value.is_power_of_two()) {
                return Err(ConfigError::new(format!("{field}.{name}"), format!("{value} is not a power of two")));
            }
        }
        let complete = self.completed();
        if let (Some(groups), Some(banks)) = (complete.bank_groups, complete.banks)
            && groups > banks
        {
            let problem = format!("{groups} is more than the {banks} banks of a rank");
            return Err(ConfigError::new(format!("{field}.bank_groups"), problem));
        }
        if self.kind == MediaKind::SttRam {
            // A read sends its line at its end, a write takes it at its beginning.
            for (name, latency) in
                [("read_latency_ns", self.read_latency_ns), ("write_latency_ns", self.write_latency_ns)]
            {
                if let Some(ns) = latency.filter(|ns| ns * 1000 < self.transfer_ps()) {
                    let problem = format!("{ns} ns are less than a line takes over the channel");
                    return Err(ConfigError::new(format!("{field}.{name}"), problem));
                }
            }
        }
        if self.kind == MediaKind::PmemModule {
            complete.check_module(field)?;
        }
        match self.ddr_timing() {
            Some(timing) => timing.check(&format!("{field}.timing"), complete.ranks.unwrap_or(1)),
            None => Ok(()),
        }
    }

    /// A block is there no earlier than the cells are done with it, and a line no earlier than it is over the channel.
    fn check_module(&self, field: &str) -> Result<(), ConfigError> {
        let [read_ps, buffer_ps] = [self.read_latency_ns, self.buffer_latency_ns].map(|ns| ns.unwrap_or(0) * 1000);
        let block_ps = self.block_ps(self.cell_read_mb_per_s);
        if read_ps < block_ps {
            let problem = format!(
                "{} ns are less than the cells take for a block, {} ns",
                read_ps / 1000,
                block_ps.div_ceil(1000)
            );
            return Err(ConfigError::new(format!("{field}.read_latency_ns"), problem));
        }
        if buffer_ps < self.transfer_ps() {
            let problem = format!("{} ns are less than a line takes over the channel", buffer_ps / 1000);
            return Err(ConfigError::new(format!("{field}.buffer_latency_ns"), problem));
        }
        Ok(())
    }

    /// Refuses parameters that the kind does not have.
    fn check_kind(&self, field: &str) -> Result<(), ConfigError> {
        let (ddr, fixed) = (self.kind.is_ddr(), self.kind == MediaKind::Fixed);
        let module = self.kind == MediaKind::PmemModule;
        let has = [
            ("read_latency_ns", self.read_latency_ns.is_some(), !ddr),
            ("write_latency_ns", self.write_latency_ns.is_some(), !ddr && !module),
            ("bandwidth_mb_per_s", self.bandwidth_mb_per_s.is_some(), !ddr),
            ("banks", self.banks.is_some(), !module),
            ("ranks", self.ranks.is_some(), !fixed && !module),
            ("rank_switch_ps", self.rank_switch_ps.is_some(), !fixed && !module),
            ("permute_banks", self.permute_banks.is_some(), !fixed && !module),
            ("bank_groups", self.bank_groups.is_some(), self.kind == MediaKind::Ddr4),
            ("row_bytes", self.row_bytes.is_some(), ddr || fixed),
            ("page_policy", self.page_policy.is_some(), ddr),
            ("address_mapping", self.address_mapping.is_some(), ddr),
            ("timing", self.timing.is_some(), ddr),
            ("block_bytes", self.block_bytes.is_some(), module),
            ("buffer_latency_ns", self.buffer_latency_ns.is_some(), module),
            ("read_buffer_blocks", self.read_buffer_blocks.is_some(), module),
            ("write_buffer_blocks", self.write_buffer_blocks.is_some(), module),
            ("cell_queue_blocks", self.cell_queue_blocks.is_some(), module),
            ("table_pages", self.table_pages.is_some(), module),
            ("table_miss_ns", self.table_miss_ns.is_some(), module),
            ("cell_read_mb_per_s", self.cell_read_mb_per_s.is_some(), module),
            ("cell_write_mb_per_s", self.cell_write_mb_per_s.is_some(), module),
        ];
        for (name, given, allowed) in has {
            if given && !allowed {
                let kind = self.kind.name();
                let problem = format!(
                    "media of the kind '{kind}' have no such parameter; to change the kind set the whole section, {field}={{ kind = \"{kind}\" }}, to remove those of another kind"
                );
                return Err(ConfigError::new(format!("{field}.{name}"), problem));
            }
        }
        Ok(())
    }
}
