//! The file of the log, and those before it: another one is begun when it is full, and the old ones are
//! named for when that was, compressed, and taken away.
//!
//! In: lines. Out: which of them are in the file. Never: a part of a line that stays in it, as far as the
//! system lets go of it.
//!
//! Owner: whoever writes; a thread that may wait for a disk. Old files are looked after in the background.
//!
//! Source: lumberjack v2.2.1 `lumberjack.go`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use forebay_rt::{Background, Clock};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::limits::LOG_WRITE_BYTES;
use crate::options::LogOptions;

const COMPRESSED: &str = ".gz";
const DAY_MS: i64 = 24 * 3600 * 1000;

/// See the module's doc.
pub(crate) struct LogFile {
    path: PathBuf,
    rotation: Option<Rotation>,
    clock: Clock,
    open: Option<Open>,
    /// Whoever looks after old files; who comes later sees what was left to it.
    _mill: Option<Background<()>>,
}

/// When another file is begun, and what becomes of the old ones.
#[derive(Clone, Copy)]
struct Rotation {
    bytes_max: u64,
    age_days_max: u32,
    backups_max: u32,
    compresses: bool,
}

struct Open {
    file: File,
    len: u64,
}

impl LogFile {
    /// Makes the file, and the directories that it is in, unless it is there.
    ///
    /// # Errors
    /// It cannot be made or written to.
    pub fn ensure(options: &LogOptions, clock: Clock) -> io::Result<LogFile> {
        if let Some(dir) = options.path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        OpenOptions::new().create(true).append(true).mode(0o600).open(&options.path)?;
        let rotation = (options.megabytes_max > 0).then(|| Rotation {
            bytes_max: u64::from(options.megabytes_max) << 20,
            age_days_max: options.age_days_max,
            backups_max: options.backups_max,
            compresses: options.compresses,
        });
        Ok(LogFile { path: options.path.clone(), rotation, clock, open: None, _mill: None })
    }

    /// Writes lines, with a newline behind each. For each whether it is in the file; what kept the last from
    /// it that is not.
    pub fn write(&mut self, lines: &[Bytes]) -> (Vec<bool>, Option<io::Error>) {
        let (mut kept, mut why) = (vec![false; lines.len()], None);
        let mut from = 0;
        while from < lines.len() {
            let (mut to, mut bytes) = (from, 0);
            let len = |at: usize| lines[at].len() as u64 + 1;
            let left = match self.room_for(len(from)) {
                Ok(left) => left,
                Err(error) => {
                    why = Some(error);
                    from += 1;
                    continue;
                }
            };
            while to < lines.len()
                && bytes + len(to) <= left
                && (to == from || bytes + len(to) <= LOG_WRITE_BYTES as u64)
            {
                bytes += len(to);
                to += 1;
            }
            let (whole, error) = self.append(&lines[from..to]);
            kept[from..from + whole].fill(true);
            why = error.or(why);
            from = to;
        }
        (kept, why)
    }

    /// How much may be written to the file that is open then, at least `len`.
    fn room_for(&mut self, len: u64) -> io::Result<u64> {
        let Some(Rotation { bytes_max, .. }) = self.rotation else {
            self.reopen()?;
            return Ok(u64::MAX);
        };
        if len > bytes_max {
            let why = format!("write length {len} exceeds maximum file size {bytes_max}");
            return Err(io::Error::new(ErrorKind::InvalidInput, why));
        }
        self.reopen()?;
        if self.len() + len > bytes_max {
            self.rotate()?;
        }
        Ok(bytes_max - self.len())
    }

    fn len(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.len)
    }

    fn reopen(&mut self) -> io::Result<()> {
        if self.open.is_none() {
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?;
            let len = file.metadata()?.len();
            self.open = Some(Open { file, len });
            self.look_after_old();
        }
        Ok(())
    }

    fn look_after_old(&mut self) {
        if let Some(rotation) = self.rotation {
            let (path, now) = (self.path.clone(), self.clock.unix_ms() as i64);
            self._mill = Some(forebay_rt::background(move || look_after(&path, rotation, now)));
        }
    }

    /// Appends lines; how many are there whole. What is there of the next is taken back.
    fn append(&mut self, lines: &[Bytes]) -> (usize, Option<io::Error>) {
        let Some(open) = &mut self.open else { return (0, None) };
        let mut all = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
        for line in lines {
            all.extend_from_slice(line);
            all.push(b'\n');
        }
        let mut done = 0;
        let error = loop {
            match open.file.write(&all[done..]) {
                Ok(0) if done < all.len() => break Some(ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Some(error),
            }
            if done == all.len() {
                break None;
            }
        };
        let (mut whole, mut end) = (0, 0);
        while whole < lines.len() && end + lines[whole].len() < done {
            end += lines[whole].len() + 1;
            whole += 1;
        }
        open.len += end as u64;
        if done > end && open.file.set_len(open.len).is_err() {
            // What it is no longer is known.
            self.open = None;
        }
        (whole, error)
    }

    /// Begins another file.
    fn rotate(&mut self) -> io::Result<()> {
        self.open = None;
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        let before = fs::metadata(&self.path).ok();
        if let Some(before) = &before {
            options.mode(before.mode() & 0o7777);
            fs::rename(&self.path, self.backup())?;
        }
        let file = options.open(&self.path)?;
        if let Some(before) = before {
            // As far as whoever serves may do that.
            let _same_owner = std::os::unix::fs::chown(&self.path, Some(before.uid()), Some(before.gid()));
        }
        self.open = Some(Open { file, len: 0 });
        self.look_after_old();
        Ok(())
    }

    /// What the file is called from now on. Of two within a millisecond the second is called later.
    fn backup(&self) -> PathBuf {
        let (prefix, end) = parts(&self.path);
        let mut ms = self.clock.unix_ms() as i64;
        loop {
            let path = self.path.with_file_name(format!("{prefix}{}{end}", stamp(ms)));
            let packed = PathBuf::from(format!("{}{COMPRESSED}", path.display()));
            if !path.exists() && !packed.exists() {
                return path;
            }
            ms += 1;
        }
    }
}

/// What old files are called by: `audit-` and `.log`.
fn parts(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
    let end = text(path.extension()).map(|end| format!(".{end}")).unwrap_or_default();
    (format!("{}-", text(path.file_stem()).unwrap_or_default()), end)
}

/// `2006-01-02T15-04-05.000`
fn stamp(ms: i64) -> String {
    let at = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH);
    let at = at.to_zoned(TimeZone::UTC).datetime();
    format!(
        "{:04}-{:02}-{:02}T{:02}-{:02}-{:02}.{:03}",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.millisecond()
    )
}

/// The moment that a stamp says, in milliseconds since 1970.
fn moment(stamp: &str) -> Option<i64> {
    let digits: Vec<&str> = stamp.split(['-', 'T', '.']).collect();
    let [year, month, day, hour, minute, second, milli] = digits[..] else { return None };
    let part = |text: &str| text.parse::<i8>().ok();
    let nanos = milli.parse::<i32>().ok().filter(|_| milli.len() == 3)? * 1_000_000;
    let at = DateTime::new(
        year.parse().ok()?,
        part(month)?,
        part(day)?,
        part(hour)?,
        part(minute)?,
        part(second)?,
        nanos,
    );
    Some(at.ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// Takes away old files that are too many or too old, and compresses the others. What cannot be done now is
/// tried again when the next file is begun.
fn look_after(path: &Path, rotation: Rotation, now_ms: i64) {
    if let Err(error) = try_look_after(path, rotation, now_ms) {
        tracing::warn!(%error, path = %path.display(), "old audit logs are not looked after");
    }
}

fn try_look_after(path: &Path, rotation: Rotation, now_ms: i64) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (prefix, end) = parts(path);
    let mut old = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let plain = name.strip_suffix(COMPRESSED).unwrap_or(name);
        let stamp = plain.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(&end));
        if let Some(ms) = stamp.and_then(moment) {
            old.push((ms, plain.len() < name.len(), entry.path()));
        }
    }
    // The newest first; one that is compressed and not yet gone counts once.
    old.sort_by(|one, other| other.cmp(one));
    let oldest_ms = match rotation.age_days_max {
        0 => i64::MIN,
        days => now_ms - i64::from(days) * DAY_MS,
    };
    let (mut count, mut last) = (0u32, None);
    for (ms, is_compressed, file) in old {
        if last != Some(ms) {
            count += 1;
            last = Some(ms);
        }
        let is_beyond = rotation.backups_max > 0 && count > rotation.backups_max;
        if is_beyond || ms < oldest_ms {
            fs::remove_file(&file)?;
        } else if rotation.compresses && !is_compressed {
            compress(&file)?;
        }
    }
    Ok(())
}

fn compress(path: &Path) -> io::Result<()> {
    let to = PathBuf::from(format!("{}{COMPRESSED}", path.display()));
    let mut from = File::open(path)?;
    let mode = from.metadata()?.mode() & 0o7777;
    let made = OpenOptions::new().create(true).truncate(true).write(true).mode(mode).open(&to)?;
    let mut packed = GzEncoder::new(made, Compression::default());
    let done =
        io::copy(&mut from, &mut packed).and_then(|_| packed.finish()).and_then(|file| file.sync_all());
    match done {
        Ok(()) => fs::remove_file(path),
        Err(error) => {
            let _no_half = fs::remove_file(&to);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use forebay_scratch::Scratch;

    use super::*;
    use crate::options::json_lines;

    /// 2027-01-15T08:00:00Z
    const NOW_MS: u64 = 1_800_000_000_000;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).expect("listed");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a text"))
            .collect();
        names.sort();
        names
    }

    fn line(text: &str, len: usize) -> Bytes {
        text.repeat(len).into()
    }

    #[test]
    fn a_file_that_is_full_is_named_for_when_and_another_is_begun() {
        let scratch = Scratch::new();
        let path = scratch.path().join("logs/audit.log");
        let (clock, hand) = Clock::manual(NOW_MS);
        let mut file = LogFile::ensure(&json_lines(path.clone()), clock).expect("made");
        assert_eq!(fs::metadata(path.parent().expect("a directory")).expect("there").mode() & 0o777, 0o700);
        let half = 600 << 10;
        let (kept, why) = file.write(&[line("a", half), line("b", half), line("c", 2 << 20), line("d", 10)]);
        assert_eq!(kept, [true, true, false, true]);
        assert!(why.expect("too long").to_string().starts_with("write length 2097153 exceeds maximum"));
        hand.advance_ms(1);
        let (kept, _) = file.write(&[line("e", half)]);
        assert_eq!(kept, [true]);
        let dir = path.parent().expect("a directory");
        assert_eq!(
            names(dir),
            ["audit-2027-01-15T08-00-00.000.log", "audit-2027-01-15T08-00-00.001.log", "audit.log"]
        );
        let read = |name: &str| fs::read_to_string(dir.join(name)).expect("read");
        assert_eq!(read("audit-2027-01-15T08-00-00.001.log").lines().count(), 2);
        assert!(read("audit.log").starts_with('e') && read("audit.log").ends_with('\n'));
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
    }

    #[test]
    fn old_files_are_taken_away_by_number_and_age_and_the_others_compressed() {
        let scratch = Scratch::new();
        let path = scratch.path().join("audit.log");
        let rotation = Rotation { bytes_max: 1, age_days_max: 2, backups_max: 2, compresses: true };
        let put = |name: &str| fs::write(scratch.path().join(name), name).expect("written");
        for name in [
            "audit.log",
            "audit-2027-01-15T07-00-00.000.log",
            "audit-2027-01-15T07-00-00.000.log.gz",
            "audit-2027-01-14T07-00-00.000.log",
            "audit-2027-01-14T06-00-00.000.log",
            "audit-2027-01-01T00-00-00.000.log.gz",
            "audit-x.log",
            "other-2020-01-01T00-00-00.000.log",
        ] {
            put(name);
        }
        try_look_after(&path, rotation, NOW_MS as i64).expect("done");
        assert_eq!(
            names(scratch.path()),
            [
                "audit-2027-01-14T07-00-00.000.log.gz",
                "audit-2027-01-15T07-00-00.000.log.gz",
                "audit-x.log",
                "audit.log",
                "other-2020-01-01T00-00-00.000.log",
            ]
        );
        let mut text = String::new();
        let packed = File::open(scratch.path().join("audit-2027-01-14T07-00-00.000.log.gz")).expect("open");
        GzDecoder::new(packed).read_to_string(&mut text).expect("gzip");
        assert_eq!(text, "audit-2027-01-14T07-00-00.000.log");
        let by_age = Rotation { backups_max: 0, age_days_max: 1, ..rotation };
        try_look_after(&path, by_age, NOW_MS as i64).expect("done");
        assert!(!names(scratch.path()).iter().any(|name| name.contains("2027-01-14T07")));
    }

    #[test]
    fn what_is_there_already_is_appended_to_and_counts() {
        let scratch = Scratch::new();
        let path = scratch.path().join("audit.log");
        fs::write(&path, "x".repeat(1 << 20)).expect("written");
        let (clock, _) = Clock::manual(NOW_MS);
        let mut file = LogFile::ensure(&json_lines(path.clone()), clock.clone()).expect("made");
        assert_eq!(file.write(&[line("a", 3)]).0, [true]);
        assert_eq!(fs::read_to_string(&path).expect("read"), "aaa\n");
        assert_eq!(names(scratch.path()).len(), 2);
        let never = LogOptions { megabytes_max: 0, ..json_lines(path.clone()) };
        let mut file = LogFile::ensure(&never, clock).expect("made");
        assert_eq!(file.write(&[line("b", 2 << 20)]).0, [true]);
        assert_eq!(fs::metadata(&path).expect("there").len(), (2 << 20) + 5);
    }

    #[test]
    fn a_disk_that_is_full_loses_lines_and_keeps_no_part_of_one() {
        let scratch = Scratch::new();
        let (clock, _) = Clock::manual(NOW_MS);
        let path = scratch.path().join("audit.log");
        let mut file = LogFile::ensure(&json_lines(path), clock).expect("made");
        // What takes nothing.
        file.open =
            Some(Open { file: OpenOptions::new().write(true).open("/dev/full").expect("open"), len: 0 });
        let (kept, why) = file.write(&[line("a", 3), line("b", 3)]);
        assert_eq!(kept, [false, false]);
        assert_eq!(why.expect("full").kind(), ErrorKind::StorageFull);
    }

    #[test]
    fn a_stamp_says_its_moment() {
        let text = stamp(NOW_MS as i64 + 7);
        assert_eq!((text.as_str(), moment(&text)), ("2027-01-15T08-00-00.007", Some(NOW_MS as i64 + 7)));
        for odd in ["", "2027-01-15T08-00-00", "2027-13-15T08-00-00.000", "2027-01-15T08-00-00.7", "x"] {
            assert_eq!(moment(odd), None, "{odd}");
        }
    }
}
