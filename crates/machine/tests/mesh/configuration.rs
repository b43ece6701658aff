//! Meshes that can be built, and sentences about those that cannot.

use super::sets;
use durasim_machine::{MachineConfig, RouterPorts, presets};
use durasim_types::ConfigError;

const KEYS: &str =
    "mesh_columns = 4, mesh_rows = 4, hop_cycles = 3, link_width_bytes = 16, controller_tiles = [0, 3, 12, 15, 5]";

fn parse(sets: &[String]) -> Result<MachineConfig, ConfigError> {
    MachineConfig::parse("tiny", presets::text("tiny").unwrap(), sets)
}

fn refused(mesh_keys: &str, field: &str, words: &str) {
    let refused = parse(&sets(mesh_keys)).unwrap_err();
    assert_eq!(refused.field, format!("interconnect.{field}"), "{refused}");
    assert!(refused.problem.contains(words), "{refused}");
}

#[test]
fn a_mesh_is_built_as_it_was_given() {
    let config = parse(&sets(KEYS)).unwrap();
    let links = &config.interconnect;
    assert_eq!((links.mesh_columns, links.mesh_rows, links.hop_cycles), (Some(4), Some(4), Some(3)));
    assert_eq!((links.router_entry_cycles, links.router_exit_cycles), (Some(0), Some(0)));
    assert_eq!(links.router_ports, Some(RouterPorts::PerEnd));
    let shared = parse(&sets(&format!("{KEYS}, router_ports = 'per-tile'"))).unwrap();
    assert_eq!(shared.interconnect.router_ports, Some(RouterPorts::PerTile));
    assert_eq!((links.controller_link_bytes, links.memory_request_cycles, links.llc_banks), (None, None, None));
    // One tile, more tiles than cores, several controllers on a tile, and tiles that are no power of two.
    for (keys, cores) in [
        (
            "mesh_columns = 1, mesh_rows = 1, hop_cycles = 100000, link_width_bytes = 1, controller_tiles = [0, 0, 0, 0, 0]",
            1,
        ),
        (
            "mesh_columns = 5, mesh_rows = 3, hop_cycles = 1, link_width_bytes = 64, controller_tiles = [14, 14, 0, 0, 7]",
            2,
        ),
        (
            "mesh_columns = 16, mesh_rows = 16, hop_cycles = 3333, link_width_bytes = 16, controller_tiles = [255, 0, 1, 2, 3], remote_controllers = []",
            16,
        ),
    ] {
        let mut sets = sets(keys);
        sets.push(format!("cores={cores}"));
        assert!(parse(&sets).is_ok(), "{keys}: {:?}", parse(&sets));
    }
}

#[test]
fn a_mesh_needs_all_of_its_keys() {
    for key in ["mesh_columns", "mesh_rows", "hop_cycles", "link_width_bytes", "controller_tiles"] {
        let parts = KEYS.split(", ").collect::<Vec<_>>().join(",");
        // The list of tiles has commas too.
        let without = match key {
            "controller_tiles" => "mesh_columns = 4, mesh_rows = 4, hop_cycles = 3, link_width_bytes = 16".to_owned(),
            _ => parts.split(',').filter(|part| !part.starts_with(key)).collect::<Vec<_>>().join(", "),
        };
        refused(&without, key, "has to be given");
    }
}

#[test]
fn meshes_that_cannot_be_built_are_refused_with_a_sentence() {
    for (change, by, field, words) in [
        ("mesh_columns = 4", "mesh_columns = 3", "mesh_columns", "3 times 4 are 12 tiles, too few for 16 cores"),
        ("mesh_columns = 4", "mesh_columns = 17", "mesh_columns", "17 is not between 1 and 16"),
        ("mesh_rows = 4", "mesh_rows = 0", "mesh_rows", "0 is not between 1 and 16"),
        ("hop_cycles = 3", "hop_cycles = 0", "hop_cycles", "0 is not between 1 and 16666"),
        ("hop_cycles = 3", "hop_cycles = 16667", "hop_cycles", "at most 100000 cycles"),
        (
            "hop_cycles = 3",
            "hop_cycles = 3, router_entry_cycles = 1001",
            "router_entry_cycles",
            "more than 1000 cycles",
        ),
        ("hop_cycles = 3", "hop_cycles = 3, router_exit_cycles = 1001", "router_exit_cycles", "more than 1000 cycles"),
        ("link_width_bytes = 16", "link_width_bytes = 0", "link_width_bytes", "0 is not a power of two up to 64"),
        ("link_width_bytes = 16", "link_width_bytes = 24", "link_width_bytes", "24 is not a power of two up to 64"),
        ("12, 15, 5]", "12, 15]", "controller_tiles", "4 tiles for 5 controllers"),
        ("12, 15, 5]", "12, 15, 5, 6]", "controller_tiles", "6 tiles for 5 controllers"),
        ("12, 15, 5]", "12, 15, 16]", "controller_tiles", "16 is not one of the 16 tiles, counted from 0"),
    ] {
        assert!(KEYS.contains(change));
        refused(&KEYS.replace(change, by), field, words);
    }
}

#[test]
fn remote_controllers_that_cannot_be_are_refused_with_a_sentence() {
    for (more, field, words) in [
        (
            "remote_controllers = [5], remote_response_ns = 50",
            "remote_controllers",
            "5 is not one of the 5 controllers",
        ),
        ("remote_controllers = [2, 2], remote_response_ns = 50", "remote_controllers", "2 stands twice"),
        ("remote_controllers = [2]", "remote_response_ns", "have to be given it"),
        ("remote_controllers = [2], remote_response_ns = 0", "remote_response_ns", "0 is not between 1 and 100000"),
        ("remote_controllers = [2], remote_response_ns = 100001", "remote_response_ns", "at most 100000 cycles"),
        ("remote_response_ns = 50", "remote_response_ns", "names no controller"),
        ("remote_controllers = [], remote_response_ns = 50", "remote_response_ns", "names no controller"),
    ] {
        refused(&format!("{KEYS}, {more}"), field, words);
    }
}

#[test]
fn keys_that_mean_nothing_on_a_mesh_are_refused_there() {
    for key in [
        "core_to_controller_cycles",
        "controller_to_core_cycles",
        "memory_request_cycles",
        "memory_response_cycles",
        "controller_link_bytes",
    ] {
        refused(&format!("{KEYS}, {key} = 8"), key, "on a mesh hops and links say what a message takes");
    }
    refused(&format!("{KEYS}, llc_banks = 16"), "llc_banks", "a mesh has a bank of the last level on each tile");
}

#[test]
fn keys_of_a_mesh_are_refused_elsewhere() {
    for topology in ["uniform", "crossbar"] {
        for (key, value) in [
            ("mesh_columns", "4"),
            ("mesh_rows", "4"),
            ("hop_cycles", "3"),
            ("router_ports", "per-tile"),
            ("router_entry_cycles", "0"),
            ("router_exit_cycles", "0"),
            ("controller_tiles", "[0]"),
            ("remote_controllers", "[]"),
            ("remote_response_ns", "50"),
        ] {
            let sets = [format!("interconnect.topology={topology}"), format!("interconnect.{key}={value}")];
            let refused = parse(&sets).unwrap_err();
            assert_eq!(refused.field, format!("interconnect.{key}"));
            assert!(refused.problem.contains("only the topology 'mesh' has tiles"), "{refused}");
        }
    }
}
