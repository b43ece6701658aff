# Executes 3,011 instructions: 1, 1,000 times 3, and 10. The counts of others are held to this one.
    .option norelax
    .global _start
_start:
    li t0, 1000
1:  addi t0, t0, -1
    fence rw, rw
    bnez t0, 1b
    mv t1, sp
    addi t1, t1, -16
    li t2, 5
    amoadd.d t3, t2, (t1)
2:  lr.d t3, (t1)
    sc.d t4, t2, (t1)
    bnez t4, 2b
    li a0, 0
    li a7, 93
    ecall
