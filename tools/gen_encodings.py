#!/usr/bin/env python3
"""Write the Rust and C views of crates/isa/encodings.toml.

Without an option both files are written; with --check nothing is written and the exit code is 1 if a file is stale.
"""

import argparse
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = "crates/isa/encodings.toml"
# SLTI has a signed 12-bit immediate; markers use its positive half. A 32-bit encoding has a 7-bit major opcode whose
# low two bits are set.
IMM_MAX = 2047
OPCODE_MAX = 0x7F
FUNCT3_MAX = 7
FUNCT7_MAX = 127
LOW_BITS = 3
# max_width of .rustfmt.toml.
LINE_MAX = 120
NOTICE = f"Generated from {TABLE} by tools/gen_encodings.py: edit the table, not this file."


def string_list(begin: str, items: list[str]) -> list[str]:
    """Formats a list of strings like rustfmt: in one line below its name, or one item per line."""
    quoted = [f'"{item}"' for item in items]
    in_one_line = f"    [{', '.join(quoted)}];"
    if len(in_one_line) <= LINE_MAX:
        return [begin, in_one_line]
    return [f"{begin} [", *(f"    {item}," for item in quoted), "];"]


def camel(name: str) -> str:
    """roi_begin -> RoiBegin."""
    return "".join(part.capitalize() for part in name.split("_"))


def validate(table: dict) -> None:
    """Refuse a table with unknown keys, repeated names or values that do not fit their field."""
    fields = {
        "marker": {"name", "imm", "meaning", "argument"},
        "situation": {"name", "meaning"},
        "instruction": {"name", "opcode", "funct3", "meaning"},
        "access_flag": {"name", "value", "meaning"},
        "check_register": {"name", "number", "meaning"},
        "reserved_opcode": {"name", "opcode", "meaning"},
    }
    if set(table) != set(fields):
        sys.exit(f"{TABLE}: expected exactly the tables {sorted(fields)}, found {sorted(table)}")
    for kind, expected in fields.items():
        for entry in table[kind]:
            optional = {"funct7"} if kind == "instruction" else set()
            if set(entry) - optional != expected:
                sys.exit(f"{TABLE}: a {kind} needs exactly {sorted(expected)}, found {sorted(entry)}")
        names = [entry["name"] for entry in table[kind]]
        if len(set(names)) != len(names):
            sys.exit(f"{TABLE}: a name of {kind} is used twice")
    immediates = [marker["imm"] for marker in table["marker"]]
    if len(set(immediates)) != len(immediates) or not all(1 <= imm <= IMM_MAX for imm in immediates):
        sys.exit(f"{TABLE}: every marker needs its own imm from 1 to {IMM_MAX}")
    for opcode in table["reserved_opcode"]:
        if opcode["opcode"] & LOW_BITS != LOW_BITS or opcode["opcode"] > OPCODE_MAX:
            sys.exit(f"{TABLE}: {opcode['name']} is not a 7-bit major opcode of a 32-bit encoding")
    validate_instructions(table)
    flags = [flag["value"] for flag in table["access_flag"]]
    if len(set(flags)) != len(flags) or not all(0 < flag <= FUNCT7_MAX for flag in flags):
        sys.exit(f"{TABLE}: every access_flag needs its own value of 1 to {FUNCT7_MAX}")
    if [register["number"] for register in table["check_register"]] != list(range(len(table["check_register"]))):
        sys.exit(f"{TABLE}: every check_register has the number of its place, from 0 on")


def validate_instructions(table: dict) -> None:
    """Refuse instructions under unknown major opcodes, and encodings that are assigned twice."""
    known = {opcode["name"] for opcode in table["reserved_opcode"]}
    places: dict[tuple[str, int], list] = {}
    for instruction in table["instruction"]:
        opcode, funct3, funct7 = instruction["opcode"], instruction["funct3"], instruction.get("funct7")
        if opcode not in known or not 0 <= funct3 <= FUNCT3_MAX or not 0 <= (funct7 or 0) <= FUNCT7_MAX:
            sys.exit(
                f"{TABLE}: every instruction needs a major opcode of the table, a funct3 of 0 to {FUNCT3_MAX}, "
                f"and if it has one a funct7 of 0 to {FUNCT7_MAX}"
            )
        places.setdefault((opcode, funct3), []).append(funct7)
    for funct7s in places.values():
        if len(set(funct7s)) != len(funct7s) or (None in funct7s and len(funct7s) > 1):
            sys.exit(f"{TABLE}: an encoding of instructions is assigned twice")


def rust(table: dict) -> str:
    """The text of encodings.rs."""
    markers, opcodes = table["marker"], table["reserved_opcode"]
    lines = [
        f"// {NOTICE}",
        "",
        "//! The encodings that are durasim's own.",
        "",
        "use serde::{Deserialize, Serialize};",
        "",
        "/// A message from the program to the machine: `slti x0, rs1, imm` with the value below as imm and the",
        "/// argument in rs1.",
        "#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]",
        "#[repr(u16)]",
        "pub enum Marker {",
    ]
    for marker in markers:
        lines += [f"    /// {marker['meaning']}", "    ///", f"    /// Argument: {marker['argument']}."]
        lines += [f"    {camel(marker['name'])} = {marker['imm']},"]
    lines += ["}", "", "impl Marker {"]
    lines += ["    /// All markers, in the order of their numbers."]
    lines += [f"    pub const ALL: [Marker; {len(markers)}] = ["]
    lines += [f"        Marker::{camel(marker['name'])}," for marker in sorted(markers, key=lambda m: m["imm"])]
    lines += ["    ];", "", "    /// The marker with the number `imm`, if there is one."]
    lines += ["    pub const fn from_imm(imm: i32) -> Option<Marker> {", "        match imm {"]
    lines += [f"            {marker['imm']} => Some(Marker::{camel(marker['name'])})," for marker in markers]
    lines += ["            _ => None,", "        }", "    }", "", "    /// The name of the marker in the table."]
    lines += ["    pub const fn name(self) -> &'static str {", "        match self {"]
    lines += [f'            Marker::{camel(marker["name"])} => "{marker["name"]}",' for marker in markers]
    lines += ["        }", "    }", "}"]
    situations = table["situation"]
    lines += ["", "/// The names of the situations that programs report, in the order of their numbers."]
    lines += string_list(f"pub const SITUATIONS: [&str; {len(situations)}] =", [each["name"] for each in situations])
    for opcode in opcodes:
        lines += ["", f"/// {opcode['meaning']}", f"pub const {opcode['name'].upper()}: u32 = {opcode['opcode']:#04x};"]
    for instruction in table["instruction"]:
        name, opcode, funct3 = instruction["name"].upper(), instruction["opcode"].upper(), instruction["funct3"]
        lines += ["", f"/// {instruction['meaning']}", "///"]
        if "funct7" in instruction:
            lines += [f"/// funct3 and funct7 under {opcode}."]
            lines += [f"pub const {name}: (u32, u32) = ({funct3}, {instruction['funct7']});"]
        else:
            lines += [f"/// funct3 under {opcode}.", f"pub const {name}: u32 = {funct3};"]
    for flag in table["access_flag"]:
        lines += ["", f"/// {flag['meaning']}", f"pub const ACCESS_{flag['name'].upper()}: u8 = {flag['value']:#04x};"]
    registers = table["check_register"]
    lines += ["", "/// The names of the check registers, in the order of their numbers."]
    lines += [f"pub const CHECK_REGISTERS: [&str; {len(registers)}] = ["]
    lines += [f'    "{register["name"]}",' for register in registers] + ["];"]
    return "\n".join(lines) + "\n"


def header(table: dict) -> str:
    """The text of encodings.h."""
    lines = [f"/* {NOTICE} */", "#ifndef DURASIM_ENCODINGS_H", "#define DURASIM_ENCODINGS_H", ""]
    lines += ["/* Markers: slti x0, rs1, imm, where imm is one of these and rs1 holds the argument. */"]
    for marker in table["marker"]:
        lines += ["", f"/* {marker['meaning']} Argument: {marker['argument']}. */"]
        lines += [f"#define DURASIM_MARKER_{marker['name'].upper()} {marker['imm']}"]
    lines += ["", "/* Numbers of situations: the argument of situation_begin and situation_end. */"]
    for number, situation in enumerate(table["situation"]):
        lines += ["", f"/* {situation['meaning']} */"]
        lines += [f"#define DURASIM_SITUATION_{situation['name'].upper().replace('-', '_')} {number}"]
    lines += ["", "/* Major opcodes kept for instructions that cannot be a HINT. */"]
    for opcode in table["reserved_opcode"]:
        lines += ["", f"/* {opcode['meaning']} */"]
        lines += [f"#define DURASIM_OPCODE_{opcode['name'].upper()} {opcode['opcode']:#04x}"]
    lines += ["", "/* Instructions: funct3 under the major opcode, and funct7 if an instruction has just one. */"]
    for instruction in table["instruction"]:
        name = instruction["name"].upper()
        lines += ["", f"/* {instruction['meaning']} */"]
        lines += [f"#define DURASIM_OPCODE_{name} DURASIM_OPCODE_{instruction['opcode'].upper()}"]
        lines += [f"#define DURASIM_FUNCT3_{name} {instruction['funct3']}"]
        if "funct7" in instruction:
            lines += [f"#define DURASIM_FUNCT7_{name} {instruction['funct7']}"]
    lines += ["", "/* Bits of funct7 of accesses, whose lowest two are the binary logarithm of the width in bytes. */"]
    for flag in table["access_flag"]:
        lines += ["", f"/* {flag['meaning']} */"]
        lines += [f"#define DURASIM_ACCESS_{flag['name'].upper()} {flag['value']:#04x}"]
    lines += ["", "/* Numbers of check registers: funct7 of check_read and check_write. */"]
    for register in table["check_register"]:
        lines += ["", f"/* {register['meaning']} */"]
        lines += [f"#define DURASIM_CHECK_REGISTER_{register['name'].upper()} {register['number']}"]
    lines += ["", "#endif"]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write or check both files; the exit code is 1 only for a stale file under --check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if a generated file is stale")
    check = parser.parse_args().check
    table = tomllib.loads((ROOT / TABLE).read_text(encoding="utf-8"))
    validate(table)
    outputs = {"crates/isa/src/encodings.rs": rust(table), "guest/include/durasim/encodings.h": header(table)}
    stale = []
    for name, text in outputs.items():
        path = ROOT / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{name}: {'is stale; run tools/gen_encodings.py' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
