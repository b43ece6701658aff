// One main for all programs of P-INSPECT. pinspect-NAME.toml gives each its constants: the harness of the workload, the
// structure over objects, and the kind of the settings in a pool.
#include <cstdint>

// For the constants.
#include "workloads/arguments.h"

#include DURASIM_STRUCTURE_HEADER
#include DURASIM_HARNESS_HEADER

namespace {

struct Program {
    static constexpr std::uint64_t kind = DURASIM_KIND;

    // Buckets of a hash map in a new pool; other structures have no parameter.
    template <class Arguments>
    static std::uint64_t parameter(const Arguments& arguments, std::uint64_t shards) {
        if constexpr (requires { arguments.buckets; }) {
            return (arguments.buckets != 0 ? arguments.buckets : items_expected(arguments)) / shards + 1;
        } else {
            return 0;
        }
    }

private:
    template <class Arguments>
    static std::uint64_t items_expected(const Arguments& arguments) {
        // Key-value servers count the populated records alone.
        if constexpr (requires { arguments.mix; }) return arguments.populate;
        return arguments.populate + arguments.ops / 4;
    }
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::DURASIM_HARNESS<durasim::DURASIM_STRUCTURE, Program>>(argc, argv); }
