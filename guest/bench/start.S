# The start of the kernel on a bare machine with memory at 0x80000000 and a SiFive test device at 0x100000.
.section .text.start, "ax"
.globl _start
_start:
    la sp, stack_top
    call run_kernel
    li t0, 0x100000
    li t1, 0x5555            # passed
    beqz a0, 1f
    slli a0, a0, 16
    li t1, 0x3333            # failed, with the code above
    or t1, t1, a0
1:  sw t1, 0(t0)
2:  j 2b
