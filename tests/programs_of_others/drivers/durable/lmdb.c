/* LMDB on a map that it writes (MDB_WRITEMAP): msync of lines becomes their cleans and a fence. `run` commits transactions; `check`
 * prints the table. */
#include <durasim/persist.h>
#include <stddef.h>

#define MDB_MSYNC(address, bytes, flags) clean_all(address, bytes)

__attribute__((noinline)) static int clean_all(const char *address, size_t bytes) {
    for (size_t at = 0; at < bytes; at += DURASIM_LINE_BYTES) durasim_clean(address + at);
    durasim_persist_fence();
    return 0;
}

#include UPSTREAM
#include "pool.h"
#include <durasim/markers.h>

enum { MAP_BYTES = 64 << 10, OPERATIONS = 3 };

static MDB_env *opened(void) {
    MDB_env *env;
    if (mdb_env_create(&env) || mdb_env_set_mapsize(env, MAP_BYTES)) return NULL;
    return mdb_env_open(env, POOL_PATH, MDB_NOSUBDIR | MDB_WRITEMAP | MDB_NOLOCK, 0600) ? NULL : env;
}

static int print(MDB_env *env) {
    MDB_txn *txn;
    MDB_dbi table;
    MDB_cursor *cursor;
    MDB_val key, value;
    if (mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) || mdb_dbi_open(txn, NULL, 0, &table)) return 1;
    if (mdb_cursor_open(txn, table, &cursor)) return 1;
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
        printf("%.*s = %.*s\n", (int)key.mv_size, (char *)key.mv_data, (int)value.mv_size, (char *)value.mv_data);
    return 0;
}

static int put(MDB_env *env, int number) {
    MDB_txn *txn;
    MDB_dbi table;
    char name[16], text[32];
    MDB_val key = {(size_t)sprintf(name, "key %d", number % 3), name};
    MDB_val value = {(size_t)sprintf(text, "value %d", number), text};
    if (mdb_txn_begin(env, NULL, 0, &txn) || mdb_dbi_open(txn, NULL, 0, &table)) return 1;
    return mdb_put(txn, table, &key, &value, 0) || mdb_txn_commit(txn);
}

int main(int argc, char **argv) {
    int is_check = argc == 2 && strcmp(argv[1], "check") == 0;
    if (is_check && !has_pool()) return 0;
    MDB_env *env = opened();
    /* LMDB does not make new files atomically, so one that it cannot open counts as empty. */
    if (is_check) return env == NULL ? 0 : print(env);
    if (env == NULL || mdb_env_sync(env, 1)) return 3;
    for (int i = 0; i < OPERATIONS; ++i) {
        durasim_op_begin(i);
        if (put(env, i)) return 1;
        durasim_op_end(i);
    }
    return 0;
}
