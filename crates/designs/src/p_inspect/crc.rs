//! Cyclic redundancy checks of 32 bits over the eight bytes of an address, least significant byte and bit first.

/// A cyclic redundancy check of eight bytes, as a table for each of them: what each value of it contributes.
pub(super) struct Crc {
    tables: [[u32; 256]; 8],
}

/// The polynomial of IEEE 802.3, section 3.2.9, reflected.
pub(super) const CRC32: Crc = Crc::new(IEEE);
/// The polynomial of Castagnoli, Bräuer and Herrmann, "Optimization of Cyclic Redundancy-Check Codes with 24 and 32 Parity
/// Bits", IEEE Transactions on Communications, 1993, as iSCSI uses it (RFC 3720, section 12.1), reflected.
pub(super) const CRC32C: Crc = Crc::new(CASTAGNOLI);

const IEEE: u32 = 0xedb8_8320;
const CASTAGNOLI: u32 = 0x82f6_3b78;

/// The remainder after eight more bits.
const fn next(polynomial: u32, mut rest: u32) -> u32 {
    let mut bit = 0;
    while bit < 8 {
        rest = rest >> 1 ^ if rest & 1 != 0 { polynomial } else { 0 };
        bit += 1;
    }
    rest
}

impl Crc {
    const fn new(polynomial: u32) -> Self {
        let mut tables = [[0; 256]; 8];
        let mut value = 0;
        while value < 256 {
            let mut rest = value as u32;
            let mut byte = 8;
            // The last byte is followed by no others.
            while byte > 0 {
                byte -= 1;
                rest = next(polynomial, rest);
                tables[byte][value] = rest;
            }
            value += 1;
        }
        Crc { tables }
    }

    /// The check of these eight bytes. The code is linear, so each byte contributes independently of the others.
    pub fn of(&self, value: u64) -> u32 {
        let bytes = (value ^ u64::from(u32::MAX)).to_le_bytes();
        !self.tables.iter().zip(bytes).fold(0, |crc, (table, byte)| crc ^ table[usize::from(byte)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, byte by byte.
    fn check(polynomial: u32, bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |rest, &byte| next(polynomial, rest ^ u32::from(byte)))
    }

    /// The check values that catalogues of these codes give, and the examples of RFC 3720, appendix B.4.
    #[test]
    fn the_definition_is_that_of_the_standards() {
        assert_eq!(check(IEEE, b"123456789"), 0xcbf4_3926);
        assert_eq!(check(CASTAGNOLI, b"123456789"), 0xe306_9283);
        assert_eq!(check(CASTAGNOLI, &[0; 32]), 0x8a91_36aa);
        assert_eq!(check(CASTAGNOLI, &[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn tables_give_what_the_definition_gives() {
        let mut rng = durasim_types::Rng::new(7);
        let single_bits = (0..64).map(|bit| 1 << bit);
        for value in single_bits.chain([0, u64::MAX]).chain((0..10_000).map(|_| rng.next_u64())) {
            for (crc, polynomial) in [(&CRC32, IEEE), (&CRC32C, CASTAGNOLI)] {
                assert_eq!(crc.of(value), check(polynomial, &value.to_le_bytes()), "{value:#x}");
            }
        }
    }
}
