//! Replays traces of requests against a memory, each against a fresh one: `replay CONFIG.toml CLOCK_PS TRACE...`. Prints one line for
//! each trace, in CSV.

#[path = "../tests/common/replay.rs"]
mod replay;

use durasim_memory::MemoryConfig;
use replay::{Replayed, replay};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(config), Some(clock_ps)) = (args.next(), args.next()) else {
        return Err("replay CONFIG.toml CLOCK_PS TRACE...".into());
    };
    let config: MemoryConfig = toml::from_str(&std::fs::read_to_string(config)?)?;
    config.check("memory")?;
    println!("trace,requests,reads,read_mean_ps,read_p95_ps,mb_per_s");
    for path in args {
        let name = std::path::Path::new(&path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Replayed { requests, reads, read_mean_ps, read_p95_ps, mb_per_s } =
            replay(&config, clock_ps.parse()?, &std::fs::read_to_string(&path)?)?;
        println!("{name},{requests},{reads},{read_mean_ps},{read_p95_ps},{mb_per_s}");
    }
    Ok(())
}
