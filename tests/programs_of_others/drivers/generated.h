/* Text that compresses about as well as prose, the same on every machine, and a checksum. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void fill(unsigned char *bytes, size_t count, uint32_t seed) {
    static const char *words[] = {"persist", "cache", "line ", "fence", "the ", "queue", "of ", "\n", "0x", "epoch "};
    size_t at = 0;
    while (at < count) {
        seed = seed * 1664525 + 1013904223;
        const char *word = words[(seed >> 24) % 10];
        for (; *word && at < count; word++) bytes[at++] = *word;
        if ((seed >> 16) % 7 == 0 && at < count) bytes[at++] = seed >> 8;
    }
}

static inline uint64_t checksum(const unsigned char *bytes, size_t count) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

static inline void report(const char *what, const unsigned char *packed, size_t packed_bytes, const unsigned char *original,
                          const unsigned char *unpacked, size_t bytes) {
    printf("%s: %zu -> %zu %016llx, %s\n", what, bytes, packed_bytes, (unsigned long long)checksum(packed, packed_bytes),
           memcmp(original, unpacked, bytes) == 0 ? "the same again" : "DIFFERENT");
}
