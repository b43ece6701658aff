//! Memories of all kinds, and random requests to them.
#![allow(dead_code, reason = "each test uses some of it")]

pub mod replay;

use durasim_memory::{
    AddressMapping, Command, DdrTiming, DdrTimingConfig, EntryUntil, MediaConfig, MediaKind, Memory, MemoryConfig,
    PagePolicy, Write, WritePolicy,
};
use durasim_types::{Cause, LineAddr, Pages, PhysAddr, Picos, Rng};

pub const KINDS: [MediaKind; 5] =
    [MediaKind::Fixed, MediaKind::SttRam, MediaKind::Ddr3, MediaKind::Ddr4, MediaKind::PmemModule];
pub const CAPACITY_LINES: u64 = 1 << 14;

/// A memory of this configuration.
pub fn memory(config: &MemoryConfig) -> Memory {
    config.check("memory").unwrap();
    Memory::new(config, Pages::new(PhysAddr(0), CAPACITY_LINES * 64))
}

/// One controller in front of these media.
pub fn controller_of(media: MediaConfig) -> MemoryConfig {
    MemoryConfig { capacity_mib: 1, media, ..MemoryConfig::default() }
}

pub fn write(line: u64, byte: u8) -> Write {
    Write::line(LineAddr(line), [byte; 64], Cause::Data)
}

/// DDR memory in whose times each rule is the one that counts, now and then.
pub fn every_rule_counts(kind: MediaKind) -> DdrTiming {
    let clocks = |n: u64| n * 1250;
    let groups = kind == MediaKind::Ddr4;
    DdrTiming {
        t_ck_ps: 1250,
        t_cas_ps: clocks(9),
        t_cwl_ps: clocks(8),
        t_burst_ps: clocks(4),
        t_rcd_ps: clocks(11),
        t_rp_ps: clocks(10),
        t_ras_ps: clocks(28),
        t_wr_ps: clocks(12),
        t_rtp_ps: clocks(6),
        t_ccd_s_ps: clocks(5),
        t_ccd_l_ps: clocks(if groups { 7 } else { 5 }),
        t_rrd_s_ps: clocks(5),
        t_rrd_l_ps: clocks(if groups { 7 } else { 5 }),
        t_faw_ps: clocks(32),
        t_wtr_s_ps: clocks(5),
        t_wtr_l_ps: clocks(if groups { 9 } else { 5 }),
        t_rtw_ps: clocks(2),
        t_refi_ps: clocks(800),
        t_rfc_ps: clocks(90),
    }
}

/// Media of a kind, small enough for all banks and rows to be busy.
pub fn drawn_media(kind: MediaKind, rng: &mut Rng) -> MediaConfig {
    let mut media = MediaConfig::of(kind);
    match kind {
        MediaKind::Fixed => media.banks = Some(1 + rng.below(9) as u32),
        MediaKind::SttRam => {
            media.banks = Some(1 << rng.below(4));
            media.ranks = Some(1 << rng.below(3));
            media.rank_switch_ps = Some(rng.below(3) * 2500);
            media.permute_banks = Some(rng.below(2) == 0);
        }
        MediaKind::PmemModule => {
            media.block_bytes = Some(64 << rng.below(4));
            media.read_buffer_blocks = Some(1 + rng.below(8) as u32);
            media.write_buffer_blocks = Some(1 + rng.below(8) as u32);
            media.cell_queue_blocks = Some(1 + rng.below(4) as u32);
            media.table_pages = Some(1 + rng.below(4) as u32);
            media.cell_write_mb_per_s = Some(500 + rng.below(4000));
        }
        MediaKind::Ddr3 | MediaKind::Ddr4 => {
            media.banks = Some(4 << rng.below(3));
            media.ranks = Some(1 << rng.below(3));
            media.rank_switch_ps = Some(rng.below(3) * 1250);
            media.row_bytes = Some(64 << rng.below(5));
            media.permute_banks = Some(rng.below(2) == 0);
            media.page_policy = Some(if rng.below(3) == 0 { PagePolicy::Closed } else { PagePolicy::Open });
            let mappings = [AddressMapping::RowRankBankColumn, AddressMapping::RowColumnRankBank];
            media.address_mapping = Some(mappings[rng.below(2) as usize]);
            media.timing = match rng.below(3) {
                0 => Some(every_rule_counts(kind).to_config()),
                // P-INSPECT's nonvolatile memory at 1 GHz: no refresh, and long times for rows.
                1 => Some(DdrTimingConfig {
                    t_ck_ps: Some(1000),
                    t_rcd_ps: Some(58_000),
                    t_ras_ps: Some(80_000),
                    t_wr_ps: Some(180_000),
                    t_refi_ps: Some(0),
                    ..DdrTimingConfig::default()
                }),
                _ => None,
            };
        }
    }
    media
}

/// A memory of a kind with drawn queues, policies and controllers.
pub fn drawn(kind: MediaKind, rng: &mut Rng) -> MemoryConfig {
    let mut config = controller_of(drawn_media(kind, rng));
    config.controllers = 1 + rng.below(4) as u16;
    config.interleave_bytes = 64 << rng.below(3);
    config.controller.write_queue_entries = 1 + rng.below(12) as u32;
    config.controller.read_queue_entries = 1 + rng.below(12) as u32;
    if rng.below(2) == 0 {
        config.controller.write_policy = Some(WritePolicy::ReadFirst);
        let start = 1 + rng.below(100) as u32;
        config.controller.drain_start_percent = Some(start);
        config.controller.drain_stop_percent = Some(rng.below(u64::from(start)) as u32);
    }
    let until = |rng: &mut Rng| [None, Some(EntryUntil::Command), Some(EntryUntil::Data)][rng.below(3) as usize];
    config.controller.read_entry_until = until(rng);
    config.controller.write_entry_until = until(rng);
    if config.controller.write_policy.is_some() && !kind.is_ddr() {
        // Refused: a drain gives all its commands at once.
        config.controller.write_entry_until = None;
    }
    if kind.is_ddr() && rng.below(2) == 0 {
        config.controller.row_hits_max = Some(1 + rng.below(8) as u32);
    }
    config
}

/// The commands of this number of random requests, some with earlier times, and the end of their time.
pub fn traced(config: &MemoryConfig, seed: u64, requests: u64) -> Vec<Command> {
    let mut rng = Rng::new(seed);
    let mut memory = memory(config);
    memory.start_trace();
    // Bursts and pauses, few lines and many.
    let lines = [8, 64, 512, CAPACITY_LINES][rng.below(4) as usize];
    let (mut now, mut near) = (0, 0);
    for n in 0..requests {
        now += match rng.below(40) {
            0 => rng.below(3_000_000),
            1..10 => rng.below(60_000),
            _ => rng.below(5_000),
        };
        while memory.step(now).is_some() {}
        near = if rng.below(3) == 0 { rng.below(lines) } else { (near + 1) % lines };
        let at = now.saturating_sub(rng.below(4) / 3 * rng.below(200_000));
        if rng.below(2) == 0 {
            memory.read(LineAddr(near), at);
        } else {
            memory.submit(write(near, n as u8), at);
        }
    }
    while memory.step(Picos::MAX).is_some() {}
    memory.take_trace(now)
}
