// durasim-workload: genome — gene sequencing of STAMP: segments without duplicates, then matched by their overlaps
//
// The genome of STAMP (Cao Minh, Chung, Kozyrakis, Olukotun: "STAMP: Stanford Transactional Applications for Multi-Processing",
// IISWC 2008, section III and Table IV). Its input for simulators, -g256 -s16 -n16384, is --gene 256 --segment 16 --populate 16384:
// this many segments are drawn from the gene. The transactions, by stages:
// 1. Twelve segments are put into a hash set, whose chains are sorted by content.
// 2. For each segment of the set, an entry in an array is looked for and taken. Then the entry is put into a hash table by the
//    segment's first nucleotide, into another by its first two, and so on up to all: a transaction each.
// 3. From the longest overlap, which is one less than a segment, to 1: each segment that nothing was appended to is compared
//    with those that begin with the nucleotides it ends with, a transaction each. The first that nothing precedes, and that
//    is not the beginning of the same chain of segments, is appended: up to four entries change.
//
// Each thread has a part of the segments in the first stage, of the set's chains in the second, of the entries in the third.
//
// Deviations:
// - STAMP has a barrier after each stage, and each overlap is a stage. Here each thread has a number of operations to do, and
//   must not wait. Where each part has got to is on a line of the pool; each transaction moves it on, and counts the
//   operations of its thread on such a line. A thread whose part is done goes on with another's. One that finds no part with
//   something left begins the next stage: all transactions read which one it is.
// - When all is matched, the same segments are assembled again into fresh tables, with other parts for the threads. So any
//   number of operations is possible.
// - A search for the next segment or candidate is within the transaction here, in STAMP in front of it. In the third stage,
//   a part without a candidate left is moved to its end by a transaction of its own.
// - A node of a chain holds a number, where STAMP has a pointer to a pair. A segment is a word of two bits for each
//   nucleotide, and hashes are not computed step by step.
// - STAMP adds segments where random ones leave a gap in the gene. Here the last ones lie so that there is none.
// - The last step, which one thread does alone without transactions, is left to the comparison after the run.
//
// All transactions have one lock where the runtime does not isolate them; arenas belong to threads.
#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

#include "durasim/random.h"
#include "structures/blocks.h"
#include "structures/gene_assembly.h"
#include "structures/sorted_chains.h"
#include "workloads/harness.h"

namespace {

using durasim::Arguments;
using durasim::Assembly;
using durasim::Audit;
using durasim::ChainNode;
using durasim::Entry;
using durasim::GeneRoot;
using durasim::GeneStage;
using durasim::Long;
using durasim::Part;
using durasim::Pool;
using durasim::Reader;
using durasim::SortedChain;
using durasim::Tx;

class Genome {
public:
    static std::uint64_t arenas(const Arguments& arguments) { return arguments.threads; }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        const GeneRoot root = root_of(arguments);
        const std::uint64_t unique = durasim::unique_segments(root).size();
        const std::uint64_t nodes = unique * (root.segment + 1);
        const std::uint64_t rounds = arguments.ops / (root.chunks() + nodes) + 2;
        const std::uint64_t shared = durasim::block_bytes(sizeof(GeneRoot)) + durasim::block_bytes(root.segments * 8) +
                                     durasim::block_bytes(root.threads * sizeof(Part));
        // Any thread may make all tables, and nearly all nodes.
        return arenas(arguments) * (rounds * (durasim::block_bytes(root.assembly_bytes()) + nodes * durasim::line_bytes) + shared +
                                    16 * durasim::line_bytes);
    }

    Genome(Pool& pool, const Arguments& arguments) {
        const GeneRoot wanted = root_of(arguments);
        root_ = pool.root<GeneRoot>();
        if (root_ == nullptr) {
            make(pool, wanted);
            root_ = pool.root<GeneRoot>();
        }
        if (root_->kind != durasim::kind_of_gene) durasim::fail(durasim::exit_usage, "genome: the pool belongs to another workload");
        if (root_->seed != wanted.seed || root_->segments != wanted.segments || root_->threads != wanted.threads ||
            root_->gene != wanted.gene || root_->segment != wanted.segment) {
            durasim::fail(durasim::exit_usage,
                          "genome: the pool was made with --seed %llu --populate %llu --threads %u --gene %llu --segment %u; use these",
                          static_cast<Long>(root_->seed), static_cast<Long>(root_->segments), root_->threads,
                          static_cast<Long>(root_->gene), root_->segment);
        }
        copy_ = *root_;
        gene_ = durasim::gene_of(copy_);
        for (std::uint64_t i = 0; i < copy_.threads; ++i) finished_.push_back(copy_.part[i].finished);
    }

    std::uint64_t populated() const { return root_->ready; }

    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;  // operations
    };

    Thread enter(std::uint64_t number) const { return {number, finished_[number]}; }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t number = t.read(root_->ready);
            t.write(copy_.content[number], durasim::content_of(copy_, gene_, number));
            t.write(root_->ready, number + 1);
            touch_pages(t, number);
            if constexpr (durasim::has_history) {
                durasim::report_change(durasim::segment_object(number), 0, durasim::segment_version(t.read(copy_.content[number])));
                durasim::report_change(durasim::populated_object, number, number + 1);
            }
        });
    }

    void operation(Thread& thread) {
        const std::lock_guard held(lock_);
        durasim::tx([&](Tx& t) { Step(*this, t, thread).take(); });
        ++thread.finished;
    }

    void compare_with_model() const;
    void print_result() const;
    static std::uint64_t check(const Pool& pool) { return durasim::check_genes(pool); }
    static void dump(const Pool& pool, durasim::Dump& dump) { durasim::dump_genes(pool, dump); }

private:
    static GeneRoot root_of(const Arguments& arguments) {
        if (arguments.populate < arguments.threads || arguments.populate == 0) {
            durasim::fail(durasim::exit_usage, "genome: --populate has to be at least --threads: each thread needs a segment");
        }
        if (arguments.segment >= arguments.gene) durasim::fail(durasim::exit_usage, "genome: --segment has to be less than --gene");
        GeneRoot root{};
        root.kind = durasim::kind_of_gene;
        root.seed = arguments.seed;
        root.segments = arguments.populate;
        root.gene = arguments.gene;
        root.segment = static_cast<std::uint32_t>(arguments.segment);
        root.threads = static_cast<std::uint32_t>(arguments.threads);
        return root;
    }

    // Memory that was never given out before is zero: all chains are empty, no entry is taken, and no part has begun.
    static void make(Pool& pool, const GeneRoot& wanted) {
        durasim::tx([&](Tx& t) {
            auto* root = static_cast<GeneRoot*>(t.allocate(sizeof(GeneRoot)));
            GeneRoot filled = wanted;
            filled.content = static_cast<std::uint64_t*>(t.allocate(wanted.segments * 8));
            filled.part = static_cast<Part*>(t.allocate(wanted.threads * sizeof(Part)));
            filled.stage.assembly = static_cast<Assembly*>(t.allocate(wanted.assembly_bytes()));
            t.write_words(root, &filled, sizeof filled);
            pool.set_root(t, root);
            if constexpr (durasim::has_history) {
                durasim::report_change(durasim::root_object, 0, durasim::kind_of_gene);
                durasim::report_change(durasim::stage_object, 0, durasim::stage_version(root->stage, Reader{t}));
            }
        });
    }

    // Writes zeros that are there, so that the tables and entries of the first assembly are in pages that were touched: STAMP fills
    // its own before the threads begin.
    void touch_pages(Tx& t, std::uint64_t number) {
        auto* words = reinterpret_cast<std::uint64_t*>(copy_.stage.assembly);
        for (std::uint64_t page = number; page * durasim::page_bytes < copy_.assembly_bytes(); page += copy_.segments) {
            t.write(words[page * durasim::page_bytes / 8], 0);
        }
    }

    // One operation of a thread, within its transaction.
    //
    // Its report: the stage, the parts it looked at, and the chains and entries that may still change. A stage begins after
    // all parts have done the one before it, so what was made there is complete for a thread that has read the stage.
    class Step {
    public:
        Step(Genome& genome, Tx& t, const Thread& thread)
            : copy_(genome.copy_), stage_(genome.root_->stage), t_(t), thread_(thread) {}

        void take() {
            if constexpr (durasim::has_history) stage_found_ = durasim::stage_version(stage_, Reader{t_});
            now_ = t_.read(stage_.number);
            assembly_ = t_.read(stage_.assembly);
            unique_ = t_.read(stage_.unique);
            while (!find_part()) begin_next_stage();
            if constexpr (durasim::has_history) {
                part_found_ = durasim::part_version(copy_.part[number_], Reader{t_});
                own_found_ = durasim::part_version(copy_.part[thread_.number], Reader{t_});
            }
            switch (kind()) {
                case 0: put_into_set(); break;
                case 1: take_or_put_entry(); break;
                default: match(); break;
            }
            conclude();
        }

    private:
        std::uint64_t kind() const { return now_ % copy_.stages(); }
        std::uint64_t round() const { return now_ / copy_.stages(); }

        // The part to work on: the thread's own, or the next one with something left to do.
        bool find_part() {
            for (std::uint64_t i = 0; i < copy_.threads; ++i) {
                number_ = (thread_.number + i) % copy_.threads;
                seen_ |= std::uint64_t{1} << number_;
                const Part& part = copy_.part[number_];
                limits_ = copy_.limits(kind(), round(), number_, unique_);
                place_ = limits_.begin, node_ = nullptr, step_ = 0, matched_ = 0;
                entry_ = unique_ == 0 ? 0 : durasim::share_before(unique_, copy_.threads, number_) % unique_;
                const std::uint64_t reached = t_.read(part.stage);
                if (reached != 0 && (reached - 1) / copy_.stages() == round()) matched_ = t_.read(part.matched);
                if (reached == now_ + 1) {
                    place_ = t_.read(part.place), node_ = t_.read(part.node);
                    entry_ = t_.read(part.entry), step_ = t_.read(part.step);
                } else if (kind() == 1) {
                    find_node();
                }
                const bool is_done = kind() == 0   ? place_ == limits_.end
                                     : kind() == 1 ? node_ == nullptr
                                                   : place_ == limits_.end || matched_ == limits_.end - limits_.begin;
                if (!is_done) return true;
            }
            return false;
        }

        void begin_next_stage() {
            if (kind() == 0) {
                for (std::uint64_t i = 0; i < copy_.gene; ++i) unique_ += t_.read(assembly_->chain(copy_, 0, i).size);
                t_.write(stage_.unique, unique_);
            }
            ++now_;
            t_.write(stage_.number, now_);
            if (kind() != 0) return;
            auto* fresh = static_cast<Assembly*>(t_.allocate(copy_.assembly_bytes(), thread_.number));
            t_.write(fresh->before, assembly_);
            t_.write(stage_.assembly, fresh);
            t_.write(stage_.unique, 0);
            assembly_ = fresh;
            unique_ = 0;
        }

        void put_into_set() {
            const std::uint64_t first = place_;
            place_ = std::min(place_ + durasim::segments_per_operation, limits_.end);
            // A chain that several of them belong to is reported once.
            std::uint64_t chains[durasim::segments_per_operation], found[durasim::segments_per_operation], count = 0;
            for (std::uint64_t i = first; i < place_; ++i) {
                const std::uint64_t content = copy_.content[i], number = copy_.chain_of(content, copy_.segment);
                SortedChain& chain = assembly_->chain(copy_, 0, number);
                if constexpr (durasim::has_history) {
                    if (std::find(chains, chains + count, number) == chains + count) {
                        chains[count] = number;
                        found[count++] = chain.version(Reader{t_});
                    }
                }
                chain.insert(t_, i, thread_.number, [&](std::uint64_t other) {
                    return copy_.content[other] < content ? -1 : copy_.content[other] > content;
                });
            }
            for (std::uint64_t i = 0; i < count; ++i) report_chain(0, chains[i], found[i]);
        }

        // The first segment of the set from here to the end of the part.
        void find_node() {
            for (; node_ == nullptr && place_ < limits_.end; ++place_) node_ = t_.read(assembly_->chain(copy_, 0, place_).first);
        }

        void take_or_put_entry() {
            const std::uint64_t segment = t_.read(node_->item);
            if (step_ == 0) {
                for (std::uint64_t left = unique_; t_.read(assembly_->entry(copy_, entry_).segment) != 0; --left) {
                    if (left == 0) DURASIM_VIOLATION("no entry is left for a segment of the set");
                    report_unchanged(entry_);
                    entry_ = (entry_ + 1) % unique_;
                }
                t_.write(assembly_->entry(copy_, entry_).segment, segment + 1);
                if constexpr (durasim::has_history) {
                    durasim::report_change(durasim::entry_object(round(), entry_), 0, version_of(entry_));
                }
                step_ = 1;
                return;
            }
            const std::uint64_t number = copy_.chain_of(copy_.prefix(copy_.content[segment], step_), step_);
            SortedChain& chain = assembly_->chain(copy_, step_, number);
            [[maybe_unused]] std::uint64_t found = 0;
            if constexpr (durasim::has_history) found = chain.version(Reader{t_});
            chain.insert(t_, entry_, thread_.number, [&](std::uint64_t other) { return other < entry_ ? -1 : other > entry_; });
            report_chain(step_, number, found);
            if (step_++ != copy_.segment) return;
            node_ = t_.read(node_->next);
            find_node();
            entry_ = (entry_ + 1) % unique_;
            step_ = 0;
        }

        void match() {
            const std::uint64_t overlap = copy_.segment + 1 - kind(), first = place_;
            ++compared_;
            for (; place_ < limits_.end; ++place_) {
                Entry& end = assembly_->entry(copy_, place_);
                if (node_ == nullptr) {
                    if (t_.read(end.next) != 0) continue;
                    const std::uint64_t suffix = copy_.suffix(copy_.content[t_.read(end.segment) - 1], overlap);
                    node_ = t_.read(assembly_->chain(copy_, overlap, copy_.chain_of(suffix, overlap)).first);
                    if (node_ == nullptr) continue;
                }
                break;
            }
            std::uint64_t touched[4] = {place_, place_, place_, place_}, found[4] = {};
            const std::uint64_t place = place_;
            if (place != limits_.end) {
                const std::uint64_t start = t_.read(node_->item), before = durasim::start_of(*assembly_, copy_, place, Reader{t_});
                touched[1] = start;
                const bool fits = t_.read(assembly_->entry(copy_, start).is_appended) == 0 && before != start &&
                                  copy_.prefix(content_of(start), overlap) == copy_.suffix(content_of(place), overlap);
                if (fits) {
                    touched[2] = before;
                    touched[3] = durasim::end_of(*assembly_, copy_, start, Reader{t_});
                }
                if constexpr (durasim::has_history) {
                    for (unsigned i = 0; i < 4; ++i) found[i] = version_of(touched[i]);
                }
                if (fits) append(place, start, before, touched[3], overlap);
                node_ = fits ? nullptr : t_.read(node_->next);
                if (node_ == nullptr) ++place_;
            }
            if constexpr (durasim::has_history) {
                const auto none = place == limits_.end ? touched : touched + 4;
                for (auto* at = touched; at != none; ++at) {
                    if (std::find(touched, at, *at) != at) continue;
                    durasim::report_change(durasim::entry_object(round(), *at), found[at - touched], version_of(*at));
                }
                for (std::uint64_t i = first; i < place; ++i) {
                    if (std::find(touched, none, i) == none) report_unchanged(i);
                }
            }
        }

        // `start` and what follows it, up to `last`, come after `end` and what is before it, down to `first`.
        void append(std::uint64_t end, std::uint64_t start, std::uint64_t first, std::uint64_t last, std::uint64_t overlap) {
            Entry& appended = assembly_->entry(copy_, start);
            Entry& longer = assembly_->entry(copy_, first);
            t_.write(appended.is_appended, 1);
            t_.write(assembly_->entry(copy_, last).start, first + 1);
            t_.write(assembly_->entry(copy_, end).next, start + 1);
            t_.write(longer.end, last + 1);
            t_.write(assembly_->entry(copy_, end).overlap, overlap);
            t_.write(longer.grown, t_.read(longer.grown) + t_.read(appended.grown) + copy_.segment - overlap);
            ++matched_;
        }

        // The progress of the part, and that the thread has finished one more operation.
        void conclude() {
            Part& part = copy_.part[number_];
            // Most of them are as before.
            const auto put = [this](auto& to, auto value) {
                if (t_.read(to) != value) t_.write(to, value);
            };
            put(part.stage, now_ + 1);
            put(part.place, place_);
            put(part.node, node_);
            put(part.entry, entry_);
            put(part.step, step_);
            put(part.matched, matched_);
            if (compared_ != 0) t_.write(part.compared, t_.read(part.compared) + compared_);
            t_.write(copy_.part[thread_.number].finished, thread_.finished + 1);
            if constexpr (durasim::has_history) {
                const std::uint64_t stage_left = durasim::stage_version(stage_, Reader{t_});
                durasim::report_change(durasim::stage_object, stage_found_, stage_left);
                for (std::uint64_t i = 0; i < copy_.threads; ++i) {
                    const std::uint64_t left = durasim::part_version(copy_.part[i], Reader{t_});
                    if (i == number_) {
                        durasim::report_change(durasim::progress_object(i), part_found_, left);
                    } else if (i == thread_.number) {
                        durasim::report_change(durasim::progress_object(i), own_found_, left);
                    } else if ((seen_ >> i & 1) != 0) {
                        durasim::report_read(durasim::progress_object(i), left);
                    }
                }
            }
        }

        std::uint64_t content_of(std::uint64_t entry) const {
            return copy_.content[t_.read(assembly_->entry(copy_, entry).segment) - 1];
        }
        std::uint64_t version_of(std::uint64_t entry) const {
            return durasim::entry_version(assembly_->entry(copy_, entry), Reader{t_});
        }

        void report_unchanged(std::uint64_t entry) const {
            if constexpr (durasim::has_history) durasim::report_read(durasim::entry_object(round(), entry), version_of(entry));
        }
        void report_chain(std::uint64_t table, std::uint64_t number, std::uint64_t found) const {
            if constexpr (durasim::has_history) {
                const SortedChain& chain = assembly_->chain(copy_, table, number);
                durasim::report_change(durasim::chain_object(round(), table, number), found, chain.version(Reader{t_}));
            }
        }

        const GeneRoot& copy_;
        GeneStage& stage_;
        Tx& t_;
        const Thread& thread_;
        Assembly* assembly_ = nullptr;
        std::uint64_t now_ = 0, unique_ = 0;
        // The part, and where it is.
        std::uint64_t number_ = 0;
        GeneRoot::Limits limits_{};
        std::uint64_t place_ = 0, entry_ = 0, step_ = 0, matched_ = 0, compared_ = 0;
        ChainNode* node_ = nullptr;
        std::uint64_t seen_ = 0, stage_found_ = 0, part_found_ = 0, own_found_ = 0;  // for reports
    };

    GeneRoot* root_ = nullptr;
    GeneRoot copy_{};  // what does not change
    std::vector<std::uint8_t> gene_;
    durasim::TxLock lock_;
    std::vector<std::uint64_t> finished_;  // by each thread: what the pool must hold
};

void Genome::compare_with_model() const {
    for (std::uint64_t i = 0; i < finished_.size(); ++i) {
        if (copy_.part[i].finished != finished_[i]) {
            DURASIM_VIOLATION("thread %llu finished %llu operations, but the pool says %llu", static_cast<Long>(i),
                              static_cast<Long>(finished_[i]), static_cast<Long>(copy_.part[i].finished));
        }
    }
    // If the gene has no part twice that is as long as the shortest overlap, the segments make the gene again.
    if (!durasim::is_unambiguous(copy_, gene_)) return;
    Assembly* assembly = root_->stage.assembly;
    for (std::uint64_t round = root_->stage.number / copy_.stages(); round > 0; --round) {
        assembly = assembly->before;
        if (durasim::sequence_of(copy_, *assembly) != gene_) {
            DURASIM_VIOLATION("the segments do not make the gene in assembly %llu", static_cast<Long>(round - 1));
        }
    }
}

void Genome::print_result() const {
    std::printf("segments=%llu assembled=%llu stage=%llu", static_cast<Long>(copy_.segments),
                static_cast<Long>(root_->stage.number / copy_.stages()), static_cast<Long>(root_->stage.number % copy_.stages()));
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Genome>(argc, argv); }
