//! Numbers that look drawn and follow from a seed: a replay draws the same ones. Not for secrets.

/// The number of this index: S. Vigna's SplitMix64.
pub(crate) fn mixed(seed: u64, index: u64) -> u64 {
    let mut mixed = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The number of this index, scaled to `0..end` by D. Lemire's multiplication.
pub(crate) fn below(end: u64, seed: u64, index: u64) -> u64 {
    ((u128::from(mixed(seed, index)) * u128::from(end)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn numbers_are_even_and_follow_from_the_seed() {
        let mut counts = [0_u32; 10];
        (0..10_000).for_each(|index| counts[below(10, 7, index) as usize] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        assert_ne!(below(u64::MAX, 7, 0), below(u64::MAX, 8, 0));
        assert_eq!(below(1, 7, 5), 0);
    }
}
