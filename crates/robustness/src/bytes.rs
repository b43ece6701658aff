//! An input that is read from front to back.

/// The rest of an input. After its end everything is zero.
pub(crate) struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The next bytes, fewer at the end.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A little-endian number of this many bytes.
    pub fn number(&mut self, len: usize) -> u64 {
        let mut word = [0; 8];
        let taken = self.take(len);
        word[..taken.len()].copy_from_slice(taken);
        u64::from_le_bytes(word)
    }

    pub fn byte(&mut self) -> u8 {
        self.number(1) as u8
    }

    /// One of these.
    pub fn any<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.byte()) % of.len()]
    }
}
