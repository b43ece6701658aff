// durasim-workload: yada — Ruppert's algorithm refines a Delaunay mesh; threads share a work heap of bad triangles
//
// The yada of STAMP (Cao Minh, Chung, Kozyrakis and Olukotun, IISWC 2008, section III and Table IV). A triangle is bad if it
// has an angle below --angle 20 degrees or a corner that encroaches on a segment of the boundary. A thread takes a bad
// triangle from the work heap, in one transaction; refines it, that is, finds the cavity of a new vertex and triangulates it
// anew, in another; and puts the bad triangles that this made into the heap in a third, if there are any. Between these
// transactions the pool keeps what the thread holds, so that nothing is lost with the power. An operation is one of the
// transactions. With --refinement whole all three are one, and conflict at the heap.
//
// Deviations from STAMP's inputs: 633.2 and others are files of 2 n - 2 elements for n vertices, triangles and segments
// together. Here --populate points, uniformly random on a grid, and the four corners of a square are the vertices; 629 make
// the 1264 elements of 633.2. Populating inserts one point a transaction; the last one puts all bad triangles into the heap.
// The boundary is that of the square, not a convex hull. Coordinates are whole numbers, and predicates are exact, so the mesh
// is a Delaunay triangulation after each transaction. The set of segments is a hash table. An element has no circumcentre and
// no radius: they follow from the corners. Blocks of discarded elements go to the thread that discards them. Whether a
// triangle is still in the mesh is looked at in the transaction that refines it, not in one before.
//
// If the heap is empty, an operation inserts one more point of the input (not if it comes too close to a vertex), and what
// becomes bad is refined: the mesh goes on as if the input were larger. So any number of operations is possible.
//
// The work of a thread depends on what it finds. The check proves the mesh, and that its vertices, by number and the sum of
// their hashes, are those that finished operations say they have inserted; that all bad triangles are listed, once; and that
// the operations are those that the counts give.
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "workloads/yada/check.h"

namespace {

using namespace yada;
using durasim::Arguments;

class Yada {
public:
    static std::uint64_t arenas(const Arguments& arguments) { return arguments.threads; }

    // An arena has room for the input, and for what a thread's operations need at most.
    static std::uint64_t pool_bytes(const Arguments& arguments) {
        const std::uint64_t elements = 3 * arguments.populate + 64 + elements_per_operation * (arguments.ops / arguments.threads + 64);
        std::uint64_t bytes = elements * sizeof(Element) + sizeof(durasim::ArenaHeader) + durasim::block_bytes(sizeof(Root)) +
                              durasim::block_bytes(buckets_for(arguments) * sizeof(Bucket)) +
                              durasim::block_bytes(arguments.threads * sizeof(Slot));
        for (std::uint64_t level = 0; elements * arguments.threads >> level != 0; ++level) {
            bytes += durasim::block_bytes(level_bytes(level));
        }
        return arguments.threads * bytes;
    }

    // The last transaction of populating writes two words for each bad triangle of the input.
    static std::uint64_t log_bytes_min(const Arguments& arguments) { return log_bytes_of_operation + arguments.populate * 512; }

    Yada(Pool& pool, const Arguments& arguments) {
        root_ = pool.root<Root>();
        if (root_ == nullptr) {
            make(pool, arguments);
            root_ = pool.root<Root>();
        }
        if (root_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "yada: the pool belongs to another workload");
        if (root_->seed != arguments.seed || root_->populate != arguments.populate || root_->threads != arguments.threads ||
            root_->degrees != arguments.angle || root_->is_whole != is_whole(arguments)) {
            durasim::fail(durasim::exit_usage,
                          "yada: the pool was made with --seed %llu --populate %llu --threads %llu --angle %llu --refinement %s; use these",
                          static_cast<Long>(root_->seed), static_cast<Long>(root_->populate), static_cast<Long>(root_->threads),
                          static_cast<Long>(root_->degrees), root_->is_whole != 0 ? "whole" : "steps");
        }
        for (std::uint64_t i = 0; i < root_->threads; ++i) {
            const Slot& slot = root_->slot[i];
            done_.push_back({slot.finished, slot.inserted, slot.sum});
        }
        if (root_->threads > 1) lock_ = std::make_unique<durasim::TxLock>();
    }

    std::uint64_t populated() const { return root_->ready; }

    // The work of a thread, as the pool has to report it.
    struct Done {
        std::uint64_t finished, inserted, sum;
    };
    struct Thread {
        std::uint64_t number;
        Done done;
        std::unique_ptr<Scratch> scratch;
    };

    Thread enter(std::uint64_t number) const {
        return {number, done_[number], std::make_unique<Scratch>(objects_max + 8 * root_->populate)};
    }
    void leave(const Thread& thread) { done_[thread.number] = thread.done; }

    void populate_one(Thread& thread) {
        const std::uint64_t number = root_->ready;
        const bool is_last = number + 1 == root_->populate;
        const std::vector<Element*> bad = is_last ? shuffled_bad_triangles() : std::vector<Element*>();
        change(thread, stamp_of_populating + number, is_last, [&](Tx& t, MeshTransaction& mesh) {
            if (!mesh.insert_input(input_point(root_->seed, number))) DURASIM_VIOLATION("a point of the input is in the mesh already");
            WorkHeap heap(t, mesh);
            for (Element* triangle : bad) {
                const std::uint64_t state = mesh.state_of(*triangle);
                // The last point has taken some of them out of the mesh, and has used their blocks.
                if ((state & is_bad) == 0 || (state & is_referenced) != 0) continue;
                mesh.set(*triangle, triangle->state, state | is_referenced);
                heap.put(*triangle);
            }
            heap.put_all();
            mesh.set(root_->given, root_->given.points, number + 1);
            t.write(root_->ready, number + 1);
            durasim::report_change(durasim::populated_object, number, number + 1);
        });
    }

    void operation(Thread& thread) {
        std::unique_lock<durasim::TxLock> held;
        if (lock_ != nullptr) held = std::unique_lock(*lock_);
        const std::uint64_t finished = thread.done.finished;
        change(thread, durasim::operation_of(thread.number, finished + 1) << 1 | 1, true, [&](Tx& t, MeshTransaction& mesh) {
            WorkHeap heap(t, mesh);
            if (root_->is_whole != 0) {
                refine_whole(mesh, heap);
            } else {
                make_step(mesh, heap);
            }
            Slot& slot = mesh.slot();
            mesh.set(slot, slot.finished, finished + 1);
            durasim::report_change(durasim::progress_object(thread.number), finished, finished + 1);
        });
        ++thread.done.finished;
    }

    void compare_with_model() const {
        // The check has compared the mesh with what the slots say; here remains whether that is what the threads did.
        for (std::uint64_t i = 0; i < done_.size(); ++i) {
            const Slot& slot = root_->slot[i];
            const Done& done = done_[i];
            if (slot.finished != done.finished || slot.inserted != done.inserted || slot.sum != done.sum) {
                DURASIM_VIOLATION("thread %llu made %llu operations and %llu vertices, but the pool says %llu and %llu, or others",
                                  static_cast<Long>(i), static_cast<Long>(done.finished), static_cast<Long>(done.inserted),
                                  static_cast<Long>(slot.finished), static_cast<Long>(slot.inserted));
            }
        }
    }

    void print_result() const {
        std::uint64_t vertices = 4;
        for (const Done& done : done_) vertices += done.inserted;
        std::printf("vertices=%llu input=%llu work=%llu", static_cast<Long>(vertices), static_cast<Long>(4 + root_->given.points),
                    static_cast<Long>(root_->heap.size));
    }

    static std::uint64_t check(const Pool& pool) { return Check(pool).run(); }
    static void dump(const Pool& pool, durasim::Dump& dump) { dump_mesh(pool, dump); }

private:
    // An operation inserts a vertex at most now and then two, and a vertex takes six new triangles on average; most of them
    // find a spare block.
    static constexpr std::uint64_t elements_per_operation = 16;
    static constexpr std::uint64_t log_bytes_of_operation = 256 * 1024;
    static constexpr std::uint64_t objects_max = 8192;  // that an operation sees
    // Stamps of operations are odd and below these.
    static constexpr std::uint64_t stamp_of_making = std::uint64_t{1} << 62, stamp_of_populating = stamp_of_making + 1;

    static std::uint64_t is_whole(const Arguments& arguments) { return std::strcmp(arguments.refinement, "whole") == 0; }

    // The boundary has about as many segments as the square root of the vertices, times four, and more as refinement goes on.
    static std::uint64_t buckets_for(const Arguments& arguments) { return std::bit_ceil(arguments.populate / 8 + 4); }

    static void make(Pool& pool, const Arguments& arguments) {
        Scratch scratch(objects_max);
        durasim::tx([&](Tx& t) {
            auto* root = static_cast<Root*>(t.allocate(sizeof(Root)));
            auto* bucket = static_cast<Bucket*>(t.allocate(buckets_for(arguments) * sizeof(Bucket)));
            auto* slot = static_cast<Slot*>(t.allocate(arguments.threads * sizeof(Slot)));
            // Memory that was never given out before is zero: no segments, an empty heap, threads without a past.
            t.write(root->kind, kind_of_root);
            t.write(root->seed, arguments.seed);
            t.write(root->populate, arguments.populate);
            t.write(root->threads, arguments.threads);
            t.write(root->degrees, arguments.angle);
            t.write(root->sine_squared, sine_squared_of(arguments.angle));
            t.write(root->is_whole, is_whole(arguments));
            t.write(root->buckets, buckets_for(arguments));
            t.write(root->bucket, bucket);
            t.write(root->slot, slot);
            pool.set_root(t, root);
            durasim::report_change(durasim::root_object, 0, kind_of_root);
            const Shape shape(root, bucket, buckets_for(arguments), slot, sine_squared_of(arguments.angle));
            MeshTransaction mesh(t, shape, 0, scratch, stamp_of_making, false);
            mesh.make_square();
            mesh.finish();
        });
    }

    // In any order, as in STAMP: so threads that come to the heap one after the other get triangles that are far from each other.
    std::vector<Element*> shuffled_bad_triangles() const {
        std::vector<Element*> bad;
        const Survey survey(root_, [](const Element*) { return true; });
        for (Element* triangle : survey.triangles()) {
            if ((triangle->state & is_bad) != 0) bad.push_back(triangle);
        }
        durasim::Random random(durasim::mix(root_->seed + 2));
        for (std::uint64_t left = bad.size(); left > 1; --left) std::swap(bad[left - 1], bad[random.below(left)]);
        return bad;
    }

    // One transaction of a thread.
    template <class Body>
    void change(Thread& thread, std::uint64_t stamp, bool lists_bad, Body&& body) {
        const Shape shape(root_);
        std::uint64_t inserted = 0, sum = 0;
        durasim::tx([&](Tx& t) {
            MeshTransaction mesh(t, shape, thread.number, *thread.scratch, stamp, lists_bad);
            body(t, mesh);
            mesh.finish();
            inserted = mesh.inserted();
            sum = mesh.sum();
        });
        thread.done.inserted += inserted;
        thread.done.sum += sum;
    }

    // The first element of the heap. Null if there is none; then a point of the input has been given to the mesh.
    Element* take(MeshTransaction& mesh, WorkHeap& heap) {
        Slot& slot = mesh.slot();
        if (Element* first = heap.take()) {
            mesh.set(slot, slot.counts, mesh.get(slot, slot.counts) + one_taken);
            return first;
        }
        const std::uint64_t number = mesh.get(root_->given, root_->given.points);
        mesh.insert_input(input_point(root_->seed, number));
        mesh.set(root_->given, root_->given.points, number + 1);
        return nullptr;
    }

    void refine_whole(MeshTransaction& mesh, WorkHeap& heap) {
        if (Element* bad = take(mesh, heap)) mesh.refine(*bad);
        heap.put_all();
    }

    void make_step(MeshTransaction& mesh, WorkHeap& heap) {
        Slot& slot = mesh.slot();
        if (mesh.bad_list() != 0) {
            heap.put_all();
            mesh.set(slot, slot.counts, mesh.get(slot, slot.counts) + one_put);
        } else if (const std::uint64_t bad = mesh.get(slot, slot.held)) {
            mesh.refine(*element_at(bad));
            mesh.set(slot, slot.held, 0);
        } else if (const Element* first = take(mesh, heap)) {
            mesh.set(slot, slot.held, word_of(first));
        }
    }

    Root* root_ = nullptr;
    std::unique_ptr<durasim::TxLock> lock_;  // of all that threads share; a single thread needs none
    std::vector<Done> done_;                 // by each thread: what the pool must hold
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Yada>(argc, argv); }
