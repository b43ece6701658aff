//! One trial: an image is recovered, by the hardware's recovery and then by the guest's, and judged.

use crate::byte_oracle::{ByteOracle, Verdict};
use durasim_design::{CrashImage, RecoveryReport};
use durasim_machine::{Captured, PoolContents, Prepared, Program, run_functionally};
use durasim_types::{Pages, Rng};

/// What is needed to judge the images of a campaign.
pub(crate) struct Judge<'a> {
    pub prepared: &'a Prepared,
    /// Arguments of the guest's recovery, where a row has one.
    pub recover_args: Option<&'a [String]>,
    /// Arguments of the guest's check.
    pub check_args: &'a [String],
    /// The namespace of `/pmem/`.
    pub files: &'a durasim_machine::PmemPool,
}

/// An image with what the journal allows.
pub(crate) struct Trial {
    pub event: u64,
    pub image: CrashImage,
    pub oracle: ByteOracle,
}

/// An objection: who, and what.
pub(crate) type Objection = (&'static str, String);

/// Instructions that a guest's recovery or check may take.
const GUEST_INSTRUCTIONS_MAX: u64 = 2_000_000_000;

impl Judge<'_> {
    /// Recovers and judges; the first objection, if there is one.
    pub fn objection(&self, trial: Trial) -> Option<Objection> {
        let plan = &self.prepared.plan;
        let recover = |image: &mut CrashImage| (plan.row.hardware.recover)(&plan.spec, &plan.geometry, image);
        let crashed = trial.image.clone();
        let mut image = trial.image;
        image.cut_at(None);
        let report = recover(&mut image).expect("nothing cuts this recovery");
        if let Some(objection) = lost(&report).or_else(|| cut_recovery(crashed, &image, trial.event, &recover)) {
            return Some(objection);
        }
        let mut pmem = image.pmem;
        if let Some(args) = self.recover_args {
            match self.guest(args, pmem) {
                Ok(recovered) => pmem = recovered,
                Err(what) => return Some(("guest", format!("recovery: {what}"))),
            }
        }
        if let Verdict::Wrong(what) = trial.oracle.judge(&pmem) {
            return Some(("bytes", what));
        }
        self.guest(self.check_args, pmem).err().map(|what| ("guest", format!("check: {what}")))
    }

    /// Runs the guest program on an image; persistent memory afterwards, or what went wrong.
    fn guest(&self, args: &[String], pmem: Pages) -> Result<Pages, String> {
        let program = Program {
            args: args.to_vec(),
            pool: Some(PoolContents { files: self.files.clone(), pages: pmem }),
            ..self.prepared.program.clone()
        };
        let mut output = Captured::default();
        let (config, plan) = (&self.prepared.config, &self.prepared.plan);
        match run_functionally(config, plan, &program, GUEST_INSTRUCTIONS_MAX, &mut output) {
            Ok(ending) if ending.exit_code == Some(0) => Ok(ending.pool.pages),
            Ok(ending) => {
                let text = output.text();
                let said = text.lines().last().unwrap_or("it said nothing").to_owned();
                Err(match ending.exit_code {
                    Some(code) => format!("exit code {code}: {said}"),
                    None => format!("no end within {GUEST_INSTRUCTIONS_MAX} instructions"),
                })
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Recovery that reports lost work although the crash flush had all the energy it needs.
fn lost(report: &RecoveryReport) -> Option<Objection> {
    report.losses.first().map(|loss| ("recovery", loss.clone()))
}

/// A second failure at some write of recovery, then recovery from the start: it must come to the same image.
fn cut_recovery(
    crashed: CrashImage,
    recovered: &CrashImage,
    event: u64,
    recover: &impl Fn(&mut CrashImage) -> Result<RecoveryReport, durasim_design::Cut>,
) -> Option<Objection> {
    let writes = recovered.writes();
    if writes == 0 {
        return None;
    }
    let cut = 1 + Rng::new(event).below(writes);
    let mut image = crashed;
    image.cut_at(Some(cut));
    if recover(&mut image).is_ok() {
        return Some(("recovery", format!("it ended before its write {cut} of {writes}, which was to be cut")));
    }
    image.cut_at(None);
    recover(&mut image).expect("nothing cuts this recovery");
    (!same(&image.pmem, &recovered.pmem) || image.structures != recovered.structures)
        .then(|| ("recovery", format!("cut at its write {cut} of {writes} and run again, it ends in another image")))
}

fn same(a: &Pages, b: &Pages) -> bool {
    let covered = |x: &Pages, y: &Pages| {
        x.touched().all(|(addr, page)| {
            x.shares_page(y, addr) || {
                let mut other = vec![0; page.len()];
                y.read(addr, &mut other);
                other == page
            }
        })
    };
    covered(a, b) && covered(b, a)
}
