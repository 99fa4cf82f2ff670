//! What the operating system says of this process. Where there is no `/proc`, nothing is said.

use std::fs;

use super::text::Text;

/// Clock ticks a second: fixed at 100 for programs on Linux, whatever the kernel's own rate.
const TICKS: f64 = 100.0;
/// Page size of the counts in `/proc/self/stat`, where the kernel's status file cannot be read.
const KIB: u64 = 1024;

/// Writes the process's own metrics.
pub fn write(text: &mut Text) {
    if let Some((cpu_seconds, start_seconds)) = times() {
        text.single(
            "process_cpu_seconds_total",
            "counter",
            "Processor time spent, user and system, in seconds.",
            cpu_seconds,
        );
        write_start(text, start_seconds);
    }
    if let Some((resident, virt)) = memory() {
        text.single("process_resident_memory_bytes", "gauge", "Memory that is resident, in bytes.", resident);
        text.single("process_virtual_memory_bytes", "gauge", "Memory that is mapped, in bytes.", virt);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        text.single("process_open_fds", "gauge", "File descriptors that are open.", open.count());
    }
    if let Some(max) = max_fds() {
        text.single("process_max_fds", "gauge", "File descriptors that may be open.", max);
    }
}

/// When the process was started, seconds since the Unix epoch.
pub fn started() -> Option<f64> {
    times().map(|(_, started)| started)
}

/// Writes that.
pub fn write_start(text: &mut Text, seconds: f64) {
    let help = "When the process was started, seconds since the Unix epoch.";
    text.single("process_start_time_seconds", "gauge", help, seconds);
}

fn times() -> Option<(f64, f64)> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in brackets, which may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    let booted = fs::read_to_string("/proc/stat").ok()?;
    let booted = booted.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse::<f64>().ok()?;
    Some(((field(14)? + field(15)?) / TICKS, booted + field(22)? / TICKS))
}

fn memory() -> Option<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().trim_end_matches(" kB").trim().parse::<u64>().ok()
    };
    Some((kib("VmRSS")? * KIB, kib("VmSize")? * KIB))
}

fn max_fds() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}
