//! Hints to the processor: what lies where somebody is going to look.

#![allow(unsafe_code)]

/// Asks the processor to fetch what lies around a byte of a page.
#[inline(always)]
pub(crate) fn fetch_ahead(page: &[u8], offset: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint reads nothing and never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(page.as_ptr().wrapping_add(offset).cast()) };
    }
    // No stable intrinsic elsewhere: the loads that follow are independent, which is most of the gain.
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (page, offset);
}
