//! The observer of a run: it crashes the machine at persist events and judges what recovery makes of it, with the
//! byte oracle, which is exact where caches survive: no store that was made may be lost there. It checks the order of
//! events too.

use crate::REGION_BYTES;
use crate::tally::{Effort, Findings};
use crate::trace::Trace;
use durasim_contract::{CrashImage, Hooks, RecoveryCut, RecoveryReport};
use durasim_crash::{ByteOracle, OrderChecker, Verdict};
use durasim_machine::{Observer, PMEM_BASE, Plan, PowerFailureOptions, System};
use durasim_types::{CoreId, DataRange, EventKind, Journal, LineAddr, Pages, PersistEvent, PhysAddr, Rng, TxId, Write};
use std::sync::{Arc, Mutex};

/// Journal and observer in one.
pub struct Shared {
    plan: Plan,
    /// If crashes are judged.
    oracle: Option<ByteOracle>,
    order: OrderChecker,
    effort: Effort,
    trace: Trace,
    rng: Rng,
    /// The last image, recovered: it is judged once more against what is acknowledged at the next event.
    pending: Option<(u64, Pages)>,
    /// The store that each port is about.
    stores: Vec<Option<(PhysAddr, u64)>>,
    /// Transactions that the journal has seen abort since the tester looked last.
    pub aborted: Vec<TxId>,
    pub findings: Findings,
    pub failure: Option<String>,
}

impl Shared {
    pub fn new(plan: &Plan, oracle: Option<ByteOracle>, effort: Effort, trace: Trace, seed: u64) -> Self {
        Shared {
            plan: plan.clone(),
            oracle,
            order: OrderChecker::default(),
            effort,
            trace,
            rng: Rng::new(seed),
            pending: None,
            stores: vec![None; usize::from(plan.geometry.cores)],
            aborted: Vec::new(),
            findings: Findings::default(),
            failure: None,
        }
    }

    pub fn judge(&self, pmem: &Pages) -> Result<(), String> {
        match self.oracle.as_ref().map(|oracle| oracle.judge(pmem)) {
            Some(Verdict::Wrong(what)) => Err(what),
            _ => Ok(()),
        }
    }

    /// The number of the last store in the journal.
    pub fn last_store(&self) -> u64 {
        self.oracle.as_ref().map_or(0, ByteOracle::last_store)
    }

    /// Stores outside of transactions to these bytes, up to the one with the number `last`, are durable; whether the
    /// journal has not reported it.
    pub fn made_durable(&mut self, addr: PhysAddr, len: u64, last: u64) -> bool {
        self.oracle.as_mut().is_some_and(|oracle| oracle.made_durable(addr, len, last))
    }

    /// A store outside of transactions has been made: where stores survive it cannot be lost any more, and the journal has
    /// reported.
    pub fn stored_outside(&mut self, addr: PhysAddr, len: u64) -> Result<(), String> {
        if self.plan.domain.stores_are_durable() && self.made_durable(addr, len, u64::MAX) {
            return Err(format!("the journal does not know that the store at {addr} survives"));
        }
        Ok(())
    }

    /// The port makes this store next, or none.
    pub fn expect_store(&mut self, port: usize, store: Option<(PhysAddr, u64)>) {
        self.stores[port] = store;
    }

    /// A store that a core makes durable in a cache is its current one: stores leave in program order.
    fn check_store(&self, event: &PersistEvent) -> Result<(), String> {
        let data = PMEM_BASE..PMEM_BASE.plus(REGION_BYTES);
        if event.kind != EventKind::CacheStore || !data.contains(&event.addr) {
            return Ok(());
        }
        let Some(core) = event.core else { return Err("no core made this store".into()) };
        let made = self.stores[usize::from(core.0)];
        if made.is_some_and(|(addr, len)| (addr..addr.plus(len)).contains(&event.addr)) {
            return Ok(());
        }
        Err(format!("core {} makes the store {made:?}, not this one", core.0))
    }

    fn recover(&self, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        (self.plan.variant.hardware.recover)(&self.plan.spec, &self.plan.geometry, image)
    }

    fn crash(&mut self, event: u64, system: &System) -> Result<(), String> {
        let (crashed, complete) = system.crash_image(u64::MAX);
        complete.map_err(|_| "unlimited energy did not suffice".to_owned())?;
        let mut image = crashed.clone();
        image.cut_at(None);
        let report = self.recover(&mut image).map_err(|_| "an uncut recovery was cut".to_owned())?;
        if let Some(loss) = report.losses.first() {
            return Err(format!("recovery: {loss}"));
        }
        self.findings.images += 1;
        self.findings.replayed += report.replayed;
        self.findings.discarded += report.discarded;
        let marks = &mut self.findings.marks;
        system.marks(&mut |mark| *marks.entry(mark).or_default() += 1);
        self.judge(&image.pmem)?;
        self.reorder(system)?;
        if self.rng.below(100) < self.effort.cut_percent {
            self.cut_everywhere(&crashed, &image)?;
        }
        self.pending = Some((event, image.pmem));
        Ok(())
    }

    /// Without hardware of its own: another part of the cleans that no fence has waited for survives.
    fn reorder(&mut self, system: &System) -> Result<(), String> {
        let ways = system.power_failure_choices().reorder;
        if self.plan.variant.hardware.hooks != Hooks::NONE || ways == 1 {
            return Ok(());
        }
        self.findings.reordered += 1;
        let reorder = Some(self.rng.below(ways));
        let left = system.power_failure(&PowerFailureOptions { reorder, ..PowerFailureOptions::default() });
        self.judge(&left.image.pmem).map_err(|what| format!("with {reorder:?} of {ways} unfenced parts: {what}"))
    }

    /// Cuts recovery at each of its writes, in small images a second time at each write of the second recovery, and
    /// lets it run through afterwards.
    fn cut_everywhere(&mut self, crashed: &CrashImage, recovered: &CrashImage) -> Result<(), String> {
        let writes = recovered.writes();
        for cut in 1..=writes {
            let mut image = crashed.clone();
            image.cut_at(Some(cut));
            if self.recover(&mut image).is_ok() {
                return Err(format!("recovery was not cut at its write {cut} of {writes}"));
            }
            self.findings.cuts += 1;
            if writes <= 12 {
                for second in 1.. {
                    let mut again = image.clone();
                    again.cut_at(Some(second));
                    if self.recover(&mut again).is_ok() {
                        break;
                    }
                    self.findings.cuts += 1;
                    self.ends_alike(again, recovered, &format!("cut at its writes {cut} and {second} of {writes}"))?;
                }
            }
            self.ends_alike(image, recovered, &format!("cut at its write {cut} of {writes}"))?;
        }
        Ok(())
    }

    fn ends_alike(&self, mut image: CrashImage, recovered: &CrashImage, how: &str) -> Result<(), String> {
        image.cut_at(None);
        self.recover(&mut image).map_err(|_| "an uncut recovery was cut".to_owned())?;
        let differs = |a: &Pages, b: &Pages| {
            a.touched().any(|(addr, page)| {
                let mut other = vec![0; page.len()];
                b.read(addr, &mut other);
                !a.shares_page(b, addr) && other != page
            })
        };
        let wrong = differs(&image.pmem, &recovered.pmem) || differs(&recovered.pmem, &image.pmem);
        if wrong || image.structures != recovered.structures {
            return Err(format!("recovery {how} and run again ends in another image"));
        }
        Ok(())
    }
}

/// Hands journal and events to what test and machine share.
pub struct Watcher(pub Arc<Mutex<Shared>>);

impl Watcher {
    fn with_oracle(&self, act: impl FnOnce(&mut ByteOracle)) {
        if let Some(oracle) = &mut self.0.lock().expect("no holder panics with it").oracle {
            act(oracle);
        }
    }
}

impl Observer for Watcher {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        let mut shared = self.0.lock().expect("no holder panics with it");
        if shared.failure.is_some() {
            return false;
        }
        let named = |number: u64, what: String| format!("crash at event {number}: {what}");
        shared.trace.note(|| format!("{event:x?}"));
        let mut outcome = shared.check_store(event);
        shared.order.observe(event, system);
        if let Some(objection) = shared.order.objection() {
            outcome = Err(objection.to_owned());
        }
        if outcome.is_ok()
            && let Some((number, pmem)) = shared.pending.take()
        {
            outcome = shared.judge(&pmem).map_err(|what| named(number, format!("at the next event: {what}")));
        }
        if outcome.is_ok() && shared.oracle.is_some() && shared.rng.below(100) < shared.effort.crash_percent {
            let result = shared.crash(event.number, system);
            outcome =
                result.map_err(|what| named(event.number, format!("({:?} at {}) {what}", event.kind, event.addr)));
        }
        shared.failure = outcome.err();
        shared.failure.is_none()
    }
}

impl Journal for Watcher {
    fn data_range(&mut self, range: DataRange) {
        self.with_oracle(|oracle| oracle.data_range(range));
    }

    fn begin(&mut self, tx: TxId) {
        self.with_oracle(|oracle| oracle.begin(tx));
    }

    fn store(&mut self, tx: Option<TxId>, write: Write) {
        self.with_oracle(|oracle| oracle.store(tx, write));
    }

    fn store_is_durable(&mut self, tx: Option<TxId>, write: Write) {
        self.with_oracle(|oracle| oracle.store_is_durable(tx, write));
    }

    fn cleaned(&mut self, core: CoreId, line: LineAddr) {
        self.with_oracle(|oracle| oracle.cleaned(core, line));
    }

    fn fenced(&mut self, core: CoreId) {
        self.with_oracle(|oracle| oracle.fenced(core));
    }

    fn committing(&mut self, tx: TxId) {
        self.with_oracle(|oracle| oracle.committing(tx));
    }

    fn acknowledged(&mut self, tx: TxId) {
        self.with_oracle(|oracle| oracle.acknowledged(tx));
    }

    fn epoch_ends(&mut self) {
        self.with_oracle(|oracle| oracle.epoch_ends());
    }

    fn aborted(&mut self, tx: TxId) {
        self.with_oracle(|oracle| oracle.aborted(tx));
        self.0.lock().expect("no holder panics with it").aborted.push(tx);
    }
}
