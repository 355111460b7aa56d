//! How much memory an analysis may take.

use vm_image::container;

/// One part in so many of the free memory is left to others, and to what the limit does not count.
const RESERVE: u64 = 8;
/// The least reserve: what an analysis takes besides its arrays, and the pages of the dump that it works on.
const LEAST_RESERVE: u64 = 96 << 20;
/// The least limit: what any analysis takes, however small the dump is.
const LEAST: u64 = 16 << 20;

/// The limit of memory of an analysis unless one is given: what is free, less a reserve, in whole MiB.
pub(crate) fn usual_limit() -> Option<u64> {
    let free = container::free_memory(std::process::id())?;
    let reserve = (free / RESERVE).max(LEAST_RESERVE);
    Some((free.saturating_sub(reserve) >> 20 << 20).max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::usual_limit;

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_a_limit() {
        assert!(usual_limit().is_some_and(|limit| limit >= super::LEAST));
    }
}
