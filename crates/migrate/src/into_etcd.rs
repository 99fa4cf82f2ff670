//! Into etcd: first its revision is raised above the source's, then every key is put, read back and compared,
//! and in the end all history is given up.
//!
//! etcd counts revisions itself. Whoever comes with a resourceVersion from before must not be told of
//! something else by that number: so all keys are put above the source's revision, and nothing at or below
//! them can be watched from any more. While it goes on, a key beside the objects says so: what is there is
//! not whole.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::Revision;
use forebay_embedded::snapshot::Entry;
use forebay_etcd::Etcd;
use forebay_rt::Clock;
use tokio::task::JoinSet;

use crate::at_rest::AtRest;
use crate::error::{Error, failed};
use crate::left::Left;
use crate::manner::{Existing, Manner};
use crate::moved::{LeftOut, Moved, Side};
use crate::progress::Progress;
use crate::source::{Location, Source};

/// Puts in flight.
const PUTS_MAX: usize = 64;

/// Revisions that are passed by writing, at most: a minute or two of puts. More is for etcdutl, which writes
/// nothing.
const RAISE_MAX: u64 = 1_000_000;

/// Puts between two compactions of what they leave.
const RAISE_STEP: u64 = 50_000;

/// Leases are shared by keys that expire within so many seconds of each other: (of this many seconds left,
/// step).
const LEASE_STEPS: [(u64, u64); 3] = [(1_200, 60), (200, 10), (0, 1)];

pub async fn into_etcd(
    location: Location,
    etcd: &Arc<Etcd>,
    manner: &Manner,
    clock: &Clock,
) -> Result<Moved, Error> {
    let location = Arc::new(location);
    let mut begun = open(&location, manner).await?;
    let mark = format!("forebay-migration{}", manner.prefix);
    look(etcd, &begun.source, &mark, manner).await?;
    let mut from = begun.source.head().revision;
    etcd.put(mark.as_bytes(), format!("from revision {from}").as_bytes()).await.map_err(failed)?;
    if manner.existing == Existing::Deleted {
        etcd.remove_below(&below(manner)).await.map_err(failed)?;
    }
    if etcd.current().await.map_err(failed)?.get() + RAISE_STEP < from.get() {
        // That takes a while, and a server that gives out its state waits for nobody so long.
        drop(begun);
        raise(etcd, from, mark.as_bytes()).await?;
        begun = open(&location, manner).await?;
        from = begun.source.head().revision;
    }
    raise(etcd, from, mark.as_bytes()).await?;
    let mut left_out = LeftOut::new(manner.strictness);
    let (sent, outside) = load(begun, etcd, manner, clock, &mut left_out).await?;
    let found = read_back(etcd, manner).await?;
    let to = etcd.current().await.map_err(failed)?;
    assert!(to > from, "{to} after {from}");
    let moved = Moved::compared((sent, from), (found, to), &left_out, outside)?;
    etcd.give_up_history(to).await.map_err(failed)?;
    etcd.remove(mark.as_bytes()).await.map_err(failed)?;
    Ok(moved)
}

async fn open(location: &Arc<Location>, manner: &Manner) -> Result<Begun, Error> {
    let (location, below) = (location.clone(), below(manner));
    forebay_rt::blocking(move || Begun::read(Source::open(&location)?, &below)).await.map_err(failed)?
}

/// A source that was read up to the first page that has something to move.
struct Begun {
    source: Source,
    // Read, and not walked yet; empty when there are no keys.
    page: Vec<Entry>,
    // Keys before it.
    outside: u64,
}

impl Begun {
    /// Blocks.
    ///
    /// # Errors
    /// It cannot be read, or nothing of all that it has is below `below`: most likely that was typed wrong.
    fn read(mut source: Source, below: &str) -> Result<Begun, Error> {
        let mut outside = 0;
        loop {
            let page = source.page()?;
            if page.is_empty() && outside > 0 {
                return Err(Error::Refused(format!(
                    "none of the {outside} keys of the source is below {below}: is it another --etcd-prefix?"
                )));
            }
            if page.is_empty() || page.iter().any(|entry| entry.key.as_str().starts_with(below)) {
                return Ok(Begun { source, page, outside });
            }
            outside += page.len() as u64;
        }
    }
}

/// Where objects are.
fn below(manner: &Manner) -> String {
    format!("{}/", manner.prefix)
}

/// Whether etcd can take it. Writes nothing.
async fn look(etcd: &Etcd, source: &Source, mark: &str, manner: &Manner) -> Result<(), Error> {
    let keys = etcd.keys_below(&below(manner)).await.map_err(failed)?;
    let interrupted = etcd.value(mark.as_bytes()).await.map_err(failed)?.is_some();
    let below = below(manner);
    match manner.existing {
        Existing::Refused if interrupted => {
            return Err(Error::Refused(format!(
                "an earlier migration into this etcd was not finished, and what is below {below} is not whole ({keys} \
                 keys): --resume goes on with it, --overwrite deletes that and begins again"
            )));
        }
        Existing::Resumed if !interrupted => {
            return Err(Error::Refused(format!(
                "no migration into this etcd was interrupted ({keys} keys below {below}): there is nothing to go on with"
            )));
        }
        Existing::Refused if keys > 0 => {
            return Err(Error::Refused(format!(
                "etcd has {keys} keys below {below}, and they are left as they are: name another --etcd-prefix, or \
                 --overwrite deletes them first"
            )));
        }
        _ => {}
    }
    let (from, current) = (source.head().revision.get(), etcd.current().await.map_err(failed)?.get());
    let gap = from.saturating_sub(current);
    if gap > RAISE_MAX {
        let bump = gap + RAISE_MAX / 1_000;
        return Err(Error::Refused(format!(
            "etcd is at revision {current}, and the source at {from}: clients would meet their numbers again with other \
             meanings. Raise it first, with etcd stopped: etcdutl snapshot restore FILE --bump-revision {bump} \
             --mark-compacted …, where FILE is what etcdctl snapshot save made of this etcd; then migrate again"
        )));
    }
    Ok(())
}

/// Writes until etcd's revision is above `from`.
async fn raise(etcd: &Arc<Etcd>, from: Revision, mark: &[u8]) -> Result<(), Error> {
    let mut progress = Progress::counting("revisions", "passed", Some(from.get()));
    loop {
        let current = etcd.current().await.map_err(failed)?;
        if current > from {
            return Ok(());
        }
        let puts = (from.get() + 1 - current.get()).min(RAISE_STEP);
        let mut sent = JoinSet::new();
        for _ in 0..puts {
            join_one(&mut sent, PUTS_MAX).await?;
            let (etcd, mark) = (etcd.clone(), mark.to_vec());
            sent.spawn(async move { etcd.put(&mark, b"passing revisions").await.map_err(failed) });
        }
        join_one(&mut sent, 1).await?;
        progress.at(current.get() + puts);
        if puts == RAISE_STEP {
            etcd.give_up_history(etcd.current().await.map_err(failed)?).await.map_err(failed)?;
        }
    }
}

/// Waits until fewer than `max` are in flight.
async fn join_one(sent: &mut JoinSet<Result<(), Error>>, max: usize) -> Result<(), Error> {
    while sent.len() >= max {
        match sent.join_next().await {
            Some(done) => done.map_err(failed)??,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Puts everything; what was sent, and how many keys were not below the prefix.
async fn load(
    begun: Begun,
    etcd: &Arc<Etcd>,
    manner: &Manner,
    clock: &Clock,
    left_out: &mut LeftOut,
) -> Result<(Side, u64), Error> {
    let Begun { mut source, page, mut outside } = begun;
    let (below, mut progress) = (below(manner), Progress::new("moved", source.keys()));
    let (mut side, mut leases, mut first) = (Side::default(), Leases::default(), Some(page));
    let from = source.head().revision;
    let mut left = (manner.existing == Existing::Resumed).then(|| Left::new(etcd, &below));
    let mut puts = JoinSet::new();
    loop {
        let (store, prefix, page) = (etcd.clone(), below.clone(), first.take());
        let step = forebay_rt::blocking(move || {
            let page = page.map_or_else(|| source.page(), Ok);
            (source, page)
        });
        let (read, page) = step.await.map_err(failed)?;
        source = read;
        let page = page?;
        if page.is_empty() {
            break;
        }
        manner.at_rest.prepare(&page).await?;
        let at_rest = manner.at_rest.clone();
        let step = forebay_rt::blocking(move || {
            let encoded = page.into_iter().map(|entry| Encoded::of(entry, &at_rest, &store, &prefix));
            encoded.collect::<Vec<_>>()
        });
        let encoded = step.await.map_err(failed)?;
        for Encoded { key, expires_ms, form } in encoded {
            let (stored, value) = match form {
                Form::Outside => {
                    outside += 1;
                    continue;
                }
                Form::Unreadable(why) => {
                    left_out.add(&key, &why)?;
                    continue;
                }
                Form::Kept { stored, value } => (stored, value),
            };
            let seconds = expires_ms.map(|at_ms| at_ms.saturating_sub(clock.unix_ms()).div_ceil(1_000));
            if seconds == Some(0) {
                // Its time has come.
                continue;
            }
            let expires = seconds.is_some();
            if stored.len() > forebay_etcd::limits::REQUEST_BYTES_MAX {
                let max = forebay_etcd::limits::REQUEST_BYTES_MAX;
                left_out.add(&key, &format!("it has {} bytes in etcd, which takes {max}", stored.len()))?;
                continue;
            }
            side.add(&key, &value, expires);
            if let Some(left) = &mut left
                && left.has((&key, &stored), expires, from).await?
            {
                continue;
            }
            let lease = match seconds {
                Some(seconds) => Some(leases.of(seconds, etcd, clock).await?),
                None => None,
            };
            join_one(&mut puts, PUTS_MAX).await?;
            let etcd = etcd.clone();
            puts.spawn(async move { put(&etcd, &key, &stored, lease).await });
        }
        progress.at(side.keys());
    }
    join_one(&mut puts, 1).await?;
    if let Some(left) = &mut left {
        left.end().await?;
        eprintln!("{} keys were there already", left.kept);
    }
    Ok((side, outside))
}

async fn put(etcd: &Etcd, key: &str, stored: &[u8], lease: Option<u64>) -> Result<(), Error> {
    let added = etcd.add(key.as_bytes(), stored, lease).await;
    match added.map_err(|fault| Error::Failed(format!("{key}: {fault}; run it again with --resume")))? {
        true => Ok(()),
        false => Err(Error::Failed(format!("{key} is there already: somebody else writes into this etcd"))),
    }
}

/// An entry as it is kept in etcd.
struct Encoded {
    key: String,
    expires_ms: Option<u64>,
    form: Form,
}

enum Form {
    Outside,
    Unreadable(String),
    /// - `value`: what is read of it again.
    Kept {
        stored: Bytes,
        value: Bytes,
    },
}

impl Encoded {
    fn of(entry: Entry, at_rest: &AtRest, etcd: &Etcd, below: &str) -> Encoded {
        let Entry { key, expires_ms, value, .. } = entry;
        let form = if key.as_str().starts_with(below) {
            let plain = at_rest.open(key.as_str(), &value);
            let kept = plain.and_then(|value| etcd.encoded(&key, &value));
            let both = kept.and_then(|stored| Ok((etcd.decoded(&key, stored.clone())?, stored)));
            match both {
                Ok((value, stored)) => Form::Kept { stored, value },
                Err(why) => Form::Unreadable(why),
            }
        } else {
            Form::Outside
        };
        Encoded { key: key.to_string(), expires_ms, form }
    }
}

/// Leases by when they end.
#[derive(Default)]
struct Leases {
    // (end in unix s, lease, keys), at most one for each step of LEASE_STEPS in the lifetimes that there are
    held: std::collections::BTreeMap<u64, (u64, u64)>,
}

impl Leases {
    /// A lease that ends in `seconds`, or a little later: as kube-apiserver's last a minute longer than was
    /// asked for.
    async fn of(&mut self, seconds: u64, etcd: &Etcd, clock: &Clock) -> Result<u64, Error> {
        let step = LEASE_STEPS.iter().find(|(least, _)| seconds >= *least).map_or(1, |(_, step)| *step);
        let now = clock.unix_ms() / 1_000;
        let end = (now + seconds).div_ceil(step) * step;
        self.held.retain(|end, _| *end > now);
        if let Some((lease, keys)) = self.held.get_mut(&end)
            && *keys < forebay_etcd::limits::LEASE_KEYS_MAX
        {
            *keys += 1;
            return Ok(*lease);
        }
        let lease = etcd.grant(end - now).await.map_err(failed)?;
        self.held.insert(end, (lease, 1));
        Ok(lease)
    }
}

/// What etcd has below the prefix now.
async fn read_back(etcd: &Arc<Etcd>, manner: &Manner) -> Result<Side, Error> {
    let (below, mut progress) = (below(manner), Progress::new("compared", None));
    let (mut side, mut pages) = (Side::default(), etcd.kept(&below));
    while let Some((_, items)) = pages.next().await.map_err(failed)? {
        etcd.prepare(&items).await.map_err(Error::Failed)?;
        let store = etcd.clone();
        let decoded = forebay_rt::blocking(move || {
            for kept in items {
                let Ok(key) = std::str::from_utf8(&kept.key) else { continue };
                // What cannot be read is not what was sent: the digest will say so.
                let value = store.decoded(&key.into(), kept.value.clone()).unwrap_or(kept.value);
                side.add(key, &value, kept.lease.is_some());
            }
            side
        });
        side = decoded.await.map_err(failed)?;
        progress.at(side.keys());
    }
    Ok(side)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use forebay_apimachinery::Key;
    use forebay_embedded::snapshot::Builder;

    use super::*;
    use crate::file::store_of;
    use forebay_scratch::Scratch;

    /// More than a page takes beside another one.
    const LARGE_BYTES: usize = 1 << 20;

    fn source(dir: &Path, keys: &[&str]) -> Source {
        let mut builder = Builder::begin(&store_of(dir)).expect("begun");
        let value = Bytes::from(vec![b'x'; LARGE_BYTES]);
        for (revision, key) in (2..).map(Revision::from_log).zip(keys) {
            let entry = Entry { key: Key::new(key), revision, expires_ms: None, value: value.clone() };
            builder.add(vec![entry]).expect("added");
        }
        builder.seal(Revision::from_log(9)).expect("sealed").promote().expect("in its place");
        Source::open(&Location::DataDir(dir.to_path_buf())).expect("opens")
    }

    #[test]
    fn a_source_with_nothing_below_the_prefix_is_refused_before_anything_is_written() {
        let (keys, none): (&[&str], &[&str]) = (&["/a/1", "/a/2", "/b/1", "/b/2"], &[]);
        for (keys, below, expected) in [
            (keys, "/a/", Ok((0, "/a/1"))),
            (keys, "/b/", Ok((2, "/b/1"))),
            (keys, "/c/", Err("none of the 4 keys of the source is below /c/: is it another --etcd-prefix?")),
            (none, "/c/", Ok((0, ""))),
        ] {
            let scratch = Scratch::new();
            let begun = Begun::read(source(scratch.path(), keys), below);
            let begun = begun.map(|Begun { page, outside, .. }| {
                (outside, page.first().map_or(String::new(), |entry| entry.key.to_string()))
            });
            let expected = expected.map(|(outside, first)| (outside, first.to_string()));
            assert_eq!(
                begun.map_err(|error| crate::line(&error)),
                expected.map_err(str::to_string),
                "{below}"
            );
        }
    }
}
