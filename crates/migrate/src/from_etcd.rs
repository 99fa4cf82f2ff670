//! Out of etcd: every key below the prefix at one revision, decoded, into a new store, which is read back and
//! compared before it is put in its place. Its revisions go on far above etcd's: what etcd is told meanwhile
//! is of a future that never was here.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_embedded::limits::RESTORE_GAP;
use forebay_embedded::snapshot::{Builder, Entry, State};
use forebay_etcd::{Etcd, Kept};
use forebay_rt::Clock;

use crate::at_rest::AtRest;
use crate::data_dir;
use crate::error::{Error, failed};
use crate::file::store_of;
use crate::manner::Manner;
use crate::moved::{LeftOut, Moved, Side};
use crate::progress::Progress;

/// What kube-apiserver notes of the addresses and ports that Services have, below the prefix: made anew from
/// the Services by whoever serves them, and no objects here.
const MADE_ANEW: [&str; 3] = ["ranges/serviceips", "ranges/secondaryserviceips", "ranges/servicenodeports"];

/// Leases whose end is remembered; then all are asked for again.
const LEASES_KNOWN_MAX: usize = 1 << 16;

pub async fn from_etcd(
    etcd: &Arc<Etcd>,
    data_dir: &Path,
    manner: &Manner,
    clock: &Clock,
) -> Result<Moved, Error> {
    let below = format!("{}/", manner.prefix);
    let keys = etcd.keys_below(&below).await.map_err(failed)?;
    if keys == 0 {
        return Err(Error::Refused(format!("etcd has no keys below {below}: is it another --etcd-prefix?")));
    }
    if let Some(warning) = data_dir::prepare(data_dir)? {
        eprintln!("warning: {warning}");
    }
    let mut builder = Builder::begin(&store_of(data_dir)).map_err(failed)?;
    let (mut side, mut left_out) = (Side::default(), LeftOut::new(manner.strictness));
    let (mut leases, mut progress) = (Leases::default(), Progress::new("moved", Some(keys)));
    let (mut from, mut pages) = (Revision::FIRST, etcd.kept(&below));
    while let Some((revision, mut items)) = pages.next().await.map_err(failed)? {
        from = revision;
        items.retain(|kept| {
            !MADE_ANEW.iter().any(|name| kept.key.strip_prefix(below.as_bytes()) == Some(name.as_bytes()))
        });
        etcd.prepare(&items).await.map_err(Error::Failed)?;
        let items = leases.end(items, etcd, clock).await?;
        let (store, at_rest) = (etcd.clone(), manner.at_rest.clone());
        let step = forebay_rt::blocking(move || {
            let added = add(items, (&store, &at_rest), &mut builder, &mut side, &mut left_out);
            (builder, side, left_out, added)
        });
        let added;
        (builder, side, left_out, added) = step.await.map_err(failed)?;
        added?;
        progress.at(side.keys());
    }
    let to = Revision::from_log(from.get() + RESTORE_GAP);
    let at_rest = manner.at_rest.clone();
    let finished = forebay_rt::blocking(move || {
        let sealed = builder.seal(to).map_err(failed)?;
        let found = read_back(sealed.beside(), &at_rest)?;
        let moved = Moved::compared((side, from), (found, to), &left_out, 0)?;
        sealed.promote().map_err(failed)?;
        Ok(moved)
    });
    finished.await.map_err(failed)?
}

/// Adds what can be read.
fn add(
    items: Vec<(Kept, Option<u64>)>,
    (etcd, at_rest): (&Etcd, &AtRest),
    builder: &mut Builder,
    side: &mut Side,
    left_out: &mut LeftOut,
) -> Result<(), Error> {
    let mut entries = Vec::with_capacity(items.len());
    for (kept, expires_ms) in items {
        let Ok(key) = std::str::from_utf8(&kept.key) else {
            left_out.add(&String::from_utf8_lossy(&kept.key), "the key is no text")?;
            continue;
        };
        let key = Key::new(key);
        let value = match etcd.decoded(&key, kept.value) {
            Ok(value) => value,
            Err(why) => {
                left_out.add(key.as_str(), &why)?;
                continue;
            }
        };
        let sealed = match at_rest.seal(key.as_str(), &value) {
            Ok(sealed) => sealed,
            Err(why) => {
                left_out.add(key.as_str(), &why)?;
                continue;
            }
        };
        let entry = Entry { key, revision: kept.revision, expires_ms, value: sealed };
        if let Err(error) = Builder::check(&entry) {
            left_out.add(entry.key.as_str(), &error.to_string())?;
            continue;
        }
        side.add(entry.key.as_str(), &value, entry.expires_ms.is_some());
        entries.push(entry);
    }
    builder.add(entries).map_err(failed)
}

/// When leases end.
#[derive(Default)]
struct Leases {
    // lease -> unix ms at which it ends; `None` is over
    known: HashMap<u64, Option<u64>>,
}

impl Leases {
    /// When each of `items` expires; those whose time has come are left out.
    async fn end(
        &mut self,
        items: Vec<Kept>,
        etcd: &Etcd,
        clock: &Clock,
    ) -> Result<Vec<(Kept, Option<u64>)>, Error> {
        let mut ends = Vec::with_capacity(items.len());
        for kept in items {
            let Some(lease) = kept.lease else {
                ends.push((kept, None));
                continue;
            };
            if self.known.len() >= LEASES_KNOWN_MAX {
                self.known.clear();
            }
            if let std::collections::hash_map::Entry::Vacant(unknown) = self.known.entry(lease) {
                let left = etcd.time_left(lease).await.map_err(failed)?;
                let left_ms = left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
                unknown.insert(left_ms.map(|left_ms| clock.unix_ms().saturating_add(left_ms)));
            }
            if let Some(end_ms) = self.known.get(&lease).copied().flatten() {
                ends.push((kept, Some(end_ms)));
            }
        }
        Ok(ends)
    }
}

fn read_back(dir: &Path, at_rest: &AtRest) -> Result<Side, Error> {
    let (mut state, mut side) = (State::open(dir).map_err(failed)?, Side::default());
    let mut progress = Progress::new("compared", Some(state.keys()));
    loop {
        let page = state.page().map_err(failed)?;
        if page.is_empty() {
            return Ok(side);
        }
        for entry in page {
            // What cannot be read is not what was sent: the digest will say so.
            let value = at_rest.open(entry.key.as_str(), &entry.value).unwrap_or(entry.value);
            side.add(entry.key.as_str(), &value, entry.expires_ms.is_some());
        }
        progress.at(side.keys());
    }
}
