// Values and then a counter of them, made durable by a system call, which the second argument names.
// The third argument leaves the call after the values out.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { VALUES = 6, LINE_WORDS = 8, PAGE_BYTES = 4096 };

static const char *call;
static int file;
static uint64_t *values, *counter;

static void store(uint64_t *to, uint64_t value)
{
    if (strcmp(call, "pwrite") == 0)
        pwrite(file, &value, sizeof value, (char *)to - (char *)values);
    else
        *to = value;
}

static void persist(void *page)
{
    if (strcmp(call, "msync") == 0)
        msync(page, PAGE_BYTES, MS_SYNC);
    else if (strcmp(call, "async") == 0)
        msync(page, PAGE_BYTES, MS_ASYNC);
    else if (strcmp(call, "fdatasync") == 0)
        fdatasync(file);
    else if (strcmp(call, "sync") == 0)
        sync();
    else
        fsync(file);
}

int main(int argc, char **argv)
{
    int checks = strcmp(argv[1], "check") == 0;
    file = open("/pmem/values", checks ? O_RDWR : O_RDWR | O_CREAT, 0600);
    if (file < 0)
        return 0;
    if (!checks && ftruncate(file, 2 * PAGE_BYTES) != 0)
        return 2;
    if (lseek(file, 0, SEEK_END) == 0)
        return 0;
    values = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (values == MAP_FAILED)
        return 3;
    counter = values + PAGE_BYTES / sizeof *values;
    if (checks) {
        for (uint64_t i = 0; i < *counter; i++)
            if (values[i * LINE_WORDS] != 7 * i + 1)
                return 1;
        return 0;
    }
    call = argv[2];
    for (uint64_t i = 0; i < VALUES; i++) {
        store(&values[i * LINE_WORDS], 7 * i + 1);
        if (argc == 3)
            persist(values);
        store(counter, i + 1);
        persist(counter);
    }
    return 0;
}
