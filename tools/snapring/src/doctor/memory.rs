//! Memory for state: how much there is, and in what pages the system gives it.

use super::finding::{Finding, Level};
use super::system::System;
use indicatif::BinaryBytes;

const TIGHT_BYTES: u64 = 512 << 20;

pub fn look(system: &System) -> Vec<Finding> {
    vec![memory(system), huge_pages(system)]
}

fn memory(system: &System) -> Finding {
    let info = system.read("proc/meminfo").unwrap_or_default();
    let (total, available) = (kib_of(&info, "MemTotal:"), kib_of(&info, "MemAvailable:"));
    let limits = system.in_cgroups("memory", "memory.max", "memory.limit_in_bytes");
    let limit = limits.iter().filter_map(|text| text.parse::<u64>().ok()).min();
    // Version 1 says that there is none by a number beyond any machine's memory.
    let limit = limit.filter(|limit| total.is_none_or(|total| *limit < total));
    let (Some(total), Some(available)) = (total, available) else {
        return Finding::new(Level::Note, "memory", "the system does not say how much there is");
    };
    let mut says = format!("{} of {} available", BinaryBytes(available), BinaryBytes(total));
    if let Some(limit) = limit {
        says += &format!(", {} allowed by its control group", BinaryBytes(limit));
    }
    let finding = Finding::ok("memory", says)
        .fact("total_bytes", total)
        .fact("available_bytes", available)
        .fact("limit_bytes", limit);
    if available.min(limit.unwrap_or(u64::MAX)) >= TIGHT_BYTES {
        return finding;
    }
    finding.but(Level::Warning, "that is little: the system ends a process that takes more, so keep the state small")
}

/// A number of `/proc/meminfo`, in bytes.
fn kib_of(info: &str, name: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

fn huge_pages(system: &System) -> Finding {
    let text = system.read("sys/kernel/mm/transparent_hugepage/enabled");
    let reserved = system.read("proc/sys/vm/nr_hugepages").and_then(|text| text.parse::<u64>().ok());
    // The mode in force is in brackets.
    let mode = text.as_deref().and_then(|text| text.split(['[', ']']).nth(1));
    let about = "huge pages";
    let finding = match mode {
        None => Finding::new(Level::Note, about, "the system does not say whether it gives them"),
        Some("always") => Finding::ok(about, "transparent ones for everybody"),
        Some(mode) => Finding::ok(about, format!("transparent ones: {mode}; state is kept in small pages")).but(
            Level::Note,
            "if the state is much larger than the caches, large pages make look-ups faster: \
             echo always > /sys/kernel/mm/transparent_hugepage/enabled (as root)",
        ),
    };
    finding.fact("transparent", mode).fact("reserved", reserved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn system(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let system = System::at(root.path());
        (root, system)
    }

    #[test]
    fn little_memory_is_a_warning_and_none_that_is_told_a_note() {
        let info = "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:   8000000 kB\n";
        let ours = ("proc/self/cgroup", "0::/a");
        let (_root, enough) = system(&[("proc/meminfo", info)]);
        assert_eq!(memory(&enough).level, Level::Ok);
        let (_root, tight) = system(&[("proc/meminfo", info), ours, ("sys/fs/cgroup/a/memory.max", "1000000\n")]);
        assert_eq!(memory(&tight).level, Level::Warning);
        let (_root, unlimited) = system(&[("proc/meminfo", info), ours, ("sys/fs/cgroup/a/memory.max", "max\n")]);
        assert_eq!(memory(&unlimited).level, Level::Ok);
        let (_root, silent) = system(&[]);
        assert_eq!(memory(&silent).level, Level::Note);
    }

    #[test]
    fn the_mode_in_brackets_is_in_force() {
        let path = "sys/kernel/mm/transparent_hugepage/enabled";
        let (_root, always) = system(&[(path, "[always] madvise never\n")]);
        assert_eq!(huge_pages(&always).level, Level::Ok);
        let (_root, never) = system(&[(path, "always madvise [never]\n")]);
        let found = huge_pages(&never);
        assert!(found.level == Level::Note && found.says.contains("never"), "{found:?}");
    }
}
