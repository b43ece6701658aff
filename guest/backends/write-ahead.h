// Write-ahead logging of addresses and new values. durasim/backend.h says what the names mean.
#define DURASIM_RUNTIME_ "runtimes/write_ahead.h"
#define DURASIM_PLANTED_FAULTS_(X) X(none) DURASIM_WRITE_AHEAD_FAULTS_(X)
