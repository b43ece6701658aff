//! The machines that come with durasim: one TOML file each in `machines/`.

/// Names and texts of the presets, in the order in which they are listed.
pub const PRESETS: &[(&str, &str)] = &[
    ("hercules-tecs23", include_str!("../../../../machines/hercules-tecs23.toml")),
    ("hercules-tecs23-eighth", include_str!("../../../../machines/hercules-tecs23-eighth.toml")),
    ("hercules-tecs23-modern", include_str!("../../../../machines/hercules-tecs23-modern.toml")),
    ("hercules-tecs23-modern-eighth", include_str!("../../../../machines/hercules-tecs23-modern-eighth.toml")),
    ("hercules-tecs23-rows", include_str!("../../../../machines/hercules-tecs23-rows.toml")),
    ("lad-micro19", include_str!("../../../../machines/lad-micro19.toml")),
    ("lad-micro19-dual", include_str!("../../../../machines/lad-micro19-dual.toml")),
    ("pinspect-micro20", include_str!("../../../../machines/pinspect-micro20.toml")),
    ("spht-eadr-2022", include_str!("../../../../machines/spht-eadr-2022.toml")),
    ("tc-dac17", include_str!("../../../../machines/tc-dac17.toml")),
    ("tiny", include_str!("../../../../machines/tiny.toml")),
];

/// The text of a preset.
pub fn text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use crate::setup::config::MachineConfig;

    fn read(name: &str) -> MachineConfig {
        MachineConfig::parse(name, super::text(name).unwrap(), &[]).unwrap()
    }

    /// A machine with the name and description of another.
    fn like(machine: MachineConfig, other: &MachineConfig) -> MachineConfig {
        MachineConfig { name: other.name.clone(), description: other.description.clone(), ..machine }
    }

    #[test]
    fn every_preset_parses_and_carries_its_own_name() {
        for &(name, text) in super::PRESETS {
            assert_eq!(MachineConfig::parse(name, text, &[]).unwrap().name, name);
        }
    }

    /// Section 5.2 of Hercules scales the data caches and nothing else.
    #[test]
    fn eighths_are_whole_machines_with_smaller_data_caches() {
        for name in ["hercules-tecs23", "hercules-tecs23-modern"] {
            let (whole, mut eighth) = (read(name), read(&format!("{name}-eighth")));
            for cache in [Some(&mut eighth.l1d), eighth.l2.as_mut(), Some(&mut eighth.llc)].into_iter().flatten() {
                cache.size_bytes *= 8;
            }
            assert_eq!(like(eighth, &whole), whole);
        }
    }

    /// Table 2 of Hercules gives neither queues nor banks: three machines that agree in all that it gives.
    #[test]
    fn machines_of_table_2_differ_in_queues_or_in_rows_alone() {
        let whole = read("hercules-tecs23");
        let (mut modern, mut rows) = (read("hercules-tecs23-modern"), read("hercules-tecs23-rows"));
        modern.core = whole.core.clone();
        modern.l1i.mshrs = whole.l1i.mshrs;
        modern.l1d.mshrs = whole.l1d.mshrs;
        modern.l2.as_mut().unwrap().mshrs = whole.l2.as_ref().unwrap().mshrs;
        modern.llc.mshrs = whole.llc.mshrs;
        assert_eq!(like(modern, &whole), whole);
        rows.pmem.media = whole.pmem.media.clone();
        assert_eq!(like(rows, &whole), whole);
    }

    /// Section 5 of LAD emulates the second socket by the answers of half of the controllers.
    #[test]
    fn the_dual_socket_is_the_single_one_with_controllers_that_answer_later() {
        let (single, mut dual) = (read("lad-micro19"), read("lad-micro19-dual"));
        let links = &mut dual.interconnect;
        assert_eq!((links.remote_controllers.take(), links.remote_response_ns.take()), (Some(vec![2, 3]), Some(50)));
        assert_eq!(like(dual, &single), single);
    }
}
