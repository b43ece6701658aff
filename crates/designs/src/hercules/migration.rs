//! Commit off-chip (section 4.2): a background engine carries log entries of committed transactions to their home
//! addresses.

use super::ewpq::Mapping;
use super::state::State;
use super::zone::PartZone;
use durasim_contract::{Action, Actions, CopyRequest, Origin, Token};
use durasim_types::{Cause, EventKind, LineAddr, PhysAddr};
use serde::{Deserialize, Serialize};

/// The engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Migration {
    /// Entries in flight.
    pub in_flight: usize,
    /// Lines that were loaded again while a migration carried their log entry home: the entry is invalid, but the
    /// write is in flight, and nothing newer may arrive home before it.
    pub departed: Vec<(LineAddr, Token)>,
    /// Whether a periodic scan is at work.
    pub scanning: bool,
}

impl Migration {
    /// The migration that is carrying an older version of the line home.
    pub fn in_flight_home(&self, line: LineAddr) -> Option<Token> {
        self.departed.iter().find(|(home, _)| *home == line).map(|(_, token)| *token)
    }

    fn write_home(&mut self, mapping: &Mapping, zone: &PartZone, token: Token, out: &mut Actions) {
        self.in_flight += 1;
        out.push(Action::Copy(CopyRequest {
            by: Origin::Controller,
            from: mapping.entry(zone).1,
            to: mapping.home.base(),
            len: 64,
            below_held: false,
            cause: Cause::Migration,
            token: Some(token),
        }));
    }
}

impl State {
    /// A controller carries committed entries home, a few at a time (section 4.2, by non-temporal stores).
    pub(super) fn migrate(&mut self, controller: usize, out: &mut Actions) {
        let part = &mut self.contents.parts[controller];
        while part.migration.in_flight < self.spec.migrations_in_flight as usize {
            let token = Token(self.contents.tokens + 1);
            let Some(mapping) = part.ewpq.start_migration(&part.zone, token) else { break };
            self.contents.tokens += 1;
            part.migration.write_home(&mapping, &part.zone, token, out);
        }
        if part.migration.in_flight == 0 {
            part.migration.scanning = false;
        }
    }

    /// A controller carries the entry of this line home, if its transaction has committed and the engine has room.
    pub(super) fn migrate_one(&mut self, controller: usize, home: LineAddr, out: &mut Actions) {
        let part = &mut self.contents.parts[controller];
        let token = Token(self.contents.tokens + 1);
        if part.migration.in_flight < self.spec.migrations_in_flight as usize
            && let Some(mapping) = part.ewpq.start_migration_of(home, &part.zone, token)
        {
            self.contents.tokens += 1;
            part.migration.write_home(&mapping, &part.zone, token, out);
        }
    }

    /// The token of a migration in flight, after starting some if there is anything to migrate.
    pub(super) fn migrate_next_early(&mut self, controller: usize, out: &mut Actions) -> Option<Token> {
        self.migrate(controller, out);
        let part = &self.contents.parts[controller];
        let departed = part.migration.departed.first().map(|(_, token)| *token);
        part.ewpq.migrating().find_map(|m| m.migration).or(departed)
    }

    /// A migrated line is home: its validity bit is cleared and LogTail may move.
    pub(super) fn migrated(&mut self, token: Token, addr: PhysAddr, out: &mut Actions) {
        let controller = self.controller_of(addr.line());
        let part = &mut self.contents.parts[controller];
        let home = part.ewpq.migrating().find(|m| m.migration == Some(token)).map(|m| m.home);
        if let Some(home) = home {
            part.take(home, out);
        } else if let Some(index) = part.migration.departed.iter().position(|(_, migration)| *migration == token) {
            part.migration.departed.swap_remove(index);
        } else {
            return;
        }
        part.migration.in_flight -= 1;
        self.counters.migrations += 1;
        out.event(EventKind::Background, addr);
        if self.contents.parts[controller].migration.scanning {
            self.migrate(controller, out);
        }
    }
}
