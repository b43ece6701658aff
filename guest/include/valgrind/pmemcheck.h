/* The macros of pmemcheck, a tool of Valgrind, as reports to durasim, so that a library that uses them needs no edit.
 *
 * A registered mapping is declared as data, whose promised stores the oracle `bytes` compares; a transaction is an operation, at
 * whose end the oracle `output` expects it to be durable. The machine sees stores, flushes and fences itself, and its
 * campaigns decide about their order: macros that report these do nothing. */
#ifndef DURASIM_VALGRIND_PMEMCHECK_H
#define DURASIM_VALGRIND_PMEMCHECK_H

#include <stdint.h>

#include "durasim/markers.h"

#define VALGRIND_PMC_REGISTER_PMEM_MAPPING(addr, len) durasim_declare_data((addr), (uint64_t)(len))
#define VALGRIND_PMC_REGISTER_PMEM_FILE(desc, addr, len, offset) \
    ((void)(desc), (void)(offset), durasim_declare_data((addr), (uint64_t)(len)))

#define VALGRIND_PMC_START_TX durasim_op_begin(0)
#define VALGRIND_PMC_START_TX_N(number) durasim_op_begin((uint64_t)(number))
#define VALGRIND_PMC_END_TX durasim_op_end(0)
#define VALGRIND_PMC_END_TX_N(number) durasim_op_end((uint64_t)(number))

#define DURASIM_PMC_NOTHING_() ((void)0)
#define DURASIM_PMC_NOTHING_OF_(value) ((void)(value))
#define DURASIM_PMC_NOTHING_OF_TWO_(a, b) ((void)(a), (void)(b))
#define DURASIM_PMC_NOTHING_OF_THREE_(a, b, c) ((void)(a), (void)(b), (void)(c))

#define VALGRIND_PMC_REMOVE_PMEM_MAPPING(addr, len) DURASIM_PMC_NOTHING_OF_TWO_(addr, len)
#define VALGRIND_PMC_CHECK_IS_PMEM_MAPPING(addr, len) DURASIM_PMC_NOTHING_OF_TWO_(addr, len)
#define VALGRIND_PMC_PRINT_PMEM_MAPPINGS DURASIM_PMC_NOTHING_()
#define VALGRIND_PMC_DO_FLUSH(addr, len) DURASIM_PMC_NOTHING_OF_TWO_(addr, len)
#define VALGRIND_PMC_DO_FENCE DURASIM_PMC_NOTHING_()
#define VALGRIND_PMC_WRITE_STATS DURASIM_PMC_NOTHING_()
#define VALGRIND_PMC_LOG_STORES DURASIM_PMC_NOTHING_()
#define VALGRIND_PMC_NO_LOG_STORES DURASIM_PMC_NOTHING_()
#define VALGRIND_PMC_ADD_LOG_REGION(addr, len) DURASIM_PMC_NOTHING_OF_TWO_(addr, len)
#define VALGRIND_PMC_REMOVE_LOG_REGION(addr, len) DURASIM_PMC_NOTHING_OF_TWO_(addr, len)
#define VALGRIND_PMC_EMIT_LOG(text) DURASIM_PMC_NOTHING_OF_(text)
#define VALGRIND_PMC_FULL_REORDER DURASIM_PMC_NOTHING_()
#define VALGRIND_PMC_PARTIAL_REORDER DURASIM_PMC_NOTHING_()
#define VALGRIND_PMC_DEFAULT_REORDER DURASIM_PMC_NOTHING_()
#define VALGRIND_PMC_SET_CLEAN(addr, len) DURASIM_PMC_NOTHING_OF_TWO_(addr, len)
#define VALGRIND_PMC_ADD_TO_TX(addr, len) DURASIM_PMC_NOTHING_OF_TWO_(addr, len)
#define VALGRIND_PMC_ADD_TO_TX_N(number, addr, len) DURASIM_PMC_NOTHING_OF_THREE_(number, addr, len)
#define VALGRIND_PMC_REMOVE_FROM_TX(addr, len) DURASIM_PMC_NOTHING_OF_TWO_(addr, len)
#define VALGRIND_PMC_REMOVE_FROM_TX_N(number, addr, len) DURASIM_PMC_NOTHING_OF_THREE_(number, addr, len)
#define VALGRIND_PMC_ADD_THREAD_TX_N(number) DURASIM_PMC_NOTHING_OF_(number)
#define VALGRIND_PMC_REMOVE_THREAD_FROM_TX_N(number) DURASIM_PMC_NOTHING_OF_(number)
#define VALGRIND_PMC_ADD_TO_GLOBAL_TX_IGNORE(addr, len) DURASIM_PMC_NOTHING_OF_TWO_(addr, len)

#endif
