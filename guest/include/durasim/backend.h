// The program says in its file which backend it was built for: the section .durasim.backend, which is not loaded, holds the
// name. durasim refuses to run it under a design of another backend. A program without this section is taken as it is.
#ifndef DURASIM_BACKEND_H
#define DURASIM_BACKEND_H

#if defined(__riscv)
// Several translation units have one name: the linker merges equal strings (M, S).
#define DURASIM_BACKEND_IS_(name) \
    __asm__(".pushsection .durasim.backend,\"MS\",%progbits,1\n\t.asciz \"" name "\"\n\t.popsection")
#else
#define DURASIM_BACKEND_IS_(name) static_assert(true)
#endif

#if defined(DURASIM_BACKEND_MARKERS)
DURASIM_BACKEND_IS_("markers");
#elif defined(DURASIM_BACKEND_LOG_OPERATIONS)
DURASIM_BACKEND_IS_("log-operations");
#elif defined(DURASIM_BACKEND_UNDO_FLUSH)
DURASIM_BACKEND_IS_("undo-flush");
#elif defined(DURASIM_BACKEND_UNDO_FENCE)
DURASIM_BACKEND_IS_("undo-fence");
#elif defined(DURASIM_BACKEND_REDO_FLUSH)
DURASIM_BACKEND_IS_("redo-flush");
#elif defined(DURASIM_BACKEND_WRITE_AHEAD)
DURASIM_BACKEND_IS_("write-ahead");
#elif defined(DURASIM_BACKEND_AUTOPERSIST)
DURASIM_BACKEND_IS_("autopersist");
#elif defined(DURASIM_BACKEND_IDEAL_R)
DURASIM_BACKEND_IS_("ideal-r");
#elif defined(DURASIM_BACKEND_P_INSPECT)
DURASIM_BACKEND_IS_("p-inspect");
#elif defined(DURASIM_BACKEND_HTM_SGL)
DURASIM_BACKEND_IS_("htm-sgl");
#elif defined(DURASIM_BACKEND_SPHT_EADR)
DURASIM_BACKEND_IS_("spht-eadr");
#elif defined(DURASIM_BACKEND_SPHT_EADR_FLUSH)
DURASIM_BACKEND_IS_("spht-eadr-flush");
#elif defined(DURASIM_BACKEND_SPHT)
DURASIM_BACKEND_IS_("spht");
#elif defined(DURASIM_BACKEND_NV_HTM)
DURASIM_BACKEND_IS_("nv-htm");
#elif defined(DURASIM_BACKEND_PLAIN)
DURASIM_BACKEND_IS_("plain");
#endif

#endif
