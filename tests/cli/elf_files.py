"""Small hand-made ELF files, valid and invalid."""

import struct

EM_RISCV = 243
EM_X86_64 = 62
ELFCLASS32, ELFCLASS64 = 1, 2
ET_EXEC, ET_DYN = 2, 3
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3

BASE = 0x10000
HEADERS_BYTES = 64 + 2 * 56

A0, A1, A2, A7, ZERO, RA = 10, 11, 12, 17, 0, 1

ECALL = 0x00000073
# The major opcode custom-3, which is undefined here.
UNKNOWN_OPCODE = 0x0000007B
JUMP_TO_ZERO = 0x00000067
SPIN = 0x0000006F

SYS_WRITE, SYS_EXIT, SYS_EXECVE, SYS_IO_URING_SETUP = 64, 93, 221, 425
# Above all RISC-V system call numbers of Linux.
SYS_UNKNOWN = 2000


def li(register: int, value: int) -> int:
    """Returns `addi register, zero, value` for a 12-bit value."""
    return ((value & 0xFFF) << 20) | (register << 7) | 0x13


def exit_with(code: int) -> list[int]:
    return [li(A0, code), li(A7, SYS_EXIT), ECALL]


def exit_with_minus_a0() -> list[int]:
    """Returns code that exits with the number of the error that a system call has just returned."""
    # sub a0, zero, a0
    return [0x40000033 | (A0 << 20) | (A0 << 7), li(A7, SYS_EXIT), ECALL]


def write_from_pc(stream: int, text: bytes) -> list[int]:
    """Returns code that writes `text`, which is stored after a jump, to a stream of the guest."""
    padded = text + bytes(-len(text) % 4)
    # auipc a1, 0; addi a1, a1, 12; jal zero, past the text
    offset = 4 + len(padded)
    jump = (((offset >> 1) & 0x3FF) << 21) | (((offset >> 11) & 1) << 20) | (((offset >> 12) & 0xFF) << 12) | 0x6F
    words = [(A1 << 7) | 0x17, (12 << 20) | (A1 << 15) | (A1 << 7) | 0x13, jump]
    words += [word for (word,) in struct.iter_unpack("<I", padded)]
    return [*words, li(A0, stream), li(A2, len(text)), li(A7, SYS_WRITE), ECALL]


def elf64(
    code: list[int],
    *,
    machine: int = EM_RISCV,
    kind: int = ET_EXEC,
    interpreter: bool = False,
    elf_class: int = ELFCLASS64,
) -> bytes:
    """Returns a static ELF64 file that starts with `code`; the arguments make it invalid."""
    body = struct.pack(f"<{len(code)}I", *code)
    size = HEADERS_BYTES + len(body)
    ident = b"\x7fELF" + bytes([elf_class, 1, 1]) + bytes(9)
    segments = 2 if interpreter else 1
    header = ident + struct.pack(
        "<HHIQQQIHHHHHH", kind, machine, 1, BASE + HEADERS_BYTES, 64, 0, 0x5, 64, 56, segments, 64, 0, 0
    )
    load = struct.pack("<IIQQQQQQ", PT_LOAD, 5, 0, BASE, BASE, size, size, 0x1000)
    second = struct.pack("<IIQQQQQQ", PT_INTERP if interpreter else 0, 4, HEADERS_BYTES, 0, 0, 4, 4, 1)
    return header + load + second + body


def elf32() -> bytes:
    """Returns the header of an ELF32 file for RISC-V."""
    ident = b"\x7fELF" + bytes([ELFCLASS32, 1, 1]) + bytes(9)
    header = ident + struct.pack("<HHIIIIIHHHHHH", ET_EXEC, EM_RISCV, 1, BASE + 84, 52, 0, 0, 52, 32, 1, 40, 0, 0)
    load = struct.pack("<IIIIIIII", PT_LOAD, 0, BASE, BASE, 96, 96, 5, 0x1000)
    return header + load + struct.pack("<3I", *exit_with(0))
