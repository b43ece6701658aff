// Hardware transactions on persistent data, and a global lock with an undo log. durasim/backend.h says what the names mean.
#define DURASIM_RUNTIME_ "runtimes/htm_sgl.h"
#define DURASIM_CACHES_ARE_DURABLE_
#define DURASIM_PLANTED_FAULTS_(X) X(none) DURASIM_HTM_FAULTS_(X) DURASIM_UNDO_FAULTS_(X)
