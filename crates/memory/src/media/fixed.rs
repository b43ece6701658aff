//! Media with one latency for reads and one for writes: an access takes its bank for that time and, from its start, the
//! channel for the time of a line.

use super::{Access, Direction, MediaConfig};
use crate::reservations::Reservations;
use crate::trace::{Command, CommandKind, Trace};
use durasim_types::{LINE_BYTES, Picos};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Fixed {
    read_ps: Picos,
    write_ps: Picos,
    transfer_ps: Picos,
    salt: u64,
    row_lines: u64,
    banks: Vec<Reservations>,
    channel: Reservations,
}

impl Fixed {
    pub fn new(config: &MediaConfig, salt: u64) -> Self {
        let complete = "the defaults of the kind are in";
        Fixed {
            read_ps: config.read_latency_ns.expect(complete) * 1000,
            write_ps: config.write_latency_ns.expect(complete) * 1000,
            transfer_ps: config.transfer_ps(),
            salt,
            row_lines: u64::from(config.row_bytes.expect(complete)) / LINE_BYTES,
            banks: vec![Reservations::default(); config.banks.expect(complete) as usize],
            channel: Reservations::default(),
        }
    }

    /// The bank of a line: adjacent rows are in different banks, and higher address bits permute the banks (as Zhang,
    /// Zhu and Zhang, MICRO 2000, do with pages), or a victim would always meet the line that replaces it.
    #[inline]
    pub fn bank(&self, line: u64) -> usize {
        let mut hash = line / self.row_lines + self.salt;
        for shift in [20, 10, 5] {
            hash ^= hash >> shift;
        }
        (hash % self.banks.len() as u64) as usize
    }

    fn latency_ps(&self, direction: Direction) -> Picos {
        if direction == Direction::Read { self.read_ps } else { self.write_ps }
    }

    /// The first time, not before `at_ps`, at which a bank is free for an access and the channel for a transfer.
    #[inline]
    pub fn first_start(&self, bank: usize, direction: Direction, at_ps: Picos) -> Picos {
        let latency_ps = self.latency_ps(direction);
        let mut start = at_ps;
        loop {
            let free = self.channel.first_gap(self.banks[bank].first_gap(start, latency_ps), self.transfer_ps);
            if free == start {
                return start;
            }
            start = free;
        }
    }

    #[inline]
    pub fn access(&mut self, line: u64, direction: Direction, at_ps: Picos, trace: &mut Trace) -> Access {
        let bank = self.bank(line);
        let latency_ps = self.latency_ps(direction);
        let start_ps = self.first_start(bank, direction, at_ps);
        self.banks[bank].book(start_ps, latency_ps);
        self.channel.book(start_ps, self.transfer_ps);
        trace.note(|| Command {
            at_ps: start_ps,
            controller: 0,
            kind: if direction == Direction::Read { CommandKind::Rd } else { CommandKind::Wr },
            rank: 0,
            bank: bank as u16,
            row: line,
            column: 0,
            auto_precharge: false,
        });
        Access { start_ps, done_ps: start_ps + latency_ps }
    }

    pub fn digest(&self, hasher: &mut dyn Hasher) {
        self.banks.iter().chain([&self.channel]).for_each(|r| hasher.write_u64(r.end()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::MediaKind;

    #[test]
    fn lines_of_a_row_share_a_bank_and_adjacent_rows_do_not() {
        let of = |row_bytes| {
            let mut config = MediaConfig { row_bytes: Some(row_bytes), ..MediaConfig::of(MediaKind::Fixed) };
            config.complete();
            Fixed::new(&config, 0)
        };
        let (lines, rows) = (of(64), of(256));
        assert_ne!(lines.bank(0), lines.bank(1));
        for row in 0..64 {
            let bank = rows.bank(4 * row);
            assert!((1..4).all(|line| rows.bank(4 * row + line) == bank), "row {row}");
            assert_ne!(bank, rows.bank(4 * row + 4), "row {row}");
        }
    }
}
