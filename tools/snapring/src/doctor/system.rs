//! The files by which the kernel tells of itself. Any of them may be missing.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// A root folder with `proc` and `sys` in it.
pub struct System(PathBuf);

impl System {
    pub fn here() -> Self {
        Self(PathBuf::from("/"))
    }

    #[cfg(test)]
    pub fn at(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// The text of a file, without blanks around it; none: it is not there, or not for us.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        let below = path.as_ref().components().filter(|part| matches!(part, Component::Normal(_)));
        let text = fs::read_to_string(self.0.join(below.collect::<PathBuf>())).ok()?;
        Some(text.trim().to_owned())
    }

    /// What a file of our control group and of all groups above it says, if it says so anywhere. `controller`: by its name
    /// in version 1.
    pub fn in_cgroups(&self, controller: &str, v2_file: &str, v1_file: &str) -> Vec<String> {
        let mut found = Vec::new();
        for line in self.read("proc/self/cgroup").unwrap_or_default().lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
            let (mounts, file) = if controllers.is_empty() {
                (vec!["sys/fs/cgroup".to_owned(), "sys/fs/cgroup/unified".to_owned()], v2_file)
            } else if controllers.split(',').any(|one| one == controller) {
                (vec![format!("sys/fs/cgroup/{controllers}"), format!("sys/fs/cgroup/{controller}")], v1_file)
            } else {
                continue;
            };
            // A container sees its own group at the mount point, whatever it is called outside.
            for group in Path::new(group).ancestors() {
                let group = group.to_string_lossy();
                found.extend(mounts.iter().filter_map(|mount| self.read(format!("{mount}/{group}/{file}"))));
            }
        }
        found
    }
}

/// Cores as the kernel lists them: `0-3,8`.
pub fn cpu_list(text: &str) -> Vec<usize> {
    let mut cores = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
            cores.extend(first..=last.min(first + 65_535));
        }
    }
    cores
}

/// Numbers as a person lists them.
pub fn listed(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores() {
        assert_eq!(cpu_list("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(cpu_list("5"), [5]);
        assert!(cpu_list("").is_empty() && cpu_list("all").is_empty() && cpu_list("3-1").is_empty());
        assert_eq!(listed(&[0, 2]), "0,2");
    }
}
