/* PMDK's example of a list with a redo log (examples/libpmem2/redo). `run` adds nodes; `check` checks the list and prints it. */
#include <stdarg.h>
#define main upstream_main
#include UPSTREAM
#undef main
#include "pool.h"
#include <durasim/markers.h>

static int call(int count, ...) {
    char *words[6] = {"redo"};
    va_list given;
    va_start(given, count);
    for (int i = 1; i <= count; ++i) words[i] = va_arg(given, char *);
    va_end(given);
    return upstream_main(count + 1, words);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "check") == 0) {
        if (!has_pool()) return 0;
        return call(2, "check", POOL_PATH) || call(2, "print", POOL_PATH);
    }
    char *keys[] = {"50", "20", "80", "30"};
    if (make_pool(8192) < 0) return 3;
    for (int i = 0; i < 4; ++i) {
        durasim_op_begin(i);
        if (call(4, "add", POOL_PATH, keys[i], keys[3 - i])) return 1;
        durasim_op_end(i);
    }
    return 0;
}
