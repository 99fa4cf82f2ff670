//! What Linux says of a process: memory, CPU time, and whether a listening socket is its own.
//!
//! In: a process id. Out: figures from `/proc/PID`. Never: a figure of another process's children.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::time::{Duration, Instant};

use crate::Error;

/// CPU times in `/proc/PID/stat` are in ticks of 1/100 s on every Linux that Rust runs on (USER_HZ).
const TICK: Duration = Duration::from_millis(10);

/// Resident memory in bytes: anonymous, mapped files (etcd's database is one) and shared.
pub fn resident(pid: u32) -> Result<u64, Error> {
    status_kib(pid, "VmRSS:").map(|kib| kib * 1024)
}

/// What is resident now, in bytes, where pages that several processes share are divided among them.
pub fn proportional(pid: u32) -> Result<u64, Error> {
    let text = read(pid, "smaps_rollup")?;
    let kib = kib(&text, "Pss:").ok_or_else(|| Error::Proc(format!("/proc/{pid}/smaps_rollup has no Pss")));
    kib.map(|kib| kib * 1024)
}

/// The most that was resident at once, in bytes.
pub fn resident_peak(pid: u32) -> Result<u64, Error> {
    status_kib(pid, "VmHWM:").map(|kib| kib * 1024)
}

/// Begins the peak of [`resident_peak`] anew; whether the system lets us.
pub fn forget_peak(pid: u32) -> bool {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").is_ok()
}

/// CPU time so far, user and system, of all its threads, ended ones included.
pub fn cpu(pid: u32) -> Result<Duration, Error> {
    let text = read(pid, "stat")?;
    sum_fields(&text, 2)
        .map(|ticks| TICK * ticks as u32)
        .ok_or_else(|| Error::Proc(format!("/proc/{pid}/stat: {text}")))
}

/// CPU time of threads, to the nanosecond, where ticks are too long for what is measured.
#[derive(Clone, Debug, Default)]
pub struct ThreadTimes(
    // id -> nanoseconds, of each thread that there is
    BTreeMap<u32, u64>,
);

impl ThreadTimes {
    /// What all threads of these processes have used by now.
    pub fn of(pids: impl IntoIterator<Item = u32>) -> Result<ThreadTimes, Error> {
        let mut all = BTreeMap::new();
        for pid in pids {
            let path = format!("/proc/{pid}/task");
            let threads = fs::read_dir(&path).map_err(|e| Error::Proc(format!("{path}: {e}")))?;
            for thread in threads.flatten() {
                // One that ends meanwhile has no file any more.
                let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else { continue };
                let id = thread.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
                let used = text.split(' ').next().and_then(|used| used.parse::<u64>().ok());
                all.extend(id.zip(used));
            }
        }
        Ok(ThreadTimes(all))
    }

    /// What they have used since `before`, but for threads that have ended meanwhile.
    pub fn since(&self, before: &ThreadTimes) -> Duration {
        let used = |(id, now): (&u32, &u64)| now.saturating_sub(before.0.get(id).copied().unwrap_or(0));
        Duration::from_nanos(self.0.iter().map(used).sum())
    }
}

/// CPU time so far of this process: the client's.
pub fn cpu_self() -> Result<Duration, Error> {
    cpu(std::process::id())
}

/// Lets this process have as many connections open as the system allows.
pub fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it stays low, connecting fails and says why.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Watches what the rest of the machine does while we measure.
#[derive(Debug)]
pub struct Others {
    since: Instant,
    busy: u64,
    ours: u64,
}

impl Others {
    pub fn begin() -> Result<Others, Error> {
        Ok(Others { since: Instant::now(), busy: machine_ticks()?, ours: family_ticks()? })
    }

    /// Cores that were busy, on average, for neither us nor a child of ours that has ended by now.
    pub fn cores(&self) -> Result<f64, Error> {
        let busy = machine_ticks()?.saturating_sub(self.busy);
        let ours = family_ticks()?.saturating_sub(self.ours);
        Ok((TICK * busy.saturating_sub(ours) as u32).as_secs_f64() / self.since.elapsed().as_secs_f64())
    }
}

/// Ticks of all cores that were neither idle nor waiting for a disk, those that a host took from us included.
fn machine_ticks() -> Result<u64, Error> {
    let path = "/proc/stat";
    let text = fs::read_to_string(path).map_err(|e| Error::Proc(format!("{path}: {e}")))?;
    busy(&text).ok_or_else(|| Error::Proc(format!("{path} has no cpu line")))
}

/// Ticks of this process and of its children that have been waited for.
fn family_ticks() -> Result<u64, Error> {
    let text = read(std::process::id(), "stat")?;
    sum_fields(&text, 4).ok_or_else(|| Error::Proc(format!("/proc/self/stat: {text}")))
}

/// Whether `pid` itself holds a socket that listens on `port`.
pub fn listens(pid: u32, port: u16) -> bool {
    held(pid, |table| listening(table, port)) > 0
}

/// How many connections `pid` itself holds to `port`.
pub fn connections(pid: u32, port: u16) -> usize {
    held(pid, |table| connected(table, port))
}

/// How many of the sockets are open in `pid` that `of` finds in its tables.
fn held(pid: u32, of: impl Fn(&str) -> Vec<u64>) -> usize {
    let sockets: HashSet<OsString> = ["tcp", "tcp6"]
        .iter()
        .filter_map(|table| read(pid, &format!("net/{table}")).ok())
        .flat_map(|table| of(&table))
        .map(|inode| format!("socket:[{inode}]").into())
        .collect();
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return 0 };
    open.flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter(|target| sockets.contains(target.as_os_str()))
        .count()
}

fn status_kib(pid: u32, field: &str) -> Result<u64, Error> {
    let text = read(pid, "status")?;
    kib(&text, field).ok_or_else(|| Error::Proc(format!("/proc/{pid}/status has no {field}")))
}

fn read(pid: u32, file: &str) -> Result<String, Error> {
    let path = format!("/proc/{pid}/{file}");
    fs::read_to_string(&path).map_err(|e| Error::Proc(format!("{path}: {e}")))
}

/// The number in a `Field:   123 kB` line.
fn kib(status: &str, field: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB")?.parse().ok())
}

/// The first `count` of utime, stime, cutime and cstime: the fields from the 14th on, counted behind the
/// program's name, which may hold anything.
fn sum_fields(stat: &str, count: usize) -> Option<u64> {
    let behind = &stat[stat.rfind(')')? + 1..];
    let fields: Vec<u64> = behind
        .split_whitespace()
        .skip(11)
        .take(count)
        .map(|field| field.parse().ok())
        .collect::<Option<_>>()?;
    (fields.len() == count).then(|| fields.iter().sum())
}

/// All but idle and iowait in the `cpu` line: user nice system idle iowait irq softirq steal; guests are in
/// user already.
fn busy(stat: &str) -> Option<u64> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
    let ticks: Vec<u64> = fields.map(|field| field.parse().ok()).collect::<Option<_>>()?;
    (ticks.len() == 8).then(|| ticks.iter().sum::<u64>() - ticks[3] - ticks[4])
}

/// Inodes of the sockets in state LISTEN (0A) on `port`.
fn listening(table: &str, port: u16) -> Vec<u64> {
    inodes(table, |local, _, state| is_at(local, port) && state == "0A")
}

/// Inodes of the sockets in state ESTABLISHED (01) whose other end is `port`.
fn connected(table: &str, port: u16) -> Vec<u64> {
    inodes(table, |_, remote, state| is_at(remote, port) && state == "01")
}

fn is_at(address: &str, port: u16) -> bool {
    address.ends_with(&format!(":{port:04X}"))
}

/// Inodes of the sockets of which `is_it` says so: of local address, remote address and state.
fn inodes(table: &str, is_it: impl Fn(&str, &str, &str) -> bool) -> Vec<u64> {
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.len() > 9 && is_it(row[1], row[2], row[3]))
        .filter_map(|row| row[9].parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_threads_use_is_known_to_less_than_a_tick() {
        let own = || ThreadTimes::of([std::process::id()]).unwrap();
        let before = own();
        let began = Instant::now();
        while own().since(&before) < TICK / 10 {
            assert!(began.elapsed() < Duration::from_secs(60), "{before:?}");
        }
        let of = |threads: &[(u32, u64)]| ThreadTimes(threads.iter().copied().collect());
        let (then, now) = (of(&[(1, 10), (2, 20)]), of(&[(1, 15), (3, 7)]));
        assert_eq!(now.since(&then), Duration::from_nanos(12), "one has ended, and one has begun");
    }

    #[test]
    fn ticks_are_found_behind_a_name_with_spaces_and_brackets() {
        let stat = "12 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 30 12 1 5 20 0 9 0 777";
        assert_eq!(sum_fields(stat, 2), Some(42));
        assert_eq!(sum_fields(stat, 4), Some(48));
        assert_eq!(sum_fields("12 (a) S 1", 2), None);
    }

    #[test]
    fn busy_leaves_out_idle_and_waiting_and_counts_no_guest_twice() {
        assert_eq!(busy("cpu  1 2 4 1000 2000 8 16 32 1 1\ncpu0 1 1\n"), Some(63));
        assert_eq!(busy("cpu  1 2 4\n"), None);
    }

    #[test]
    fn kib_reads_the_named_line_only() {
        let status = "VmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n";
        assert_eq!(kib(status, "VmRSS:"), Some(1024));
        assert_eq!(kib(status, "VmHWM:"), Some(2048));
        assert_eq!(kib(status, "VmSwap:"), None);
    }

    #[test]
    fn a_process_listens_on_the_ports_it_bound_and_no_other() {
        let ours = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = ours.local_addr().unwrap().port();
        assert!(listens(std::process::id(), port));
        drop(ours);
        assert!(!listens(std::process::id(), port));
    }

    #[test]
    fn a_process_holds_the_connections_that_it_opened() {
        let ours = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = ours.local_addr().unwrap().port();
        assert_eq!(connections(std::process::id(), port), 0);
        let open = [(); 3].map(|()| std::net::TcpStream::connect(("127.0.0.1", port)).unwrap());
        assert_eq!(connections(std::process::id(), port), 3);
        drop(open);
        assert_eq!(connections(std::process::id(), port), 0);
    }

    #[test]
    fn this_process_has_memory_and_cpu_time() {
        let pid = std::process::id();
        assert!(resident(pid).unwrap() > 1 << 20);
        assert!(resident_peak(pid).unwrap() >= 1 << 20);
        assert!(cpu_self().unwrap() < Duration::from_secs(3600));
        assert!(matches!(resident(u32::MAX), Err(Error::Proc(_))));
    }
}
