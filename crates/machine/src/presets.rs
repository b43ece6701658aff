//! The machines that come with durasim: one TOML file each in `machines/`.

/// Names and texts of the presets, in the order in which they are listed.
pub const PRESETS: [(&str, &str); 3] = [
    ("hercules-tecs23", include_str!("../../../machines/hercules-tecs23.toml")),
    ("tc-dac17", include_str!("../../../machines/tc-dac17.toml")),
    ("tiny", include_str!("../../../machines/tiny.toml")),
];

/// The text of a preset.
pub fn text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use crate::MachineConfig;

    #[test]
    fn every_preset_parses_and_carries_its_own_name() {
        for (name, text) in super::PRESETS {
            assert_eq!(MachineConfig::parse(name, text, &[]).unwrap().name, name);
        }
    }
}
