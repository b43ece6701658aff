/* PMDK's list for pmreorder (examples/pmreorder). `run` inserts nodes with the consistent function; `check` checks and prints
 * the list. */
#define main upstream_main
#include UPSTREAM
#undef main
#include "pool.h"
#include <durasim/markers.h>

int main(int argc, char **argv) {
    int is_check = argc == 2 && strcmp(argv[1], "check") == 0;
    if (is_check && !has_pool()) return 0;
    struct list_root *root = pmem_map_file(POOL_PATH, 4096, PMEM_FILE_CREATE, 0600, NULL, NULL);
    if (root == NULL) return 3;
    if (is_check) {
        for (node_id at = root->head; at != 0; at = root->nodes[at].next) printf("%zu: %d\n", at, root->nodes[at].value);
        return check_consistency(root);
    }
    node_id nodes[] = {5, 3, 6, 1, 8};
    for (int i = 0; i < 5; ++i) {
        durasim_op_begin(i);
        list_insert_consistent(root, nodes[i], 11 * (int)nodes[i]);
        durasim_op_end(i);
    }
    return 0;
}
