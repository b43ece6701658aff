// The command line of a workload: `PROG COMMAND [--name value]...`, `PROG --describe`, `PROG --help`.
//
// The arguments are listed in common.toml, WORKLOAD.toml and ../runtimes/BACKEND.toml. The build makes
// durasim_arguments.h of them, with the struct Arguments, the table below and the text of --describe.
#ifndef DURASIM_WORKLOADS_ARGUMENTS_H
#define DURASIM_WORKLOADS_ARGUMENTS_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "durasim/error.h"

namespace durasim {

enum class ArgumentType { u64, flag, text, choice };

enum Command : unsigned {
    command_run = 1,
    command_check = 2,
    command_recover = 4,
    command_recover_and_check = 8,
    command_dump = 16,  // in builds with a history
};

struct ArgumentInfo {
    const char* name;
    ArgumentType type;
    unsigned commands;  // which commands take it, as a sum of Command
    std::size_t offset;  // of its field in Arguments
    std::uint64_t minimum, maximum;
    const char* choices;  // separated and enclosed by |
    const char* default_text;
    const char* help;
};

}  // namespace durasim

#include "durasim_arguments.h"

namespace durasim {

struct CommandInfo {
    const char* name;
    Command command;
    const char* help;
};

inline constexpr CommandInfo command_table[] = {
    {"run", command_run, "populate the pool, perform the operations, compare with a model"},
    {"check", command_check, "verify the invariants of a pool"},
    {"recover", command_recover, "let the transaction runtime recover a pool"},
    {"recover-and-check", command_recover_and_check, "recover, then check"},
#if defined(DURASIM_HISTORY)
    {"dump", command_dump, "write the objects of a pool with their versions to standard output"},
#endif
};

inline void print_help() {
    std::printf("%s: %s\n\nusage: %s COMMAND [--NAME VALUE]...\n       %s --describe | --help\n\ncommands:\n", program_name,
                program_summary, program_name, program_name);
    for (const CommandInfo& c : command_table) std::printf("  %-18s %s\n", c.name, c.help);
    std::printf("\narguments:\n");
    for (const ArgumentInfo& a : argument_table) {
        std::printf("  --%-16s %s [%s] (", a.name, a.help, a.default_text);
        const char* separator = "";
        for (const CommandInfo& c : command_table) {
            if (a.commands & c.command) std::printf("%s%s", separator, c.name), separator = ", ";
        }
        std::printf(")\n");
    }
}

namespace detail {

inline void set_argument(Arguments& arguments, const ArgumentInfo& info, const char* text) {
    char* field = reinterpret_cast<char*>(&arguments) + info.offset;
    switch (info.type) {
        case ArgumentType::flag:
            *reinterpret_cast<bool*>(field) = true;
            return;
        case ArgumentType::u64: {
            std::uint64_t value = 0;
            bool good = *text != 0;
            for (const char* p = text; good && *p != 0; ++p) {
                good = *p >= '0' && *p <= '9' && !__builtin_mul_overflow(value, 10u, &value) &&
                       !__builtin_add_overflow(value, static_cast<unsigned>(*p - '0'), &value);
            }
            if (!good || value < info.minimum || value > info.maximum) {
                fail(exit_usage, "%s: --%s takes a whole number from %llu to %llu, not \"%s\"", program_name, info.name,
                     static_cast<unsigned long long>(info.minimum), static_cast<unsigned long long>(info.maximum), text);
            }
            *reinterpret_cast<std::uint64_t*>(field) = value;
            return;
        }
        case ArgumentType::choice: {
            const std::size_t length = std::strlen(text);
            for (const char* p = info.choices; *++p != 0; p = std::strchr(p, '|')) {
                if (std::strncmp(p, text, length) == 0 && p[length] == '|') {
                    *reinterpret_cast<const char**>(field) = text;
                    return;
                }
            }
            fail(exit_usage, "%s: --%s takes one of %s, not \"%s\"", program_name, info.name, info.choices, text);
        }
        case ArgumentType::text:
            *reinterpret_cast<const char**>(field) = text;
            return;
    }
}

}  // namespace detail

// Reads the command line. Answers --describe and --help itself; a mistake ends the program with exit code 2.
inline Command parse(int argc, char** argv, Arguments& arguments) {
    if (argc >= 2 && std::strcmp(argv[1], "--describe") == 0) {
        std::puts(describe_json);
        std::exit(exit_ok);
    }
    if (argc >= 2 && std::strcmp(argv[1], "--help") == 0) {
        print_help();
        std::exit(exit_ok);
    }
    const CommandInfo* command = nullptr;
    for (const CommandInfo& c : command_table) {
        if (argc >= 2 && std::strcmp(argv[1], c.name) == 0) command = &c;
    }
    if (command == nullptr) {
        fail(exit_usage, "%s: the first argument has to be run, check, recover or recover-and-check (or --describe, --help)",
             program_name);
    }
    for (int i = 2; i < argc; ++i) {
        const char* given = argv[i];
        const char* name = std::strncmp(given, "--", 2) == 0 ? given + 2 : "";
        const char* equals = std::strchr(name, '=');
        const std::size_t length = equals != nullptr ? static_cast<std::size_t>(equals - name) : std::strlen(name);
        const ArgumentInfo* info = nullptr;
        for (const ArgumentInfo& a : argument_table) {
            if (std::strlen(a.name) == length && std::strncmp(a.name, name, length) == 0) info = &a;
        }
        if (info == nullptr) fail(exit_usage, "%s: there is no argument \"%s\"; --help lists all", program_name, given);
        if (!(info->commands & command->command)) {
            fail(exit_usage, "%s: --%s does not apply to %s", program_name, info->name, command->name);
        }
        if (info->type == ArgumentType::flag) {
            if (equals != nullptr) fail(exit_usage, "%s: --%s takes no value", program_name, info->name);
            detail::set_argument(arguments, *info, nullptr);
        } else if (equals != nullptr) {
            detail::set_argument(arguments, *info, equals + 1);
        } else if (i + 1 < argc) {
            detail::set_argument(arguments, *info, argv[++i]);
        } else {
            fail(exit_usage, "%s: --%s needs a value", program_name, info->name);
        }
    }
    return command->command;
}

}  // namespace durasim

#endif
