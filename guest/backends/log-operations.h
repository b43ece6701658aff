// Markers, and a pair of log operations before each store, where the compiler of Proteus puts it. durasim/backend.h says what the names mean.
#define DURASIM_RUNTIME_ "runtimes/markers.h"
#define DURASIM_LOG_OPERATIONS_
#define DURASIM_ABORTS_RETURN_TO_BEGIN_
