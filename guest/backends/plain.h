// Nothing: what a program does that knows nothing of persistence. durasim/backend.h says what the names mean.
#define DURASIM_RUNTIME_ "runtimes/plain.h"
#define DURASIM_NEVER_ABORTS_
