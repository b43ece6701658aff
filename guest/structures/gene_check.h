// Conditions that the pool of genome always fulfils. See gene_assembly.h.
#ifndef DURASIM_STRUCTURES_GENE_CHECK_H
#define DURASIM_STRUCTURES_GENE_CHECK_H

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "structures/gene_assembly.h"

namespace durasim {

// Whether the root object is one that its parts can be looked for by.
inline bool is_possible(const GeneRoot* root, const Pool& pool) {
    const std::uint64_t lines = pool.data_bytes() / line_bytes;
    return root->threads != 0 && root->threads <= threads_max && root->threads == pool.arenas() && root->segment >= 2 &&
           root->segment <= 32 && root->gene > root->segment && root->gene <= std::uint64_t{1} << 20 && root->gene <= lines &&
           root->segments >= root->threads && root->segments <= pool.data_bytes() / 8 && root->ready <= root->segments &&
           root->stage.number / root->stages() < lines && root->stage.unique <= root->entries();
}

// One assembly, as far as it has got. `stage` is one of its own; stages() if it is complete.
class AssemblyCheck {
public:
    AssemblyCheck(const GeneRoot& root, Assembly& assembly, std::uint64_t round, const std::vector<std::uint64_t>& unique, Audit& audit,
                  const Pool& pool)
        : root_(root), assembly_(assembly), round_(round), audit_(audit), pool_(pool) {
        stage_ = std::min(root.stages(), root.stage.number - round * root.stages());
        check_set(unique);
        const bool is_latest = round == root.stage.number / root.stages();
        if (is_latest && root.stage.unique != (stage_ > 0 ? order_.size() : 0)) wrong("counts other segments than its set has");
        if (order_.size() > root.entries()) wrong("has more segments than the gene");
        find_progress();
        check_entries();
        check_tables();
        check_chains();
        check_parts();
    }

    // In the first and second stage.
    std::uint64_t operations() const { return operations_; }

private:
    [[noreturn]] void wrong(const char* what) const { DURASIM_VIOLATION("assembly %llu %s", static_cast<Long>(round_), what); }

    // The part if it has begun with this stage, else null.
    const Part* begun(std::uint64_t number, std::uint64_t stage) const {
        const Part& part = root_.part[number];
        return stage == stage_ && part.stage == round_ * root_.stages() + stage + 1 ? &part : nullptr;
    }
    bool is_current(std::uint64_t number) const {
        const std::uint64_t stage = root_.part[number].stage;
        return stage != 0 && (stage - 1) / root_.stages() == round_;
    }

    const Entry& entry(std::uint64_t number) const { return assembly_.entry(root_, number); }
    std::uint64_t content_of_entry(std::uint64_t number) const { return root_.content[entry(number).segment - 1]; }

    template <class Take>
    void visit(std::uint64_t table, std::uint64_t number, Take&& take) {
        const bool whole = assembly_.chain(root_, table, number).visit(pool_, [&](const ChainNode* node) {
            if (!audit_.claim(node, sizeof(ChainNode))) wrong("has a node that is reachable twice or not allocated");
            take(node);
        });
        if (!whole) wrong("has a chain with a wrong number of nodes");
    }

    // The set has what was put in, each content once, and the chains are sorted.
    void check_set(const std::vector<std::uint64_t>& unique) {
        std::vector<bool> is_put(root_.segments, stage_ > 0);
        for (std::uint64_t i = 0; i < root_.threads; ++i) {
            const GeneRoot::Limits limits = root_.limits(0, round_, i, 0);
            std::uint64_t done = stage_ > 0 ? limits.end : limits.begin;
            if (const Part* part = begun(i, 0)) {
                done = part->place;
                const bool fits = done > limits.begin && done <= limits.end &&
                                  (done == limits.end || (done - limits.begin) % segments_per_operation == 0);
                if (!fits) wrong("has put in an impossible number of segments");
            }
            for (std::uint64_t s = limits.begin; s < done; ++s) is_put[s] = true;
            operations_ += (done - limits.begin + segments_per_operation - 1) / segments_per_operation;
        }
        std::vector<bool> expected(unique.size());
        std::uint64_t missing = 0;
        const auto rank = [&](std::uint64_t content) {
            return static_cast<std::uint64_t>(std::lower_bound(unique.begin(), unique.end(), content) - unique.begin());
        };
        for (std::uint64_t s = 0; s < root_.segments; ++s) {
            if (!is_put[s] || expected[rank(root_.content[s])]) continue;
            expected[rank(root_.content[s])] = true;
            ++missing;
        }
        for (std::uint64_t number = 0; number < root_.gene; ++number) {
            chain_begin_.push_back(order_.size());
            visit(0, number, [&](const ChainNode* node) {
                if (node->item >= root_.segments || !is_put[node->item]) wrong("has a segment in its set that was not put in");
                const std::uint64_t content = root_.content[node->item];
                if (root_.chain_of(content, root_.segment) != number) wrong("has a segment in the wrong chain");
                const bool is_first = order_.size() == chain_begin_.back();
                if (!is_first && root_.content[order_.back()->item] >= content) wrong("has a chain that is not sorted");
                if (!expected[rank(content)]) wrong("has a segment twice");
                expected[rank(content)] = false;
                --missing;
                order_.push_back(node);
            });
        }
        chain_begin_.push_back(order_.size());
        if (missing != 0) wrong("lacks segments in its set");
    }

    // The number of transactions of the second stage that each segment of the set has had.
    void find_progress() {
        progress_.assign(order_.size(), stage_ > 1 ? root_.segment + 1 : 0);
        at_hand_.assign(root_.threads, order_.size());
        for (std::uint64_t i = 0; i < root_.threads; ++i) {
            const Part* part = begun(i, 1);
            if (part == nullptr) continue;
            const GeneRoot::Limits limits = root_.limits(1, round_, i, 0);
            std::uint64_t at = chain_begin_[limits.begin];
            const std::uint64_t end = chain_begin_[limits.end];
            for (; at < end && order_[at] != part->node; ++at) progress_[at] = root_.segment + 1;
            const bool fits = part->node == nullptr ? part->place == limits.end && part->step == 0
                                                    : at < end && part->place > limits.begin && part->place <= limits.end &&
                                                          chain_begin_[part->place - 1] <= at && at < chain_begin_[part->place] &&
                                                          part->step <= root_.segment;
            if (!fits || (!order_.empty() && part->entry >= order_.size())) wrong("has a part that has got to an impossible segment");
            if (part->node == nullptr) continue;
            progress_[at] = part->step;
            if (part->step != 0) at_hand_[i] = at;
        }
        for (const std::uint64_t steps : progress_) operations_ += steps;
    }

    void check_entries() {
        std::unordered_map<std::uint64_t, std::uint64_t> expected;  // which of the order, by the number of the segment
        for (std::uint64_t i = 0; i < order_.size(); ++i) {
            if (progress_[i] != 0) expected[order_[i]->item] = i;
        }
        of_entry_.assign(order_.size(), order_.size());
        for (std::uint64_t e = 0; e < root_.entries(); ++e) {
            if (entry(e).segment == 0) {
                if (!is_untouched(&entry(e), sizeof(Entry))) wrong("has written to an entry that is not taken");
                continue;
            }
            const auto found = expected.find(entry(e).segment - 1);
            if (found == expected.end() || e >= order_.size()) wrong("has an entry that should not be taken");
            of_entry_[e] = found->second;
            expected.erase(found);
        }
        if (!expected.empty()) wrong("lacks an entry");
        for (std::uint64_t i = 0; i < root_.threads; ++i) {
            const bool fits = at_hand_[i] == order_.size() || of_entry_[root_.part[i].entry] == at_hand_[i];
            if (!fits) wrong("has a part with the wrong entry at hand");
        }
    }

    void check_tables() {
        for (std::uint64_t table = 1; table < root_.tables(); ++table) {
            std::uint64_t missing = 0;
            for (const std::uint64_t steps : progress_) missing += steps > table;
            for (std::uint64_t number = 0; number < root_.gene; ++number) {
                std::uint64_t least = 0;
                visit(table, number, [&](const ChainNode* node) {
                    const std::uint64_t item = node->item;
                    if (item < least || item >= order_.size() || of_entry_[item] == order_.size() ||
                        progress_[of_entry_[item]] <= table) {
                        wrong("has an entry in a table where it should not be");
                    }
                    least = item + 1;
                    const std::uint64_t prefix = root_.prefix(content_of_entry(item), table);
                    if (root_.chain_of(prefix, table) != number) wrong("has an entry in the wrong chain");
                    --missing;
                });
            }
            if (missing != 0) wrong("lacks entries in a table");
        }
    }

    // The least overlap that has been looked for so far, complete for all that are longer.
    std::uint64_t least_overlap() const { return stage_ < 2 ? root_.segment : root_.segment + 1 - stage_; }

    void check_chains() {
        std::vector<std::uint64_t> starts, ends;
        std::uint64_t reached = 0;
        for (std::uint64_t e = 0; e < order_.size(); ++e) {
            if (entry(e).is_appended > 1) wrong("has an entry that is appended to an impossible number");
            if (entry(e).segment == 0 || entry(e).is_appended != 0) continue;
            std::uint64_t last = e, grown = 0;
            for (++reached; entry(last).next != 0; ++reached) {
                const std::uint64_t next = entry(last).next - 1, overlap = entry(last).overlap;
                // An entry that is appended to two is reached twice, and so are those on a circle that a chain leads to.
                if (next >= order_.size() || reached >= order_.size() || entry(next).segment == 0 || entry(next).is_appended == 0) {
                    wrong("has an entry with an impossible one behind it");
                }
                if (overlap >= root_.segment || overlap < std::max<std::uint64_t>(1, least_overlap()) ||
                    root_.suffix(content_of_entry(last), overlap) != root_.prefix(content_of_entry(next), overlap)) {
                    wrong("has two entries behind each other that do not overlap so");
                }
                grown += root_.segment - overlap;
                last = next;
            }
            if (entry(last).overlap != 0) wrong("has an entry with an overlap and none behind it");
            const auto read = [](const auto& word) { return word; };
            if (start_of(assembly_, root_, last, read) != e || end_of(assembly_, root_, e, read) != last || entry(e).grown != grown) {
                wrong("has a chain of segments with wrong ends or length");
            }
            starts.push_back(e);
            ends.push_back(last);
        }
        std::uint64_t taken = 0;
        for (std::uint64_t e = 0; e < order_.size(); ++e) taken += entry(e).segment != 0;
        if (reached != taken) wrong("has entries that no chain of segments leads to, or two do");
        check_none_is_left(starts, ends);
    }

    // Overlaps whose search is complete: no chain of segments could still be appended to another.
    void check_none_is_left(const std::vector<std::uint64_t>& starts, const std::vector<std::uint64_t>& ends) const {
        for (std::uint64_t overlap = least_overlap() + 1; overlap < root_.segment; ++overlap) {
            std::unordered_multimap<std::uint64_t, std::uint64_t> beginning;
            for (std::uint64_t i = 0; i < starts.size(); ++i) {
                beginning.emplace(root_.prefix(content_of_entry(starts[i]), overlap), i);
            }
            for (std::uint64_t i = 0; i < ends.size(); ++i) {
                const auto [from, to] = beginning.equal_range(root_.suffix(content_of_entry(ends[i]), overlap));
                const bool fits = std::all_of(from, to, [i](const auto& pair) { return pair.second == i; });
                if (!fits) wrong("has overlooked an overlap");
            }
        }
    }

    void check_parts() const {
        if (stage_ == root_.stages()) return;  // parts say nothing of assemblies that are complete
        for (std::uint64_t i = 0; i < root_.threads; ++i) {
            const Part& part = root_.part[i];
            const GeneRoot::Limits limits = root_.limits(2, round_, i, order_.size());
            std::uint64_t matched = 0;
            for (std::uint64_t e = limits.begin; stage_ > 1 && e < limits.end; ++e) matched += entry(e).next != 0;
            if (is_current(i) ? part.matched != matched : matched != 0) wrong("has matched other entries than its parts count");
            if (begun(i, stage_) == nullptr || stage_ < 2) continue;
            bool fits = part.place >= limits.begin && part.place <= limits.end;
            if (fits && part.node != nullptr) {
                fits = part.place < limits.end && entry(part.place).next == 0;
                const std::uint64_t overlap = least_overlap();
                bool is_there = false;
                if (fits) {
                    const std::uint64_t suffix = root_.suffix(content_of_entry(part.place), overlap);
                    assembly_.chain(root_, overlap, root_.chain_of(suffix, overlap)).visit(pool_, [&](const ChainNode* node) {
                        is_there = is_there || node == part.node;
                    });
                }
                fits = is_there;
            }
            if (!fits || part.step != 0) wrong("has a part that has got to an impossible entry");
        }
    }

    const GeneRoot& root_;
    Assembly& assembly_;
    std::uint64_t round_;
    Audit& audit_;
    const Pool& pool_;
    std::uint64_t stage_ = 0, operations_ = 0;
    std::vector<const ChainNode*> order_;     // the set, chain by chain
    std::vector<std::uint64_t> chain_begin_;  // where each chain begins there, and the end of the last
    std::vector<std::uint64_t> progress_;     // of each of the set
    std::vector<std::uint64_t> at_hand_;      // by part: which of the set has an entry and is not complete
    std::vector<std::uint64_t> of_entry_;     // which of the set, by the number of the entry
};

// Violation, or the number of finished operations.
inline std::uint64_t check_genes(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const GeneRoot* root = pool.root<GeneRoot>();
    if (!audit.claim(root, sizeof(GeneRoot))) DURASIM_VIOLATION("the root object is not allocated");
    if (root->kind != kind_of_gene) DURASIM_VIOLATION("the root object is not that of a gene");
    if (!is_possible(root, pool)) DURASIM_VIOLATION("the gene has impossible sizes");
    if (!audit.claim(root->content, root->segments * 8) || !audit.claim(root->part, root->threads * sizeof(Part))) {
        DURASIM_VIOLATION("what belongs to the root object is not allocated");
    }
    const std::vector<std::uint8_t> gene = gene_of(*root);
    for (std::uint64_t i = 0; i < root->ready; ++i) {
        if (root->content[i] != content_of(*root, gene, i)) {
            DURASIM_VIOLATION("segment %llu is not what populating wrote", static_cast<Long>(i));
        }
    }
    if (!is_untouched(root->content + root->ready, (root->segments - root->ready) * 8)) {
        DURASIM_VIOLATION("a segment that populating has not reached is not empty");
    }
    std::uint64_t finished = 0, compared = 0, operations = 0;
    for (std::uint64_t i = 0; i < root->threads; ++i) {
        const Part& part = root->part[i];
        finished += part.finished;
        compared += part.compared;
        if (part.finished >> operation_bits != 0 || part.compared >> operation_bits != 0 || part.stage > root->stage.number + 1) {
            DURASIM_VIOLATION("part %llu has got to an impossible place", static_cast<Long>(i));
        }
    }
    if (root->ready != root->segments) {
        if (finished != 0 || root->stage.number != 0) DURASIM_VIOLATION("there were operations before all segments were there");
    }
    const std::vector<std::uint64_t> unique = unique_segments(*root);
    Assembly* assembly = root->stage.assembly;
    for (std::uint64_t round = root->stage.number / root->stages() + 1; round-- > 0; assembly = assembly->before) {
        if (!audit.claim(assembly, root->assembly_bytes())) DURASIM_VIOLATION("an assembly is reachable twice or not allocated");
        operations += AssemblyCheck(*root, *assembly, round, unique, audit, pool).operations();
    }
    if (assembly != nullptr) DURASIM_VIOLATION("there are more assemblies than were begun");
    if (finished != operations + compared) {
        DURASIM_VIOLATION("the threads count %llu operations, but %llu were made", static_cast<Long>(finished),
                          static_cast<Long>(operations + compared));
    }
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));
    return root->ready + finished;
}

inline void dump_genes(const Pool& pool, Dump& dump) {
    const GeneRoot* root = pool.root<GeneRoot>();
    if (!can_be_block(pool, root, sizeof(GeneRoot))) return dump.note_damage();
    dump.add(root_object, root->kind);
    dump.add(populated_object, root->ready);
    if (!is_possible(root, pool) || !can_be_block(pool, root->content, root->segments * 8) ||
        !can_be_block(pool, root->part, root->threads * sizeof(Part))) {
        return dump.note_damage();
    }
    const auto read = [](const auto& word) { return word; };
    dump.add(stage_object, stage_version(root->stage, read));
    for (std::uint64_t i = 0; i < root->ready; ++i) dump.add(segment_object(i), segment_version(root->content[i]));
    for (std::uint64_t i = 0; i < root->threads; ++i) {
        const ChainNode* node = root->part[i].node;
        if (node != nullptr && !can_be_block(pool, node, sizeof(ChainNode))) return dump.note_damage();
        dump.add(progress_object(i), part_version(root->part[i], read));
    }
    Assembly* assembly = root->stage.assembly;
    for (std::uint64_t round = root->stage.number / root->stages() + 1; round-- > 0; assembly = assembly->before) {
        if (!can_be_block(pool, assembly, root->assembly_bytes())) return dump.note_damage();
        for (std::uint64_t table = 0; table < root->tables(); ++table) {
            for (std::uint64_t i = 0; i < root->gene; ++i) {
                const SortedChain& chain = assembly->chain(*root, table, i);
                if (chain.size > root->entries() || !chain.visit(pool, [](const ChainNode*) {})) return dump.note_damage();
                dump.add(chain_object(round, table, i), chain.version(read));
            }
        }
        for (std::uint64_t i = 0; i < root->entries(); ++i) {
            dump.add(entry_object(round, i), entry_version(assembly->entry(*root, i), read));
        }
    }
}

}  // namespace durasim

#endif
