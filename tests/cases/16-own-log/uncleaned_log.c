/* As own_log.c, but the second entry of the log is not cleaned before the data are stored: recovery restores a stale word.
 * `run declared N` also declares the pair as persistent data. */
#include "pm.h"
#include "durasim/markers.h"

typedef struct { word_line used; word_line old[2]; word_line data[2]; } pool;

static void store(word_line *place, u64 value) {
    place->v = value;
    pm_persist(&place->v, 8);
}

static void step(pool *p, u64 value) {
    durasim_tx_begin();
    store(&p->old[0], p->data[0].v);
    p->old[1].v = p->data[1].v; /* a clean and a fence are missing here */
    store(&p->used, 1);
    store(&p->data[0], value);
    store(&p->data[1], value);
    durasim_tx_committing();
    store(&p->used, 0);
    durasim_tx_commit();
}

int main(int count, char **words) {
    if (count < 2) quit(2, "usage: run [declared] N | check");
    pool *p = pm_open("/pmem/own-log", sizeof *p, !strcmp(words[1], "run"));
    if (!p) return 0;
    if (p->used.v) {
        store(&p->data[0], p->old[0].v);
        store(&p->data[1], p->old[1].v);
        store(&p->used, 0);
    }
    if (!strcmp(words[1], "check")) {
        if (p->data[0].v != p->data[1].v) violation("%lu and %lu", (unsigned long)p->data[0].v, (unsigned long)p->data[1].v);
        return 0;
    }
    if (!strcmp(words[2], "declared")) durasim_declare_data(p->data, sizeof p->data);
    for (u64 value = 1; value <= strtoull(words[count - 1], 0, 10); value++) step(p, value);
    return 0;
}
