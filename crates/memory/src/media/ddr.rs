//! DDR3, DDR4, and nonvolatile media behind such an interface: banks with a row buffer, commands and the times between
//! them.
//!
//! A bank knows when each kind of command may be given to it next. What banks share (command bus, data bus, the
//! current of a rank) is in [`Recent`]. An access is planned command by command: PRE if another row is open, ACT if the
//! right one is not, then the read or write.
//!
//! **Requests with earlier times.** Commands of one bank are given in the order in which its requests come: none before
//! the bank's last one, even if the request asks for an earlier time. Commands of different banks take gaps before
//! commands that are booked already, as long as all times between them hold.
//!
//! **Refresh.** Each rank is refreshed at fixed times, once in tREFI, ranks one after the other. All its rows are closed
//! tRP before. An access that could not close its row by then is placed after the refresh as a whole.

use super::config::{AddressMapping, MediaConfig, PagePolicy};
use super::recent::{ChannelUse, CommandSpacing, IssuedCommand, Recent};
use super::timing::DdrTiming;
use super::{Access, Direction, folded};
use crate::trace::{Command, CommandKind, Trace};
use durasim_types::{LINE_BYTES, Picos};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

/// What accesses found in the row buffer of their bank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowStats {
    /// Their row.
    pub hits: u64,
    /// No row.
    pub misses: u64,
    /// Another row.
    pub conflicts: u64,
}

/// A bank: when which command may be given to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Bank {
    /// The row that is open, until the next refresh at the latest.
    row: Option<u64>,
    /// The number of refreshes of the rank before the last command.
    refreshes: u64,
    /// The last command.
    last_ps: Picos,
    /// The first time for ACT, if no row is open.
    next_act_ps: Picos,
    /// The first time for a read or write of the open row.
    next_column_ps: Picos,
    /// The first time for PRE.
    next_pre_ps: Picos,
}

/// Where a line lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineLocation {
    rank: u32,
    bank: u32,
    row: u64,
    column: u32,
}

/// The commands of an access.
#[derive(Clone, Copy, Debug)]
struct Plan {
    pre_ps: Option<Picos>,
    act_ps: Option<Picos>,
    column_ps: Picos,
    /// The first time at which the row may be closed after it.
    next_pre_ps: Picos,
    refreshes: u64,
}

impl Plan {
    fn start_ps(&self) -> Picos {
        self.pre_ps.or(self.act_ps).unwrap_or(self.column_ps)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ddr {
    ranks: u32,
    banks_per_rank: u32,
    bank_groups: u32,
    columns: u32,
    closes_rows: bool,
    mapping: AddressMapping,
    permute: bool,
    banks: Vec<Bank>,
    recent: Recent,
    pub stats: RowStats,
}

impl Ddr {
    pub fn new(config: &MediaConfig) -> Self {
        let complete = "the defaults of the kind are in";
        let (ranks, banks_per_rank) = (config.ranks.expect(complete), config.banks.expect(complete));
        let t = config.ddr_timing().expect(complete).in_clocks();
        let rank_switch_ps = config.rank_switch_ps.expect(complete).next_multiple_of(t.t_ck_ps);
        Ddr {
            ranks,
            banks_per_rank,
            bank_groups: config.bank_groups.unwrap_or(1),
            columns: config.row_bytes.expect(complete) / LINE_BYTES as u32,
            closes_rows: config.page_policy == Some(PagePolicy::Closed),
            mapping: config.address_mapping.expect(complete),
            permute: config.permute_banks.expect(complete),
            banks: vec![Bank::default(); (ranks * banks_per_rank) as usize],
            recent: Recent::new(CommandSpacing { t, rank_switch_ps }),
            stats: RowStats::default(),
        }
    }

    fn place(&self, line: u64) -> LineLocation {
        let mut rest = line;
        let mut take = |count: u32| {
            let part = (rest % u64::from(count)) as u32;
            rest /= u64::from(count);
            part
        };
        let (rank, bank, column) = match self.mapping {
            AddressMapping::RowRankBankColumn => {
                let (column, bank) = (take(self.columns), take(self.banks_per_rank));
                (take(self.ranks), bank, column)
            }
            AddressMapping::RowColumnRankBank => {
                let (bank, rank) = (take(self.banks_per_rank), take(self.ranks));
                (rank, bank, take(self.columns))
            }
        };
        let swap = if self.permute { folded(rest, self.banks_per_rank) } else { 0 };
        LineLocation { rank, bank: bank ^ swap, row: rest, column }
    }

    fn index(&self, place: LineLocation) -> usize {
        (place.rank * self.banks_per_rank + place.bank) as usize
    }

    pub fn bank(&self, line: u64) -> usize {
        self.index(self.place(line))
    }

    fn t(&self) -> &DdrTiming {
        self.recent.times()
    }

    /// How much earlier than the first rank's the refreshes of a rank are, in whole clocks.
    fn stagger_ps(&self, rank: u32) -> Picos {
        let part_ps = self.t().t_refi_ps / u64::from(self.ranks);
        u64::from(rank) * (part_ps - part_ps % self.t().t_ck_ps)
    }

    /// The refreshes of a rank up to a time.
    fn refreshes(&self, rank: u32, at_ps: Picos) -> u64 {
        (at_ps + self.stagger_ps(rank)).checked_div(self.t().t_refi_ps).unwrap_or(0)
    }

    /// The time of a rank's `n`-th refresh, counted from 1.
    fn refresh_ps(&self, rank: u32, n: u64) -> Picos {
        n * self.t().t_refi_ps - self.stagger_ps(rank)
    }

    /// When a rank can be used again after so many refreshes.
    fn usable_ps(&self, rank: u32, refreshes: u64) -> Picos {
        if refreshes == 0 { 0 } else { self.refresh_ps(rank, refreshes) + self.t().t_rfc_ps }
    }

    /// When all rows of a rank are closed for the refresh behind so many.
    fn closing_ps(&self, rank: u32, refreshes: u64) -> Picos {
        if self.t().t_refi_ps == 0 { Picos::MAX } else { self.refresh_ps(rank, refreshes + 1) - self.t().t_rp_ps }
    }

    /// Whether a refresh, or the command that closes all rows before one, has the command bus.
    fn is_taken(&self, at_ps: Picos) -> bool {
        let t = self.t();
        t.t_refi_ps > 0
            && (0..self.ranks).any(|rank| {
                let periods_ps = at_ps + self.stagger_ps(rank);
                let in_period_ps = periods_ps % t.t_refi_ps;
                // There is no refresh at the beginning of time.
                (in_period_ps == 0 && periods_ps > 0) || in_period_ps + t.t_rp_ps == t.t_refi_ps
            })
    }

    fn given(&self, channel_use: ChannelUse, place: LineLocation) -> IssuedCommand {
        IssuedCommand { channel_use, rank: place.rank, group: place.bank % self.bank_groups }
    }

    fn first(&self, channel_use: ChannelUse, place: LineLocation, at_ps: Picos) -> Picos {
        self.recent.first(self.given(channel_use, place), at_ps, |at| self.is_taken(at))
    }

    /// The commands of an access that asks for `at_ps`.
    fn plan(&self, place: LineLocation, direction: Direction, at_ps: Picos) -> Plan {
        let bank = &self.banks[self.index(place)];
        let mut at = at_ps.max(bank.last_ps);
        loop {
            let refreshes = self.refreshes(place.rank, at);
            let usable = at.max(self.usable_ps(place.rank, refreshes));
            let plan = self.plan_between(bank, place, direction, usable, refreshes);
            if plan.next_pre_ps <= self.closing_ps(place.rank, refreshes) {
                return plan;
            }
            at = self.refresh_ps(place.rank, refreshes + 1);
        }
    }

    /// The commands of an access from `at` on, as if no refresh came after so many.
    fn plan_between(&self, bank: &Bank, place: LineLocation, direction: Direction, at: Picos, refreshes: u64) -> Plan {
        let t = self.t();
        let open = bank.row.filter(|_| bank.refreshes == refreshes);
        let pre_ps = match open {
            Some(row) if row != place.row => Some(self.first(ChannelUse::Bus, place, at.max(bank.next_pre_ps))),
            _ => None,
        };
        let act_ps = match (open, pre_ps) {
            (_, Some(pre_ps)) => Some(self.first(ChannelUse::Activate, place, pre_ps + t.t_rp_ps)),
            (None, None) => Some(self.first(ChannelUse::Activate, place, at.max(bank.next_act_ps))),
            (Some(_), None) => None,
        };
        let (channel_use, busy_ps) = match direction {
            Direction::Read => (ChannelUse::Read, t.t_rtp_ps),
            Direction::Write => (ChannelUse::Write, t.t_cwl_ps + t.t_burst_ps + t.t_wr_ps),
        };
        let column_ps =
            self.first(channel_use, place, act_ps.map_or(at.max(bank.next_column_ps), |act_ps| act_ps + t.t_rcd_ps));
        let row_ps = act_ps.map_or(bank.next_pre_ps, |act_ps| act_ps + t.t_ras_ps);
        Plan { pre_ps, act_ps, column_ps, next_pre_ps: row_ps.max(column_ps + busy_ps), refreshes }
    }

    pub fn first_start(&self, line: u64, direction: Direction, at_ps: Picos) -> Picos {
        self.plan(self.place(line), direction, at_ps).start_ps()
    }

    pub fn access(&mut self, line: u64, direction: Direction, at_ps: Picos, trace: &mut Trace) -> Access {
        let place = self.place(line);
        let plan = self.plan(place, direction, at_ps);
        let (channel_use, kind) = match direction {
            Direction::Read => (ChannelUse::Read, CommandKind::Rd),
            Direction::Write => (ChannelUse::Write, CommandKind::Wr),
        };
        let commands = [
            plan.pre_ps.map(|at| (at, ChannelUse::Bus, CommandKind::Pre)),
            plan.act_ps.map(|at| (at, ChannelUse::Activate, CommandKind::Act)),
            Some((plan.column_ps, channel_use, kind)),
        ];
        for (at_ps, channel_use, kind) in commands.into_iter().flatten() {
            self.recent.give(at_ps, self.given(channel_use, place));
            let is_column = matches!(kind, CommandKind::Rd | CommandKind::Wr);
            trace.note(|| Command {
                at_ps,
                controller: 0,
                kind,
                rank: place.rank as u16,
                bank: place.bank as u16,
                row: if kind == CommandKind::Pre { 0 } else { place.row },
                column: if is_column { place.column } else { 0 },
                auto_precharge: is_column && self.closes_rows,
            });
        }
        match (plan.pre_ps, plan.act_ps) {
            (Some(_), _) => self.stats.conflicts += 1,
            (None, Some(_)) => self.stats.misses += 1,
            (None, None) => self.stats.hits += 1,
        }
        let t = *self.t();
        let closes_rows = self.closes_rows;
        let index = self.index(place);
        let bank = &mut self.banks[index];
        bank.row = (!closes_rows).then_some(place.row);
        bank.refreshes = plan.refreshes;
        bank.last_ps = plan.column_ps;
        bank.next_column_ps = plan.column_ps;
        bank.next_pre_ps = plan.next_pre_ps;
        bank.next_act_ps = plan.next_pre_ps + t.t_rp_ps;
        let done_ps = plan.column_ps
            + match direction {
                Direction::Read => t.t_cas_ps + t.t_burst_ps,
                Direction::Write => t.t_cwl_ps + t.t_burst_ps + t.t_wr_ps,
            };
        Access { start_ps: plan.start_ps(), done_ps }
    }

    /// Adds the refreshes up to a time, with the commands that close all rows before them.
    pub fn note_refreshes(&self, until_ps: Picos, commands: &mut Vec<Command>) {
        for rank in 0..self.ranks {
            for n in 1..=self.refreshes(rank, until_ps) {
                let at_ps = self.refresh_ps(rank, n);
                for (at_ps, kind) in [(at_ps - self.t().t_rp_ps, CommandKind::PreAll), (at_ps, CommandKind::Ref)] {
                    let rank = rank as u16;
                    let command =
                        Command { at_ps, controller: 0, kind, rank, bank: 0, row: 0, column: 0, auto_precharge: false };
                    commands.push(command);
                }
            }
        }
    }

    pub fn digest(&self, hasher: &mut dyn Hasher) {
        for bank in &self.banks {
            hasher.write_u64(bank.row.map_or(u64::MAX, |row| row));
            hasher.write_u64(bank.next_pre_ps);
        }
        hasher.write_u64(self.recent.end_ps());
    }
}
