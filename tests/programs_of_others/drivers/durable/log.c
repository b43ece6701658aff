/* PMDK's example of a log (examples/libpmem2/log). `run` appends texts, and empties the log once; `check` prints it. */
#include <stdarg.h>
#define main upstream_main
#include UPSTREAM
#undef main
#include "pool.h"
#include <durasim/markers.h>

/* It reaches beyond the line with the number of bytes in the log. */
#define LONG "a text that is longer than the line of the cache which it has in common with the header of the log "

static int call(int count, ...) {
    char *words[8] = {"log", POOL_PATH};
    va_list given;
    va_start(given, count);
    for (int i = 0; i < count; ++i) words[2 + i] = va_arg(given, char *);
    va_end(given);
    return upstream_main(2 + count, words);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "check") == 0) return has_pool() ? call(1, "dump") : 0;
    if (make_pool(MIN_SIZE) < 0) return 3;
    for (int i = 0; i < 5; ++i) {
        int failed = 0;
        durasim_op_begin(i);
        switch (i) {
            case 0: failed = call(2, "append", "one "); break;
            case 1: failed = call(4, "appendv", "2", LONG, "three "); break;
            case 2: failed = call(1, "rewind"); break;
            case 3: failed = call(2, "append", "four "); break;
            default: failed = call(4, "appendv", "2", "five ", LONG); break;
        }
        if (failed) return 1;
        durasim_op_end(i);
    }
    return 0;
}
