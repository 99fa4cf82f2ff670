//! How the process holds its memory, how much of it there may be, and how much there is.
//!
//! Owns the choice of page size. Never: decides what gives way.

mod limit;

pub use limit::{Limit, detect};

/// What counts against the limit, in bytes: what is resident. A control group counts the page cache too,
/// which the kernel takes back, and what it holds in sockets, which the limits of connections bound.
#[cfg(target_os = "linux")]
pub fn used() -> Option<u64> {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;
    use std::sync::OnceLock;

    // Kept open, because it is read ten times a second.
    static STATM: OnceLock<File> = OnceLock::new();
    let statm = match STATM.get() {
        Some(statm) => statm,
        None => {
            let opened = File::open("/proc/self/statm").ok()?;
            STATM.get_or_init(|| opened)
        }
    };
    let mut text = [0; 256];
    let read = statm.read_at(&mut text, 0).ok()?;
    let pages = std::str::from_utf8(&text[..read]).ok()?.split(' ').nth(1)?;
    Some(pages.parse::<u64>().ok()? * rustix::param::page_size() as u64)
}

#[cfg(not(target_os = "linux"))]
pub fn used() -> Option<u64> {
    None
}

/// Keeps the process to small pages.
///
/// The allocator asks for huge ones, so that a heap of 3 MiB holds 19: measured after a start on an empty
/// directory, 30 MiB resident against 13.6. A kernel that does not know the switch is left alone.
pub fn keep_to_small_pages() {
    #[cfg(target_os = "linux")]
    let _unknown_to_the_kernel = rustix::thread::disable_transparent_huge_pages(true);
}
