// The backend that a program is built for, as -DDURASIM_BACKEND=NAME: guest/backends/NAME.h says what it consists of.
//
// The program keeps the name in the section .durasim.backend of its file, which is not loaded. durasim refuses to run it under
// a design with another backend. A program without this section is accepted as it is.
//
// The definitions of a header of guest/backends:
//   DURASIM_RUNTIME_                      the header with the class Runtime (see tx.h)
//   DURASIM_OBJECTS_                      the header with the barriers of objects (see objects.h), if it has some
//   DURASIM_PLANTED_FAULTS_(X)            its faults of runtimes/planted.h; those of undo logs if not defined
//   DURASIM_CACHES_ARE_DURABLE_           a full fence makes stores durable, without cbo.clean
//   DURASIM_STORES_ARE_CLEANED_AT_ONCE_   regions over objects clean what they store at once
//   DURASIM_CHECKED_ACCESSES_             hardware checks accesses to objects (P-INSPECT)
//   DURASIM_LOG_OPERATIONS_               log operations precede each store (Proteus)
//   DURASIM_LOG_LEAVES_CACHES_            the lines of a log leave the caches after the commit (SPHT-eADR-Flush)
//   DURASIM_ABORTS_RETURN_TO_BEGIN_       an aborted transaction continues where durasim_tx_begin returns again
//   DURASIM_NEVER_ABORTS_                 there are no transactions that could abort
#ifndef DURASIM_BACKEND_H
#define DURASIM_BACKEND_H

#if defined(DURASIM_BACKEND)

#define DURASIM_QUOTED_(text) #text
#define DURASIM_NAME_(name) DURASIM_QUOTED_(name)
#define DURASIM_FILE_(name) DURASIM_QUOTED_(backends/name.h)
#define DURASIM_FILE_OF_(name) DURASIM_FILE_(name)

#include DURASIM_FILE_OF_(DURASIM_BACKEND)

#if defined(__riscv)
// Several translation units have one name: the linker merges equal strings (M, S).
__asm__(".pushsection .durasim.backend,\"MS\",%progbits,1\n\t.asciz \"" DURASIM_NAME_(DURASIM_BACKEND) "\"\n\t.popsection");
#endif

#endif

#endif
