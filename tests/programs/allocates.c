/* Takes memory without end, and stores to each page of it. */
#include <stdlib.h>

enum { BLOCK_BYTES = 1 << 20, PAGE_BYTES = 4096 };

int main(void) {
    for (;;) {
        volatile char *block = malloc(BLOCK_BYTES);
        if (!block) return 3;
        for (int at = 0; at < BLOCK_BYTES; at += PAGE_BYTES) block[at] = 1;
    }
}
