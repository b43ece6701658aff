//! Any bytes where a design's recovery looks after a power failure: in its regions, in nonvolatile structures, in the data
//! area. What recovery finds it either carries out inside persistent memory, or reports as lost.

use crate::assert_is_a_sentence;
use crate::bytes::Bytes;
use crate::image;
use crate::marks::reach;
use durasim_contract::{CrashImage, RecoveryReport, Variant};
use durasim_designs::VARIANTS;
use durasim_machine::{MachineConfig, PMEM_BASE, Plan, PowerFailureOptions, System, presets};
use durasim_types::{LINE_BYTES, PAGE_BYTES, Pages};
use std::sync::OnceLock;

/// A variant on the smallest machine.
pub(crate) struct Recoverer {
    plan: Plan,
    /// The image that a machine leaves which has done nothing.
    fresh: CrashImage,
}

impl Recoverer {
    pub fn new(variant: &Variant) -> Self {
        let config = MachineConfig::parse("tiny", presets::text("tiny").expect("a preset"), &[]).expect("a preset");
        let plan = Plan::new(&config, variant, variant.default_domain()).expect("a preset fits its variants");
        let system = System::new(&config, &plan).expect("a preset can be built");
        let mut fresh = system.power_failure(&PowerFailureOptions::default()).image;
        fresh.pmem = Pages::new(PMEM_BASE, config.pmem.capacity_mib << 20);
        Recoverer { plan, fresh }
    }

    /// The image that an input stands for: how the platform went down (one byte), when recovery is cut (two bytes), records.
    fn image(&self, input: &mut Bytes<'_>) -> (CrashImage, u64) {
        let (flags, cut) = (input.byte(), input.number(2));
        let mut image = self.fresh.clone();
        image.dirty_shutdown = flags & 1 == 1;
        let names: Vec<String> = image.structures.keys().cloned().collect();
        image::put(Bytes(input.0), &image::places(&self.plan.geometry), &names, &mut image);
        (image, cut)
    }

    /// More steps than that can only be made by going around in circles: a step for each word that recovery can find.
    fn steps_max(&self, image: &CrashImage) -> u64 {
        let regions: u64 = self.plan.geometry.regions.iter().map(|region| region.size_bytes).sum();
        let structures: u64 = image.structures.values().map(|bytes| bytes.len() as u64).sum();
        (regions + structures) / 8 + 64
    }

    fn recover(&self, image: &mut CrashImage) -> RecoveryReport {
        image.cut_at(Some(self.steps_max(image) + 1));
        let Plan { variant, spec, geometry, .. } = &self.plan;
        let report = (variant.hardware.recover)(spec, geometry, image);
        image.cut_at(None);
        report.unwrap_or_else(|_| panic!("{}: recovery does not stop writing", variant.name))
    }

    pub fn check(&self, mut input: Bytes<'_>) {
        let (found, cut) = self.image(&mut input);
        let mut recovered = found.clone();
        let report = self.recover(&mut recovered);
        for (happened, mark) in [
            (report.replayed > 0, "transaction replayed"),
            (report.discarded > 0, "transaction discarded"),
            (!report.losses.is_empty(), "loss reported"),
            (report.replayed > 0 && !report.losses.is_empty(), "replayed and lost"),
        ] {
            if happened {
                reach(mark);
            }
        }
        self.check_report(&found, &recovered, &report);
        self.check_settled(&recovered);
        if report != RecoveryReport::default() {
            self.check_cut(found, cut);
        }
    }

    fn check_report(&self, found: &CrashImage, recovered: &CrashImage, report: &RecoveryReport) {
        let variant = self.plan.variant.name;
        report.losses.iter().for_each(|loss| assert_is_a_sentence(loss));
        assert_eq!(recovered.pmem.size_bytes(), found.pmem.size_bytes(), "{variant}");
        let changed = self.changed_lines(&found.pmem, &recovered.pmem);
        let reported = report.lines_written;
        assert!(changed <= reported, "{variant}: recovery changed {changed} lines of the data and names {reported}");
    }

    /// Lines of the data area that are not the same.
    fn changed_lines(&self, before: &Pages, after: &Pages) -> u64 {
        let geometry = &self.plan.geometry;
        let pages =
            after.touched().map(|(addr, _)| addr).filter(|addr| addr.0 - PMEM_BASE.0 < geometry.pmem_data_bytes);
        let changed = pages.filter(|addr| !after.shares_page(before, *addr));
        let lines =
            changed.flat_map(|page| (0..PAGE_BYTES / LINE_BYTES).map(move |n| page.plus(n * LINE_BYTES).line()));
        lines.filter(|&line| before.line(line) != after.line(line)).count() as u64
    }

    /// Recovery of a recovered image finds nothing to do.
    fn check_settled(&self, recovered: &CrashImage) {
        let mut again = recovered.clone();
        self.recover(&mut again);
        let variant = self.plan.variant.name;
        let same = again.pmem.touched().all(|(addr, page)| {
            let before = recovered.pmem.share_page(addr);
            before.map_or(page.iter().all(|&byte| byte == 0), |before| before[..] == *page)
        });
        assert!(same, "{variant}: a second recovery changes the image");
        assert_eq!(again.structures, recovered.structures, "{variant}: a second recovery changes the image");
    }

    /// Recovery that was cut off by the next failure can be done again.
    fn check_cut(&self, mut image: CrashImage, cut: u64) {
        let Plan { variant, spec, geometry, .. } = &self.plan;
        image.cut_at(Some(1 + cut % 64));
        // If recovery ended before, it was not interrupted.
        if (variant.hardware.recover)(spec, geometry, &mut image).is_err() {
            reach("recovery cut");
        }
        self.recover(&mut image);
        self.check_settled(&image);
    }
}

/// Recovery of each variant of the registry. The first byte says which.
///
/// # Panics
/// If a bug is found.
pub fn recovery(data: &[u8]) {
    static RECOVERERS: OnceLock<Vec<Recoverer>> = OnceLock::new();
    let recoverers = RECOVERERS.get_or_init(|| VARIANTS.iter().map(Recoverer::new).collect());
    let mut input = Bytes(data);
    recoverers[usize::from(input.byte()) % recoverers.len()].check(input);
}

/// The input of [`recovery`] that stands for a real image of that variant on the smallest machine, without the data area.
#[must_use]
pub fn recovery_input(variant: &Variant, image: &CrashImage) -> Vec<u8> {
    let recoverer = Recoverer::new(variant);
    let number = VARIANTS.iter().position(|other| other.name == variant.name).expect("a variant of the registry");
    let mut places = image::places(&recoverer.plan.geometry);
    // Nothing to write home: recovery does not look at what is there.
    places[0].1 = 0;
    let head = [number as u8, u8::from(image.dirty_shutdown), 7, 0];
    [&head[..], &image::records(&image.pmem, &places), &image::structure_records(image)].concat()
}
