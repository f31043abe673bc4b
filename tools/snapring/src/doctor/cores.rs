//! The cores that workers may have: how many, which of them are one and the same, and who else may run on them.

use super::finding::{Finding, Level};
use super::quota::quota_cores;
use super::system::{System, cpu_list, listed};
use rustix::thread::{CpuSet, sched_getaffinity};

/// The cores that this process may use; empty: the system does not say.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

pub fn look(system: &System) -> Vec<Finding> {
    let allowed = allowed();
    vec![cores(&allowed, quota_cores(system)), siblings(system, &allowed), isolation(system, &allowed)]
}

fn cores(allowed: &[usize], quota: Option<f64>) -> Finding {
    // What the library takes too.
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = if allowed.is_empty() { available } else { allowed.len().min(available) };
    let plural = if workers == 1 { "" } else { "s" };
    let says = match allowed {
        [] => format!("the system does not list the allowed ones; {workers} worker{plural} by default, not pinned"),
        allowed => format!("{} allowed ({}); {workers} worker{plural} by default", allowed.len(), listed(allowed)),
    };
    let finding = Finding::ok("cores", says)
        .fact("allowed", allowed.to_vec())
        .fact("workers", workers)
        .fact("quota_cores", quota);
    match quota {
        Some(quota) if quota < allowed.len() as f64 => finding.but(
            Level::Warning,
            format!(
                "a CPU quota pays for {quota:.2} cores: when it is used up everything stands still for the rest of the \
                 period, so take no more --cores than that, and leave --idle at park"
            ),
        ),
        _ => finding,
    }
}

fn siblings(system: &System, allowed: &[usize]) -> Finding {
    let threads = |core: &usize| {
        system
            .read(format!("sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"))
            .map(|text| cpu_list(&text))
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for core in allowed {
        let Some(threads) = threads(core) else {
            return Finding::new(
                Level::Note,
                "siblings",
                "the system does not say which cores are threads of one core",
            );
        };
        if !groups.iter().any(|group| group.contains(core)) {
            groups.push(threads.into_iter().filter(|thread| allowed.contains(thread)).collect());
        }
    }
    let firsts: Vec<usize> = groups.iter().filter_map(|group| group.first().copied()).collect();
    let shared: Vec<Vec<usize>> = groups.into_iter().filter(|group| group.len() > 1).collect();
    if shared.is_empty() {
        return Finding::ok("siblings", "each allowed core is one of its own").fact("groups", shared);
    }
    let pairs: Vec<String> = shared.iter().map(|group| listed(group)).collect();
    Finding::new(Level::Ok, "siblings", format!("threads of one core each: {}", pairs.join(" | ")))
        .but(
            Level::Note,
            format!("two workers on one core share what it can do; one worker per core: --cores {}", listed(&firsts)),
        )
        .fact("groups", shared)
}

fn isolation(system: &System, allowed: &[usize]) -> Finding {
    let isolated = cpu_list(&system.read("sys/devices/system/cpu/isolated").unwrap_or_default());
    let ours: Vec<usize> = isolated.iter().copied().filter(|core| allowed.contains(core)).collect();
    let says = match (&ours[..], &isolated[..]) {
        ([], []) => "no core is isolated: other programs may run on those of workers".to_owned(),
        ([], others) => format!("isolated cores ({}) are not allowed to this process", listed(others)),
        (ours, _) => format!("isolated: {} (--cores takes them)", listed(ours)),
    };
    Finding::ok("isolation", says).fact("isolated", isolated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn threads_of_one_core_are_named() {
        let root = tempfile::tempdir().unwrap();
        let says = |core: usize, text: &str| {
            let folder = root.path().join(format!("sys/devices/system/cpu/cpu{core}/topology"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("thread_siblings_list"), text).unwrap();
        };
        [(0, "0,2\n"), (1, "1,3\n"), (2, "0,2\n"), (3, "1,3\n")].iter().for_each(|(core, text)| says(*core, text));
        let system = System::at(root.path());
        let found = siblings(&system, &[0, 1, 2]);
        assert_eq!((found.level, &found.says[..]), (Level::Note, "threads of one core each: 0,2"));
        assert!(found.advice.unwrap().ends_with("--cores 0,1"));
        assert_eq!(siblings(&system, &[0, 1]).level, Level::Ok);
        assert_eq!(siblings(&system, &[0, 7]).level, Level::Note, "it is not told");
    }

    #[test]
    fn a_quota_below_the_cores_is_a_warning() {
        assert_eq!(cores(&[0, 1], Some(2.0)).level, Level::Ok);
        assert_eq!(cores(&[0, 1], None).level, Level::Ok);
        let found = cores(&[0, 1], Some(1.5));
        assert_eq!(found.level, Level::Warning);
        assert!(found.advice.unwrap().contains("1.50 cores"));
    }
}
