//! Any text as a machine file, or as overrides of the smallest preset: it is refused with one sentence that names a field,
//! or every variant either fits the machine or refuses it so, too, and small machines can be built.

use crate::assert_is_a_sentence;
use crate::marks::reach;
use durasim_designs::VARIANTS;
use durasim_machine::{MachineConfig, Plan, System, presets};
use durasim_types::ConfigError;

/// An input that begins so holds overrides, one in a line.
const OVERRIDES: &str = "# --set\n";
/// Lines of all caches of a machine that is worth building.
const LINES_MAX: u64 = 1 << 14;

/// Machine files and `--set`.
///
/// # Panics
/// If a bug is found.
pub fn configuration(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let parsed = match text.strip_prefix(OVERRIDES) {
        Some(overrides) => {
            let overrides: Vec<String> = overrides.lines().map(str::to_owned).collect();
            MachineConfig::parse("tiny", presets::text("tiny").expect("a preset"), &overrides)
        }
        None => MachineConfig::parse("machine.toml", &text, &[]),
    };
    match parsed {
        Err(refused) => {
            reach(if text.starts_with(OVERRIDES) { "override refused" } else { "machine refused" });
            check_refusal(&refused);
        }
        Ok(config) => fit_rows(&config),
    }
}

fn check_refusal(refused: &ConfigError) {
    assert!(!refused.field.is_empty(), "a refusal names a field: {}", refused.problem);
    assert_is_a_sentence(&refused.problem);
}

fn fit_rows(config: &MachineConfig) {
    let private = [Some(&config.l1i), Some(&config.l1d), config.l2.as_ref()].into_iter().flatten();
    let private = private.map(|cache| cache.size_bytes / 64).sum::<u64>();
    let lines = private * u64::from(config.cores) + config.llc.size_bytes / 64;
    for variant in VARIANTS {
        for &domain in variant.domains {
            match Plan::new(config, variant, domain) {
                Err(refused) => {
                    reach("variant does not fit");
                    check_refusal(&refused);
                }
                Ok(_) if lines > LINES_MAX => {}
                Ok(plan) => match System::new(config, &plan) {
                    Ok(_) => reach("machine built"),
                    Err(refused) => assert_is_a_sentence(&refused.to_string()),
                },
            }
        }
    }
}
