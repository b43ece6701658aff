// Objects that the user has marked as durable. Regions use the undo log. durasim/backend.h says what the names mean.
#define DURASIM_RUNTIME_ "runtimes/undo.h"
#define DURASIM_OBJECTS_ "objects/ideal.h"
#define DURASIM_STORES_ARE_CLEANED_AT_ONCE_
#define DURASIM_PLANTED_FAULTS_(X) X(none) DURASIM_OBJECT_FAULTS_(X) DURASIM_UNDO_FAULTS_(X)
