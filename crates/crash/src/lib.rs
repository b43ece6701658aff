//! Crash campaigns: a run is crashed at numbered persist events, each image is recovered, and oracles judge what
//! came back.

mod byte_oracle;
mod campaign;
mod causes;
mod check_output;
mod coverage;
mod crash_points;
mod crashed_run;
mod executor;
mod explore;
mod failure_kind;
mod history;
mod judge;
mod limits;
mod order;
mod outcome;
mod output_oracle;
mod persistency;
mod persistency_model;
mod postponed;
mod power_faults;
mod request;
mod result;
mod run_record;
mod run_record_document;
mod schedule;
mod store_log;
mod timeline;
mod timeline_document;
mod timeline_recorder;
mod trial;
mod trial_checks;
mod trial_runs;
mod unfinished;

pub use byte_oracle::{ByteOracle, Verdict};
pub use campaign::crash;
pub use causes::{Cause, Causes, Frame, InsertedOperation, Missing, Place, Relied, StorePlace, Tested};
pub use check_output::CheckOutput;
pub use failure_kind::FailureKind;
pub use history::{Dump, HistoryOracle, HistoryRecorder, Position};
pub use limits::RecoveryLimits;
pub use order::OrderChecker;
pub use persistency_model::PersistencyModel;
pub use request::{CrashRequest, ProgramOracle};
pub use result::{CrashResult, Failure};
pub use run_record::record_run;
pub use run_record_document::{RecordedPlace, RecordedRegion, RecordedStep, RunRecord, Survivors};
pub use schedule::{All, Points};
pub use timeline_document::{
    FinalLine, LineContents, LineCopyRecord, Loss, Objection, PowerFailure, RecoveryWrite, RunKind, Timeline,
    TimelineEvent, TimelinePhase, Trace, Transaction, Words,
};
pub use trial::{NextFailure, PowerFault, Trial};
pub use trial_checks::TrialChecks;
pub use trial_runs::{BlamedStore, ProgramRun, TrialRun, TrialRuns, trial_runs};
