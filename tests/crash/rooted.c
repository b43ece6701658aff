// Counts durably as far as the file /count of the root folder says, and notes each run in /log there. /allowed has the largest count that
// the check permits, and the last one, which it permits too.
#include <durasim/persist.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int is_check = argc > 1 && strcmp(argv[1], "check") == 0;
    FILE *file = fopen(is_check ? "/allowed" : "/count", "r"), *log = fopen("/log", "a");
    int wanted = 0, last = 0;
    if (!file || !log || fscanf(file, "%d", &wanted) != 1) return 3;
    fprintf(log, "%s\n", argv[1]);
    fclose(log);
    int pool = open("/pmem/pool", O_CREAT | O_RDWR, 0600);
    if (pool < 0 || ftruncate(pool, 4096) != 0) return 4;
    uint64_t *count = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, pool, 0);
    if (is_check && fscanf(file, "%d", &last) != 1) return 3;
    if (is_check) return *count > (uint64_t)wanted && *count != (uint64_t)last;
    for (int i = 1; i <= wanted; ++i) {
        *count = i;
        durasim_clean(count);
        durasim_persist_fence();
    }
    return 0;
}
