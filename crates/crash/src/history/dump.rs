//! The contents of a recovered pool, as its program reports them: objects with their versions.

/// Before the pairs in what a program writes (guest/include/durasim/history.h).
const MAGIC: &[u8] = b"durasim-dump/1\n";

/// The object that stands for a part of the pool that the program could not reach.
const DAMAGE: u64 = u64::MAX - 2;

/// Objects with their versions, in the order of the objects. An object that is missing has version 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump(Vec<(u64, u64)>);

impl Dump {
    /// A dump of these objects and versions.
    ///
    /// # Errors
    /// An object that occurs twice.
    pub fn new(mut pairs: Vec<(u64, u64)>) -> Result<Self, String> {
        pairs.sort_unstable();
        if let Some(twice) = pairs.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(format!("object {:#x} occurs twice in the dump", twice[0].0));
        }
        pairs.retain(|(_, version)| *version != 0);
        Ok(Dump(pairs))
    }

    /// Finds the dump in what a program wrote: the magic line, the number of pairs, then the pairs, all as 64-bit
    /// little-endian numbers. Other text may stand around it.
    ///
    /// # Errors
    /// No dump, a dump that is truncated, an object that occurs twice, or a pool that the program could not read.
    pub fn find(written: &[u8]) -> Result<Self, String> {
        let begin = written.windows(MAGIC.len()).position(|window| window == MAGIC);
        let begin = begin.ok_or("the program wrote no dump: build it with history reports")?;
        let mut words = written[begin + MAGIC.len()..].chunks_exact(8).map(word);
        let count = words.next().ok_or("the dump is cut short")?;
        let mut pairs = Vec::new();
        for _ in 0..count {
            let (Some(object), Some(version)) = (words.next(), words.next()) else {
                return Err(format!("the dump is truncated: it has {} of {count} pairs", pairs.len()));
            };
            if object == DAMAGE {
                return Err("the program cannot reach all of its pool".into());
            }
            pairs.push((object, version));
        }
        Dump::new(pairs)
    }

    /// The objects that are there, with their versions, in the order of the objects.
    pub fn pairs(&self) -> &[(u64, u64)] {
        &self.0
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("a chunk of eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(count: u64, words: &[u64]) -> Vec<u8> {
        let mut bytes = b"some text\n".to_vec();
        bytes.extend(MAGIC);
        bytes.extend(count.to_le_bytes());
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(b"consistent\n");
        bytes
    }

    #[test]
    fn a_dump_is_found_between_text_and_sorted() {
        let dump = Dump::find(&written(3, &[9, 1, 4, 2, 5, 0])).unwrap();
        assert_eq!(dump.pairs(), [(4, 2), (9, 1)]);
    }

    #[test]
    fn what_is_no_dump_is_refused() {
        assert!(Dump::find(b"consistent\n").unwrap_err().contains("no dump"));
        assert!(Dump::find(&written(4, &[9, 1, 4, 2])).unwrap_err().contains("2 of 4 pairs"));
        assert!(Dump::find(&written(2, &[9, 1, 9, 2])).unwrap_err().contains("twice"));
        assert!(Dump::find(&written(2, &[9, 1, DAMAGE, 1])).unwrap_err().contains("cannot reach"));
    }
}
