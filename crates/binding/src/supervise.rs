//! Long work on a thread of its own, so that the interpreter stays free: callbacks run and Ctrl-C works meanwhile.

use crate::errors::internal_error;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Interval between two checks for signals.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);
/// Messages that the channel holds before the worker waits.
const MESSAGES_MAX: usize = 64;

/// The worker's end of the channel to the interpreter.
pub struct ProgressChannel<'a, M> {
    sender: SyncSender<M>,
    stop: &'a AtomicBool,
}

impl<'a, M> ProgressChannel<'a, M> {
    /// Sends a message to the interpreter's thread. False if the receiver is gone or the work should end.
    pub fn send(&self, message: M) -> bool {
        self.sender.send(message).is_ok() && !self.stop.load(Ordering::Relaxed)
    }

    /// A flag that becomes true when the work should end.
    pub fn stop(&self) -> &'a AtomicBool {
        self.stop
    }
}

/// Cancels work that another Python thread waits for. Only the main thread receives signals; it forwards them with this.
#[pyclass(frozen, module = "durasim._core")]
#[derive(Default)]
pub struct Cancellation {
    is_cancelled: AtomicBool,
}

#[pymethods]
impl Cancellation {
    #[new]
    fn new() -> Self {
        Cancellation::default()
    }

    /// Ends all work that was started with this object. The waiting threads get a KeyboardInterrupt.
    fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}

/// Does `work` on another thread. Meanwhile this thread passes its messages to `listen` and checks for signals. If either
/// raises an exception, or the work is cancelled, the work is stopped and the exception is returned. `listen` returns false to
/// stop the work and still get its result.
pub fn supervise<M: Send, T: Send>(
    py: Python<'_>,
    cancellation: Option<&Cancellation>,
    work: impl FnOnce(&ProgressChannel<'_, M>) -> T + Send,
    mut listen: impl FnMut(Python<'_>, M) -> PyResult<bool>,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let (sender, receiver) = sync_channel(MESSAGES_MAX);
    // The mutex is never contended: it only allows to wait for the receiver while the interpreter is free.
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        let stop = &stop;
        let worker = scope.spawn(move || work(&ProgressChannel { sender, stop }));
        let outcome = loop {
            if let Err(signal) = py.check_signals() {
                break Err(signal);
            }
            if cancellation.is_some_and(|it| it.is_cancelled.load(Ordering::Relaxed)) {
                break Err(PyKeyboardInterrupt::new_err("cancelled"));
            }
            match py.detach(|| next(&receiver)) {
                Ok(message) => match listen(py, message) {
                    Ok(true) => {}
                    Ok(false) => stop.store(true, Ordering::Relaxed),
                    Err(raised) => break Err(raised),
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            }
        };
        stop.store(true, Ordering::Relaxed);
        // Without this, a worker that waits for room in the channel would wait without end.
        drop(receiver);
        let result = py.detach(|| worker.join());
        outcome.and_then(|()| result.map_err(|panic| internal_error(&*panic)))
    })
}

fn next<M>(receiver: &Mutex<Receiver<M>>) -> Result<M, RecvTimeoutError> {
    receiver.lock().expect("no thread panics while it holds the receiver").recv_timeout(SIGNAL_PERIOD)
}
