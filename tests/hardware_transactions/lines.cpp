// How many lines fit into a hardware transaction: `store` or `load`, the distance of the lines, and numbers of them. Prints for each
// number whether a transaction that accesses so many commits.
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
)");

extern "C" std::uint64_t store_lines(char* first, std::uint64_t count, std::uint64_t stride_bytes);
extern "C" std::uint64_t load_lines(char* first, std::uint64_t count, std::uint64_t stride_bytes);

alignas(4096) static char lines[4 << 20];

int main(int argc, char** argv) {
    const bool stores = std::strcmp(argv[1], "store") == 0;
    const std::uint64_t stride_bytes = std::strtoull(argv[2], nullptr, 10);
    std::memset(lines, 1, sizeof lines);  // each page has its frame
    for (int i = 3; i < argc; ++i) {
        const std::uint64_t count = std::strtoull(argv[i], nullptr, 10);
        const std::uint64_t answer = stores ? store_lines(lines, count, stride_bytes) : load_lines(lines, count, stride_bytes);
        std::printf("%s ", answer == 1 ? "committed" : answer >> 1 == 8 ? "capacity" : "other");
    }
    std::printf("\n");
    return 0;
}
