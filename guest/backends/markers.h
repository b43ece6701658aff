// Markers around plain stores: the hardware makes transactions atomic and durable, or does not (`opt`). durasim/backend.h says what the names mean.
#define DURASIM_RUNTIME_ "runtimes/markers.h"
#define DURASIM_OBJECTS_ "objects/plain.h"
#define DURASIM_ABORTS_RETURN_TO_BEGIN_
