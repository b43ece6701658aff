/* Generated from crates/isa/encodings.toml by tools/gen_encodings.py: edit the table, not this file. */
#ifndef DURASIM_ENCODINGS_H
#define DURASIM_ENCODINGS_H

/* Markers: slti x0, rs1, imm, where imm is one of these and rs1 holds the argument. */

/* The region of interest begins: counters that the result reports start from zero. Argument: unused. */
#define DURASIM_MARKER_ROI_BEGIN 1

/* The region of interest ends. Argument: unused. */
#define DURASIM_MARKER_ROI_END 2

/* An operation of the workload begins; its latency is measured up to the matching op_end. Argument: number of the operation. */
#define DURASIM_MARKER_OP_BEGIN 3

/* The operation ends. Argument: number of the operation. */
#define DURASIM_MARKER_OP_END 4

/* A transaction begins. The program sets a0 to 0 just before; after an abort the machine returns here with the cause in a0. Argument: unused. */
#define DURASIM_MARKER_TX_BEGIN 5

/* The open transaction commits. Argument: unused. */
#define DURASIM_MARKER_TX_COMMIT 6

/* The program aborts the open transaction itself. Argument: cause handed back in a0. */
#define DURASIM_MARKER_TX_ABORT 7

/* Declares where the program's persistent data starts. Argument: virtual address of the first byte. */
#define DURASIM_MARKER_DATA_BASE 8

/* Declares how much persistent data there is, starting at data_base. Argument: size in bytes. */
#define DURASIM_MARKER_DATA_SIZE 9

/* A place where a snapshot of the machine may be taken. Argument: number of the place. */
#define DURASIM_MARKER_SNAPSHOT_POINT 10

/* A software commit is about to take effect: from here to its tx_commit a crash may show all of the transaction or nothing. Argument: unused. */
#define DURASIM_MARKER_TX_COMMITTING 11

/* The open transaction read or changed an object. Argument: the object. */
#define DURASIM_MARKER_OP_OBJECT 12

/* The version of that object that the transaction found. Argument: the version, 0 if the object was not there. */
#define DURASIM_MARKER_OP_OLD 13

/* The version of that object that the transaction left. Argument: the version, 0 if the object is no longer there. */
#define DURASIM_MARKER_OP_NEW 14

/* The open transaction is suspended: the stores that follow are not part of it. Argument: unused. */
#define DURASIM_MARKER_TX_SUSPEND 15

/* The suspended transaction resumes: the stores that follow are part of it. Argument: unused. */
#define DURASIM_MARKER_TX_RESUME 16

/* Major opcodes kept for instructions that cannot be a HINT. */

/* Reserved for checked accesses. */
#define DURASIM_OPCODE_CUSTOM_0 0x0b

/* Log operations; the rest is reserved for transaction tests and persistent writes. */
#define DURASIM_OPCODE_CUSTOM_1 0x2b

/* Instructions: I-type, each with its funct3 under its major opcode. */

/* The aligned block of 32 bytes at the address in rs1 goes to the log register in rd, with its address (Proteus: log-load). */
#define DURASIM_OPCODE_LOG_LOAD DURASIM_OPCODE_CUSTOM_1
#define DURASIM_FUNCT3_LOG_LOAD 0

/* The block in the log register in rd goes to the log, in order with stores (Proteus: log-flush). */
#define DURASIM_OPCODE_LOG_FLUSH DURASIM_OPCODE_CUSTOM_1
#define DURASIM_FUNCT3_LOG_FLUSH 1

#endif
