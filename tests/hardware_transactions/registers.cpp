// What an abort brings back: registers, the stack pointer and a word on the stack. `abort` changes them inside of a
// transaction that aborts, `end` inside of one that commits. Prints how many of them then differ from what they were
// before.
#include <cstdint>
#include <cstdio>
#include <cstring>

// Each register holds its own number before the transaction (floating-point registers: 32 more), and 256 more inside.
// a0 holds the array of what is found, a1 whether the transaction ends, and t0 gets the status.
__asm__(R"(
    .macro set_all offset
    .irp i, 1,6,7,8,9,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    li x\i, \i + \offset
    .endr
    .irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    li t0, \i + 32 + \offset
    fmv.d.x f\i, t0
    .endr
    .endm

    .text
change_in_transaction:
    addi sp, sp, -224
    sd ra, 0(sp)
    .irp i, 8,9,18,19,20,21,22,23,24,25,26,27
    sd x\i, 8 * \i (sp)
    .endr
    addi sp, sp, -96
    fsd fs0, 0(sp)
    fsd fs1, 8(sp)
    fsd fs2, 16(sp)
    fsd fs3, 24(sp)
    fsd fs4, 32(sp)
    fsd fs5, 40(sp)
    fsd fs6, 48(sp)
    fsd fs7, 56(sp)
    fsd fs8, 64(sp)
    fsd fs9, 72(sp)
    fsd fs10, 80(sp)
    fsd fs11, 88(sp)
    addi sp, sp, -16
    li t0, 100
    sd t0, 8(sp)                        # the word on the stack
    fscsr x0, x0
    set_all 0
    .insn r 0x2b, 2, 0, t0, x0, x0      # htm.begin t0
    sd t0, 0(sp)
    addi t0, t0, 1
    bnez t0, 2f
    li t0, 356
    sd t0, 8(sp)
    set_all 256
    li t0, 0x61
    fscsr x0, t0
    addi sp, sp, -16                    # a frame of its own
    sd t0, 8(sp)
    bnez a1, 1f
    .insn r 0x2b, 2, 2, x0, x5, x0      # htm.abort 5
1:  .insn r 0x2b, 2, 1, x0, x0, x0      # htm.end
2:  sd ra, 8(a0)
    .irp i, 6,7,8,9,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    sd x\i, 8 * \i (a0)
    .endr
    .irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    fsd f\i, 8 * \i + 256 (a0)
    .endr
    frcsr t0
    sd t0, 0(a0)
    sd sp, 16(a0)
    beqz a1, 3f
    addi sp, sp, 16
3:  sd sp, 24(a0)
    ld t0, 8(sp)
    sd t0, 32(a0)
    ld t0, 0(sp)
    addi sp, sp, 16
    fld fs0, 0(sp)
    fld fs1, 8(sp)
    fld fs2, 16(sp)
    fld fs3, 24(sp)
    fld fs4, 32(sp)
    fld fs5, 40(sp)
    fld fs6, 48(sp)
    fld fs7, 56(sp)
    fld fs8, 64(sp)
    fld fs9, 72(sp)
    fld fs10, 80(sp)
    fld fs11, 88(sp)
    addi sp, sp, 96
    ld ra, 0(sp)
    .irp i, 8,9,18,19,20,21,22,23,24,25,26,27
    ld x\i, 8 * \i (sp)
    .endr
    addi sp, sp, 224
    fscsr x0, x0
    mv a0, t0
    ret
)");

// The status that the begin has left last. `found` gets integer registers at their numbers and f0 to f31 behind them,
// fcsr at 0, the stack pointer behind the transaction at 2, that before it at 3, and the word on the stack at 4.
extern "C" std::uint64_t change_in_transaction(std::uint64_t* found, bool ends);

int main(int, char** argv) {
    static std::uint64_t found[64];
    const bool ends = std::strcmp(argv[1], "end") == 0;
    const std::uint64_t status = change_in_transaction(found, ends);
    int integers = 0, floats = 0;
    for (std::uint64_t i = 1; i < 32; ++i) {
        const bool is_set = i == 1 || i == 6 || i == 7 || i == 8 || i == 9 || i >= 12;
        integers += is_set && found[i] != i;
    }
    for (std::uint64_t i = 32; i < 64; ++i) floats += found[i] != i;
    std::printf("status %#llx, integer %d, floating point %d, fcsr %#llx, frame %d, word %d\n",
                static_cast<unsigned long long>(status), integers, floats, static_cast<unsigned long long>(found[0]),
                static_cast<int>(found[3] - found[2]), static_cast<int>(found[4]));
    return 0;
}
