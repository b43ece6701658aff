//! gdb on a trial of a crash campaign. The program is replayed on the machine, instruction by instruction, up to the power
//! failure, and its recovery and check after that. The replay goes backwards too: it keeps checkpoints and executes again from
//! the one before. It cannot be changed: registers and memory are read only.

mod checkpoints;
mod connection;
mod monitor;
mod replay;
mod riscv;
mod stops;
mod target;

use crate::connection::Listener;
use crate::replay::Replay;
use crate::target::{EventLoop, GdbTarget};
use durasim_contract::Variant;
use durasim_crash::{CrashRequest, trial_runs};
use durasim_types::Error;
use gdbstub::stub::GdbStub;
use std::sync::atomic::{AtomicBool, Ordering};

/// The place at which a session begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The port of the loopback interface.
    pub port: u16,
    /// Whether the replay is at the store that the cause of the violation names; else it is at the first instruction.
    pub is_at_blamed_store: bool,
    /// The place, in one sentence.
    pub place: String,
}

/// Replays the trial that a request names under gdb. `waiting` is called once gdb can connect; the session ends with the
/// client, or when `stop` is set.
///
/// # Errors
/// As from a replay; a port that cannot be used.
pub fn debug(
    request: &CrashRequest,
    registry: &[Variant],
    port: u16,
    stop: &AtomicBool,
    waiting: impl FnOnce(Waiting),
) -> Result<(), Error> {
    let listener = Listener::bind(port)?;
    let mut replay = Replay::new(trial_runs(request, registry, stop)?, stop)?;
    let is_at_blamed_store = replay.go_to_blamed_store()?;
    let place = monitor::place(&replay).trim_end().to_owned();
    waiting(Waiting { port: listener.port(), is_at_blamed_store, place });
    let Some(client) = listener.client(stop)? else { return Ok(()) };
    // A second client is refused at once.
    drop(listener);
    let mut target = GdbTarget::new(replay);
    match GdbStub::new(client).run_blocking::<EventLoop<'_>>(&mut target) {
        Ok(_) => Ok(()),
        // gdb has gone, or the session was ended from outside.
        Err(error) if error.is_connection_error() || stop.load(Ordering::Relaxed) => Ok(()),
        Err(error) if error.is_target_error() => Err(error.into_target_error().expect("it was one")),
        Err(_) => Err(Error::Failed("what has connected does not speak the protocol of gdb".to_owned())),
    }
}
