//! The machines that come with durasim: one TOML file each in `machines/`.

/// Names and texts of the presets, in the order in which they are listed.
pub const PRESETS: &[(&str, &str)] = &[
    ("hercules-tecs23", include_str!("../../../machines/hercules-tecs23.toml")),
    ("hercules-tecs23-eighth", include_str!("../../../machines/hercules-tecs23-eighth.toml")),
    ("lad-micro19", include_str!("../../../machines/lad-micro19.toml")),
    ("lad-micro19-dual", include_str!("../../../machines/lad-micro19-dual.toml")),
    ("pinspect-micro20", include_str!("../../../machines/pinspect-micro20.toml")),
    ("spht-eadr-2022", include_str!("../../../machines/spht-eadr-2022.toml")),
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
        for &(name, text) in super::PRESETS {
            assert_eq!(MachineConfig::parse(name, text, &[]).unwrap().name, name);
        }
    }

    /// Section 5.2 of Hercules scales the data caches and nothing else.
    #[test]
    fn the_eighth_is_the_whole_machine_with_smaller_data_caches() {
        let read = |name| MachineConfig::parse(name, super::text(name).unwrap(), &[]).unwrap();
        let (whole, mut eighth) = (read("hercules-tecs23"), read("hercules-tecs23-eighth"));
        for cache in [Some(&mut eighth.l1d), eighth.l2.as_mut(), Some(&mut eighth.llc)].into_iter().flatten() {
            cache.size_bytes *= 8;
        }
        (eighth.name, eighth.description) = (whole.name.clone(), whole.description.clone());
        assert_eq!(eighth, whole);
    }

    /// Section 5 of LAD emulates the second socket by the answers of half of the controllers.
    #[test]
    fn the_dual_socket_is_the_single_one_with_controllers_that_answer_later() {
        let read = |name| MachineConfig::parse(name, super::text(name).unwrap(), &[]).unwrap();
        let (single, mut dual) = (read("lad-micro19"), read("lad-micro19-dual"));
        let links = &mut dual.interconnect;
        assert_eq!((links.remote_controllers.take(), links.remote_response_ns.take()), (Some(vec![2, 3]), Some(50)));
        (dual.name, dual.description) = (single.name.clone(), single.description.clone());
        assert_eq!(dual, single);
    }
}
