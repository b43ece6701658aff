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

/* The thread is in a rare situation from here on. Argument: number of the situation. */
#define DURASIM_MARKER_SITUATION_BEGIN 17

/* The thread has left that situation. Argument: number of the situation. */
#define DURASIM_MARKER_SITUATION_END 18

/* A replayer has gone over the redo logs once and applied the transactions that it found there. Argument: number of transactions. */
#define DURASIM_MARKER_REPLAY_PASS 19

/* Numbers of situations: the argument of situation_begin and situation_end. */

/* It holds the lock of transactions that have failed in hardware. */
#define DURASIM_SITUATION_FALL_BACK_LOCK 0

/* Its last transaction has committed, and the log of that may be in the caches. */
#define DURASIM_SITUATION_COMMIT_NOT_CLEANED 1

/* The transaction that it has appended last lies at both ends of its circular log. */
#define DURASIM_SITUATION_LOG_WRAPPED 2

/* It applies logs to the data. */
#define DURASIM_SITUATION_REPLAY 3

/* Its log is durable, and it waits for the transactions before its own or for the marker of all. */
#define DURASIM_SITUATION_GROUP_WAIT 4

/* The mark that makes its transaction durable is being flushed. */
#define DURASIM_SITUATION_MARKER_NOT_FENCED 5

/* It waits for a replayer to make room in its log. */
#define DURASIM_SITUATION_LOG_FULL 6

/* Pages of its shadow of the pool leave the DRAM. */
#define DURASIM_SITUATION_PAGE_OUT 7

/* Major opcodes kept for instructions that cannot be a HINT. */

/* Checked accesses, operations on their filters, and persistent stores. */
#define DURASIM_OPCODE_CUSTOM_0 0x0b

/* Log operations; the rest is reserved for transaction tests and persistent writes. */
#define DURASIM_OPCODE_CUSTOM_1 0x2b

/* Instructions: funct3 under the major opcode, and funct7 if an instruction has just one. */

/* The aligned block of 32 bytes at the address in rs1 goes to the log register in rd, with its address (Proteus: log-load). */
#define DURASIM_OPCODE_LOG_LOAD DURASIM_OPCODE_CUSTOM_1
#define DURASIM_FUNCT3_LOG_LOAD 0

/* The block in the log register in rd goes to the log, in order with stores (Proteus: log-flush). */
#define DURASIM_OPCODE_LOG_FLUSH DURASIM_OPCODE_CUSTOM_1
#define DURASIM_FUNCT3_LOG_FLUSH 1

/* A hardware transaction begins, or one inside of it; rd = all ones if it does, and after an abort the status of that, after this instruction (RTM: xbegin). */
#define DURASIM_OPCODE_HTM_BEGIN DURASIM_OPCODE_CUSTOM_1
#define DURASIM_FUNCT3_HTM_BEGIN 2
#define DURASIM_FUNCT7_HTM_BEGIN 0

/* The innermost hardware transaction ends; with the outermost one all its stores become visible at once (RTM: xend). */
#define DURASIM_OPCODE_HTM_END DURASIM_OPCODE_CUSTOM_1
#define DURASIM_FUNCT3_HTM_END 2
#define DURASIM_FUNCT7_HTM_END 1

/* The hardware transaction, if one is open, aborts, with a code of eight bits in the fields rs2 (upper three) and rs1 (RTM: xabort). */
#define DURASIM_OPCODE_HTM_ABORT DURASIM_OPCODE_CUSTOM_1
#define DURASIM_FUNCT3_HTM_ABORT 2
#define DURASIM_FUNCT7_HTM_ABORT 2

/* rd = 1 inside a hardware transaction, else 0 (RTM: xtest). */
#define DURASIM_OPCODE_HTM_TEST DURASIM_OPCODE_CUSTOM_1
#define DURASIM_FUNCT3_HTM_TEST 2
#define DURASIM_FUNCT7_HTM_TEST 3

/* Checks the object at rs1, then loads from rs1 plus the offset in the field rs2 to rd, or enters a handler (P-INSPECT: checkLoad). */
#define DURASIM_OPCODE_CHECK_LOAD DURASIM_OPCODE_CUSTOM_0
#define DURASIM_FUNCT3_CHECK_LOAD 0

/* Checks the object at rs1, then stores rs2 to rs1 plus the offset in the field rd, or enters a handler (P-INSPECT: checkStoreH). */
#define DURASIM_OPCODE_CHECK_STORE_H DURASIM_OPCODE_CUSTOM_0
#define DURASIM_FUNCT3_CHECK_STORE_H 1

/* Checks the objects at rs1 and rs2, then stores rs2 to rs1 plus the offset in the field rd, or enters a handler; doublewords only (P-INSPECT: checkStoreBoth). */
#define DURASIM_OPCODE_CHECK_STORE_BOTH DURASIM_OPCODE_CUSTOM_0
#define DURASIM_FUNCT3_CHECK_STORE_BOTH 2

/* Stores rs2 to rs1 plus the offset in the field rd, without checks (P-INSPECT: persistentWrite). */
#define DURASIM_OPCODE_PERSIST_STORE DURASIM_OPCODE_CUSTOM_0
#define DURASIM_FUNCT3_PERSIST_STORE 3

/* Inserts the object at rs1 into the active forwarding filter; rd = 1 if it is so full that the pointer update thread has to work, else 0 (P-INSPECT: insertBF of FWD). */
#define DURASIM_OPCODE_INSERT_FWD DURASIM_OPCODE_CUSTOM_0
#define DURASIM_FUNCT3_INSERT_FWD 4
#define DURASIM_FUNCT7_INSERT_FWD 0

/* Inserts the object at rs1 into the filter of closures in progress (P-INSPECT: insertBF of TRANS). */
#define DURASIM_OPCODE_INSERT_TRANS DURASIM_OPCODE_CUSTOM_0
#define DURASIM_FUNCT3_INSERT_TRANS 4
#define DURASIM_FUNCT7_INSERT_TRANS 1

/* Clears the inactive forwarding filter (P-INSPECT: clearBF of FWD). */
#define DURASIM_OPCODE_CLEAR_FWD DURASIM_OPCODE_CUSTOM_0
#define DURASIM_FUNCT3_CLEAR_FWD 4
#define DURASIM_FUNCT7_CLEAR_FWD 2

/* Clears the filter of closures in progress (P-INSPECT: clearBF of TRANS). */
#define DURASIM_OPCODE_CLEAR_TRANS DURASIM_OPCODE_CUSTOM_0
#define DURASIM_FUNCT3_CLEAR_TRANS 4
#define DURASIM_FUNCT7_CLEAR_TRANS 3

/* Makes the inactive forwarding filter the active one (P-INSPECT: Change Active FWD Filter). */
#define DURASIM_OPCODE_CHANGE_ACTIVE DURASIM_OPCODE_CUSTOM_0
#define DURASIM_FUNCT3_CHANGE_ACTIVE 4
#define DURASIM_FUNCT7_CHANGE_ACTIVE 4

/* The check register whose number is in funct7 goes to rd. */
#define DURASIM_OPCODE_CHECK_READ DURASIM_OPCODE_CUSTOM_0
#define DURASIM_FUNCT3_CHECK_READ 5

/* rs1 goes to the check register whose number is in funct7. */
#define DURASIM_OPCODE_CHECK_WRITE DURASIM_OPCODE_CUSTOM_0
#define DURASIM_FUNCT3_CHECK_WRITE 6

/* Leaves a handler: the program continues at return_pc, and if the access was a check_load, its rd gets result, truncated and extended as the access asks. */
#define DURASIM_OPCODE_CHECK_RETURN DURASIM_OPCODE_CUSTOM_0
#define DURASIM_FUNCT3_CHECK_RETURN 7
#define DURASIM_FUNCT7_CHECK_RETURN 0

/* Bits of funct7 of accesses, whose lowest two are the binary logarithm of the width in bytes. */

/* The loaded value is zero-extended, and else sign-extended. */
#define DURASIM_ACCESS_ZERO_EXTEND 0x04

/* A store to persistent memory cleans its line. */
#define DURASIM_ACCESS_CLEAN 0x08

/* A store to persistent memory cleans its line, and later stores wait until that is durable. */
#define DURASIM_ACCESS_CLEAN_AND_FENCE 0x10

/* The field of the offset is a constant, which counts in widths of the access, and else the number of a register that holds bytes. */
#define DURASIM_ACCESS_CONSTANT_OFFSET 0x40

/* Numbers of check registers: funct7 of check_read and check_write. */

/* Address of the filters of the process: nine lines in one page, 0 if there are none. */
#define DURASIM_CHECK_REGISTER_FILTERS 0

/* Address of the handler table: handler n, 1 to 4, begins 8 * (n - 1) bytes after it; 0 if it is not set. */
#define DURASIM_CHECK_REGISTER_HANDLERS 1

/* First byte of the persistent heap. */
#define DURASIM_CHECK_REGISTER_HEAP_BASE 2

/* First byte after the persistent heap. */
#define DURASIM_CHECK_REGISTER_HEAP_LIMIT 3

/* Bit 0: inside of a transaction. */
#define DURASIM_CHECK_REGISTER_XACTION 4

/* Written at the entry of a handler: the instruction after the access. */
#define DURASIM_CHECK_REGISTER_RETURN_PC 5

/* Written at the entry of a handler: the base of the access. */
#define DURASIM_CHECK_REGISTER_BASE 6

/* Written at the entry of a handler: the offset of the access in bytes. */
#define DURASIM_CHECK_REGISTER_OFFSET 7

/* Written at the entry of a handler: what was to be stored, 0 for a load. */
#define DURASIM_CHECK_REGISTER_VALUE 8

/* Written at the entry of a handler: funct7 | funct3 << 8 | rd << 16 of the access. */
#define DURASIM_CHECK_REGISTER_ACCESS 9

/* The value that a handler of check_load has loaded, for check_return. */
#define DURASIM_CHECK_REGISTER_RESULT 10

#endif
