//! Versions that a design pushes into the last level (Kiln's "clean on commit").

use crate::parts::agenda::Scheduled;
use crate::parts::work_list::Task;
use crate::system::System;
use durasim_contract::{LevelId, Token};
use durasim_types::{CoreId, LineAddr};

impl System {
    /// The newest version of a line in private caches comes down to the last level, a pre-image below it before it, and
    /// their copies become clean copies of the newest. A version leaves no array: it can be found at every persist event.
    pub(super) fn push_to_llc(&mut self, line: LineAddr) {
        let Some(owner) = self.caches.dirty_holder(line) else { return };
        self.caches.pin(line);
        self.work.push(Task::Pushed { owner, line });
        let mut sent = self.work.now() + self.caches.data_cycles(line);
        for &level in self.caches.levels().private() {
            sent += self.caches.array(level, owner).geometry().tag_latency_cycles + self.caches.request_cycles();
            self.work.push(Task::PushLevel { level, owner, line });
        }
        self.work.set_now(sent);
    }

    pub(super) fn push_level(&mut self, level: LevelId, owner: CoreId, line: LineAddr) {
        let Some(slot) = self.caches.array(level, owner).find(line) else { return };
        let version = self.caches.version(level, owner, slot, &self.design);
        if version.dirty && !(level == LevelId::L2 && self.caches.is_superseded(owner, version, &self.design)) {
            self.work.push(Task::PutBelow { level: LevelId::Llc, core: owner, version });
        }
    }

    pub(super) fn pushed(&mut self, owner: CoreId, line: LineAddr) {
        self.caches.unpin();
        // Making room may have aborted the transaction of the line: what is left then is older, and was pushed too.
        self.caches.clean_to_newest_private(owner, line);
        let at = self.caches.llc_written_at(self.work.now());
        self.work.set_now(at);
    }

    /// A line that the design had pushed is written into the last level by now: it is notified of it then.
    pub(super) fn announce_push(&mut self, core: CoreId, line: LineAddr, token: Token) {
        let at = self.interconnect.acknowledge_push(core, line, self.work.now());
        self.agenda.schedule(at, Scheduled::Pushed { line, token });
    }
}
