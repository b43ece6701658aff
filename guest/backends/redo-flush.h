// Redo logging with a write set. durasim/backend.h says what the names mean.
#define DURASIM_RUNTIME_ "runtimes/redo.h"
#define DURASIM_PLANTED_FAULTS_(X) X(none) DURASIM_REDO_FAULTS_(X)
