/* lz4_round_trip BYTES: fast, high compression, frames. */
#include "generated.h"
#include "lz4.h"
#include "lz4frame.h"
#include "lz4hc.h"

int main(int argc, char **argv) {
    int bytes = argc > 1 ? atoi(argv[1]) : 300000, room = LZ4_compressBound(bytes) + 1000;
    unsigned char *original = malloc(bytes), *packed = malloc(room), *unpacked = malloc(bytes);
    fill(original, bytes, 2);
    for (int level = 0; level <= 12; level += 6) {
        char name[32];
        int packed_bytes = level == 0 ? LZ4_compress_default((char *)original, (char *)packed, bytes, room)
                                      : LZ4_compress_HC((char *)original, (char *)packed, bytes, room, level);
        memset(unpacked, 0, bytes);
        if (LZ4_decompress_safe((char *)packed, (char *)unpacked, packed_bytes, bytes) != bytes) return 1;
        snprintf(name, sizeof name, "level %d", level);
        report(name, packed, packed_bytes, original, unpacked, bytes);
    }
    LZ4F_preferences_t wishes = {.frameInfo = {.contentChecksumFlag = LZ4F_contentChecksumEnabled}};
    unsigned char *frame = malloc(LZ4F_compressFrameBound(bytes, &wishes));
    size_t frame_bytes = LZ4F_compressFrame(frame, LZ4F_compressFrameBound(bytes, &wishes), original, bytes, &wishes);
    LZ4F_dctx *context;
    size_t in = frame_bytes, out = bytes;
    LZ4F_createDecompressionContext(&context, LZ4F_VERSION);
    memset(unpacked, 0, bytes);
    if (LZ4F_decompress(context, unpacked, &out, frame, &in, NULL) != 0) return 2;
    report("frame", frame, frame_bytes, original, unpacked, bytes);
    printf("lz4 %s\n", LZ4_versionString());
    return 0;
}
