/* The log of libpmemlog, without the code that makes pools of several files. `run` appends texts, and empties the log once; `check`
 * prints it. */
#include UPSTREAM
#include "pool.h"
#include <durasim/markers.h>
#include <sys/mman.h>
#include <sys/uio.h>

enum { POOL_BYTES = 16384 };

/* The rest of PMDK that log.c calls. */
unsigned long long Pagesize = 4096;
Free_func Free = free;

void *_Malloc(size_t bytes) { return malloc(bytes); }

void out_err(const char *file, int line, const char *function, const char *format, ...) {
    (void)format;
    fprintf(stderr, "%s:%d: %s fails\n", file, line, function);
}

static int print(const void *text, size_t bytes, void *unused) {
    (void)unused;
    fwrite(text, 1, bytes, stdout);
    return 1;
}

/* The pool, as log_runtime_init leaves it; a new one gets its descriptor first. */
static PMEMlogpool *opened(void) {
    size_t bytes;
    PMEMlogpool *pool = pmem_map_file(POOL_PATH, POOL_BYTES, PMEM_FILE_CREATE, 0600, &bytes, NULL);
    if (pool == NULL) return NULL;
    static struct pool_set set;
    pool->addr = pool;
    pool->size = bytes;
    pool->is_pmem = 1;
    pool->set = &set;
    pool->is_dev_dax = 0;
    if (pool->start_offset == 0) log_descr_create(pool, bytes);
    return log_descr_check(pool, bytes) == 0 && log_runtime_init(pool, 0) == 0 ? pool : NULL;
}

int main(int argc, char **argv) {
    int is_check = argc == 2 && strcmp(argv[1], "check") == 0;
    if (is_check && !has_pool()) return 0;
    PMEMlogpool *pool = opened();
    if (pool == NULL) return 3;
    if (is_check) {
        pmemlog_walk(pool, 0, print, NULL);
        printf("\n");
        return 0;
    }
    struct iovec parts[] = {{"two ", 4}, {"three ", 6}};
    for (int i = 0; i < 5; ++i) {
        int failed = 0;
        durasim_op_begin(i);
        switch (i) {
            case 1: failed = pmemlog_appendv(pool, parts, 2); break;
            case 2: pmemlog_rewind(pool); break;
            default: failed = pmemlog_append(pool, "text ", 5); break;
        }
        if (failed) return 1;
        durasim_op_end(i);
    }
    return 0;
}
