//! What a process costs, as the system counts it.

use std::time::Duration;

/// What a process has used and holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// CPU time of all its threads, those that have ended included, in user and in kernel mode.
    pub(crate) cpu: Duration,
    /// Resident memory, in bytes.
    pub(crate) resident: u64,
    /// Threads it has now.
    pub(crate) threads: u64,
}

/// Reads it; `None` where there is no `/proc`.
#[cfg(target_os = "linux")]
pub(crate) fn usage(pid: u32) -> Option<Usage> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some(Usage {
        cpu: cpu(&stat)?,
        resident: line("VmRSS:")? * 1024,
        threads: line("Threads:")?,
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn usage(_pid: u32) -> Option<Usage> {
    None
}

/// `utime` and `stime` of a line of `stat` (proc(5)): the 14th and 15th field, of which the second may hold anything, a
/// parenthesis too.
#[cfg(target_os = "linux")]
fn cpu(stat: &str) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_secs(ticks).div_f64(rustix::param::clock_ticks_per_second() as f64))
}

/// Whether [`Usage::cpu`] holds what every single thread used: a figure of one thread alone would flatter a server. A tick
/// per thread is allowed for, as each is rounded by itself.
#[cfg(target_os = "linux")]
pub(crate) fn counts_all_threads(pid: u32) -> Option<bool> {
    let mut threads = Duration::ZERO;
    let mut slack = Duration::ZERO;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        threads += cpu(&std::fs::read_to_string(thread.path().join("stat")).ok()?)?;
        slack += Duration::from_secs(2).div_f64(rustix::param::clock_ticks_per_second() as f64);
    }
    Some(usage(pid)?.cpu + slack >= threads)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn counts_all_threads(_pid: u32) -> Option<bool> {
    None
}

/// Raises the number of files this process, and so the servers it starts, may open as far as it goes, and returns it.
#[cfg(unix)]
pub(crate) fn raise_open_files() -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // What cannot be raised stays as it is, and is what counts below.
    let _ = setrlimit(Resource::Nofile, limit);
    let now = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(now).unwrap_or(usize::MAX)
}

#[cfg(not(unix))]
pub(crate) fn raise_open_files() -> usize {
    // Windows has no such limit.
    usize::MAX
}
