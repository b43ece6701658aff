//! `riscv_hwprobe`: what the cores can do (Linux, Documentation/arch/riscv/hwprobe.rst).

use super::{Answer, Call};
use crate::space::USER_END;
use ::syscalls::Errno;
use durasim_types::LINE_BYTES;

/// Extensions of `RISCV_HWPROBE_KEY_IMA_EXT_0` by their bits. Zacas is not among them: `amocas.q` is missing.
const EXTENSIONS: u64 = {
    const FD: u64 = 1;
    const C: u64 = 1 << 1;
    const ZBA_ZBB_ZBS: u64 = 7 << 3;
    const ZICBOZ: u64 = 1 << 6;
    const ZFHMIN: u64 = 1 << 28;
    const ZIHINTNTL: u64 = 1 << 29;
    const ZICOND: u64 = 1 << 35;
    const ZIHINTPAUSE: u64 = 1 << 36;
    const ZCA: u64 = 1 << 43;
    const ZCD: u64 = 1 << 45;
    const ZICNTR: u64 = 1 << 50;
    const ZICBOM: u64 = 1 << 55;
    const ZAAMO: u64 = 1 << 56;
    const ZALRSC: u64 = 1 << 57;
    FD | C
        | ZBA_ZBB_ZBS
        | ZICBOZ
        | ZFHMIN
        | ZIHINTNTL
        | ZICOND
        | ZIHINTPAUSE
        | ZCA
        | ZCD
        | ZICNTR
        | ZICBOM
        | ZAAMO
        | ZALRSC
};
/// Ticks of the register `time` in a second.
const TIME_HZ: u64 = 1_000_000_000;
/// Bytes of a pair of key and value.
const PAIR_BYTES: u64 = 16;

/// The value of a key, if there is one.
fn value_of(key: u64) -> Option<u64> {
    const IMA: u64 = 1;
    const MISALIGNED_FAST: u64 = 3;
    const NO_MISALIGNED_VECTORS: u64 = 4;
    Some(match key {
        // Vendor, architecture and implementation, and the extensions of a vendor.
        0..=2 | 11 => 0,
        3 => IMA,
        4 => EXTENSIONS,
        // Of all accesses, and of scalar ones.
        5 | 9 => MISALIGNED_FAST,
        // The blocks of Zicboz and Zicbom.
        6 | 12 => LINE_BYTES,
        // The highest address of a program.
        7 => USER_END - 1,
        8 => TIME_HZ,
        10 => NO_MISALIGNED_VECTORS,
        _ => return None,
    })
}

impl Call<'_> {
    /// Fills in the values of `count` pairs. All cores are equal. A key that is not known becomes -1.
    pub(super) fn riscv_hwprobe(&mut self, pairs: u64, count: u64, set: [u64; 2], flags: u64) -> Answer {
        let [set_bytes, set] = set;
        if flags != 0 {
            return Err(Errno::EINVAL.into());
        }
        if (set_bytes, set) != (0, 0) {
            let mut cores = self.bytes_from(set, set_bytes.min(8))?;
            cores.resize(8, 0);
            let cores = u64::from_le_bytes(cores.try_into().expect("eight bytes"));
            if cores & u64::MAX >> (64 - self.process.cores) == 0 {
                return Err(Errno::EINVAL.into());
            }
        }
        for pair in 0..count {
            let at = pairs.wrapping_add(pair.wrapping_mul(PAIR_BYTES));
            let [key] = self.words_from::<1>(at)?;
            let (key, value) = value_of(key).map_or((u64::MAX, 0), |value| (key, value));
            self.words_to(at, &[key, value])?;
        }
        Ok(0)
    }
}
