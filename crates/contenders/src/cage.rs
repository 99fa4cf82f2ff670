//! A control group that bounds the memory of one process, and what stands in for it where none can be made.
//!
//! In: a bound. Out: a command that runs within it. Who has no control group is ended by [`Guard`], which
//! looks at VmRSS. Never: a group that outlives its [`Cage`].
//!
//! [`Guard`]: crate::guard::Guard

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// See the module's doc.
#[derive(Debug)]
pub struct Cage {
    pub bytes: u64,
    group: Option<Group>,
}

#[derive(Debug)]
struct Group {
    dir: PathBuf,
    is_v2: bool,
}

impl Cage {
    /// A group of its own, by version 2 or else 1.
    pub fn new(bytes: u64) -> Cage {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let group = roots(&mounts).into_iter().find_map(|(root, is_v2)| Group::make(&root, is_v2, bytes));
        Cage { bytes, group }
    }

    /// What bounds it, in words.
    pub fn about(&self) -> &'static str {
        match &self.group {
            Some(Group { is_v2: true, .. }) => "a control group (v2)",
            Some(Group { is_v2: false, .. }) => "a control group (v1)",
            None => "a look at VmRSS every 100 ms, for want of a control group",
        }
    }

    /// Whether the kernel holds it to the bound.
    pub fn is_held(&self) -> bool {
        self.group.is_some()
    }

    /// `program` with `args`, within the group from its first instruction on.
    pub fn command(&self, program: &Path, args: &[String]) -> Command {
        let mut command = match &self.group {
            None => Command::new(program),
            Some(group) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(group.dir.join("cgroup.procs"));
                shell.arg(program);
                shell
            }
        };
        command.args(args);
        command
    }
}

impl Group {
    fn make(root: &Path, is_v2: bool, bytes: u64) -> Option<Group> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let serial = MADE.fetch_add(1, Ordering::Relaxed);
        if is_v2 {
            // Where it is so already, or may not be, the file below says it.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
        }
        let dir = root.join(format!("forebay-bench-{}-{serial}", std::process::id()));
        fs::create_dir(&dir).ok()?;
        let group = Group { dir, is_v2 };
        let limit = if is_v2 { "memory.max" } else { "memory.limit_in_bytes" };
        let is_bound = fs::write(group.dir.join(limit), bytes.to_string()).is_ok();
        is_bound.then_some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its process is gone by now; a group that is left is empty and bounds nothing.
        let _ = fs::remove_dir(&self.dir);
    }
}

/// Where groups with a bound on memory can be made, and whether by version 2, which comes first.
fn roots(mounts: &str) -> Vec<(PathBuf, bool)> {
    let mut all = Vec::new();
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(1);
        let (Some(dir), Some(kind), Some(options)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        match kind {
            "cgroup2" => all.insert(0, (PathBuf::from(dir), true)),
            "cgroup" if options.split(',').any(|option| option == "memory") => {
                all.push((PathBuf::from(dir), false));
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_2_comes_first_and_version_1_only_where_it_bounds_memory() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\nproc /proc proc rw 0 0\n";
        let unified = (PathBuf::from("/sys/fs/cgroup/unified"), true);
        assert_eq!(roots(mounts), [unified, (PathBuf::from("/sys/fs/cgroup/memory"), false)]);
        assert_eq!(roots(""), []);
    }

    #[test]
    fn a_command_in_a_cage_is_the_program_itself() {
        let said = Cage::new(64 << 20).command(Path::new("/bin/echo"), &["a b".into()]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), "a b\n");
    }
}
