// How many lines fit into a hardware transaction: `store` or `load`, the distance of the lines, and numbers of them;
// or `draw` and numbers of lines to store to, each behind the seed that they are drawn with. Prints for each number
// whether a transaction that accesses so many commits.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// Transactions that touch nothing but these lines, neither a stack nor globals. The answer is 1 if one commits, or else the
// status of its abort shifted left by one.
__asm__(R"(
    .text
store_lines:
    .insn r 0x2b, 2, 0, a3, x0, x0      # htm.begin a3
    addi a4, a3, 1
    bnez a4, 3f
1:  sd a1, 0(a0)
    add a0, a0, a2
    addi a1, a1, -1
    bnez a1, 1b
2:  .insn r 0x2b, 2, 1, x0, x0, x0      # htm.end
    li a0, 1
    ret
load_lines:
    .insn r 0x2b, 2, 0, a3, x0, x0
    addi a4, a3, 1
    bnez a4, 3f
1:  ld a5, 0(a0)
    add a0, a0, a2
    addi a1, a1, -1
    bnez a1, 1b
    j 2b
3:  slli a0, a3, 1
    ret
draw_lines:
    li a5, 6364136223846793005
    li a6, 1442695040888963407
    .insn r 0x2b, 2, 0, a3, x0, x0
    addi a4, a3, 1
    bnez a4, 3b
1:  mul a2, a2, a5                      # the next number
    add a2, a2, a6
    srli a4, a2, 48                     # one of 65536 lines
    slli a4, a4, 6
    add a4, a4, a0
    sd a1, 0(a4)
    addi a1, a1, -1
    bnez a1, 1b
    j 2b
)");

extern "C" std::uint64_t store_lines(char* first, std::uint64_t count, std::uint64_t stride_bytes);
extern "C" std::uint64_t load_lines(char* first, std::uint64_t count, std::uint64_t stride_bytes);
extern "C" std::uint64_t draw_lines(char* first, std::uint64_t count, std::uint64_t seed);

alignas(4096) static char lines[4 << 20];

int main(int argc, char** argv) {
    const bool stores = std::strcmp(argv[1], "store") == 0, loads = std::strcmp(argv[1], "load") == 0;
    auto* const access = stores ? store_lines : loads ? load_lines : draw_lines;
    std::uint64_t stride_or_seed = std::strtoull(argv[2], nullptr, 10);
    std::memset(lines, 1, sizeof lines);  // each page has its frame
    for (int i = 3; i < argc; ++i) {
        if (access == draw_lines && i % 2 == 0) {
            stride_or_seed = std::strtoull(argv[i], nullptr, 10);
            continue;
        }
        const std::uint64_t answer = access(lines, std::strtoull(argv[i], nullptr, 10), stride_or_seed);
        std::printf("%s ", answer == 1 ? "committed" : answer >> 1 == 8 ? "capacity" : "other");
    }
    std::printf("\n");
    return 0;
}
