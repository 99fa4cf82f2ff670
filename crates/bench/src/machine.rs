//! The machine that the figures belong to.
//!
//! In: the directory that the servers write to. Out: one line of text. Never: a host name.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::Error;

/// Cores, memory, kernel, and the disk under `base`: its file system and what one durable write of 4 KiB
/// costs.
pub fn describe(base: &Path) -> Result<String, Error> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let base = base.canonicalize().map_err(Error::file("cannot find", base))?;
    Ok(format!(
        "{cores} cores ({}), {:.1} GiB, Linux {}, {}, fdatasync of 4 KiB {:.2} ms (median of {SYNCS})",
        field(&cpuinfo, "model name").unwrap_or("unknown"),
        memory_gib(&meminfo),
        kernel.trim(),
        file_system(&mounts, &base).unwrap_or("unknown file system"),
        sync_ms(&base)?,
    ))
}

/// The day in UTC, as YYYY-MM-DD.
pub fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs() / (24 * 60 * 60))
}

/// The day so many days after 1970-01-01: years are counted from a March, so that a leap day is the last of
/// its year.
fn date(days: u64) -> String {
    const ERA: u64 = 146_097; // days of 400 years
    let days = days + 719_468; // since 0000-03-01
    let (era, of_era) = (days / ERA, days % ERA);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / (ERA - 1)) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

const SYNCS: usize = 101;

/// The median time of appending 4 KiB and having them on disk.
fn sync_ms(base: &Path) -> Result<f64, Error> {
    let path = base.join(format!("forebay-bench-sync-{}", std::process::id()));
    let times = sync_times(&path).map_err(Error::file("cannot write", &path));
    let _ = fs::remove_file(&path);
    let mut times = times?;
    times.sort_by(f64::total_cmp);
    Ok(times[SYNCS / 2])
}

fn sync_times(path: &Path) -> std::io::Result<Vec<f64>> {
    let mut file = File::create(path)?;
    let mut one = || {
        let start = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    };
    (0..SYNCS).map(|_| one()).collect()
}

/// The first `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':')).map(str::trim)
}

fn memory_gib(meminfo: &str) -> f64 {
    let kib = field(meminfo, "MemTotal").and_then(|value| value.split(' ').next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / (1024.0 * 1024.0)
}

/// Type of the file system that `path` is on: the mount with the longest prefix, the last of equals.
fn file_system<'a>(mountinfo: &'a str, path: &Path) -> Option<&'a str> {
    mountinfo
        .lines()
        .filter_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            let point = mount.split(' ').nth(4)?;
            path.starts_with(point).then(|| (point.len(), kind.split(' ').next().unwrap_or(kind)))
        })
        .max_by_key(|(length, _)| *length)
        .map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_is_that_of_the_deepest_mount() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:2 / /tmp rw shared:1 - tmpfs tmpfs rw\n3 1 0:3 / /tmpfoo rw - xfs x rw\n";
        assert_eq!(file_system(mounts, Path::new("/tmp/x")), Some("tmpfs"));
        assert_eq!(file_system(mounts, Path::new("/var/x")), Some("ext4"));
        assert_eq!(file_system("", Path::new("/var/x")), None);
    }

    #[test]
    fn dates_heed_leap_years() {
        let days = [0, 58, 59, 789, 11_016, 11_017, 19_782, 20_088, 47_540, 47_541];
        let dates = ["1970-01-01", "1970-02-28", "1970-03-01", "1972-02-29", "2000-02-29", "2000-03-01"];
        let more = ["2024-02-29", "2024-12-31", "2100-02-28", "2100-03-01"];
        assert_eq!(days.map(date).to_vec(), [&dates[..], &more[..]].concat());
    }

    #[test]
    fn memory_is_read_in_gib() {
        assert_eq!(memory_gib("MemTotal:       25165824 kB\nMemFree: 1 kB\n"), 24.0);
        assert_eq!(memory_gib(""), 0.0);
    }

    #[test]
    fn the_line_names_cores_and_kernel() {
        let line = describe(&std::env::temp_dir()).unwrap();
        assert!(
            line.contains(" cores (") && line.contains(", Linux ") && line.contains("fdatasync"),
            "{line}"
        );
    }
}
