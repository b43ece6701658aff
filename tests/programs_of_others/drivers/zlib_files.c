/* zlib_files BYTES: deflate in memory, and files written and read by zlib. */
#include "generated.h"
#include "zlib.h"

int main(int argc, char **argv) {
    uLong bytes = argc > 1 ? strtoul(argv[1], NULL, 0) : 200000, room = compressBound(bytes);
    unsigned char *original = malloc(bytes), *packed = malloc(room), *unpacked = malloc(bytes);
    fill(original, bytes, 3);
    for (int level = 1; level <= 9; level += 4) {
        char name[32];
        uLongf packed_bytes = room, found = bytes;
        if (compress2(packed, &packed_bytes, original, bytes, level) != Z_OK) return 1;
        if (uncompress(unpacked, &found, packed, packed_bytes) != Z_OK || found != bytes) return 2;
        snprintf(name, sizeof name, "level %d", level);
        report(name, packed, packed_bytes, original, unpacked, bytes);
    }
    gzFile file = gzopen("zlib_files.gz", "wb6");
    for (uLong at = 0; at < bytes; at += 5000) gzwrite(file, original + at, bytes - at < 5000 ? bytes - at : 5000);
    gzclose(file);
    memset(unpacked, 0, bytes);
    file = gzopen("zlib_files.gz", "rb");
    int got = gzread(file, unpacked, bytes);
    gzseek(file, 100, SEEK_SET);
    int byte = gzgetc(file);
    gzclose(file);
    remove("zlib_files.gz");
    printf("file: %d bytes, %s, %d, crc %lx\n", got, memcmp(original, unpacked, bytes) ? "DIFFERENT" : "the same again",
           byte == original[100], crc32(0, unpacked, bytes));
    printf("zlib %s\n", zlibVersion());
    return 0;
}
