//! How much memory the process takes, as the system counts it.

/// Bytes of the process that are in memory; none where the system does not say.
pub(crate) fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    #[test]
    fn memory_in_use_counts() {
        // Not by how much it grows: other tests of this process let go of memory meanwhile.
        let bytes = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(super::resident_bytes().unwrap() >= bytes.len() as u64);
    }
}
