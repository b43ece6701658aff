/* sqlite_threads DATABASE JOURNAL THREADS ROWS: threads, each with a connection of its own, write one database; then its
 * integrity and contents are checked. Prints nothing that depends on the order in which threads ran. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sqlite3.h"

static const char *path, *journal;
static int rows;

static void check(int got, int wanted, sqlite3 *db, const char *what) {
    if (got != wanted) {
        printf("%s: %d %s\n", what, got, db ? sqlite3_errmsg(db) : "");
        exit(1);
    }
}

static int wait_a_little(void *unused, int attempts) {
    (void)unused;
    usleep(200);
    return attempts < 100000;
}

static void run(sqlite3 *db, const char *sql) {
    check(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, db, sql);
}

/* Files under /pmem/ grow while no other follows them. So the database takes its first megabyte before there are others,
 * and those beside it get their room at once. */
static void reserve(const char *ending, long bytes) {
    char name[200];
    snprintf(name, sizeof name, "%s%s", path, ending);
    int file = open(name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, bytes) != 0 || close(file) != 0) check(1, 0, NULL, name);
}

static sqlite3 *connect(void) {
    sqlite3 *db;
    check(sqlite3_open(path, &db), SQLITE_OK, db, "open");
    sqlite3_busy_handler(db, wait_a_little, NULL);
    if (strncmp(path, "/pmem/", 6) == 0) {
        /* There is no fsync: only cleaned lines and a fence are durable there. */
        run(db, "pragma synchronous = off");
        int step_bytes = 1 << 20;
        check(sqlite3_file_control(db, "main", SQLITE_FCNTL_CHUNK_SIZE, &step_bytes), SQLITE_OK, db, "chunk size");
    }
    return db;
}

static void ask(sqlite3 *db, const char *sql) {
    sqlite3_stmt *query;
    check(sqlite3_prepare_v2(db, sql, -1, &query, NULL), SQLITE_OK, db, sql);
    while (sqlite3_step(query) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(query); i++) printf("%s%s", i ? "|" : "", sqlite3_column_text(query, i));
        printf("\n");
    }
    check(sqlite3_finalize(query), SQLITE_OK, db, sql);
}

static void *writer(void *argument) {
    int self = (int)(intptr_t)argument;
    sqlite3 *db = connect();
    sqlite3_stmt *insert;
    const char *sql = "insert into item values (?1, ?2, ?3, printf('%d-%08x', ?2, ?3))";
    check(sqlite3_prepare_v2(db, sql, -1, &insert, NULL), SQLITE_OK, db, sql);
    uint32_t state = 1 + self;
    for (int row = 0; row < rows;) {
        run(db, "begin immediate");
        for (int end = row + 10; row < end && row < rows; row++) {
            state = state * 1664525 + 1013904223;
            sqlite3_bind_int(insert, 1, self * 1000000 + row);
            sqlite3_bind_int(insert, 2, self);
            sqlite3_bind_int64(insert, 3, state);
            check(sqlite3_step(insert), SQLITE_DONE, db, "insert");
            sqlite3_reset(insert);
        }
        char update[100];
        snprintf(update, sizeof update, "update total set items = items + %d where owner = %d", row % 10 ? row % 10 : 10, self);
        run(db, update);
        run(db, row % 50 == 20 ? "rollback" : "commit");
        if (row % 50 == 20) {
            snprintf(update, sizeof update, "insert into undone values (%d, %d)", self, row);
            run(db, update);
        }
    }
    sqlite3_finalize(insert);
    check(sqlite3_close(db), SQLITE_OK, NULL, "close");
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    path = argv[1], journal = argv[2];
    int threads = atoi(argv[3]);
    rows = atoi(argv[4]);
    sqlite3 *db = connect();
    char sql[100];
    if (strncmp(path, "/pmem/", 6) == 0) {
        const int wal = strcmp(journal, "wal") == 0;
        run(db, "pragma journal_mode = off");
        run(db, "create table first (a)");
        reserve(wal ? "-wal" : "-journal", 2 << 20);
        if (wal) reserve("-shm", 1 << 15);
    }
    snprintf(sql, sizeof sql, "pragma journal_mode = %s", journal);
    ask(db, sql);
    run(db, "create table item (id integer primary key, owner int, value int, label text)");
    run(db, "create index item_value on item (value)");
    run(db, "create table total (owner integer primary key, items int)");
    run(db, "create table undone (owner int, row int)");
    pthread_t running[64];
    for (int i = 0; i < threads; i++) {
        snprintf(sql, sizeof sql, "insert into total values (%d, 0)", i);
        run(db, sql);
    }
    for (int i = 0; i < threads; i++) pthread_create(&running[i], NULL, writer, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++) pthread_join(running[i], NULL);
    ask(db, "pragma integrity_check");
    ask(db, "select owner, count(*), sum(value), min(label), max(length(label)) from item group by owner order by owner");
    ask(db, "select owner, items from total order by owner");
    ask(db, "select count(*), sum(row) from undone");
    ask(db, "select a.id, a.label from item a join item b on b.value < a.value and b.value > a.value - 40000000 group by a.id having count(*) > 3 order by a.id limit 3");
    run(db, "delete from item where value % 3 = 0");
    run(db, "vacuum");
    ask(db, "pragma integrity_check");
    ask(db, "select count(*), total(value) from item");
    check(sqlite3_close(db), SQLITE_OK, NULL, "close");
    printf("sqlite %s\n", sqlite3_libversion());
    return 0;
}
