//! The CPU time that the control groups of this process pay for. The kernel's mask of allowed cores does not show it.

use super::system::System;

/// In cores; none: as many as there are.
pub fn quota_cores(system: &System) -> Option<f64> {
    // Version 2 has both numbers in one file, version 1 has a file for each.
    let together = system.in_cgroups("cpu", "cpu.max", "cpu.max").into_iter().filter_map(|text| {
        let (quota_us, period_us) = text.split_once(' ')?;
        share(quota_us, period_us)
    });
    let quotas = system.in_cgroups("cpu", "cpu.cfs_quota_us", "cpu.cfs_quota_us");
    let periods = system.in_cgroups("cpu", "cpu.cfs_period_us", "cpu.cfs_period_us");
    let apart = quotas.iter().zip(&periods).filter_map(|(quota_us, period_us)| share(quota_us, period_us));
    together.chain(apart).reduce(f64::min)
}

/// Without a quota the first is `max` or `-1`.
fn share(quota_us: &str, period_us: &str) -> Option<f64> {
    let (quota_us, period_us) = (quota_us.parse::<f64>().ok()?, period_us.parse::<f64>().ok()?);
    (quota_us > 0.0 && period_us > 0.0).then(|| quota_us / period_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn file(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn quota(files: &[(&str, &str)]) -> Option<f64> {
        let root = tempfile::tempdir().unwrap();
        files.iter().for_each(|(path, text)| file(root.path(), path, text));
        quota_cores(&System::at(root.path()))
    }

    #[test]
    fn the_smallest_of_all_groups_counts() {
        let inner = ("sys/fs/cgroup/a/b/cpu.max", "300000 100000\n");
        let outer = ("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
        let ours = ("proc/self/cgroup", "0::/a/b\n");
        assert_eq!(quota(&[ours, inner, outer]), Some(1.5));
        assert_eq!(quota(&[ours, inner]), Some(3.0));
        assert_eq!(quota(&[ours, ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n")]), None);
        // A container that does not know its own name outside.
        let hidden = ("proc/self/cgroup", "0::/../../elsewhere\n");
        assert_eq!(quota(&[hidden, ("sys/fs/cgroup/cpu.max", "50000 100000\n")]), Some(0.5));
    }

    #[test]
    fn version_1_has_a_file_for_each_number() {
        let ours = ("proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/a\n0::/\n");
        let period = ("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
        assert_eq!(quota(&[ours, period, ("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "250000\n")]), Some(2.5));
        assert_eq!(quota(&[ours, period, ("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n")]), None);
    }

    #[test]
    fn nothing_is_known_where_nothing_is_told() {
        assert_eq!(quota(&[]), None);
        assert_eq!(quota(&[("proc/self/cgroup", "nonsense\n"), ("sys/fs/cgroup/cpu.max", "x y\n")]), None);
    }
}
