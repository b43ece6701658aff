//! Runs of the real Hercules are runs of its model.

mod common;

use common::driver::run;
use common::replay::replay;
use durasim_models::hercules::Hercules;

#[test]
fn runs_of_the_simulator_are_runs_of_the_model() {
    let mut failed = 0;
    let mut sum = common::replay::Tally::new();
    for cores in [1, 2] {
        for seed in 0..2000 {
            let run = run(seed, cores, 300, None).unwrap();
            match replay(&run, Hercules::new) {
                Ok(tally) => tally.into_iter().for_each(|(name, n)| *sum.entry(name).or_default() += n),
                Err(what) => {
                    failed += 1;
                    if failed < 6 { println!("{cores} cores, seed {seed}: {what}"); }
                }
            }
        }
    }
    println!("{sum:?}");
    assert_eq!(failed, 0);
}

#[test]
fn zz_debug() {
    let var = |n: &str| std::env::var(n).unwrap().parse::<u64>().unwrap();
    let run = run(var("S"), var("C") as u16, 300, None).unwrap();
    let (l, end) = (var("L"), var("E") as usize);
    for (i, o) in run.observed.iter().enumerate().take(end + 1) {
        let t = format!("{o:?}");
        if t.contains(&format!("line: {l}, ")) || t.contains(&format!("line: {l} ")) || t.contains("Abort") || t.contains("Reset") || i + 6 > end { println!("{i} {}", &t[..t.len().min(150)]); }
    }
    println!("{:?}", run.plan.geometry.l1d);
}
