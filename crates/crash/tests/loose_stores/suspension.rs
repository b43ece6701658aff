//! Programs that suspend transactions, on whole machines.

use super::text::{A0, AT, BASE, FENCE, T0, addi, amoadd, call, clean, exit, li, marker, marker_with, program, sd};
use durasim_contract::Hooks;
use durasim_isa::Marker::{self, SnapshotPoint, TxAbort, TxBegin, TxCommit, TxCommitting, TxResume, TxSuspend};
use durasim_machine::{Captured, Ending, Machine, Prepared, RunRequest, prepare, profile};
use durasim_types::{CoreId, DataRange, Error, Journal, LineAddr, TxId, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Records the events of the journal, with the offsets of stores.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

impl Journal for Recorder {
    fn data_range(&mut self, _: DataRange) {}
    fn begin(&mut self, tx: TxId) {
        self.note(format!("begin {}", tx.0));
    }
    fn store(&mut self, tx: Option<TxId>, write: Write) {
        self.note(format!("store {:?} +{}", tx.map(|tx| tx.0), write.addr.0 % 4096));
    }
    fn cleaned(&mut self, _: CoreId, line: LineAddr) {
        self.note(format!("clean +{}", line.base().0 % 4096));
    }
    fn fenced(&mut self, _: CoreId) {
        self.note("fence".into());
    }
    fn suspended(&mut self, tx: TxId) {
        self.note(format!("suspended {}", tx.0));
    }
    fn resumed(&mut self, tx: TxId) {
        self.note(format!("resumed {}", tx.0));
    }
    fn committing(&mut self, tx: TxId) {
        self.note(format!("committing {}", tx.0));
    }
    fn acknowledged(&mut self, tx: TxId) {
        self.note(format!("acknowledged {}", tx.0));
    }
    fn aborted(&mut self, tx: TxId) {
        self.note(format!("aborted {}", tx.0));
    }
}

/// A run of a program with this body, which goes functionally up to its region of interest if it is to.
fn request(elf: &Path, design: &str, fast_forward: Option<&str>) -> RunRequest {
    let request = serde_json::json!({
        "machine": "tiny",
        "design": design,
        "elf": elf,
        "elf_name": "suspended",
        "seed": 1,
        "workload": "suspended",
        "fast_forward": fast_forward,
    });
    serde_json::from_value(request).unwrap()
}

fn prepared(body: &[u32], design: &str) -> Prepared {
    prepare(&request(program(body).path(), design, None), durasim_designs::VARIANTS).unwrap()
}

fn machine(prepared: &Prepared) -> Machine {
    Machine::new(&prepared.config, &prepared.plan, &prepared.program).unwrap()
}

fn run(body: &[u32], design: &str) -> Result<Ending, Error> {
    machine(&prepared(body, design)).run(None, &mut Captured::default())
}

fn begin() -> [u32; 2] {
    [li(A0, 0), marker(TxBegin)]
}

#[test]
fn stores_of_a_suspended_transaction_are_loose_and_it_stays_open() {
    let mut body = begin().to_vec();
    body.extend([sd(T0, BASE, 0), marker(TxSuspend), sd(T0, BASE, 8), amoadd(T0, BASE), clean(BASE), FENCE]);
    // getrandom(BASE, 8, 0): the kernel stores for the thread.
    body.extend([marker(TxCommitting), addi(A0, BASE, 0), li(A0 + 1, 8), li(A0 + 2, 0)]);
    body.extend(call(278));
    body.extend([marker(TxResume), sd(T0, BASE, 16)]);
    // The kernel stores in the transaction again.
    body.extend([addi(A0, BASE, 0), li(A0 + 1, 8), li(A0 + 2, 0)]);
    body.extend(call(278));
    body.push(marker(TxCommit));
    let recorder = Recorder::default();
    let prepared = prepared(&body, "opt");
    let mut machine = machine(&prepared);
    machine.system_mut().keep_journal(Box::new(recorder.clone()));
    assert_eq!(machine.run(None, &mut Captured::default()).unwrap(), Ending::Exited(0));
    let steps = recorder.0.lock().unwrap().clone();
    let (steps, rest): (Vec<_>, Vec<_>) =
        steps.into_iter().partition(|step| !step.contains("suspended") && !step.contains("resumed"));
    assert_eq!(
        steps,
        [
            "begin 1",
            "store Some(1) +0",
            "store None +8",
            "store None +0",
            "clean +0",
            "fence",
            "committing 1",
            "store None +0",
            "store Some(1) +16",
            "store Some(1) +0",
            "committing 1",
            "acknowledged 1",
        ]
    );
    assert_eq!(rest, ["suspended 1", "resumed 1"]);
}

#[test]
fn a_snapshot_has_the_suspension() {
    let mut body = begin().to_vec();
    body.extend([li(T0, 1), marker(TxSuspend), marker_with(SnapshotPoint, T0), sd(T0, BASE, 0)]);
    body.extend([marker(TxResume), sd(T0, BASE, 8), marker(TxCommit)]);
    let prepared = prepared(&body, "opt");
    let mut machine = machine(&prepared);
    machine.stop_at_snapshot_point(Some(1));
    assert_eq!(machine.run(None, &mut Captured::default()).unwrap(), Ending::SnapshotPoint);
    let snapshot = machine.save(&prepared, Some(1)).unwrap();
    for mut machine in [Machine::restore(&snapshot, &prepared).unwrap(), machine.fork()] {
        let recorder = Recorder::default();
        machine.system_mut().keep_journal(Box::new(recorder.clone()));
        assert_eq!(machine.run(None, &mut Captured::default()).unwrap(), Ending::Exited(0));
        let steps = recorder.0.lock().unwrap().clone();
        let stores: Vec<_> = steps.iter().filter(|step| step.starts_with("store")).collect();
        assert_eq!(stores, ["store None +0", "store Some(1) +8"]);
    }
}

#[test]
fn each_misuse_ends_the_run_with_one_sentence() {
    let cases: [(&[Marker], &str); 6] = [
        (&[TxSuspend], "a transaction is suspended although none is open"),
        (&[TxBegin, TxSuspend, TxSuspend], "a transaction is suspended that is suspended already"),
        (&[TxResume], "a transaction resumes although none is suspended"),
        (&[TxBegin, TxResume], "a transaction resumes although none is suspended"),
        (&[TxBegin, TxSuspend, TxCommit], "a transaction ends while it is suspended"),
        (&[TxBegin, TxSuspend, TxAbort], "a transaction ends while it is suspended"),
    ];
    for (markers, sentence) in cases {
        let body: Vec<u32> = markers.iter().map(|&of| marker(of)).collect();
        let error = run(&body, "opt").unwrap_err();
        assert!(matches!(error, Error::Guest(_)), "{markers:?}");
        assert!(error.to_string().contains(sentence), "{markers:?}: {error}");
    }
}

#[test]
fn only_machines_without_hardware_transactions_suspend_them() {
    let mut body = begin().to_vec();
    body.extend([marker(TxSuspend), sd(T0, AT, 0), marker(TxResume), marker(TxCommit)]);
    let mut refusing = 0;
    for variant in durasim_designs::VARIANTS {
        let hardware = variant.hardware.name;
        match run(&body, variant.name) {
            Ok(ending) => {
                let tracks_nothing =
                    variant.hardware.hooks == Hooks::NONE || variant.hardware.hooks.has(Hooks::HARDWARE_TX);
                assert_eq!((ending, tracks_nothing), (Ending::Exited(0), true), "{}", variant.name);
            }
            Err(error) => {
                refusing += 1;
                assert!(matches!(error, Error::Guest(_)) && variant.hardware.hooks != Hooks::NONE);
                assert!(error.to_string().contains(&format!("{hardware} has no suspended transactions")), "{error}");
            }
        }
    }
    assert!(refusing > 7);
}

/// A run that is executed functionally up to its region of interest keeps to the same rules on the way.
#[test]
fn functional_execution_keeps_to_the_same_rules() {
    let sound = [TxBegin, TxSuspend, TxResume, TxCommit, Marker::RoiBegin];
    let cases: [(&[Marker], &str, Option<&str>); 7] = [
        (&sound, "opt", None),
        (&sound, "hercules", Some("hercules has no suspended transactions")),
        (&[TxSuspend], "opt", Some("a transaction is suspended although none is open")),
        (&[TxBegin, TxSuspend, TxSuspend], "opt", Some("a transaction is suspended that is suspended already")),
        (&[TxBegin, TxResume], "opt", Some("a transaction resumes although none is suspended")),
        (&[TxBegin, TxSuspend, TxCommit], "opt", Some("a transaction ends while it is suspended")),
        (&[TxBegin, TxSuspend, TxResume, TxResume], "opt", Some("a transaction resumes although none is suspended")),
    ];
    for (markers, design, sentence) in cases {
        let body: Vec<u32> = markers.iter().map(|&of| marker(of)).chain(exit(0)).collect();
        let elf = program(&body);
        let request = request(elf.path(), design, Some("roi"));
        let ran = durasim_machine::run(&request, durasim_designs::VARIANTS, &mut Captured::default());
        match (ran, sentence) {
            (Ok(result), None) => assert_eq!(result.guest_exit_code, Some(0)),
            (Err(error), Some(sentence)) => assert!(error.to_string().contains(sentence), "{markers:?}: {error}"),
            (ran, _) => panic!("{markers:?}: {:?}", ran.map(|result| result.guest_exit_code)),
        }
    }
}

/// A functional run has no state to go back to. Software rolls back by itself and only marks that it did.
#[test]
fn a_functional_run_refuses_aborts_that_only_hardware_undoes() {
    let elf = program(&[begin().to_vec(), vec![marker(TxAbort)], exit(0).to_vec()].concat());
    for variant in durasim_designs::VARIANTS {
        let mut request = request(elf.path(), variant.name, None);
        request.functional = true;
        let ran = durasim_machine::run(&request, durasim_designs::VARIANTS, &mut Captured::default());
        let sentence = "the program aborts a transaction, which functional execution cannot undo";
        match ran {
            Ok(result) => {
                assert!(!variant.hardware.hooks.track_transactions(), "{}", variant.name);
                assert_eq!((result.metrics.tx.aborted, result.guest_exit_code), (1, Some(0)), "{}", variant.name);
            }
            Err(error) => {
                assert!(variant.hardware.hooks.track_transactions(), "{}: {error}", variant.name);
                assert!(error.to_string().contains(sentence), "{error}");
            }
        }
    }
}

#[test]
fn what_a_transaction_writes_leaves_out_what_is_written_while_it_is_suspended() {
    let mut body = vec![marker(Marker::RoiBegin)];
    body.extend(begin());
    body.extend([sd(T0, BASE, 0), marker(TxSuspend), sd(T0, BASE, 64), sd(T0, BASE, 128), marker(TxResume)]);
    body.extend([sd(T0, BASE, 192), marker(TxCommit), marker(Marker::RoiEnd)]);
    let elf = program(&body);
    let found =
        profile(&request(elf.path(), "opt", None), durasim_designs::VARIANTS, &mut Captured::default()).unwrap();
    assert_eq!((found.transactions, found.tx_lines.map(|lines| (lines.min, lines.max))), (1, Some((2, 2))));
}
