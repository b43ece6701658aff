//! The observer of a run: it crashes the machine at persist events and judges what recovery makes of it, with the
//! byte oracle and, where caches survive, with an exact model.

use super::{Effort, REGION_BYTES};
use durasim_crash::{ByteOracle, Verdict};
use durasim_design::{CrashImage, Cut, RecoveryReport};
use durasim_machine::{Observer, PMEM_BASE, Plan, System};
use durasim_types::{DataRange, Journal, Pages, PersistEvent, Rng, TxId, Write};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What the crash points of a run were.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub images: u64,
    pub cuts: u64,
    pub replayed: u64,
    pub discarded: u64,
    /// Rare situations, and how many crash points fell into each.
    pub marks: BTreeMap<&'static str, u64>,
}

impl Findings {
    pub fn add(&mut self, other: &Findings) {
        self.images += other.images;
        self.cuts += other.cuts;
        self.replayed += other.replayed;
        self.discarded += other.discarded;
        for (mark, n) in &other.marks {
            *self.marks.entry(mark).or_default() += n;
        }
    }
}

/// What exactly is to be found where nothing that left the store buffer can be lost.
struct Strict {
    settled: Vec<u8>,
    open: Vec<Write>,
    committing: bool,
    /// The last store outside of a transaction, which may be on its way, and the bytes before it.
    last: Option<(Write, [u8; 8])>,
}

/// Journal and observer in one.
pub struct Shared {
    plan: Plan,
    oracle: ByteOracle,
    strict: Option<Strict>,
    effort: Effort,
    rng: Rng,
    /// The last image, recovered: it is judged once more against what is acknowledged at the next event.
    pending: Option<(u64, Pages)>,
    pub findings: Findings,
    pub failure: Option<String>,
}

fn overlay(bytes: &mut [u8], write: &Write) {
    let at = (write.addr.0 - PMEM_BASE.0) as usize;
    bytes[at..at + write.len as usize].copy_from_slice(&write.data.to_le_bytes()[..write.len as usize]);
}

impl Strict {
    fn judge(&self, image: &Pages) -> Result<(), String> {
        let mut found = vec![0; REGION_BYTES as usize];
        image.read(PMEM_BASE, &mut found);
        for committed in [false, true] {
            if committed && !self.committing {
                continue;
            }
            let mut expected = self.settled.clone();
            if committed {
                self.open.iter().for_each(|write| overlay(&mut expected, write));
            }
            if expected == found {
                return Ok(());
            }
            if let Some((write, old)) = &self.last {
                overlay(&mut expected, &Write { data: u64::from_le_bytes(*old), ..*write });
                if expected == found {
                    return Ok(());
                }
            }
        }
        let at = (0..found.len()).find(|&i| found[i] != self.settled[i]).unwrap_or(0);
        Err(format!(
            "caches survive, yet byte {at:#x} is {:#04x}, expected {:#04x} (committing: {})",
            found[at], self.settled[at], self.committing
        ))
    }
}

impl Shared {
    pub fn new(plan: &Plan, oracle: ByteOracle, bytes: &[u8], strict: bool, effort: Effort, seed: u64) -> Self {
        let strict =
            strict.then(|| Strict { settled: bytes.to_vec(), open: Vec::new(), committing: false, last: None });
        Shared {
            plan: plan.clone(),
            oracle,
            strict,
            effort,
            rng: Rng::new(seed),
            pending: None,
            findings: Findings::default(),
            failure: None,
        }
    }

    pub fn judge(&self, pmem: &Pages) -> Result<(), String> {
        if let Verdict::Wrong(what) = self.oracle.judge(pmem) {
            return Err(what);
        }
        self.strict.as_ref().map_or(Ok(()), |strict| strict.judge(pmem))
    }

    fn recover(&self, image: &mut CrashImage) -> Result<RecoveryReport, Cut> {
        (self.plan.row.hardware.recover)(&self.plan.spec, &self.plan.geometry, image)
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
        if self.rng.below(100) < self.effort.cut_percent {
            self.cut_everywhere(&crashed, &image)?;
        }
        self.pending = Some((event, image.pmem));
        Ok(())
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
    fn with(&self, act: impl FnOnce(&mut Shared)) {
        act(&mut self.0.lock().expect("nobody panics with it"));
    }
}

impl Observer for Watcher {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        let mut shared = self.0.lock().expect("nobody panics with it");
        if shared.failure.is_some() {
            return false;
        }
        let named = |number: u64, what: String| format!("crash at event {number}: {what}");
        let mut outcome = Ok(());
        if let Some((number, pmem)) = shared.pending.take() {
            outcome = shared.judge(&pmem).map_err(|what| named(number, format!("at the next event: {what}")));
        }
        if outcome.is_ok() && shared.rng.below(100) < shared.effort.crash_percent {
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
        self.with(|s| s.oracle.data_range(range));
    }

    fn begin(&mut self, tx: TxId) {
        self.with(|s| {
            s.oracle.begin(tx);
            if let Some(strict) = &mut s.strict {
                strict.last = None;
            }
        });
    }

    fn store(&mut self, tx: Option<TxId>, write: Write) {
        self.with(|s| {
            s.oracle.store(tx, write);
            let Some(strict) = &mut s.strict else { return };
            strict.last = None;
            if tx.is_some() {
                strict.open.push(write);
                return;
            }
            let at = (write.addr.0 - PMEM_BASE.0) as usize;
            let mut old = [0; 8];
            old[..write.len as usize].copy_from_slice(&strict.settled[at..at + write.len as usize]);
            overlay(&mut strict.settled, &write);
            strict.last = Some((write, old));
        });
    }

    fn committing(&mut self, tx: TxId) {
        self.with(|s| {
            s.oracle.committing(tx);
            if let Some(strict) = &mut s.strict {
                (strict.committing, strict.last) = (true, None);
            }
        });
    }

    fn acknowledged(&mut self, tx: TxId) {
        self.with(|s| {
            s.oracle.acknowledged(tx);
            if let Some(strict) = &mut s.strict {
                let writes = std::mem::take(&mut strict.open);
                writes.iter().for_each(|write| overlay(&mut strict.settled, write));
                (strict.committing, strict.last) = (false, None);
            }
        });
    }

    fn aborted(&mut self, tx: TxId) {
        self.with(|s| {
            s.oracle.aborted(tx);
            if let Some(strict) = &mut s.strict {
                strict.open.clear();
                (strict.committing, strict.last) = (false, None);
            }
        });
    }
}
