//! The saved form of [`Pages`]: base, size, and the number and the bytes of each page that is not all zero.

use super::Pages;
use crate::{PAGE_BYTES, PhysAddr};
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteArray, Bytes};

#[derive(Serialize)]
struct Written<'a> {
    base: u64,
    size_bytes: u64,
    pages: WrittenPages<'a>,
}

struct WrittenPages<'a>(&'a Pages);

impl Serialize for WrittenPages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pages = || self.0.touched().filter(|(_, page)| page.iter().any(|&b| b != 0));
        // Counted first: compact formats write the length before the elements.
        let mut sequence = serializer.serialize_seq(Some(pages().count()))?;
        for (addr, page) in pages() {
            sequence.serialize_element(&((addr.0 - self.0.base) / PAGE_BYTES, Bytes::new(page)))?;
        }
        sequence.end()
    }
}

impl Serialize for Pages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written { base: self.base, size_bytes: self.size_bytes, pages: WrittenPages(self) }.serialize(serializer)
    }
}

#[derive(Deserialize)]
struct Read {
    base: u64,
    size_bytes: u64,
    pages: ReadPages,
}

/// Pages that are in place already, from address 0 on, so that a large memory is never held twice.
struct ReadPages {
    pages: Pages,
    end_bytes: u64,
}

impl<'de> Deserialize<'de> for ReadPages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InPlace;
        impl<'de> Visitor<'de> for InPlace {
            type Value = ReadPages;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("numbered pages by ascending number")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<ReadPages, A::Error> {
                let mut read = ReadPages { pages: Pages::new(PhysAddr(0), Pages::LARGEST_BYTES), end_bytes: 0 };
                while let Some((number, page)) = sequence.next_element::<(u64, ByteArray<{ PAGE_BYTES as usize }>)>()? {
                    if number >= Pages::LARGEST_BYTES / PAGE_BYTES {
                        return Err(A::Error::custom(format!("page {number} lies outside of every memory")));
                    }
                    if number < read.end_bytes / PAGE_BYTES {
                        return Err(A::Error::custom(format!("page {number} comes twice or out of order")));
                    }
                    read.pages.write(PhysAddr(number * PAGE_BYTES), &*page);
                    read.end_bytes = (number + 1) * PAGE_BYTES;
                }
                Ok(read)
            }
        }
        deserializer.deserialize_seq(InPlace)
    }
}

impl<'de> Deserialize<'de> for Pages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Read { base, size_bytes, pages: ReadPages { pages, end_bytes } } = Read::deserialize(deserializer)?;
        if !base.is_multiple_of(PAGE_BYTES) || size_bytes > Pages::LARGEST_BYTES {
            return Err(D::Error::custom(format!("no memory has {size_bytes} bytes at {base:#x}")));
        }
        if end_bytes > size_bytes.next_multiple_of(PAGE_BYTES) {
            return Err(D::Error::custom(format!("a page ends at byte {end_bytes} of a memory of {size_bytes} bytes")));
        }
        Ok(Pages { base, size_bytes, ..pages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    fn digest(pages: &Pages) -> String {
        let mut digest = Digest::default();
        pages.digest(&mut digest);
        digest.hex()
    }

    #[test]
    fn memories_come_back_and_pages_of_zeros_take_no_room() {
        let mut pages = Pages::new(PhysAddr(0x1000), 64 << 30);
        pages.write(PhysAddr(0x1ffe), &[1, 2, 3, 4]);
        pages.write(PhysAddr(0x1000 + (64 << 30) - 8), &[9; 8]);
        for number in 5..50 {
            pages.write(PhysAddr(number * PAGE_BYTES), &[0; 8]);
        }
        let bytes = postcard::to_stdvec(&pages).unwrap();
        assert!(bytes.len() < 3 * PAGE_BYTES as usize + 64, "{} bytes", bytes.len());
        let back: Pages = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(digest(&back), digest(&pages));
        assert_eq!((back.base(), back.size_bytes()), (pages.base(), pages.size_bytes()));
        assert_eq!(back.read_u64(PhysAddr(0x1ffc)), pages.read_u64(PhysAddr(0x1ffc)));
        assert_eq!(back.touched().count(), 3);
        assert_eq!(postcard::to_stdvec(&back).unwrap(), bytes);
    }

    #[test]
    fn impossible_memories_are_refused() {
        let refusal = |size_bytes: u64, numbers: &[u64]| {
            let page = ByteArray::new([1; PAGE_BYTES as usize]);
            let pages: Vec<_> = numbers.iter().map(|&n| (n, page)).collect();
            let text = serde_json::to_string(&serde_json::json!({
                "base": 0, "size_bytes": size_bytes, "pages": pages
            }));
            serde_json::from_str::<Pages>(&text.unwrap()).map(drop).map_err(|e| e.to_string())
        };
        assert_eq!(refusal(8192, &[0, 1]), Ok(()));
        assert!(refusal(8192, &[2]).unwrap_err().contains("ends at byte 12288 of a memory of 8192 bytes"));
        assert!(refusal(8192, &[1, 0]).unwrap_err().contains("out of order"));
        assert!(refusal(8192, &[u64::MAX]).unwrap_err().contains("outside of every memory"));
        assert!(refusal(u64::MAX, &[]).unwrap_err().contains("no memory has"));
    }
}
