//! The bytes of a word all at once: with the processor's own instructions where the target is known to have them, else with
//! those for whole words.

#![allow(unsafe_code)]

/// Which bytes of `word` are the lowest byte of `like`: bit 0 for the lowest byte, and so on.
#[inline(always)]
pub(crate) fn equal_bytes(word: u64, like: u64) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64 as x86;
        // SAFETY: every processor of this architecture has SSE2.
        unsafe {
            // Lanes beside the word hold zeros and the byte; what they say is cut off.
            let like = x86::_mm_cvtsi32_si128(like as i32);
            let like = x86::_mm_shufflelo_epi16::<0>(x86::_mm_unpacklo_epi8(like, like));
            let equal = x86::_mm_cmpeq_epi8(x86::_mm_cvtsi64_si128(word.cast_signed()), like);
            x86::_mm_movemask_epi8(equal) as u32 & 0xff
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    portable::equal_bytes(word, like)
}

/// The highest bit of each byte: bit 0 for that of the lowest byte, and so on.
#[inline(always)]
pub(crate) fn high_bits(word: u64) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64 as x86;
        // SAFETY: every processor of this architecture has SSE2.
        unsafe { x86::_mm_movemask_epi8(x86::_mm_cvtsi64_si128(word.cast_signed())) as u32 & 0xff }
    }
    #[cfg(not(target_arch = "x86_64"))]
    portable::high_bits(word)
}

#[cfg(any(not(target_arch = "x86_64"), all(test, not(snapring_loom))))]
mod portable {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES << 7;

    pub fn equal_bytes(word: u64, like: u64) -> u32 {
        let differ = word ^ ((like & 0xff) * ONES);
        // The highest bit of each byte stays clear only where the byte is zero; no sum goes over into the next byte.
        let sums = (differ & !HIGHS) + !HIGHS;
        high_bits(!(sums | differ))
    }

    pub fn high_bits(word: u64) -> u32 {
        // Each bit is moved to the top byte by one of the factor's bits, and no two meet in one place.
        (((word & HIGHS) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    fn slowly(word: u64, is_one: impl Fn(u8) -> bool) -> u32 {
        word.to_le_bytes().iter().rev().fold(0, |bits, &byte| bits << 1 | u32::from(is_one(byte)))
    }

    #[test]
    fn both_ways_agree_with_looking_at_each_byte() {
        let edges = [0, 1, 0x7f, 0x80, 0x81, 0xfe, 0xff];
        let mut word = 0x9E37_79B9_7F4A_7C15_u64;
        for step in 0..20_000_usize {
            word = word.wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ word >> 29;
            let mut bytes = word.to_le_bytes();
            // Edge values at random places, next to each other more often than by chance.
            (0..step % 9).for_each(|at| bytes[(at * 3) % 8] = edges[(word >> (at * 5)) as usize % 7]);
            let mixed = u64::from_le_bytes(bytes);
            for like in edges.map(|edge| u64::from(edge) | word << 8).into_iter().chain([word]) {
                let expected = slowly(mixed, |byte| byte == like as u8);
                assert_eq!(equal_bytes(mixed, like), expected, "{mixed:x} {like:x}");
                assert_eq!(portable::equal_bytes(mixed, like), expected, "{mixed:x} {like:x}");
            }
            let expected = slowly(mixed, |byte| byte >= 0x80);
            assert_eq!((high_bits(mixed), portable::high_bits(mixed)), (expected, expected), "{mixed:x}");
        }
    }
}
