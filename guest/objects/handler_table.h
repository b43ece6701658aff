// The handlers of checked accesses (P-INSPECT, MICRO 2020, section V-D): a table of four entries, and the way from
// there to a function in C++ and back.
//
// A handler runs in the middle of a function that knows nothing of it, so it gives every register back as it was. What a
// function may change, by the calling convention, is saved here: the integer and floating-point registers that are not
// preserved by callees, and the state of floating-point operations. The stack stays aligned as it was, to 16 bytes.
#ifndef DURASIM_OBJECTS_HANDLER_TABLE_H
#define DURASIM_OBJECTS_HANDLER_TABLE_H

#include <cstdint>

#include "durasim/encodings.h"

// Makes the access that the check registers describe, as handler `number`. What it returns matters to planted faults only.
extern "C" std::uint64_t durasim_handle_access(std::uint64_t number);

#if defined(__riscv)

#define DURASIM_HANDLER_TEXT_OF_(number) #number
#define DURASIM_HANDLER_TEXT_(number) DURASIM_HANDLER_TEXT_OF_(number)

// 16 integer registers, 20 floating-point registers, fcsr, and 8 bytes for the alignment.
#define DURASIM_HANDLER_FRAME_ "304"
#define DURASIM_HANDLER_INTEGERS_(X)                                                                                      \
    X("ra", "0") X("t0", "8") X("t1", "16") X("t2", "24") X("t3", "32") X("t4", "40") X("t5", "48") X("t6", "56")         \
    X("a1", "72") X("a2", "80") X("a3", "88") X("a4", "96") X("a5", "104") X("a6", "112") X("a7", "120")
#define DURASIM_HANDLER_FLOATS_(X)                                                                                        \
    X("ft0", "128") X("ft1", "136") X("ft2", "144") X("ft3", "152") X("ft4", "160") X("ft5", "168") X("ft6", "176")       \
    X("ft7", "184") X("ft8", "192") X("ft9", "200") X("ft10", "208") X("ft11", "216") X("fa0", "224") X("fa1", "232")     \
    X("fa2", "240") X("fa3", "248") X("fa4", "256") X("fa5", "264") X("fa6", "272") X("fa7", "280")
#define DURASIM_HANDLER_SAVE_(name, place) "sd " name ", " place "(sp)\n"
#define DURASIM_HANDLER_RESTORE_(name, place) "ld " name ", " place "(sp)\n"
#define DURASIM_HANDLER_SAVE_FLOAT_(name, place) "fsd " name ", " place "(sp)\n"
#define DURASIM_HANDLER_RESTORE_FLOAT_(name, place) "fld " name ", " place "(sp)\n"
#define DURASIM_HANDLER_BEGIN_(number)                                                                                     \
    "1" number ": addi sp, sp, -" DURASIM_HANDLER_FRAME_ "\n"                                                             \
    "sd a0, 64(sp)\n"                                                                                                      \
    "li a0, " number "\n"                                                                                                  \
    "j 20f\n"

#if defined(DURASIM_PLANTED)
// A result of the function other than 0 says that registers shall be lost.
#define DURASIM_HANDLER_LOSE_REGISTERS_ "beqz a0, 21f\nsd zero, 88(sp)\nsd zero, 96(sp)\nsd zero, 104(sp)\n21:\n"
#else
#define DURASIM_HANDLER_LOSE_REGISTERS_ ""
#endif

namespace durasim::objects {

// The table: entries of 8 bytes, each a jump and nothing after it. No instruction is compressed, or entries would be shorter.
[[gnu::naked, gnu::noinline, gnu::used, gnu::aligned(8)]] static void handler_table() {
    __asm__ volatile(
        ".option push\n"
        ".option norvc\n"
        "j 11f\nnop\n"
        "j 12f\nnop\n"
        "j 13f\nnop\n"
        "j 14f\nnop\n" DURASIM_HANDLER_BEGIN_("1") DURASIM_HANDLER_BEGIN_("2") DURASIM_HANDLER_BEGIN_("3") DURASIM_HANDLER_BEGIN_("4")
        ".option pop\n"
        "20:\n" DURASIM_HANDLER_INTEGERS_(DURASIM_HANDLER_SAVE_) DURASIM_HANDLER_FLOATS_(DURASIM_HANDLER_SAVE_FLOAT_)
        "frcsr t0\n"
        "sd t0, 288(sp)\n"
        "call durasim_handle_access\n" DURASIM_HANDLER_LOSE_REGISTERS_
        "ld t0, 288(sp)\n"
        "fscsr t0\n" DURASIM_HANDLER_FLOATS_(DURASIM_HANDLER_RESTORE_FLOAT_) DURASIM_HANDLER_INTEGERS_(DURASIM_HANDLER_RESTORE_)
        "ld a0, 64(sp)\n"
        "addi sp, sp, " DURASIM_HANDLER_FRAME_ "\n"
        ".insn r " DURASIM_HANDLER_TEXT_(DURASIM_OPCODE_CHECK_RETURN) ", " DURASIM_HANDLER_TEXT_(DURASIM_FUNCT3_CHECK_RETURN) ", "
        DURASIM_HANDLER_TEXT_(DURASIM_FUNCT7_CHECK_RETURN) ", x0, x0, x0\n");
}

inline std::uint64_t handler_table_address() { return reinterpret_cast<std::uint64_t>(&handler_table); }

}  // namespace durasim::objects

#else

namespace durasim::objects {

// The model of the host calls the function itself.
inline std::uint64_t handler_table_address() { return reinterpret_cast<std::uint64_t>(&durasim_handle_access); }

}  // namespace durasim::objects

#endif

#endif
