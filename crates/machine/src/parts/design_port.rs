//! The port to the design: the one place from which a design is asked. It knows which hooks the design names, what it
//! answered when the machine was built, and keeps the lists of actions that are not in use.

use crate::setup::memory_map::is_pmem;
use durasim_cache::Version;
use durasim_contract::{
    AbortCause, Accept, Actions, Arrival, BeginRule, BudgetSpent, CommitRule, CrashImage, CrashSink, CrashView, Ctx,
    Departure, Durability, Evict, Fill, FlushVerdict, Gate, Geometry, Hooks, LevelGeometry, LevelId, LineTag, Load,
    LogBlock, Merge, Message, Node, Probe, Request, Scanned, Store, Token,
};
use durasim_types::{Cycle, Line, LineAddr, PhysAddr, Stats, TxId};
use std::hash::Hasher;

/// The design of the machine.
pub(crate) struct DesignPort {
    design: Box<dyn Durability>,
    name: &'static str,
    hooks: Hooks,
    tags_are_exclusive: bool,
    tags_follow_newest_data: bool,
    /// By level, number of lines of a set that may have live tags, if not all may.
    tag_limits: [Option<u32>; 3],
    /// By level, additional cycles of an access to a line with a live tag.
    tagged_access_cycles: [Cycle; 3],
    skips_hooks_on_own_lines: bool,
    llc_keeps_tagged: bool,
    commits_retire_early: bool,
    commits_block: bool,
    begins_wait: bool,
    threads_max: u32,
    structures: &'static [&'static str],
    /// Lists of actions that are not in use.
    spare: Vec<Actions>,
}

impl DesignPort {
    /// Asks a design the questions that it answers once.
    pub(crate) fn new(design: Box<dyn Durability>, name: &'static str, hooks: Hooks, geometry: &Geometry) -> Self {
        let limit = |level, shape: &LevelGeometry| design.tag_limit(level).filter(|limit| *limit < shape.ways);
        DesignPort {
            tags_are_exclusive: design.tags_are_exclusive(),
            tags_follow_newest_data: design.tags_follow_newest_data(),
            tag_limits: geometry.by_level(limit),
            tagged_access_cycles: geometry.by_level(|level, _| design.tagged_access_cycles(level)),
            skips_hooks_on_own_lines: design.skips_hooks_on_own_lines(),
            llc_keeps_tagged: design.llc_keeps_tagged(),
            commits_retire_early: design.commit_rule() == CommitRule::Early,
            commits_block: design.commit_rule() == CommitRule::Blocking,
            begins_wait: design.begin_rule() == BeginRule::Drained,
            threads_max: u32::MAX,
            structures: &[],
            design,
            name,
            hooks,
            spare: Vec::new(),
        }
    }

    /// A copy of the design that shares nothing with it.
    pub(crate) fn fork(&self) -> Self {
        DesignPort {
            design: self.design.fork(),
            name: self.name,
            hooks: self.hooks,
            tags_are_exclusive: self.tags_are_exclusive,
            tags_follow_newest_data: self.tags_follow_newest_data,
            tag_limits: self.tag_limits,
            tagged_access_cycles: self.tagged_access_cycles,
            skips_hooks_on_own_lines: self.skips_hooks_on_own_lines,
            llc_keeps_tagged: self.llc_keeps_tagged,
            commits_retire_early: self.commits_retire_early,
            commits_block: self.commits_block,
            begins_wait: self.begins_wait,
            threads_max: self.threads_max,
            structures: self.structures,
            spare: Vec::new(),
        }
    }

    /// All state of the design, as it reads it again.
    pub(crate) fn save(&self) -> Vec<u8> {
        self.design.save()
    }

    /// Puts another design of the same plan into the port: one that a snapshot has brought.
    pub(crate) fn put(&mut self, design: Box<dyn Durability>) {
        self.design = design;
    }

    /// Whether the design names all of these hooks.
    #[inline]
    pub(crate) fn has(&self, hooks: Hooks) -> bool {
        self.hooks.has(hooks)
    }

    /// Whether the design names any hook.
    #[inline]
    pub(crate) fn has_hooks(&self) -> bool {
        self.hooks != Hooks::NONE
    }

    /// Whether a version with a live tag is housed in one level only.
    #[inline]
    pub(crate) fn tags_are_exclusive(&self) -> bool {
        self.tags_are_exclusive
    }

    /// Whether tags make no versions.
    #[inline]
    pub(crate) fn tags_follow_newest_data(&self) -> bool {
        self.tags_follow_newest_data
    }

    /// Whether copies of a line may differ in a note.
    pub(crate) fn notes_expire(&self) -> bool {
        self.design.notes_expire()
    }

    /// Number of lines of a set that may have live tags at a level, if not all may.
    #[inline]
    pub(crate) fn tag_limit(&self, level: LevelId) -> Option<u32> {
        self.tag_limits[level.index()]
    }

    /// Additional cycles of an access to a line with a live tag.
    #[inline]
    pub(crate) fn tagged_access_cycles(&self, level: LevelId) -> Cycle {
        self.tagged_access_cycles[level.index()]
    }

    /// Whether the last level keeps tagged versions while it can.
    #[inline]
    pub(crate) fn llc_keeps_tagged(&self) -> bool {
        self.llc_keeps_tagged
    }

    /// Sets the number of threads that the design supports.
    pub(crate) fn for_threads(self, threads_max: u32) -> Self {
        DesignPort { threads_max, ..self }
    }

    /// Sets the names of the structures of the design that requests may wait for.
    pub(crate) fn with_structures(self, structures: &'static [&'static str]) -> Self {
        DesignPort { structures, ..self }
    }

    pub(crate) fn structures(&self) -> &'static [&'static str] {
        self.structures
    }

    pub(crate) fn threads_max(&self) -> u32 {
        self.threads_max
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the hardware has to know which stores belong to transactions.
    pub(crate) fn tracks_transactions(&self) -> bool {
        self.hooks.track_transactions() || !self.commits_retire_early
    }

    pub(crate) fn begins_wait(&self) -> bool {
        self.begins_wait
    }

    /// Whether commit instructions retire before their commit is done.
    pub(crate) fn commits_retire_early(&self) -> bool {
        self.commits_retire_early
    }

    /// Whether younger accesses of the core to memory wait until a commit is done.
    pub(crate) fn commits_block(&self) -> bool {
        self.commits_block
    }

    /// Whether the design need not be notified of an access of `tx` to a line with this tag.
    #[inline(always)]
    pub(crate) fn is_own(&self, tag: LineTag, tx: Option<TxId>) -> bool {
        self.skips_hooks_on_own_lines && tx.is_some_and(|tx| tag.0 == tx.0)
    }

    /// The tag if it still means anything.
    #[inline]
    pub(crate) fn live(&self, tag: LineTag) -> LineTag {
        if tag.is_some() && self.design.live(tag) { tag } else { LineTag::NONE }
    }

    /// Whether a line with this live tag is a version of its own, not to be mixed with the version below it.
    #[inline]
    pub(crate) fn is_version(&self, tag: LineTag) -> bool {
        tag.is_some() && !self.tags_follow_newest_data
    }

    /// Whether this tag marks an uncommitted version of `tx`.
    pub(crate) fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        self.design.belongs_to(tag, tx)
    }

    /// Status of the abort of a hardware transaction, for the program.
    pub(crate) fn abort_status(&self, why: AbortCause, nested: bool) -> u64 {
        self.design.abort_status(why, nested)
    }

    /// Whether the design is asked about each store to persistent memory, in a transaction or not.
    #[inline]
    pub(crate) fn is_asked_about_all_stores(&self) -> bool {
        self.hooks.has(Hooks::STORE) && !self.hooks.has(Hooks::HARDWARE_TX)
    }

    /// Whether the design is asked about versions of a line that leave a private level.
    #[inline]
    pub(crate) fn is_asked_in_private(&self, line: LineAddr) -> bool {
        self.hooks.has(Hooks::EVICT_PRIVATE) && (is_pmem(line) || self.hooks.has(Hooks::HARDWARE_TX))
    }

    /// An empty list of actions.
    #[inline]
    pub(crate) fn actions(&mut self) -> Actions {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a list back.
    #[inline]
    pub(crate) fn put_back(&mut self, mut list: Actions) {
        list.clear();
        self.spare.push(list);
    }

    pub(crate) fn tx_begin(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        self.design.tx_begin(cx, tx, out)
    }

    pub(crate) fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        self.design.tx_commit(cx, tx, out)
    }

    pub(crate) fn tx_abort(&mut self, cx: &Ctx, tx: TxId, why: AbortCause, out: &mut Actions) -> Gate {
        self.design.tx_abort(cx, tx, why, out)
    }

    pub(crate) fn load(&mut self, cx: &Ctx, load: &Load, tag: &mut LineTag, out: &mut Actions) -> Gate {
        self.design.load(cx, load, tag, out)
    }

    #[inline]
    pub(crate) fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        self.design.store(cx, store, tag, out)
    }

    pub(crate) fn atomic(&mut self, cx: &Ctx, addr: PhysAddr, out: &mut Actions) -> Gate {
        self.design.atomic(cx, addr, out)
    }

    pub(crate) fn log_flush(&mut self, cx: &Ctx, block: &LogBlock, out: &mut Actions) -> Gate {
        self.design.log_flush(cx, block, out)
    }

    pub(crate) fn log_flush_early(&mut self, cx: &Ctx, block: &LogBlock, out: &mut Actions) -> bool {
        self.design.log_flush_early(cx, block, out)
    }

    pub(crate) fn access(&mut self, cx: &Ctx, level: LevelId, line: LineAddr, tag: LineTag) -> Gate {
        self.design.access(cx, level, line, tag)
    }

    pub(crate) fn llc_request(&mut self, cx: &Ctx, line: LineAddr) -> Gate {
        self.design.llc_request(cx, line)
    }

    /// Two versions of a line meet. Without tags the newer one takes the place of the older one.
    pub(crate) fn merge(&mut self, level: LevelId, line: LineAddr, resident: LineTag, incoming: LineTag) -> Merge {
        if (resident.is_some() || incoming.is_some()) && self.hooks.has(Hooks::MERGE) {
            self.design.merge(level, line, resident, incoming)
        } else {
            Merge::Overwrite
        }
    }

    pub(crate) fn victim(
        &mut self,
        level: LevelId,
        incoming: LineTag,
        full: bool,
        tags: &[LineTag],
        ranks: &[u32],
    ) -> Option<usize> {
        let way = self.design.victim(level, incoming, full, tags, ranks)?;
        assert!(ranks[way] != u32::MAX, "the design chose way {way} of {}, which may not leave", level.name());
        Some(way)
    }

    pub(crate) fn evict(&mut self, cx: &Ctx, from: LevelId, version: &Version, out: &mut Actions) -> Evict {
        self.design.evict(cx, from, version.line, version.tag, &version.data, out)
    }

    pub(crate) fn fill(&mut self, cx: &Ctx, line: LineAddr, tx: Option<TxId>, out: &mut Actions) -> Fill {
        self.design.fill(cx, line, tx, out)
    }

    pub(crate) fn probe(&mut self, cx: &Ctx, request: &Request, out: &mut Actions) -> Probe {
        self.design.probe(cx, request, out)
    }

    pub(crate) fn accept(&mut self, cx: &Ctx, arrival: &Arrival, out: &mut Actions) -> Accept {
        self.design.accept(cx, arrival, out)
    }

    pub(crate) fn drained(&mut self, cx: &Ctx, departure: &Departure, out: &mut Actions) {
        self.design.drained(cx, departure, out);
    }

    pub(crate) fn message(&mut self, cx: &Ctx, at: Node, message: Message, out: &mut Actions) {
        self.design.message(cx, at, message, out);
    }

    pub(crate) fn acked(&mut self, cx: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {
        self.design.acked(cx, token, addr, out);
    }

    pub(crate) fn read_done(&mut self, cx: &Ctx, token: Token, addr: PhysAddr, data: &Line, out: &mut Actions) {
        self.design.read_done(cx, token, addr, data, out);
    }

    pub(crate) fn woken(&mut self, cx: &Ctx, id: u64, out: &mut Actions) {
        self.design.woken(cx, id, out);
    }

    pub(crate) fn scanned(&mut self, cx: &Ctx, id: u64, line: LineAddr, dirty: bool, tag: &mut LineTag) -> Scanned {
        self.design.scanned(cx, id, line, dirty, tag)
    }

    pub(crate) fn fence(&mut self, cx: &Ctx, out: &mut Actions) -> Gate {
        self.design.fence(cx, out)
    }

    pub(crate) fn flush(&mut self, cx: &Ctx, line: LineAddr, tag: LineTag, out: &mut Actions) -> FlushVerdict {
        self.design.flush(cx, line, tag, out)
    }

    pub(crate) fn context_switch(
        &mut self,
        cx: &Ctx,
        leaving: Option<TxId>,
        coming: Option<TxId>,
        out: &mut Actions,
    ) -> Gate {
        self.design.context_switch(cx, leaving, coming, out)
    }

    pub(crate) fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        self.design.crash(view, sink)
    }

    pub(crate) fn shut_down(&self, image: &mut CrashImage) {
        self.design.shut_down(image);
    }

    pub(crate) fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        self.design.marks(mark);
    }

    pub(crate) fn occupancies(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.design.occupancies(report);
    }

    pub(crate) fn digest(&self, hasher: &mut dyn Hasher) {
        self.design.digest(hasher);
    }

    pub(crate) fn stats(&self, stats: &mut Stats) {
        self.design.stats(stats);
    }

    pub(crate) fn reset_stats(&mut self) {
        self.design.reset_stats();
    }
}
