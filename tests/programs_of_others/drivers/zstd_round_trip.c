/* zstd_round_trip BYTES: several levels, a dictionary, streaming, and a compressor with worker threads. */
#include "generated.h"
#include "zdict.h"
#include "zstd.h"

static size_t good(size_t result, const char *what) {
    if (ZSTD_isError(result)) {
        printf("%s: %s\n", what, ZSTD_getErrorName(result));
        exit(1);
    }
    return result;
}

int main(int argc, char **argv) {
    size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 0) : 200000, room = ZSTD_compressBound(bytes);
    unsigned char *original = malloc(bytes), *packed = malloc(room), *unpacked = malloc(bytes);
    fill(original, bytes, 1);
    const int levels[] = {-3, 1, 3, 9, 15};
    for (int i = 0; i < 5; i++) {
        char name[32];
        size_t packed_bytes = good(ZSTD_compress(packed, room, original, bytes, levels[i]), "compress");
        memset(unpacked, 0, bytes);
        good(ZSTD_decompress(unpacked, bytes, packed, packed_bytes), "decompress");
        snprintf(name, sizeof name, "level %d", levels[i]);
        report(name, packed, packed_bytes, original, unpacked, bytes);
    }
    ZSTD_CCtx *context = ZSTD_createCCtx();
    good(ZSTD_CCtx_setParameter(context, ZSTD_c_nbWorkers, 3), "workers");
    good(ZSTD_CCtx_setParameter(context, ZSTD_c_jobSize, 1 << 20), "job size");
    good(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1), "checksum");
    size_t packed_bytes = good(ZSTD_compress2(context, packed, room, original, bytes), "compress2");
    memset(unpacked, 0, bytes);
    good(ZSTD_decompress(unpacked, bytes, packed, packed_bytes), "decompress");
    report("3 workers", packed, packed_bytes, original, unpacked, bytes);
    ZSTD_freeCCtx(context);

    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer in = {packed, packed_bytes, 0};
    size_t done = 0, steps = 0;
    memset(unpacked, 0, bytes);
    while (done < bytes) {
        ZSTD_outBuffer out = {unpacked + done, bytes - done < 7777 ? bytes - done : 7777, 0};
        good(ZSTD_decompressStream(stream, &out, &in), "stream");
        done += out.pos, steps++;
    }
    report("stream", packed, packed_bytes, original, unpacked, bytes);
    ZSTD_freeDStream(stream);
    printf("zstd %s, %s\n", ZSTD_versionString(), steps > 1 ? "several steps" : "one step");
    return 0;
}
