//! Changes inputs and hands them to fuzz bodies: seeded, bounded, and without a clock that decides anything.
//!
//! proptest draws which file of the corpus to begin with and what to change in it, catches panics, and shrinks the changes
//! to the few that matter. What is here is the vocabulary of changes.

use durasim_robustness::Target;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer inputs are cut.
const INPUT_BYTES_MAX: usize = 1 << 16;
/// A case that takes so long is in an endless loop: the process ends, as there is no other way out of one.
const CASE_SECONDS_MAX: u64 = 120;

/// The amount of trials.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub cases: u32,
    pub seed: u64,
}

/// An input that a body does not survive.
#[derive(Clone, Debug)]
pub struct Found {
    pub input: Vec<u8>,
    pub why: String,
}

impl Found {
    /// Writes the input to a file.
    pub fn keep(&self, target: &Target) -> PathBuf {
        keep(target.name, &self.input)
    }
}

fn keep(name: &str, input: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}"));
    std::fs::write(&path, input).expect("the folder for temporary files of tests takes a file");
    path
}

/// The files of a target's corpus by name.
pub fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let listed = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = listed.map(|entry| entry.expect("a name").path()).collect();
    files.sort();
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).expect("a file of the corpus can be read");
        (path.file_name().expect("a file").to_string_lossy().into_owned(), bytes)
    };
    files.into_iter().map(read).collect()
}

/// One change of an input. Places are parts of its length.
#[derive(Clone, Debug)]
enum Change {
    FlipBit(Index, u8),
    Byte(Index, u8),
    /// A little-endian number of 1, 2, 4 or 8 bytes, where numbers are aligned as often as not.
    Number {
        at: Index,
        aligned: bool,
        width: usize,
        value: u64,
    },
    Add {
        at: Index,
        width: usize,
        by: i8,
    },
    /// Another number in the place of the next one in decimal digits.
    Digits(Index, u64),
    Remove(Index, usize),
    Insert(Index, Vec<u8>),
    /// Bytes of any file of the corpus, put between or over those that are here.
    Splice {
        to: Index,
        file: Index,
        from: Index,
        len: usize,
        over: bool,
    },
    RecoveryCut(Index),
}

fn width() -> impl Strategy<Value = usize> {
    prop_oneof![Just(1usize), Just(2), Just(4), Just(8)]
}

/// Numbers at which programs go wrong.
fn value() -> impl Strategy<Value = u64> {
    let power = (0u32..64, -2i64..3).prop_map(|(bits, by)| (1u64 << bits).wrapping_add_signed(by));
    prop_oneof![3 => 0u64..64, 2 => Just(u64::MAX), 4 => power, 1 => any::<u64>()]
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    let piece = || prop_oneof![3 => 1usize..16, 1 => 16usize..512];
    prop_oneof![
        3 => (at(), 0u8..8).prop_map(|(at, bit)| Change::FlipBit(at, bit)),
        3 => (at(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        4 => (at(), any::<bool>(), width(), value())
            .prop_map(|(at, aligned, width, value)| Change::Number { at, aligned, width, value }),
        2 => (at(), width(), -16i8..17).prop_map(|(at, width, by)| Change::Add { at, width, by }),
        3 => (at(), value()).prop_map(|(at, value)| Change::Digits(at, value)),
        2 => (at(), piece()).prop_map(|(at, len)| Change::Remove(at, len)),
        2 => (at(), vec(any::<u8>(), 1..24)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        2 => (at(), at(), at(), piece(), any::<bool>())
            .prop_map(|(to, file, from, len, over)| Change::Splice { to, file, from, len, over }),
        1 => at().prop_map(Change::RecoveryCut),
    ]
}

impl Change {
    fn apply(&self, input: &mut Vec<u8>, files: &[Vec<u8>]) {
        let place = |at: &Index, len: usize| at.index(len + 1);
        match self {
            Change::FlipBit(at, bit) if !input.is_empty() => {
                let at = at.index(input.len());
                input[at] ^= 1 << bit;
            }
            Change::Byte(at, byte) if !input.is_empty() => {
                let at = at.index(input.len());
                input[at] = *byte;
            }
            Change::Number { at, aligned, width, value } if input.len() >= *width => {
                let at = at.index(input.len() - width + 1);
                let at = if *aligned { at / width * width } else { at };
                input[at..at + width].copy_from_slice(&value.to_le_bytes()[..*width]);
            }
            Change::Add { at, width, by } if input.len() >= *width => {
                let at = at.index(input.len() - width + 1);
                let mut word = [0; 8];
                word[..*width].copy_from_slice(&input[at..at + width]);
                let sum = u64::from_le_bytes(word).wrapping_add_signed(i64::from(*by));
                input[at..at + width].copy_from_slice(&sum.to_le_bytes()[..*width]);
            }
            Change::Digits(at, value) => {
                let at = place(at, input.len());
                let Some(start) = input[at..].iter().position(u8::is_ascii_digit).map(|n| at + n) else { return };
                let digits = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                input.splice(start..start + digits, value.to_string().into_bytes());
            }
            Change::Remove(at, len) => {
                let at = place(at, input.len());
                let end = (at + len).min(input.len());
                input.drain(at..end);
            }
            Change::Insert(at, bytes) => {
                let at = place(at, input.len());
                input.splice(at..at, bytes.iter().copied());
            }
            Change::Splice { to, file, from, len, over } => {
                let file = &files[file.index(files.len())];
                let from = place(from, file.len());
                let piece = &file[from..(from + len).min(file.len())];
                let to = place(to, input.len());
                let end = if *over { (to + piece.len()).min(input.len()) } else { to };
                input.splice(to..end, piece.iter().copied());
            }
            Change::RecoveryCut(at) => input.truncate(place(at, input.len())),
            _ => {}
        }
        input.truncate(INPUT_BYTES_MAX);
    }
}

/// The origin of an input.
#[derive(Clone, Debug)]
enum Recipe {
    /// A file of the corpus, changed.
    Changed(Index, Vec<Change>),
    /// Any bytes.
    Any(Vec<u8>),
}

impl Recipe {
    fn any() -> impl Strategy<Value = Recipe> {
        prop_oneof![
            15 => (any::<Index>(), vec(change(), 1..8)).prop_map(|(file, changes)| Recipe::Changed(file, changes)),
            1 => vec(any::<u8>(), 0..256).prop_map(Recipe::Any),
        ]
    }

    fn build(&self, files: &[Vec<u8>]) -> Vec<u8> {
        match self {
            Recipe::Changed(file, changes) => {
                let mut input = files[file.index(files.len())].clone();
                changes.iter().for_each(|change| change.apply(&mut input, files));
                input
            }
            Recipe::Any(bytes) => bytes.clone(),
        }
    }
}

/// The message with which a body panics on this input, if it does.
pub fn fails(target: &Target, input: &[u8]) -> Option<String> {
    let panic = std::panic::catch_unwind(|| (target.body)(input)).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
}

/// Ends the process if one input does not terminate.
struct Watch {
    name: &'static str,
    /// Number of the input, and the input.
    now: Mutex<(u64, Vec<u8>)>,
}

impl Watch {
    fn begin(name: &'static str) -> Arc<Watch> {
        let watch = Arc::new(Watch { name, now: Mutex::default() });
        let watched = Arc::downgrade(&watch);
        std::thread::spawn(move || {
            let mut last = 0;
            loop {
                std::thread::sleep(Duration::from_secs(CASE_SECONDS_MAX));
                let Some(watch) = watched.upgrade() else { return };
                let now = watch.now.lock().expect("no thread panics while it holds the input");
                if now.0 == last {
                    let path = keep(watch.name, &now.1);
                    eprintln!("{}: an input does not terminate; it is in {}", watch.name, path.display());
                    std::process::abort();
                }
                last = now.0;
            }
        });
        watch
    }

    fn next(&self, input: &[u8]) {
        let mut now = self.now.lock().expect("no thread panics while it holds the input");
        now.0 += 1;
        now.1.clear();
        now.1.extend(input);
    }
}

/// Tries the corpus as it is, then changes of it.
///
/// # Errors
/// The first input that the body does not survive, made as small as possible.
pub fn drive(target: &Target, seeds: &[(String, Vec<u8>)], settings: Settings) -> Result<(), Found> {
    let watch = Watch::begin(target.name);
    for (file, seed) in seeds {
        watch.next(seed);
        if let Some(why) = fails(target, seed) {
            return Err(Found { input: seed.clone(), why: format!("{file}: {why}") });
        }
    }
    let files: Vec<Vec<u8>> = seeds.iter().map(|(_, bytes)| bytes.clone()).collect();
    let config = Config {
        cases: settings.cases,
        failure_persistence: None,
        max_shrink_iters: 1000,
        max_global_rejects: 0,
        ..Config::default()
    };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&settings.seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let tried = runner.run(&Recipe::any(), |recipe| {
        let input = recipe.build(&files);
        watch.next(&input);
        match fails(target, &input) {
            None => Ok(()),
            Some(why) => Err(TestCaseError::fail(why)),
        }
    });
    match tried {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, recipe)) => Err(Found { input: recipe.build(&files), why: why.to_string() }),
        Err(TestError::Abort(why)) => panic!("the driver gave up: {why}"),
    }
}
