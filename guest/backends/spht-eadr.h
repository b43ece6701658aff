// Hardware transactions on a shadow of the pool in DRAM, with a redo log that commits inside (eADR). durasim/backend.h says what the names mean.
#define DURASIM_RUNTIME_ "runtimes/spht_eadr.h"
#define DURASIM_CACHES_ARE_DURABLE_
#define DURASIM_PLANTED_FAULTS_(X) \
    X(none) DURASIM_SPHT_FAULTS_(X) DURASIM_CLOCK_FAULTS_(X) DURASIM_TEAM_FAULTS_(X) DURASIM_HTM_FAULTS_(X) X(recovery_first_log_only)
