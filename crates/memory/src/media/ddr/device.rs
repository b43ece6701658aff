//! Banks with a row buffer on one channel: when which command may be given, and what it changes.
//!
//! A bank knows when each kind of command may be given to it next. What banks share (command bus, data bus, the current of a
//! rank) is in [`Recent`], with gaps: a command for a request with an earlier time may come before commands that were given
//! for later ones, as long as all times between them hold.

use super::super::config::{AddressMapping, MediaConfig, PagePolicy};
use super::super::recent::{ChannelUse, CommandSpacing, IssuedCommand, Recent};
use super::super::timing::DdrTiming;
use super::super::{Direction, folded};
use crate::trace::CommandKind;
use durasim_types::{LINE_BYTES, Picos};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

/// The state in which a request found the row buffer of its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RowFound {
    /// Its row.
    Hit,
    /// No row.
    Miss,
    /// Another row.
    Conflict,
}

/// A bank: when which command may be given to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Bank {
    /// The row that is open.
    row: Option<u64>,
    /// The last command: a request with an earlier time has its commands after it.
    last_ps: Picos,
    /// The first time for ACT, if no row is open.
    next_act_ps: Picos,
    /// The first time for a read or write of the open row.
    next_column_ps: Picos,
    /// The first time for PRE.
    next_pre_ps: Picos,
    /// Reads and writes of the row since it was opened.
    columns: u32,
    /// Requests for which the row was opened and that have not been served.
    opened_for: u32,
}

/// The place of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LineLocation {
    pub rank: u32,
    /// The bank in its rank.
    pub bank: u32,
    pub row: u64,
    pub column: u32,
    /// The bank among all of the channel.
    pub index: u32,
}

/// The next command that a request or a refresh needs, and the first time for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextCommand {
    pub kind: CommandKind,
    pub at_ps: Picos,
}

/// The device on a channel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Device {
    ranks: u32,
    banks_per_rank: u32,
    bank_groups: u32,
    columns: u32,
    closes_rows: bool,
    mapping: AddressMapping,
    permute: bool,
    banks: Vec<Bank>,
    recent: Recent,
    /// The time at which the next refresh of each rank is due.
    refresh_due_ps: Vec<Picos>,
}

impl Device {
    pub fn new(config: &MediaConfig) -> Self {
        let complete = "the defaults of the kind are in";
        let (ranks, banks_per_rank) = (config.ranks.expect(complete), config.banks.expect(complete));
        let t = config.ddr_timing().expect(complete).in_clocks();
        let rank_switch_ps = config.rank_switch_ps.expect(complete).next_multiple_of(t.t_ck_ps);
        // Ranks are refreshed one after the other, at equal distances in whole clocks.
        let part_ps = t.t_refi_ps / u64::from(ranks);
        let part_ps = part_ps - part_ps % t.t_ck_ps;
        let due_ps = |rank: u32| match t.t_refi_ps {
            0 => Picos::MAX,
            refi_ps => refi_ps - u64::from(ranks - 1 - rank) * part_ps,
        };
        Device {
            ranks,
            banks_per_rank,
            bank_groups: config.bank_groups.unwrap_or(1),
            columns: config.row_bytes.expect(complete) / LINE_BYTES as u32,
            closes_rows: config.page_policy == Some(PagePolicy::Closed),
            mapping: config.address_mapping.expect(complete),
            permute: config.permute_banks.expect(complete),
            banks: vec![Bank::default(); (ranks * banks_per_rank) as usize],
            refresh_due_ps: (0..ranks).map(due_ps).collect(),
            recent: Recent::new(CommandSpacing { t, rank_switch_ps }),
        }
    }

    /// Makes `copy` a copy that knows of the shared buses what matters from `from_ps` on. It was one of this device before.
    pub fn copy_into(&self, copy: &mut Device, from_ps: Picos) {
        copy.banks.clone_from(&self.banks);
        copy.refresh_due_ps.clone_from(&self.refresh_due_ps);
        self.recent.copy_into(&mut copy.recent, from_ps);
    }

    pub fn place(&self, line: u64) -> LineLocation {
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
        let bank = bank ^ if self.permute { folded(rest, self.banks_per_rank) } else { 0 };
        LineLocation { rank, bank, row: rest, column, index: rank * self.banks_per_rank + bank }
    }

    fn t(&self) -> &DdrTiming {
        self.recent.times()
    }

    /// The time of a clock: the command bus takes one command in each.
    pub fn clock_ps(&self) -> Picos {
        self.t().t_ck_ps
    }

    /// Number of banks, over all ranks.
    pub fn banks(&self) -> usize {
        self.banks.len()
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Whether each access closes its row.
    pub fn closes_rows(&self) -> bool {
        self.closes_rows
    }

    /// The row that is open in a bank.
    pub fn open_row(&self, place: LineLocation) -> Option<u64> {
        self.banks[place.index as usize].row
    }

    /// Reads and writes of the open row of a bank since it was opened.
    pub fn columns_in_row(&self, place: LineLocation) -> u32 {
        self.banks[place.index as usize].columns
    }

    /// Whether a bank has a row open for a request that has not been served.
    pub fn is_opened_for_one(&self, place: LineLocation) -> bool {
        self.banks[place.index as usize].opened_for > 0
    }

    /// The time at which the next refresh of a rank is due; `Picos::MAX` for media that need none.
    pub fn refresh_due_ps(&self, rank: u32) -> Picos {
        self.refresh_due_ps[rank as usize]
    }

    fn issued(&self, channel_use: ChannelUse, rank: u32, bank: u32) -> IssuedCommand {
        IssuedCommand { channel_use, rank, group: bank % self.bank_groups }
    }

    fn channel_use(kind: CommandKind) -> ChannelUse {
        match kind {
            CommandKind::Act => ChannelUse::Activate,
            CommandKind::Rd => ChannelUse::Read,
            CommandKind::Wr => ChannelUse::Write,
            CommandKind::Pre | CommandKind::PreAll | CommandKind::Ref => ChannelUse::Bus,
        }
    }

    /// The next command of a request.
    pub fn next_kind(&self, place: LineLocation, direction: Direction) -> CommandKind {
        match self.open_row(place) {
            Some(row) if row == place.row => match direction {
                Direction::Read => CommandKind::Rd,
                Direction::Write => CommandKind::Wr,
            },
            Some(_) => CommandKind::Pre,
            None => CommandKind::Act,
        }
    }

    /// The first time, not before `from_ps`, for the next command of a request.
    pub fn first_ps(&self, place: LineLocation, kind: CommandKind, from_ps: Picos) -> Picos {
        let bank = &self.banks[place.index as usize];
        let bank_ps = match kind {
            CommandKind::Act => bank.next_act_ps,
            CommandKind::Rd | CommandKind::Wr => bank.next_column_ps,
            CommandKind::Pre | CommandKind::PreAll | CommandKind::Ref => bank.next_pre_ps,
        };
        self.recent
            .first(self.issued(Self::channel_use(kind), place.rank, place.bank), from_ps.max(bank_ps).max(bank.last_ps))
    }

    /// The next command of the refresh of a rank, not before `from_ps`. `None`: a row is open for a request that is served
    /// first.
    pub fn refresh(&self, rank: u32, from_ps: Picos) -> Option<NextCommand> {
        let first = (rank * self.banks_per_rank) as usize;
        let banks = &self.banks[first..first + self.banks_per_rank as usize];
        if banks.iter().any(|bank| bank.opened_for > 0) {
            return None;
        }
        let from_ps = from_ps.max(self.refresh_due_ps(rank));
        let open = banks.iter().filter(|bank| bank.row.is_some());
        let (kind, bank_ps) = match open.map(|bank| bank.next_pre_ps).max() {
            Some(pre_ps) => (CommandKind::PreAll, pre_ps),
            None => (CommandKind::Ref, banks.iter().map(|bank| bank.next_act_ps).max().unwrap_or(0)),
        };
        let at_ps = self.recent.first(self.issued(ChannelUse::Bus, rank, 0), from_ps.max(bank_ps));
        Some(NextCommand { kind, at_ps })
    }

    /// Gives a command of a refresh.
    pub fn give_refresh(&mut self, rank: u32, command: NextCommand) {
        let t = *self.t();
        let NextCommand { kind, at_ps } = command;
        self.recent.give(at_ps, self.issued(ChannelUse::Bus, rank, 0));
        let first = (rank * self.banks_per_rank) as usize;
        for bank in &mut self.banks[first..first + self.banks_per_rank as usize] {
            bank.last_ps = bank.last_ps.max(at_ps);
            if kind == CommandKind::Ref {
                bank.next_act_ps = at_ps + t.t_rfc_ps;
            } else if bank.row.take().is_some() {
                bank.next_act_ps = at_ps + t.t_rp_ps;
            }
        }
        if kind == CommandKind::Ref {
            self.refresh_due_ps[rank as usize] += t.t_refi_ps;
        }
    }

    /// Gives a command of a request; `was_opened`: its row was opened for it.
    pub fn give(&mut self, place: LineLocation, command: NextCommand, was_opened: bool) {
        let t = *self.t();
        let NextCommand { kind, at_ps } = command;
        self.recent.give(at_ps, self.issued(Self::channel_use(kind), place.rank, place.bank));
        let closes_rows = self.closes_rows;
        let bank = &mut self.banks[place.index as usize];
        bank.last_ps = at_ps;
        match kind {
            CommandKind::Act => {
                bank.row = Some(place.row);
                bank.columns = 0;
                bank.opened_for += 1;
                bank.next_column_ps = at_ps + t.t_rcd_ps;
                bank.next_pre_ps = at_ps + t.t_ras_ps;
            }
            CommandKind::Rd | CommandKind::Wr => {
                let busy_ps = if kind == CommandKind::Rd { t.t_rtp_ps } else { t.t_cwl_ps + t.t_burst_ps + t.t_wr_ps };
                bank.columns += 1;
                bank.opened_for -= u32::from(was_opened);
                bank.next_pre_ps = bank.next_pre_ps.max(at_ps + busy_ps);
                if closes_rows {
                    bank.row = None;
                    bank.next_act_ps = bank.next_pre_ps + t.t_rp_ps;
                }
            }
            CommandKind::Pre | CommandKind::PreAll | CommandKind::Ref => {
                bank.row = None;
                bank.next_act_ps = at_ps + t.t_rp_ps;
            }
        }
    }

    /// A request for which a row was opened is not going to be served.
    pub fn forget(&mut self, place: LineLocation) {
        self.banks[place.index as usize].opened_for -= 1;
    }

    /// The time at which the last data of a read has arrived, or the cells hold a write, after its command at `at_ps`.
    pub fn done_ps(&self, direction: Direction, at_ps: Picos) -> Picos {
        let t = self.t();
        at_ps
            + match direction {
                Direction::Read => t.t_cas_ps + t.t_burst_ps,
                Direction::Write => t.t_cwl_ps + t.t_burst_ps + t.t_wr_ps,
            }
    }

    /// The latency of a read that has to wait for nothing, with what it finds in the row buffer.
    pub fn unloaded_ps(&self, found: RowFound) -> Picos {
        let t = self.t();
        let opening_ps = match found {
            RowFound::Hit => 0,
            RowFound::Miss => t.t_rcd_ps,
            RowFound::Conflict => t.t_rp_ps + t.t_rcd_ps,
        };
        opening_ps + t.t_cas_ps + t.t_burst_ps
    }

    pub fn digest(&self, hasher: &mut dyn Hasher) {
        for bank in &self.banks {
            hasher.write_u64(bank.row.map_or(u64::MAX, |row| row));
            hasher.write_u64(bank.next_pre_ps);
        }
        hasher.write_u64(self.recent.end_ps());
    }
}
