//! Backends of guest programs: how a transaction or an object is kept. A backend is a header and a TOML file in
//! `guest/backends`, and a constant that a variant of the registry names.

/// The way in which guest programs are built for a variant, with the properties that campaigns need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backend {
    /// The name of its files in `guest/backends`.
    pub name: &'static str,
    /// Whether the hardware alone recovers: the pool has no log, and the program has nothing to undo.
    pub hardware_recovers: bool,
    /// Whether a commit makes its stores to the data when it can no longer be undone: what it writes is then known
    /// only at its end.
    pub stores_inside_commit: bool,
    /// Whether its programs compare cycle counts that threads read on different cores.
    pub compares_clocks: bool,
    /// Rare situations that its programs report, counted by campaigns beside the marks of the hardware.
    pub situations: &'static [&'static str],
}

const SOFTWARE: Backend = Backend {
    name: "",
    hardware_recovers: false,
    stores_inside_commit: false,
    compares_clocks: false,
    situations: &[],
};

const TIMED: Backend = Backend {
    compares_clocks: true,
    situations: &[
        "fall-back-lock",
        "log-wrapped",
        "log-full",
        "replay",
        "page_copied",
        "group-wait",
        "marker-not-fenced",
    ],
    ..SOFTWARE
};

impl Backend {
    /// Markers around plain stores: the hardware makes them durable, or nothing does.
    pub const MARKERS: Backend = Backend { name: "markers", hardware_recovers: true, ..SOFTWARE };
    /// Markers, and log operations before each store to persistent memory, for hardware that logs what programs name.
    pub const LOG_OPERATIONS: Backend = Backend { name: "log-operations", hardware_recovers: true, ..SOFTWARE };
    /// Software undo log with `cbo.clean` and fences.
    pub const UNDO_FLUSH: Backend = Backend { name: "undo-flush", ..SOFTWARE };
    /// Software undo log with fences alone.
    pub const UNDO_FENCE: Backend = Backend { name: "undo-fence", ..SOFTWARE };
    /// Software redo log with `cbo.clean` and fences.
    pub const REDO_FLUSH: Backend = Backend { name: "redo-flush", stores_inside_commit: true, ..SOFTWARE };
    /// Software write-ahead log of addresses and new values with `cbo.clean` and fences.
    pub const WRITE_AHEAD: Backend = Backend { name: "write-ahead", stores_inside_commit: true, ..SOFTWARE };
    /// Objects that become durable when durable ones refer to them, with all checks in software.
    pub const AUTOPERSIST: Backend = Backend { name: "autopersist", ..SOFTWARE };
    /// Objects that the user marked as durable.
    pub const IDEAL_R: Backend = Backend { name: "ideal-r", ..SOFTWARE };
    /// Objects that become durable when durable ones refer to them, with checks in hardware and handlers in software.
    pub const P_INSPECT: Backend = Backend { name: "p-inspect", ..SOFTWARE };
    /// Hardware transactions on persistent data, with a global lock and a software undo log as the fall-back.
    pub const HTM_SGL: Backend = Backend { name: "htm-sgl", situations: &["fall-back-lock"], ..SOFTWARE };
    /// Hardware transactions on a shadow of the pool in DRAM, with a redo log in persistent memory.
    pub const SPHT_EADR: Backend = Backend {
        name: "spht-eadr",
        compares_clocks: true,
        situations: &["fall-back-lock", "log-wrapped", "log-full", "replay", "page_copied", "page-out"],
        ..SOFTWARE
    };
    /// [`Backend::SPHT_EADR`], whose log lines leave the caches after the commit.
    pub const SPHT_EADR_FLUSH: Backend = Backend {
        name: "spht-eadr-flush",
        situations: &[
            "fall-back-lock",
            "log-wrapped",
            "log-full",
            "replay",
            "page_copied",
            "page-out",
            "commit-not-cleaned",
        ],
        ..Backend::SPHT_EADR
    };
    /// Hardware transactions on a shadow, with logs that are flushed after the commit; one marker makes a group durable.
    pub const SPHT: Backend = Backend { name: "spht", ..TIMED };
    /// [`Backend::SPHT`], where transactions become durable one after the other.
    pub const NV_HTM: Backend = Backend { name: "nv-htm", ..TIMED };
}
