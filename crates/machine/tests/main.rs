//! The tests of the memory system and the machine around it.
//! They are one program: each one of its own would be compiled and linked by itself.

mod checked_accesses;
mod coherence_latencies;
mod contended_lines;
mod crossbar;
mod domains;
mod filters;
mod held_entries;
mod hierarchies;
mod lad_phases;
mod latencies;
mod memories;
mod mesh;
mod narrow_sets;
mod nonvolatile_llc;
mod notes;
mod path;
mod persistent_write;
mod power_failures;
mod private_evictions;
mod scan_ports;
mod shared_controllers;
mod standing;
mod tag_latencies;
mod tlb;
mod two_levels;
mod unnamed_hooks;
mod waits;
