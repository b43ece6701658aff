/* A recovery that ends with a fault of the program where it has something to restore: `check wild|illegal`. */
#include "pm.h"

typedef struct { word_line first, second; } pool;

int main(int count, char **words) {
    pool *p = pm_open("/pmem/faulting", sizeof *p, !strcmp(words[1], "run"));
    if (!p) return 0;
    if (!strcmp(words[1], "run")) {
        p->first.v = 1;
        pm_persist(&p->first, 8);
        p->second.v = 1;
        pm_persist(&p->second, 8);
        return 0;
    }
    if (p->first.v == p->second.v) return 0;
    if (!strcmp(words[count - 1], "wild")) *(volatile int *)8 = 1;
    __asm__ volatile(".word 0");
    return 0;
}
