// Values and their number, each made durable by pmem_persist of libpmem. `check` compares them.
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { VALUES = 10 };
struct pool {
    uint64_t count, rest[7], values[VALUES];
};

int main(int argc, char **argv) {
    size_t bytes;
    int is_pmem;
    struct pool *pool = pmem_map_file("/pmem/pool", 4096, PMEM_FILE_CREATE, 0600, &bytes, &is_pmem);
    if (!pool || !is_pmem) {
        fprintf(stderr, "no persistent memory: %s\n", pool ? "is_pmem is 0" : pmem_errormsg());
        return 2;
    }
    if (argc > 1 && strcmp(argv[1], "check") == 0) {
        for (uint64_t i = 0; i < pool->count; ++i) {
            if (pool->values[i] != 3 * i + 1) {
                fprintf(stderr, "violation: value %d is lost\n", (int)i);
                return 1;
            }
        }
        return 0;
    }
    for (uint64_t i = pool->count; i < VALUES; ++i) {
        pool->values[i] = 3 * i + 1;
        pmem_persist(&pool->values[i], sizeof pool->values[i]);
        pool->count = i + 1;
        pmem_persist(&pool->count, sizeof pool->count);
    }
    return 0;
}
