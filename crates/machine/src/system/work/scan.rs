//! Scans of the caches for a design, in the background.
//!
//! Dirty data only moves down while no core stores, from core to core by way of the last level. So the upper levels are looked
//! at first: what was dirty before the scan and moves meanwhile comes to where the scan has not been yet.

use crate::parts::agenda::{QuietPlaces, QuietStretch, Scan, Scheduled};
use crate::parts::work_list::Task;
use crate::setup::memory_map::is_pmem;
use crate::system::System;
use durasim_contract::{LevelId, Origin, Scanned};
use durasim_memory::Write;
use durasim_types::{CoreId, Cycle, LineAddr};

/// Places that a scan looks at ahead of its position.
const PLACES_AHEAD: usize = 256;

impl System {
    /// Looks at the next places of a scan. A line is shown once, with its newest version, wherever it is dirty.
    pub(super) fn scan(&mut self, scan: Scan, at: Cycle) {
        let next = scan.position + scan.lines_per_cycle as usize;
        let notes = self.design.tags_follow_newest_data();
        let mut first = 0;
        let mut lines = Vec::new();
        for (_, core, array) in self.caches.data_arrays() {
            let slots = array.geometry().sets as usize * array.geometry().ways as usize;
            for place in scan.position.max(first)..next.min(first + slots) {
                let slot = array.slot_at(place - first);
                if let Some(slot) = slot.filter(|&slot| array.is_dirty(slot) || notes && array.tag(slot).is_some()) {
                    lines.push((core, array.version(slot).line));
                }
            }
            first += slots;
        }
        let is_last = next >= first;
        self.show_next(at, Scan { position: next, ..scan }, lines, 0, is_last);
    }

    /// Whether a scan that takes ports looks at a place of an array in a cycle. It may not have got there.
    #[inline(never)]
    pub(crate) fn is_scanned(&self, level: LevelId, core: CoreId, at: Cycle) -> bool {
        let Some(place) = self.agenda.place_of_scan(at) else { return false };
        let mut first = 0;
        for (of, by, array) in self.caches.data_arrays() {
            let slots = array.geometry().sets as usize * array.geometry().ways as usize;
            if (of, by) == (level, core) {
                return (first..first + slots).contains(&place);
            }
            first += slots;
        }
        false
    }

    /// Lets a scan that is due go past places without a line to show, up to the cycle `until` or the one before anything else
    /// is due. A step that shows no line changes nothing, so these steps need no event each.
    /// Whether it went past any.
    #[inline]
    pub(crate) fn pass_quiet_places(&mut self, until: Cycle) -> bool {
        self.agenda.may_scan() && self.pass_quiet_places_of_scan(until)
    }

    #[inline(never)]
    fn pass_quiet_places_of_scan(&mut self, until: Cycle) -> bool {
        let Some((at, scan, second)) = self.agenda.first_scan() else { return false };
        let last = until.min(self.memories.last_cycle_before_next());
        if last < at {
            return false;
        }
        // The step that is scheduled comes before other work of its cycle, the ones after it come after older work of theirs.
        let end = last.saturating_add(1).min(second.max(at + 1));
        let (position, lines_per_cycle) = (scan.position, scan.lines_per_cycle as usize);
        let places = usize::try_from(end - at).unwrap_or(usize::MAX).saturating_mul(lines_per_cycle);
        let (quiet, known) = self.first_place_to_show(scan, position.saturating_add(places));
        let steps = quiet.saturating_sub(position) / lines_per_cycle;
        if steps > 0 {
            self.agenda.continue_first_scan(at + steps as Cycle, position + steps * lines_per_cycle, known);
            self.agenda.memories_are_due(self.memories.due());
        }
        steps > 0
    }

    /// The first place from the position of a scan on, and before `end`, that has a line to show or is the last one, at which the
    /// scan ends; else `end`. And what is known then of the places ahead.
    fn first_place_to_show(&self, scan: &Scan, end: usize) -> (usize, QuietPlaces) {
        let (mut reached, mut quiet) = (scan.position, scan.quiet);
        loop {
            if let Some(stretch) = quiet.0
                && (stretch.begin..stretch.end).contains(&reached)
                && stretch.changes == self.caches.array(stretch.level, stretch.core).changes()
            {
                reached = stretch.end.min(end);
            }
            if reached >= end {
                return (end, quiet);
            }
            match self.quiet_from(scan, reached, end) {
                Some(stretch) if stretch.end > reached => quiet = QuietPlaces(Some(stretch)),
                _ => return (reached, quiet),
            }
        }
    }

    /// The places from `begin` on, at least up to `end` if none before has a line to show, in one array and without the last
    /// place of all.
    fn quiet_from(&self, scan: &Scan, begin: usize, end: usize) -> Option<QuietStretch> {
        let notes = self.design.tags_follow_newest_data();
        let is_shown = |line| is_pmem(line) && !scan.shown.contains(&line);
        let mut first = 0;
        let mut found = None;
        for (level, core, array) in self.caches.data_arrays() {
            let slots = array.geometry().sets as usize * array.geometry().ways as usize;
            if found.is_none() && begin < first + slots {
                let positions = begin - first..(end.max(begin + PLACES_AHEAD) - first).min(slots);
                let searched = positions.end;
                let place = array.find_changed(positions, notes, is_shown).unwrap_or(searched);
                found = Some(QuietStretch { level, core, changes: array.changes(), begin, end: first + place });
            }
            first += slots;
        }
        found.map(|stretch| QuietStretch { end: stretch.end.min(first.saturating_sub(1)), ..stretch })
    }

    /// Shows lines to the design from `next` on, and continues with the scan after the last one.
    pub(super) fn show_next(
        &mut self,
        at: Cycle,
        mut scan: Scan,
        lines: Vec<(CoreId, LineAddr)>,
        next: usize,
        is_last: bool,
    ) {
        for index in next..lines.len() {
            let (core, line) = lines[index];
            if !is_pmem(line) || !scan.shown.insert(line) {
                continue;
            }
            if let Some(write) = self.show(scan.id, core, line, at) {
                // A line in private caches has the path of a clean before it.
                let holder = self.caches.dirty_holder(line).or_else(|| self.caches.holders(line).next());
                let from = holder.map_or(Origin::Llc, Origin::Core);
                self.work.push(Task::Show { at, scan, lines, next: index + 1, is_last });
                // All copies are clean then: an older one must not outlive the newest.
                self.work.push(Task::CleanCopies { line, data: write.data });
                return self.work.push(Task::Submit { core, from, write, at });
            }
        }
        if is_last {
            self.wake(CoreId(0), scan.id, at);
        } else {
            self.agenda.schedule(at + 1, Scheduled::Scan(scan));
        }
    }

    /// Shows a line to the design; the write of its newest version, if it is to be written home.
    fn show(&mut self, id: u64, core: CoreId, line: LineAddr, at: Cycle) -> Option<Write> {
        let newest = self.caches.newest(line, &self.design)?;
        let mut tag = newest.tag;
        let cx = self.cx(core, at);
        let verdict = self.design.scanned(&cx, id, line, newest.dirty, &mut tag);
        if tag != newest.tag {
            self.caches.tag_newest(line, tag, self.design.tags_follow_newest_data());
        }
        let cleans = verdict == Scanned::Clean && newest.dirty;
        cleans.then(|| Write::line(line, newest.data, self.memories.home_cause(line)))
    }
}
