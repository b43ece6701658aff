//! Checks a trace of commands against the times of the media.
//!
//! It shares nothing with the controllers but the configuration and the form of a command: it goes through the trace
//! in the order of time, remembers what each bank, rank and bus did last, and says which rule a command breaks. Times
//! are compared as the configuration gives them, without rounding.

use crate::media::{DdrTiming, MediaConfig, MediaKind};
use crate::trace::{Command, CommandKind};
use durasim_types::Picos;
use std::collections::{BTreeMap, VecDeque};

/// A command that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The command.
    pub command: Command,
    /// The rule: the name of a time, or a few words.
    pub rule: &'static str,
    /// The first time at which the rule would have allowed it, if time alone was missing.
    pub earliest_ps: Option<Picos>,
}

/// The rules that a trace breaks, in the order of time; none if it keeps them all.
pub fn violations(media: &MediaConfig, trace: &[Command]) -> Vec<Violation> {
    let media = media.completed();
    let mut commands = trace.to_vec();
    commands.sort_unstable();
    let mut checker = Checker { found: Vec::new(), command: None };
    let mut channels: BTreeMap<u16, Channel> = BTreeMap::new();
    for command in commands {
        checker.command = Some(command);
        let channel = channels.entry(command.controller).or_default();
        match media.ddr_timing() {
            Some(t) => channel.ddr(&mut checker, &t, &media, command),
            None if media.kind == MediaKind::PmemModule => channel.module(&mut checker, &media, command),
            None => channel.latencies(&mut checker, &media, command),
        }
    }
    for channel in channels.values_mut() {
        channel.transfers(&mut checker, &media);
    }
    checker.found
}

struct Checker {
    found: Vec<Violation>,
    command: Option<Command>,
}

impl Checker {
    fn command(&self) -> Command {
        self.command.expect("rules are checked while a command is looked at")
    }

    fn require(&mut self, holds: bool, rule: &'static str) {
        if !holds {
            self.found.push(Violation { command: self.command(), rule, earliest_ps: None });
        }
    }

    /// The command must not come before `earliest_ps`.
    fn not_before(&mut self, earliest_ps: Option<Picos>, rule: &'static str) {
        if let Some(earliest_ps) = earliest_ps.filter(|&earliest_ps| self.command().at_ps < earliest_ps) {
            self.found.push(Violation { command: self.command(), rule, earliest_ps: Some(earliest_ps) });
        }
    }
}

/// The latest events of a bank.
#[derive(Default)]
struct Bank {
    open: Option<u64>,
    act_ps: Option<Picos>,
    read_ps: Option<Picos>,
    write_ps: Option<Picos>,
    /// The time at which its row was, or will be, closed.
    pre_ps: Option<Picos>,
    /// Media without rows: when the bank is free.
    free_ps: Option<Picos>,
}

/// The latest events of a rank.
#[derive(Default)]
struct Rank {
    acts: VecDeque<(Picos, u32)>,
    reads: BTreeMap<u32, Picos>,
    writes: BTreeMap<u32, Picos>,
    refresh_ps: Option<Picos>,
    /// Refreshes so far.
    refreshes: u64,
}

impl Rank {
    /// The next refresh comes before this time: one of them may be postponed, of eight that the standards allow. A rank whose
    /// refreshes begin late has its first one later than after the first tREFI.
    fn postponed_until_ps(&self, t: &DdrTiming) -> Picos {
        (self.refreshes + 2) * t.t_refi_ps
    }
}

/// The latest events of the channel of one controller.
#[derive(Default)]
struct Channel {
    banks: BTreeMap<(u16, u16), Bank>,
    ranks: BTreeMap<u16, Rank>,
    /// The last command.
    command_ps: Option<Picos>,
    /// The last burst on the data bus: its end, its rank and whether it was read.
    burst: Option<(Picos, u16, bool)>,
    /// Media without rows: when each line goes over the bus, for which command.
    transfers: Vec<(Picos, Command)>,
    /// Modules: lines of each block that the module has had, and when cells and bus are free.
    blocks: BTreeMap<u64, u64>,
    cells_free_ps: Option<Picos>,
    bus_free_ps: Option<Picos>,
}

/// `after_ps` after an event, if it ever happened.
fn delayed(event_ps: Option<Picos>, after_ps: Picos) -> Option<Picos> {
    event_ps.map(|at| at + after_ps)
}

impl Channel {
    fn ddr(&mut self, checker: &mut Checker, t: &DdrTiming, media: &MediaConfig, command: Command) {
        let at = command.at_ps;
        checker.require(at.is_multiple_of(t.t_ck_ps), "commands begin with a clock");
        checker.not_before(delayed(self.command_ps, t.t_ck_ps), "one command in a clock");
        self.command_ps = Some(at);
        let ranks = u64::from(media.ranks.unwrap_or(1));
        checker.require(u64::from(command.rank) < ranks, "the rank exists");
        checker.require(u32::from(command.bank) < media.banks.unwrap_or(1), "the bank exists");
        let rank = self.ranks.entry(command.rank).or_default();
        checker.not_before(delayed(rank.refresh_ps, t.t_rfc_ps), "tRFC");
        if t.t_refi_ps > 0 {
            checker.require(at < rank.postponed_until_ps(t) || command.kind == CommandKind::Ref, "tREFI");
        }
        match command.kind {
            CommandKind::Act => self.act(checker, t, media, command),
            CommandKind::Pre => {
                let bank = self.banks.entry((command.rank, command.bank)).or_default();
                bank.may_close(checker, t);
                bank.open = None;
                bank.pre_ps = Some(at);
            }
            CommandKind::PreAll => {
                for (_, bank) in self.banks.range_mut((command.rank, 0)..=(command.rank, u16::MAX)) {
                    bank.may_close(checker, t);
                    // A bank whose row was closed earlier stays closed since then.
                    if bank.open.take().is_some() {
                        bank.pre_ps = Some(at);
                    }
                }
            }
            CommandKind::Ref => {
                for (_, bank) in self.banks.range((command.rank, 0)..=(command.rank, u16::MAX)) {
                    checker.require(bank.open.is_none(), "a refresh finds all rows closed");
                    checker.not_before(delayed(bank.pre_ps, t.t_rp_ps), "tRP before a refresh");
                }
                checker.require(t.t_refi_ps > 0 && at < rank.postponed_until_ps(t), "tREFI between refreshes");
                rank.refresh_ps = Some(at);
                rank.refreshes += 1;
            }
            CommandKind::Rd | CommandKind::Wr => self.column(checker, t, media, command),
        }
    }

    fn act(&mut self, checker: &mut Checker, t: &DdrTiming, media: &MediaConfig, command: Command) {
        let at = command.at_ps;
        let bank = self.banks.entry((command.rank, command.bank)).or_default();
        checker.require(bank.open.is_none(), "ACT finds no row open");
        checker.not_before(delayed(bank.pre_ps, t.t_rp_ps), "tRP");
        bank.open = Some(command.row);
        bank.act_ps = Some(at);
        (bank.read_ps, bank.write_ps) = (None, None);
        let group = group_of(media, command);
        let rank = self.ranks.entry(command.rank).or_default();
        for &(act_ps, of) in &rank.acts {
            let (apart_ps, rule) = if of == group { (t.t_rrd_l_ps, "tRRD_L") } else { (t.t_rrd_s_ps, "tRRD_S") };
            checker.not_before(Some(act_ps + apart_ps), rule);
        }
        if rank.acts.len() == 4 {
            checker.not_before(rank.acts.front().map(|&(act_ps, _)| act_ps + t.t_faw_ps), "tFAW");
            rank.acts.pop_front();
        }
        rank.acts.push_back((at, group));
    }

    fn column(&mut self, checker: &mut Checker, t: &DdrTiming, media: &MediaConfig, command: Command) {
        let at = command.at_ps;
        let reads = command.kind == CommandKind::Rd;
        let bank = self.banks.entry((command.rank, command.bank)).or_default();
        checker.require(bank.open == Some(command.row), "the row is open");
        checker.not_before(delayed(bank.act_ps, t.t_rcd_ps), "tRCD");
        if reads {
            bank.read_ps = Some(at);
        } else {
            bank.write_ps = Some(at);
        }
        if command.auto_precharge {
            // The row is closed as soon as that is allowed.
            bank.pre_ps = bank.may_close_from(t).into_iter().map(|(at, _)| at).max();
            bank.open = None;
        }
        let columns = u64::from(media.row_bytes.unwrap_or(0)) / 64;
        checker.require(u64::from(command.column) < columns, "the column exists");

        let group = group_of(media, command);
        let rank = self.ranks.entry(command.rank).or_default();
        let same = if reads { &rank.reads } else { &rank.writes };
        for (&of, &column_ps) in same {
            let (apart_ps, rule) = if of == group { (t.t_ccd_l_ps, "tCCD_L") } else { (t.t_ccd_s_ps, "tCCD_S") };
            checker.not_before(Some(column_ps + apart_ps), rule);
        }
        if reads {
            for (&of, &write_ps) in &rank.writes {
                let (apart_ps, rule) = if of == group { (t.t_wtr_l_ps, "tWTR_L") } else { (t.t_wtr_s_ps, "tWTR_S") };
                checker.not_before(Some(write_ps + t.t_cwl_ps + t.t_burst_ps + apart_ps), rule);
            }
            rank.reads.insert(group, at);
        } else {
            rank.writes.insert(group, at);
        }

        // Latencies count in whole clocks on the bus.
        let latency_ps = if reads { t.t_cas_ps } else { t.t_cwl_ps }.next_multiple_of(t.t_ck_ps);
        self.burst(checker, t, latency_ps, media, command);
    }

    /// The data of a read or write, so long after its command, meets the data before it on the bus.
    fn burst(
        &mut self,
        checker: &mut Checker,
        t: &DdrTiming,
        latency_ps: Picos,
        media: &MediaConfig,
        command: Command,
    ) {
        let reads = command.kind == CommandKind::Rd;
        if let Some((end_ps, rank, was_read)) = self.burst {
            let free_from = |data_ps: Picos| Some(data_ps.saturating_sub(latency_ps));
            checker.not_before(free_from(end_ps), "the data bus is free");
            if rank != command.rank {
                checker.not_before(free_from(end_ps + media.rank_switch_ps.unwrap_or(0)), "the data bus changes ranks");
            }
            if was_read && !reads {
                checker.not_before(free_from(end_ps + t.t_rtw_ps), "the data bus turns around");
            }
        }
        self.burst = Some((command.at_ps + latency_ps + t.t_burst_ps, command.rank, reads));
    }

    /// Modules of persistent memory: `Act` reads a block from the cells, `Pre` writes one there, `Rd` and `Wr` are lines. The
    /// cells take one block after the other; a line that is read was read from the cells or written before.
    fn module(&mut self, checker: &mut Checker, media: &MediaConfig, command: Command) {
        let at = command.at_ps;
        let known = self.blocks.entry(command.row).or_default();
        let line = 1u64 << command.column;
        match command.kind {
            CommandKind::Act | CommandKind::Pre => {
                let reads = command.kind == CommandKind::Act;
                checker.require(reads || *known != 0, "only what was written is written to the cells");
                checker.not_before(self.cells_free_ps, "the cells are free");
                let mb_per_s = if reads { media.cell_read_mb_per_s } else { media.cell_write_mb_per_s };
                self.cells_free_ps = Some(at + media.block_ps(mb_per_s));
                if reads {
                    *known = u64::MAX;
                }
            }
            CommandKind::Rd => checker.require(*known & line != 0, "a line that is read is in the module"),
            CommandKind::Wr => {
                checker.not_before(self.bus_free_ps, "the data bus is free");
                self.bus_free_ps = Some(at + media.transfer_ps());
                *known |= line;
            }
            CommandKind::PreAll | CommandKind::Ref => checker.require(false, "modules have no such command"),
        }
    }

    /// Media with a latency: a bank serves one access at a time, the channel carries one line at a time.
    fn latencies(&mut self, checker: &mut Checker, media: &MediaConfig, command: Command) {
        let reads = command.kind == CommandKind::Rd;
        checker.require(reads || command.kind == CommandKind::Wr, "media without rows read and write");
        checker.require(u32::from(command.bank) < media.banks.unwrap_or(1), "the bank exists");
        checker.require(u32::from(command.rank) < media.ranks.unwrap_or(1), "the rank exists");
        let latency_ns = if reads { media.read_latency_ns } else { media.write_latency_ns };
        let latency_ps = latency_ns.unwrap_or(0) * 1000;
        let bank = self.banks.entry((command.rank, command.bank)).or_default();
        checker.not_before(bank.free_ps, "the bank is free");
        bank.free_ps = Some(command.at_ps + latency_ps);
        let ends_with_it = media.kind == MediaKind::SttRam && reads;
        let sent_ps = if ends_with_it { command.at_ps + latency_ps - media.transfer_ps() } else { command.at_ps };
        self.transfers.push((sent_ps, command));
    }

    /// Lines of media without rows, in the order in which they use the bus: reads send theirs late.
    fn transfers(&mut self, checker: &mut Checker, media: &MediaConfig) {
        self.transfers.sort_unstable();
        for pair in self.transfers.windows(2) {
            let [(before_ps, before), (at_ps, command)] = [pair[0], pair[1]];
            checker.command = Some(command);
            let late_ps = at_ps - command.at_ps;
            let end_ps = before_ps + media.transfer_ps();
            checker.not_before(Some(end_ps.saturating_sub(late_ps)), "the data bus is free");
            if before.rank != command.rank {
                let switched_ps = end_ps + media.rank_switch_ps.unwrap_or(0);
                checker.not_before(Some(switched_ps.saturating_sub(late_ps)), "the data bus changes ranks");
            }
        }
    }
}

/// The group of a command's bank.
fn group_of(media: &MediaConfig, command: Command) -> u32 {
    u32::from(command.bank) % media.bank_groups.unwrap_or(1)
}

impl Bank {
    /// From when on the row may be closed, by each rule.
    fn may_close_from(&self, t: &DdrTiming) -> Vec<(Picos, &'static str)> {
        let rules = [
            (delayed(self.act_ps, t.t_ras_ps), "tRAS"),
            (delayed(self.read_ps, t.t_rtp_ps), "tRTP"),
            (delayed(self.write_ps, t.t_cwl_ps + t.t_burst_ps + t.t_wr_ps), "tWR"),
        ];
        rules.into_iter().filter_map(|(at, rule)| at.map(|at| (at, rule))).collect()
    }

    fn may_close(&self, checker: &mut Checker, t: &DdrTiming) {
        if self.open.is_some() {
            for (at, rule) in self.may_close_from(t) {
                checker.not_before(Some(at), rule);
            }
        }
    }
}
