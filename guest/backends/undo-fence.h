// Undo logging for a persistence domain with the caches (eADR): a full fence alone. durasim/backend.h says what the names mean.
#define DURASIM_RUNTIME_ "runtimes/undo.h"
#define DURASIM_CACHES_ARE_DURABLE_
