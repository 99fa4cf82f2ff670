//! How much memory the process may use, as the system has decided.
//!
//! In: what `/proc` and the control groups' files say. Out: the lowest limit that holds for this process, and
//! where it comes from. Never: a limit that is none, as `max` and the huge numbers of version 1 are.

use std::fs;
use std::path::{Path, PathBuf};

/// A limit, and whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    pub bytes: u64,
    pub source: &'static str,
}

/// The lowest limit that the system sets; `None` where it sets none.
pub fn detect() -> Option<Limit> {
    let control_group = control_group(&|path| fs::read_to_string(path).ok());
    control_group.into_iter().chain(resources()).min_by_key(|limit| limit.bytes)
}

/// Limits of the process itself. Both count more than what is used, so that what is used has to stay below
/// them.
#[cfg(target_os = "linux")]
fn resources() -> impl Iterator<Item = Limit> {
    use rustix::process::{Resource, getrlimit};
    let of = |resource, source| getrlimit(resource).current.map(|bytes| Limit { bytes, source });
    of(Resource::As, "RLIMIT_AS").into_iter().chain(of(Resource::Data, "RLIMIT_DATA"))
}

#[cfg(not(target_os = "linux"))]
fn resources() -> impl Iterator<Item = Limit> {
    std::iter::empty()
}

/// No machine has so much: version 1 says it for no limit.
const NO_LIMIT: u64 = 1 << 60;

/// The lowest limit of the control group that the process is in and of those that it is inside of.
fn control_group(read: &dyn Fn(&Path) -> Option<String>) -> Option<Limit> {
    let groups = read(Path::new("/proc/self/cgroup"))?;
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is_v2 = controllers.is_empty();
        if !is_v2 && !controllers.split(',').any(|controller| controller == "memory") {
            return None;
        }
        let mount = mounts.lines().filter_map(mount).find(|mount| match is_v2 {
            true => mount.kind == "cgroup2",
            false => mount.kind == "cgroup" && mount.options.split(',').any(|option| option == "memory"),
        })?;
        let file = if is_v2 { "memory.max" } else { "memory.limit_in_bytes" };
        lowest(&mount, path, file, read)
    });
    let bytes = limits.min()?;
    Some(Limit { bytes, source: "the control group" })
}

/// A line of `mountinfo`.
struct Mount<'a> {
    /// What of the hierarchy is mounted, and where.
    root: &'a str,
    at: &'a str,
    kind: &'a str,
    options: &'a str,
}

fn mount(line: &str) -> Option<Mount<'_>> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, at) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    Some(Mount { root, at, kind: after.next()?, options: after.nth(1)? })
}

/// The lowest limit on the way from `path` up to the mount.
fn lowest(mount: &Mount<'_>, path: &str, file: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    // In a container the path is that of the host, or of a namespace whose root is mounted.
    let below = path.strip_prefix(mount.root).unwrap_or("").trim_matches('/');
    let top = PathBuf::from(mount.at);
    let own = top.join(below);
    let groups = own.ancestors().take_while(|group| group.starts_with(&top));
    let limit = |group: &Path| read(&group.join(file))?.trim().parse::<u64>().ok();
    groups.filter_map(limit).filter(|bytes| *bytes < NO_LIMIT).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      34 31 0:31 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n";

    fn check(groups: &str, mounts: &str, files: &[(&str, &str)], want: Option<u64>) {
        let read = |path: &Path| match path.to_str()? {
            "/proc/self/cgroup" => Some(groups.to_owned()),
            "/proc/self/mountinfo" => Some(mounts.to_owned()),
            path => files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned()),
        };
        let found = control_group(&read).map(|limit| limit.bytes);
        assert_eq!(found, want, "{groups} {files:?}");
    }

    #[test]
    fn the_lowest_limit_on_the_way_up_holds() {
        let path = |group: &'static str| ["/sys/fs/cgroup", group, "/memory.max"].concat();
        let (own, parent, root) = (path("/a/b"), path("/a"), path(""));
        check("0::/a/b\n", V2, &[(&own, "1048576\n"), (&parent, "max\n")], Some(1 << 20));
        check("0::/a/b\n", V2, &[(&own, "max\n"), (&parent, "4096\n"), (&root, "max\n")], Some(4096));
        check("0::/a/b\n", V2, &[(&own, "max\n"), (&parent, "max\n")], None);
        // A container with a namespace of its own.
        check("0::/\n", V2, &[(&root, "8192\n")], Some(8192));
        check("0::/a/b\n", "", &[(&own, "1\n")], None);
    }

    #[test]
    fn version_1_is_read_too() {
        let own = "/sys/fs/cgroup/memory/a/memory.limit_in_bytes";
        let top = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
        let none = "9223372036854771712\n";
        let groups = "4:memory:/a\n3:cpu,cpuacct:/b\n0::/\n";
        check(groups, V1, &[(own, "65536\n"), (top, none)], Some(65536));
        check(groups, V1, &[(own, none), (top, none)], None);
        // In a container without a namespace the host's path is seen, and the own group is mounted.
        let mounted = "35 31 0:32 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        check("4:memory:/docker/x\n", mounted, &[(top, "4096")], Some(4096));
        // A path that is not below the mount: all that can be seen is the mount.
        check("4:memory:/elsewhere\n", mounted, &[(top, "4096")], Some(4096));
    }

    #[test]
    fn on_this_machine_it_is_found_or_there_is_none() {
        assert!(detect().is_none_or(|limit| limit.bytes > 1 << 20));
    }
}
