//! Which task owns which hashes. Key groups are prefixes of the hash, tasks own whole key groups, and which key belongs
//! to which group never changes: so state moves by whole groups when the parallelism changes.

/// The number of key groups, and so the highest parallelism of a keyed operator. Part of the format.
pub const KEY_GROUPS: u32 = 4096;

const GROUP_BITS: u32 = KEY_GROUPS.trailing_zeros();

/// The bits of a hash that are its key group.
pub const GROUP_MASK: u64 = u64::MAX << (64 - GROUP_BITS);

/// The hashes that a task owns: a contiguous range, whole key groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashRange {
    /// The lowest.
    pub start: u64,
    /// The highest.
    pub end_inclusive: u64,
}

impl HashRange {
    /// Whether the hash is the task's.
    pub fn contains(&self, hash: u64) -> bool {
        (self.start..=self.end_inclusive).contains(&hash)
    }

    /// Whether the two have a hash in common.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.start <= other.end_inclusive && other.start <= self.end_inclusive
    }

    /// Whether all of `other` lies in it.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.start <= other.start && other.end_inclusive <= self.end_inclusive
    }

    /// All hashes that begin with the first `depth` bits of `prefix`.
    pub(super) fn of_prefix(prefix: u64, depth: u32) -> Self {
        let rest = u64::MAX.checked_shr(depth).unwrap_or(0);
        Self { start: prefix & !rest, end_inclusive: prefix | rest }
    }
}

/// The key group of a hash.
#[inline]
pub fn key_group(hash: u64) -> u32 {
    (hash >> (64 - GROUP_BITS)) as u32
}

/// The hashes of a key group.
pub(super) fn hashes_of(group: u32) -> HashRange {
    HashRange::of_prefix(u64::from(group) << (64 - GROUP_BITS), GROUP_BITS)
}

/// The task, of `tasks`, that owns a hash.
#[inline]
pub fn task_of(hash: u64, tasks: u32) -> u32 {
    debug_assert!((1..=KEY_GROUPS).contains(&tasks));
    key_group(hash) * tasks / KEY_GROUPS
}

/// The hashes that task number `task` of `tasks` owns.
///
/// # Panics
/// There is no such task, or there are none or more than [`KEY_GROUPS`].
pub fn range_of(task: u32, tasks: u32) -> HashRange {
    assert!(tasks <= KEY_GROUPS && task < tasks, "no task {task} of {tasks}");
    // The first group g with g * tasks / KEY_GROUPS == task.
    let first_group = |task: u32| (task * KEY_GROUPS).div_ceil(tasks);
    let start = u64::from(first_group(task)) << (64 - GROUP_BITS);
    let end = u128::from(first_group(task + 1)) << (64 - GROUP_BITS);
    HashRange { start, end_inclusive: (end - 1) as u64 }
}
