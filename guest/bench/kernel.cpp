// A B+-tree of 8-byte keys and values in a static arena: the work of the workload btree without a system below it, so
// that simulators of bare machines can run the very same code. Built for Linux (main) and for bare machines (start.S).
#include <stdint.h>

#ifndef INSERTS
#error "INSERTS is the number of keys to insert"
#endif

constexpr uint32_t FANOUT = 15, HEIGHT_MAX = 12, ARENA_NODES = INSERTS / 6 + 64;

struct Node {
    uint32_t count, leaf;
    uint64_t next;  // of a leaf: its right neighbour; of an inner node: its leftmost child
    uint64_t keys[FANOUT];
    uint64_t values[FANOUT];  // of an inner node: the child right of the key
};

static Node arena[ARENA_NODES];
static uint64_t arena_used;

static uint64_t new_node(uint32_t leaf) {
    arena[arena_used].leaf = leaf;
    return arena_used++;
}

static uint64_t random_state = 1;
static uint64_t random_key() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

// The number of keys of the node that are not above `key`.
static uint32_t position(const Node* node, uint64_t key) {
    uint32_t i = 0;
    while (i < node->count && node->keys[i] <= key) ++i;
    return i;
}

static void put(Node* node, uint32_t at, uint64_t key, uint64_t value) {
    for (uint32_t i = node->count; i > at; --i) {
        node->keys[i] = node->keys[i - 1];
        node->values[i] = node->values[i - 1];
    }
    node->keys[at] = key;
    node->values[at] = value;
    ++node->count;
}

// Moves the upper half of a full node into a new one and gives the key that separates them.
static uint64_t split(Node* node, uint64_t* right_index) {
    *right_index = new_node(node->leaf);
    Node* right = &arena[*right_index];
    const uint32_t half = FANOUT / 2;
    const uint64_t separator = node->keys[half];
    // The separator of an inner node moves up; that of a leaf stays in the right half.
    const uint32_t first = node->leaf ? half : half + 1;
    for (uint32_t i = first; i < FANOUT; ++i) {
        right->keys[i - first] = node->keys[i];
        right->values[i - first] = node->values[i];
    }
    right->count = FANOUT - first;
    right->next = node->leaf ? node->next : node->values[half];
    if (node->leaf) node->next = *right_index;
    node->count = half;
    return separator;
}

static uint64_t insert(uint64_t root, uint64_t key, uint64_t value) {
    uint64_t path[HEIGHT_MAX];
    uint32_t depth = 0;
    uint64_t at = root;
    while (!arena[at].leaf) {
        path[depth++] = at;
        const uint32_t i = position(&arena[at], key);
        at = i == 0 ? arena[at].next : arena[at].values[i - 1];
    }
    for (;;) {
        Node* node = &arena[at];
        uint64_t right = 0, separator = 0;
        const bool full = node->count == FANOUT;
        if (full) separator = split(node, &right);
        Node* target = full && key >= separator ? &arena[right] : node;
        put(target, position(target, key), key, value);
        if (!full) return root;
        key = separator, value = right;
        if (depth == 0) break;
        at = path[--depth];
    }
    const uint64_t above = new_node(0);
    arena[above].next = root;
    put(&arena[above], 0, key, value);
    return above;
}

// Gives 0 if the leaves hold all keys in order.
extern "C" int run_kernel() {
    uint64_t root = new_node(1);
    for (uint64_t i = 0; i < INSERTS; ++i) root = insert(root, random_key(), i);
    while (!arena[root].leaf) root = arena[root].next;
    uint64_t seen = 0, last = 0;
    for (uint64_t leaf = root;; leaf = arena[leaf].next) {
        for (uint32_t i = 0; i < arena[leaf].count; ++i, ++seen) {
            if (arena[leaf].keys[i] < last) return 1;
            last = arena[leaf].keys[i];
        }
        // Leaf 0 is the leftmost one, no leaf's right neighbour.
        if (arena[leaf].next == 0) break;
    }
    return seen == INSERTS ? 0 : 2;
}

#ifdef __linux__
int main() { return run_kernel(); }
#endif
