/* Those functions of libpmem and libpmem2 that the programs in this folder call, with cache-block operations and the fence of
 * durasim/persist.h in place of the instructions of x86. The headers are those of PMDK. */
#define _GNU_SOURCE
#include <durasim/persist.h>
#include <fcntl.h>
#include <libpmem.h>
#include <libpmem2.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Callers are found through the return address, which stays in its register in a function that calls no other. */
#define LEAF __attribute__((noinline))

struct pmem2_config {
    enum pmem2_sharing_type sharing;
};
struct pmem2_source {
    int file;
};
struct pmem2_map {
    void *address;
    size_t bytes;
};

LEAF void pmem_flush(const void *address, size_t bytes) {
    uintptr_t line = (uintptr_t)address & ~(uintptr_t)(DURASIM_LINE_BYTES - 1);
    for (; line < (uintptr_t)address + bytes; line += DURASIM_LINE_BYTES) durasim_clean((const void *)line);
}

LEAF void pmem_drain(void) { durasim_persist_fence(); }

LEAF void pmem_persist(const void *address, size_t bytes) {
    uintptr_t line = (uintptr_t)address & ~(uintptr_t)(DURASIM_LINE_BYTES - 1);
    for (; line < (uintptr_t)address + bytes; line += DURASIM_LINE_BYTES) durasim_clean((const void *)line);
    durasim_persist_fence();
}

/* The loops store byte by byte: a volatile access is not made a call of memcpy. */
LEAF void *pmem_memcpy_nodrain(void *to, const void *from, size_t bytes) {
    volatile char *stored = to;
    for (size_t i = 0; i < bytes; ++i) stored[i] = ((const char *)from)[i];
    uintptr_t line = (uintptr_t)to & ~(uintptr_t)(DURASIM_LINE_BYTES - 1);
    for (; line < (uintptr_t)to + bytes; line += DURASIM_LINE_BYTES) durasim_clean((const void *)line);
    return to;
}

LEAF void *pmem_memset_persist(void *to, int value, size_t bytes) {
    volatile char *stored = to;
    for (size_t i = 0; i < bytes; ++i) stored[i] = (char)value;
    uintptr_t line = (uintptr_t)to & ~(uintptr_t)(DURASIM_LINE_BYTES - 1);
    for (; line < (uintptr_t)to + bytes; line += DURASIM_LINE_BYTES) durasim_clean((const void *)line);
    durasim_persist_fence();
    return to;
}

int pmem_msync(const void *address, size_t bytes) {
    pmem_persist(address, bytes);
    return 0;
}

void *pmem_map_file(const char *path, size_t bytes, int flags, mode_t mode, size_t *mapped, int *is_pmem) {
    struct stat found;
    int file = open(path, O_RDWR | (flags & PMEM_FILE_CREATE ? O_CREAT : 0), mode);
    if (file < 0 || fstat(file, &found) < 0) return NULL;
    size_t size = bytes ? bytes : (size_t)found.st_size;
    if ((size_t)found.st_size < size && ftruncate(file, (off_t)size) < 0) return NULL;
    void *address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (address == MAP_FAILED) return NULL;
    if (mapped) *mapped = size;
    if (is_pmem) *is_pmem = 1;
    return address;
}

int pmem_unmap(void *address, size_t bytes) { return munmap(address, bytes); }

int pmem2_config_new(struct pmem2_config **made) {
    *made = calloc(1, sizeof **made);
    if (!*made) return -1;
    (*made)->sharing = PMEM2_SHARED;
    return 0;
}

int pmem2_config_delete(struct pmem2_config **config) {
    free(*config);
    *config = NULL;
    return 0;
}

int pmem2_config_set_sharing(struct pmem2_config *config, enum pmem2_sharing_type sharing) {
    config->sharing = sharing;
    return 0;
}

int pmem2_config_set_required_store_granularity(struct pmem2_config *config, enum pmem2_granularity granularity) {
    (void)config;
    return granularity == PMEM2_GRANULARITY_BYTE ? PMEM2_E_GRANULARITY_NOT_SUPPORTED : 0;
}

int pmem2_source_from_fd(struct pmem2_source **made, int file) {
    *made = malloc(sizeof **made);
    if (!*made) return -1;
    (*made)->file = file;
    return 0;
}

int pmem2_source_delete(struct pmem2_source **source) {
    free(*source);
    *source = NULL;
    return 0;
}

int pmem2_map_new(struct pmem2_map **made, const struct pmem2_config *config, const struct pmem2_source *source) {
    struct stat found;
    struct pmem2_map *map = malloc(sizeof *map);
    if (!map || fstat(source->file, &found) < 0) return -1;
    map->bytes = (size_t)found.st_size;
    int sharing = config->sharing == PMEM2_PRIVATE ? MAP_PRIVATE : MAP_SHARED;
    map->address = mmap(NULL, map->bytes, PROT_READ | PROT_WRITE, sharing, source->file, 0);
    if (map->address == MAP_FAILED) return -1;
    *made = map;
    return 0;
}

int pmem2_map_delete(struct pmem2_map **map) {
    int failed = munmap((*map)->address, (*map)->bytes);
    free(*map);
    *map = NULL;
    return failed;
}

void *pmem2_map_get_address(struct pmem2_map *map) { return map->address; }

size_t pmem2_map_get_size(struct pmem2_map *map) { return map->bytes; }

LEAF static void *copy(void *to, const void *from, size_t bytes, unsigned flags) {
    volatile char *stored = to;
    for (size_t i = 0; i < bytes; ++i) stored[i] = ((const char *)from)[i];
    if (flags & PMEM2_F_MEM_NOFLUSH) return to;
    uintptr_t line = (uintptr_t)to & ~(uintptr_t)(DURASIM_LINE_BYTES - 1);
    for (; line < (uintptr_t)to + bytes; line += DURASIM_LINE_BYTES) durasim_clean((const void *)line);
    if (!(flags & PMEM2_F_MEM_NODRAIN)) durasim_persist_fence();
    return to;
}

static void *fill(void *to, int value, size_t bytes, unsigned flags) {
    (void)flags;
    return pmem_memset_persist(to, value, bytes);
}

pmem2_persist_fn pmem2_get_persist_fn(struct pmem2_map *map) { return (void)map, pmem_persist; }
pmem2_flush_fn pmem2_get_flush_fn(struct pmem2_map *map) { return (void)map, pmem_flush; }
pmem2_drain_fn pmem2_get_drain_fn(struct pmem2_map *map) { return (void)map, pmem_drain; }
pmem2_memcpy_fn pmem2_get_memcpy_fn(struct pmem2_map *map) { return (void)map, copy; }
pmem2_memset_fn pmem2_get_memset_fn(struct pmem2_map *map) { return (void)map, fill; }

void pmem2_perror(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs(": failed\n", stderr);
}
