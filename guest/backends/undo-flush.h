// Undo logging for a persistence domain that begins at the memory controller (ADR): cbo.clean and a fence. durasim/backend.h says what the names mean.
#define DURASIM_RUNTIME_ "runtimes/undo.h"
