//! The digest that proves two states equal: BLAKE3 over a canonical byte stream.

use std::hash::Hasher;

/// A running digest. Feed it in a defined order: never in the order of a hash map, never a host address.
#[derive(Clone, Debug, Default)]
pub struct Digest(blake3::Hasher);

impl Digest {
    /// The first 128 bits of the digest as 32 hexadecimal digits.
    pub fn hex(&self) -> String {
        self.0.finalize().to_hex()[..32].to_string()
    }
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    // The integer methods of Hasher default to the host's byte order; a digest has to be the same on every host.
    fn write_u16(&mut self, value: u16) {
        self.write(&value.to_le_bytes());
    }
    fn write_u32(&mut self, value: u32) {
        self.write(&value.to_le_bytes());
    }
    fn write_u64(&mut self, value: u64) {
        self.write(&value.to_le_bytes());
    }
    fn write_usize(&mut self, value: usize) {
        self.write(&(value as u64).to_le_bytes());
    }

    fn finish(&self) -> u64 {
        let bytes = self.0.finalize();
        u64::from_le_bytes(bytes.as_bytes()[..8].try_into().expect("a digest has 32 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_every_byte_and_the_order() {
        let of = |words: &[u64]| {
            let mut digest = Digest::default();
            words.iter().for_each(|&w| digest.write_u64(w));
            digest.hex()
        };
        assert_eq!(of(&[1, 2]), of(&[1, 2]));
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(of(&[1]), of(&[1 << 56]));
        assert_eq!(of(&[]).len(), 32);
    }
}
