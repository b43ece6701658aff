//! The trace of commands: what a controller sends to its media, for the checker and for tools that ask for it. It is
//! off unless asked for; then each access costs one comparison more.

use durasim_types::Picos;

/// The effect of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandKind {
    /// Opens a row.
    Act,
    /// Closes the row of a bank.
    Pre,
    /// Closes the rows of all banks of a rank.
    PreAll,
    /// Refreshes a rank.
    Ref,
    /// Reads a line.
    Rd,
    /// Writes a line.
    Wr,
}

/// A command in flight to the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Command {
    /// The time at which it is given.
    pub at_ps: Picos,
    /// The controller that gives it.
    pub controller: u16,
    /// The effect.
    pub kind: CommandKind,
    /// The rank.
    pub rank: u16,
    /// The bank in the rank; 0 for commands to all banks.
    pub bank: u16,
    /// The row; 0 for commands that name none. Media without rows count lines of the bank here.
    pub row: u64,
    /// The line in the row.
    pub column: u32,
    /// Whether a read or write closes its row as soon as that is allowed.
    pub auto_precharge: bool,
}

/// Commands so far, if they are requested. A reader of one controller does not look at copies of it.
#[derive(Debug, Default)]
pub(crate) struct Trace(Option<Vec<Command>>);

impl Clone for Trace {
    fn clone(&self) -> Self {
        Trace(None)
    }
}

impl Trace {
    /// Keeps commands from now on.
    pub fn start(&mut self) {
        self.0.get_or_insert_default();
    }

    /// Whether commands are kept.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Notes a command that is made only if the trace is on.
    #[inline]
    pub fn note(&mut self, command: impl FnOnce() -> Command) {
        if let Some(commands) = &mut self.0 {
            commands.push(command());
        }
    }

    /// The commands so far; none are kept from now on.
    pub fn take(&mut self) -> Vec<Command> {
        self.0.take().unwrap_or_default()
    }
}
