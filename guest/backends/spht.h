// SPHT with volatile caches: logs are flushed after the commit, and one marker makes a group of transactions durable. durasim/backend.h says what the names mean.
#define DURASIM_RUNTIME_ "runtimes/spht.h"
#define DURASIM_PLANTED_FAULTS_(X)                                                                                  \
    X(none) DURASIM_TIMED_FAULTS_(X) DURASIM_CLOCK_FAULTS_(X) DURASIM_TIMED_SHARED_FAULTS_(X) DURASIM_TEAM_FAULTS_(X) \
    DURASIM_LINK_FAULTS_(X) X(lock_not_subscribed) X(lock_not_taken) X(ended_where_it_begins)
