//! LAD-LLC alone: what it adds to Kiln.

use super::LadLlcSpec;
use super::variant::VARIANT;
use crate::LadLlc;
use crate::testing::{geometry, line};
use durasim_contract::{
    AbortCause, Action, Actions, CachedLine, CrashImage, CrashSink, CrashView, Ctx, Design, Durability, Evict, Gate,
    Geometry, LevelId, LineTag, Message, Node, Store, Wait,
};
use durasim_types::{CoreId, Domain, Pages, TxId};

const CX: Ctx = Ctx { core: CoreId(0), thread: 0, cycle: 0, instructions: 0 };

/// A design of three banks.
struct Driver {
    design: Box<dyn Durability>,
    geometry: Geometry,
}

fn lad_llc() -> Driver {
    let spec = LadLlcSpec::default();
    let geometry = Geometry { llc_banks: 3, domain: Domain::NvLlc, ..geometry::<LadLlc>(&spec, 1) };
    Driver { design: Box::new(LadLlc::build(&spec, &geometry).unwrap()), geometry }
}

impl Driver {
    fn ask<T>(&mut self, hook: impl FnOnce(&mut dyn Durability, &mut Actions) -> T) -> (T, Vec<Action>) {
        let mut out = Actions::default();
        let answer = hook(&mut *self.design, &mut out);
        (answer, out.as_slice().to_vec())
    }

    fn store(&mut self, tx: u64, number: u64, tag: &mut LineTag) -> Gate {
        let addr = line(number).base();
        let store = Store { addr, len: 8, data: 7, tx: Some(TxId(tx)), before: &[0; 64], dirty: false };
        self.ask(|design, out| design.store(&CX, &store, tag, out)).0
    }

    /// A transaction that stores to lines of banks 0 and 1, which are in the last level by now; their tags, and the messages
    /// that its commit has sent.
    fn flushed(&mut self, tx: u64) -> ([LineTag; 2], Vec<(Node, Message)>) {
        self.ask(|design, out| design.tx_begin(&CX, TxId(tx), out));
        let mut tags = [LineTag::NONE; 2];
        let lines = self.lines();
        for (number, tag) in lines.into_iter().zip(&mut tags) {
            assert_eq!(self.store(tx, number, tag), Gate::Done);
        }
        let (gate, flushes) = self.ask(|design, out| design.tx_commit(&CX, TxId(tx), out));
        let Gate::Retry(Wait::Acked(token)) = gate else { panic!("the commit waits for its lines") };
        assert_eq!(flushes.len(), 2, "a commit flushes what its transaction wrote");
        for number in lines {
            self.ask(|design, out| design.acked(&CX, token, line(number).base(), out));
        }
        let (gate, sent) = self.ask(|design, out| design.tx_commit(&CX, TxId(tx), out));
        assert!(matches!(gate, Gate::After(Wait::Signal(_))));
        let message = |action: &Action| match action {
            Action::Send { to, message, .. } => Some((*to, *message)),
            _ => None,
        };
        (tags, sent.iter().filter_map(message).collect())
    }

    /// Lines of banks 0 and 1.
    fn lines(&self) -> [u64; 2] {
        [0, 1].map(|bank| (0..3).find(|&number| self.geometry.bank_of(line(number)) == bank).expect("lines take turns"))
    }

    fn arrives(&mut self, to: Node, message: Message) -> Vec<Action> {
        self.ask(|design, out| design.message(&CX, to, message, out)).1
    }

    /// The contents of these lines after a power failure and recovery.
    fn survived(&self, tags: [LineTag; 2]) -> [u64; 2] {
        let lines = self.lines();
        let cached = |(number, tag): (u64, LineTag)| CachedLine {
            level: LevelId::Llc,
            core: None,
            line: line(number),
            dirty: true,
            tag: if self.design.live(tag) { tag } else { LineTag::NONE },
            data: [7; 64],
        };
        let lines_left: Vec<CachedLine> = lines.into_iter().zip(tags).map(cached).collect();
        let mut image = CrashImage::new(Pages::new(self.geometry.pmem_base, self.geometry.pmem_bytes));
        let view = CrashView { domain: Domain::NvLlc, geometry: &self.geometry, lines: &lines_left, staged: &[] };
        self.design.crash(&view, &mut CrashSink::new(&mut image, u64::MAX)).unwrap();
        LadLlc::recover(&LadLlcSpec::default(), &self.geometry, &mut image).unwrap();
        lines.map(|number| image.read_u64(line(number).base()) & 0xff)
    }
}

fn is_raise(action: &&Action) -> bool {
    matches!(action, Action::Raise(_))
}

#[test]
fn a_commit_notifies_every_bank_and_ends_at_the_first_acknowledgement() {
    let mut driver = lad_llc();
    let ([first, second], sent) = driver.flushed(1);
    assert_eq!(sent.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [0, 1, 2].map(Node::LlcBank));
    let answer = driver.arrives(Node::LlcBank(1), sent[1].1);
    assert!(driver.design.live(first) && !driver.design.live(second), "bank 1 alone has committed its lines");
    let Some(Action::Send { to, message, .. }) = answer.iter().find(|a| matches!(a, Action::Send { .. })) else {
        panic!("the bank answers")
    };
    assert_eq!(driver.arrives(*to, *message).iter().filter(is_raise).count(), 1, "that completes the transaction");
    // The line of bank 0 waits for its bank, in stores and as a victim.
    driver.ask(|design, out| design.tx_begin(&CX, TxId(2), out));
    let (mut tag, lines) = (first, driver.lines());
    assert!(matches!(driver.store(2, lines[0], &mut tag), Gate::Retry(Wait::Cycles(1))));
    let evict = |design: &mut dyn Durability, out: &mut Actions| {
        design.evict(&CX, LevelId::Llc, line(lines[0]), first, &[7; 64], out)
    };
    assert!(matches!(driver.ask(evict).0, Evict::After(Wait::Cycles(1))));
    driver.arrives(Node::LlcBank(0), sent[0].1);
    assert_eq!(driver.store(2, lines[0], &mut { LineTag::NONE }), Gate::Done);
    assert_eq!(driver.ask(evict).0, Evict::Proceed);
}

#[test]
fn recovery_commits_what_any_bank_has_committed() {
    for bank in 0..3 {
        let mut driver = lad_llc();
        let (tags, sent) = driver.flushed(1);
        assert_eq!(driver.survived(tags), [0, 0], "no bank has committed");
        driver.arrives(Node::LlcBank(bank), sent[usize::from(bank)].1);
        assert_eq!(driver.survived(tags), [7, 7], "bank {bank} has");
    }
}

#[test]
fn an_aborted_transaction_gives_its_number_back() {
    let mut driver = lad_llc();
    for tx in 1..=600 {
        assert_eq!(driver.ask(|design, out| design.tx_begin(&CX, TxId(tx), out)).0, Gate::Done);
        assert_eq!(driver.store(tx, 0, &mut { LineTag::NONE }), Gate::Done);
        let abort =
            |design: &mut dyn Durability, out: &mut Actions| design.tx_abort(&CX, TxId(tx), AbortCause::Capacity, out);
        assert_eq!(driver.ask(abort).0, Gate::Done);
    }
    let (tags, sent) = driver.flushed(601);
    driver.arrives(Node::LlcBank(2), sent[2].1);
    assert_eq!(driver.survived(tags), [7, 7], "its number is not taken for one of long ago");
}

#[test]
fn its_cost_follows_from_the_geometry() {
    let spec = LadLlcSpec::default();
    let machine = geometry::<LadLlc>(&spec, 2);
    let cost = spec.cost(&machine);
    let bits = |name: &str| cost.structures.iter().find(|s| s.name == name).map(|s| (s.bits, s.instances));
    assert_eq!(bits("DTX bit vector"), Some((16, 16)), "a bit for each line, eight sets beside each of two L1Ds");
    assert_eq!(bits("DTX_ID, LAD_TID, speculative bit of lines"), Some((64 * 17, 1)));
    assert_eq!(bits("DTX_CID"), Some((256 * 8, machine.llc_banks.into())));
}

#[test]
fn what_cannot_be_built_is_refused() {
    let refused = |spec: LadLlcSpec| spec.check().unwrap_err().field;
    assert_eq!(refused(LadLlcSpec { dtx_id_bits: 1, ..LadLlcSpec::default() }), "dtx_id_bits");
    assert_eq!(refused(LadLlcSpec { copy_area_lines: 0, ..LadLlcSpec::default() }), "copy_area_lines");
    assert_eq!(VARIANT.domains, [Domain::NvLlc]);
}
