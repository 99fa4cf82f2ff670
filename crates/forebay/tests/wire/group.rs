//! A control group with a memory limit, where this process may make one; and what a process has used.

use std::fs;
use std::path::{Path, PathBuf};

/// Removed when dropped; its processes must be gone by then.
pub struct Group {
    dir: PathBuf,
    version: Version,
}

#[derive(Clone, Copy)]
enum Version {
    One,
    Two,
}

impl Group {
    /// A group of at most so many bytes; `None` where the system's groups cannot be written.
    pub fn new(name: &str, bytes: u64) -> Option<Group> {
        let name = format!("{name}-{}", std::process::id());
        let one = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", Version::One);
        let two = ("/sys/fs/cgroup", "memory.max", Version::Two);
        [one, two].into_iter().find_map(|(root, file, version)| {
            let dir = Path::new(root).join(&name);
            fs::create_dir(&dir).ok()?;
            let group = Group { dir, version };
            fs::write(group.dir.join(file), bytes.to_string()).ok()?;
            Some(group)
        })
    }

    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Processes that were killed for want of memory.
    pub fn killed(&self) -> u64 {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let text = fs::read_to_string(self.dir.join(file)).expect("the group's events");
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.map_or(0, |count| count.parse().expect("a number"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // One that cannot be removed is empty, and costs nothing.
        let _left = fs::remove_dir(&self.dir);
    }
}

/// Bytes that `/proc/PID/status` says under `field`: `VmRSS` now, `VmHWM` at most until now.
pub fn bytes(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.expect("a field of kB") << 10
}
