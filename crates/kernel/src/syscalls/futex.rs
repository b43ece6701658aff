//! Futexes, all but those that inherit priorities.

use super::{Answer, Call, Stop};
use crate::space::Backing;
use crate::threads::FutexKey;
use ::syscalls::Errno;
use durasim_isa::Access;

const WAIT: u64 = 0;
const WAKE: u64 = 1;
const REQUEUE: u64 = 3;
const CMP_REQUEUE: u64 = 4;
const WAKE_OP: u64 = 5;
const WAIT_BITSET: u64 = 9;
const WAKE_BITSET: u64 = 10;
const PRIVATE_FLAG: u64 = 0x80;
const CLOCK_REALTIME_FLAG: u64 = 0x100;
const ANY_BIT: u32 = u32::MAX;

/// The arguments of `futex` after the operation; `timeout` is a number in the operations that take two counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct FutexArguments {
    pub(super) addr: u64,
    pub(super) value: u32,
    pub(super) timeout: u64,
    pub(super) addr2: u64,
    pub(super) value3: u32,
}

impl Call<'_> {
    pub(super) fn futex(&mut self, op: u64, a: FutexArguments) -> Answer {
        let private = op & PRIVATE_FLAG != 0;
        let command = op & !(PRIVATE_FLAG | CLOCK_REALTIME_FLAG) & 0xffff_ffff;
        match command {
            WAIT | WAIT_BITSET => {
                let bits = if command == WAIT { ANY_BIT } else { a.value3 };
                let until_ns = match a.timeout {
                    0 => None,
                    // WAIT takes a span, WAIT_BITSET a point in time.
                    at => Some(self.time_of(u64::from(op & CLOCK_REALTIME_FLAG == 0), command == WAIT_BITSET, at)?),
                };
                self.futex_wait(a.addr, private, a.value, bits, until_ns)
            }
            WAKE | WAKE_BITSET => {
                let bits = if command == WAKE { ANY_BIT } else { a.value3 };
                if bits == 0 {
                    return Err(Errno::EINVAL.into());
                }
                let key = self.futex_key(a.addr, private)?;
                Ok(self.process.threads.wake(key, bits, at_least_one(a.value)))
            }
            REQUEUE | CMP_REQUEUE => {
                let expected = (command == CMP_REQUEUE).then_some(a.value3);
                self.futex_requeue(private, a, expected)
            }
            WAKE_OP => self.futex_wake_op(private, a),
            // Those that inherit priorities (LOCK_PI and its like), as without CONFIG_FUTEX_PI, and unknown ones.
            _ => Err(Errno::ENOSYS.into()),
        }
    }

    fn futex_wait(&mut self, addr: u64, private: bool, expected: u32, bits: u32, until_ns: Option<u64>) -> Answer {
        if bits == 0 {
            return Err(Errno::EINVAL.into());
        }
        let key = self.futex_key(addr, private)?;
        if self.word_from(addr)? != expected {
            return Err(Errno::EAGAIN.into());
        }
        self.process.threads.wait(self.thread, key, addr, bits);
        Err(Stop::Wait { until_ns })
    }

    fn futex_requeue(&mut self, private: bool, a: FutexArguments, expected: Option<u32>) -> Answer {
        let (wakes, moves) = (a.value as i32, a.timeout as i32);
        if wakes < 0 || moves < 0 {
            return Err(Errno::EINVAL.into());
        }
        let (from, to) = (self.futex_key(a.addr, private)?, self.futex_key(a.addr2, private)?);
        if expected.is_some() && expected != Some(self.word_from(a.addr)?) {
            return Err(Errno::EAGAIN.into());
        }
        let threads = &mut self.process.threads;
        let woken = threads.wake(from, ANY_BIT, wakes as u64);
        Ok(woken + threads.requeue(from, to, a.addr2, moves as u64))
    }

    /// Changes the second futex, wakes those of the first, and those of the second if its old value compares so.
    fn futex_wake_op(&mut self, private: bool, a: FutexArguments) -> Answer {
        let (first, second) = (self.futex_key(a.addr, private)?, self.futex_key(a.addr2, private)?);
        let operation = Operation::decode(a.value3)?;
        let old = self.word_from(a.addr2)?;
        self.bytes_to(a.addr2, &operation.apply(old).to_le_bytes())?;
        let threads = &mut self.process.threads;
        let mut woken = threads.wake(first, ANY_BIT, at_least_one(a.value));
        if operation.holds(old) {
            woken += threads.wake(second, ANY_BIT, at_least_one(a.timeout as u32));
        }
        Ok(woken)
    }

    /// The identity of the futex at `addr`.
    pub(super) fn futex_key(&mut self, addr: u64, private: bool) -> Result<FutexKey, Stop> {
        if !addr.is_multiple_of(4) {
            return Err(Errno::EINVAL.into());
        }
        if addr >= crate::USER_END {
            return Err(Errno::EFAULT.into());
        }
        if private {
            return Ok(FutexKey::Private(addr));
        }
        let (_, area) = self.process.space.area_at(addr).ok_or(Errno::EFAULT)?;
        match area.backing {
            Backing::Pmem { .. } | Backing::Shared { .. } => {
                let found = self.process.space.translate(addr, Access::Read);
                Ok(FutexKey::Shared(found.map_err(|_| Errno::EFAULT)?))
            }
            _ => Ok(FutexKey::Process(addr)),
        }
    }

    /// The word of four bytes at `addr`.
    pub(super) fn word_from(&mut self, addr: u64) -> Result<u32, Stop> {
        let bytes = self.bytes_from(addr, 4)?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }
}

/// A count of threads to wake: Linux wakes one even if asked for none or fewer.
fn at_least_one(count: u32) -> u64 {
    (count as i32).max(1) as u64
}

/// The operation and the comparison of FUTEX_WAKE_OP.
#[derive(Clone, Copy, Debug)]
struct Operation {
    kind: u32,
    operand: i32,
    comparison: u32,
    compared: i32,
}

impl Operation {
    fn decode(code: u32) -> Result<Self, Stop> {
        const SHIFT_OPERAND: u32 = 8;
        // Two signed fields of twelve bits.
        let (operand, compared) = ((code << 8) as i32 >> 20, (code << 20) as i32 >> 20);
        let (kind, comparison) = (code >> 28, code >> 24 & 15);
        let operand = if kind & SHIFT_OPERAND != 0 { 1i32.wrapping_shl(operand as u32) } else { operand };
        let kind = kind & !SHIFT_OPERAND;
        if kind > 4 || comparison > 5 {
            return Err(Errno::ENOSYS.into());
        }
        Ok(Operation { kind, operand, comparison, compared })
    }

    fn apply(self, old: u32) -> u32 {
        let operand = self.operand as u32;
        match self.kind {
            0 => operand,
            1 => old.wrapping_add(operand),
            2 => old | operand,
            3 => old & !operand,
            _ => old ^ operand,
        }
    }

    fn holds(self, old: u32) -> bool {
        let old = old as i32;
        match self.comparison {
            0 => old == self.compared,
            1 => old != self.compared,
            2 => old < self.compared,
            3 => old <= self.compared,
            4 => old > self.compared,
            _ => old >= self.compared,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Operation;

    #[test]
    fn wake_operations_are_decoded_as_in_linux() {
        let of = |kind: u32, operand: u32, comparison: u32, compared: u32| {
            Operation::decode(kind << 28 | comparison << 24 | (operand & 0xfff) << 12 | compared & 0xfff).unwrap()
        };
        assert_eq!(of(0, 5, 0, 0).apply(9), 5);
        assert_eq!(of(1, -1i32 as u32, 0, 0).apply(9), 8);
        assert_eq!(of(2, 6, 0, 0).apply(9), 15);
        assert_eq!(of(3, 1, 0, 0).apply(9), 8);
        assert_eq!(of(4, 3, 0, 0).apply(9), 10);
        assert_eq!(of(2 | 8, 4, 0, 0).apply(1), 17, "shifted");
        let holding = |compared: u32| (0..6).filter(|&c| of(0, 0, c, compared).holds(7)).collect::<Vec<_>>();
        assert_eq!(holding(7), [0, 3, 5]);
        assert_eq!(holding(8), [1, 2, 3]);
        assert_eq!(holding(-7i32 as u32), [1, 4, 5]);
        assert!(Operation::decode(5 << 28).is_err() && Operation::decode(6 << 24).is_err());
    }
}
