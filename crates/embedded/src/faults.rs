//! A simulated disk that loses, tears and refuses writes, for tests of what must survive it.
//!
//! A [`Machine`] has files; each has what a reader sees and what is durable. A sync makes a file's writes
//! durable. At a crash every unsynced write is lost, or each of its 512-byte sectors survives or not as a
//! seed decides; so does a rename whose directory was not synced. Calls can be made to fail: from the n-th
//! on, syncs, or for want of space. Everything follows from the calls and the seed.
//!
//! In: redb's calls. Out: bytes, or errors as an operating system gives them. Owner of the state: the lock in
//! here.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_rt::Random;
use redb::StorageBackend;

use crate::disk::{Disk, Spare};

const SECTOR: u64 = 512;
const BLOCK: u64 = 4096;

/// A simulated machine's disk. Cheap to clone: all clones are one machine.
#[derive(Clone, Debug, Default)]
pub struct Machine(Arc<Mutex<State>>);

/// What a crash leaves of writes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// Nothing.
    LoseUnsynced,
    /// Any of their sectors, as the seed decides.
    TearUnsynced { seed: u64 },
    /// Everything: the process was killed, the machine went on.
    KeepAll,
}

/// What goes wrong, and when. Calls are writes, changes of length and syncs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// After this many calls the machine is down: every call fails, reads too.
    pub down_after: Option<u64>,
    /// After this many calls each call fails, and what it would have done is not done.
    pub fail_after: Option<u64>,
    /// After this many syncs each sync fails, and what was to be synced never becomes durable.
    pub fail_sync_after: Option<u64>,
    /// Blocks of 4 KiB that may be in use.
    pub blocks_max: Option<usize>,
    /// Whether the machine says that there is space when there is not.
    pub hide_free_bytes: bool,
}

#[derive(Debug, Default)]
struct State {
    faults: Faults,
    calls: u64,
    syncs: u64,
    renames: u64,
    // name -> number of its file, as seen and as a crash would leave it
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    // Never removed: whoever has a file open goes on using it when its name is gone.
    files: Vec<Contents>,
}

#[derive(Debug, Default)]
struct Contents {
    seen: Vec<u8>,
    durable: Vec<u8>,
    // What `seen` has and `durable` has not, in order.
    unsynced: Vec<Unsynced>,
    // Blocks that were ever written: what takes space.
    blocks: BTreeSet<u64>,
}

#[derive(Clone, Debug)]
enum Unsynced {
    Write { offset: u64, data: Vec<u8> },
    SetLen(u64),
}

impl Machine {
    /// A machine with an empty disk.
    pub fn new() -> Machine {
        Machine::default()
    }

    /// The place of a store on this machine.
    pub fn disk(&self) -> Disk {
        let store = Box::new(self.file("store"));
        let witness = Some(Box::new(self.file("witness")) as Box<dyn StorageBackend>);
        let machine = self.clone();
        let free_bytes = Box::new(move || Ok(machine.free_bytes()));
        Disk {
            name: "the simulated disk".to_string(),
            store,
            used_bytes: None,
            witness,
            spare: Some(Box::new(SpareFile(self.clone()))),
            free_bytes: Some(free_bytes),
        }
    }

    /// A file, empty until it is written.
    pub fn file(&self, name: &str) -> FaultyFile {
        FaultyFile { machine: self.clone(), number: self.lock().number(name) }
    }

    /// How often a store was put in the place of another.
    pub fn renames(&self) -> u64 {
        self.lock().renames
    }

    /// Sets what goes wrong; calls count from here.
    pub fn set_faults(&self, faults: Faults) {
        let mut state = self.lock();
        (state.faults, state.calls, state.syncs) = (faults, 0, 0);
    }

    /// Calls since [`Machine::set_faults`].
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// The machine as it comes up again: no faults, and of the disk what the crash left.
    pub fn crash(&self, crash: Crash) -> Machine {
        let state = self.lock();
        let random = Random::seeded(if let Crash::TearUnsynced { seed } = crash { seed } else { 0 });
        let names = match crash {
            Crash::LoseUnsynced => &state.durable_names,
            Crash::KeepAll => &state.names,
            Crash::TearUnsynced { .. } if random.below(2) == 0 => &state.durable_names,
            Crash::TearUnsynced { .. } => &state.names,
        };
        let mut after = State::default();
        for (number, (name, file)) in names.iter().enumerate() {
            after.names.insert(name.clone(), number);
            after.files.push(state.files[*file].after(crash, &random));
        }
        after.durable_names = after.names.clone();
        Machine(Arc::new(Mutex::new(after)))
    }

    /// Changes the bytes of a file behind everyone's back.
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        let number = state.number(name);
        let contents = &mut state.files[number];
        change(&mut contents.seen);
        contents.durable = contents.seen.clone();
    }

    fn free_bytes(&self) -> u64 {
        let state = self.lock();
        let used = state.blocks();
        let told = state.faults.blocks_max.filter(|_| !state.faults.hide_free_bytes);
        told.map_or(u64::MAX, |max| max.saturating_sub(used) as u64 * BLOCK)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn up(&self) -> io::Result<()> {
        if self.faults.down_after.is_some_and(|after| self.calls > after) {
            return Err(io::Error::other("the machine is down"));
        }
        Ok(())
    }

    /// Counts a call, and says whether it fails.
    fn call(&mut self) -> io::Result<()> {
        self.calls += 1;
        self.up()?;
        if self.faults.fail_after.is_some_and(|after| self.calls > after) {
            return Err(io::Error::other("the disk failed"));
        }
        Ok(())
    }

    /// The file called `name`, made if it is not there.
    fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.names.get(name) {
            return *number;
        }
        let number = self.files.len();
        self.files.push(Contents::default());
        self.names.insert(name.to_string(), number);
        self.durable_names.insert(name.to_string(), number);
        number
    }

    /// Blocks of the files that have a name.
    fn blocks(&self) -> usize {
        let named: BTreeSet<_> = self.names.values().chain(self.durable_names.values()).collect();
        named.into_iter().map(|number| self.files[*number].blocks.len()).sum()
    }

    /// Takes the blocks of a write, if there are enough.
    fn take_space(&mut self, number: usize, offset: u64, len: u64) -> io::Result<()> {
        let used = self.blocks();
        let held = &self.files[number].blocks;
        let wanted: Vec<u64> =
            (offset / BLOCK..(offset + len).div_ceil(BLOCK)).filter(|block| !held.contains(block)).collect();
        if self.faults.blocks_max.is_some_and(|max| used + wanted.len() > max) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.files[number].blocks.extend(wanted);
        Ok(())
    }
}

impl Contents {
    fn after(&self, crash: Crash, random: &Random) -> Contents {
        let mut bytes = self.durable.clone();
        for unsynced in &self.unsynced {
            match (crash, unsynced) {
                (Crash::LoseUnsynced, _) => {}
                (Crash::KeepAll, unsynced) => unsynced.apply(&mut bytes),
                (Crash::TearUnsynced { .. }, Unsynced::SetLen(_)) if random.below(2) == 0 => {}
                (Crash::TearUnsynced { .. }, set_len @ Unsynced::SetLen(_)) => set_len.apply(&mut bytes),
                (Crash::TearUnsynced { .. }, Unsynced::Write { offset, data }) => {
                    sectors(*offset, data)
                        .filter(|_| random.below(2) == 0)
                        .for_each(|sector| sector.apply(&mut bytes));
                }
            }
        }
        Contents { seen: bytes.clone(), durable: bytes, unsynced: Vec::new(), blocks: self.blocks.clone() }
    }
}

impl Unsynced {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Unsynced::SetLen(len) => bytes.resize(*len as usize, 0),
            Unsynced::Write { offset, data } => {
                let (from, to) = (*offset as usize, *offset as usize + data.len());
                bytes.resize(bytes.len().max(to), 0);
                bytes[from..to].copy_from_slice(data);
            }
        }
    }
}

/// The parts of a write that a disk writes whole.
fn sectors(offset: u64, data: &[u8]) -> impl Iterator<Item = Unsynced> {
    let end = offset + data.len() as u64;
    (offset / SECTOR..end.div_ceil(SECTOR)).map(move |sector| {
        let (from, to) = ((sector * SECTOR).max(offset), ((sector + 1) * SECTOR).min(end));
        Unsynced::Write {
            offset: from,
            data: data[(from - offset) as usize..(to - offset) as usize].to_vec(),
        }
    })
}

/// The place for a new copy of the store.
struct SpareFile(Machine);

const SPARE: &str = "store.new";

impl Spare for SpareFile {
    fn create(&self) -> io::Result<Box<dyn StorageBackend>> {
        self.discard();
        self.0.lock().call()?;
        Ok(Box::new(self.0.file(SPARE)))
    }

    fn promote(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.call()?;
        let number = state.names.remove(SPARE).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert("store".to_string(), number);
        // The directory's sync.
        state.call()?;
        state.durable_names = state.names.clone();
        state.renames += 1;
        Ok(())
    }

    fn discard(&self) {
        let mut state = self.0.lock();
        state.names.remove(SPARE);
        state.durable_names.remove(SPARE);
    }
}

/// A file of a [`Machine`].
#[derive(Debug)]
pub struct FaultyFile {
    machine: Machine,
    number: usize,
}

impl StorageBackend for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        let state = self.machine.lock();
        state.up()?;
        Ok(state.files[self.number].seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.machine.lock();
        state.up()?;
        let seen = &state.files[self.number].seen;
        let from = usize::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let held = from.checked_add(out.len()).and_then(|to| seen.get(from..to));
        out.copy_from_slice(held.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.machine.lock();
        state.call()?;
        let contents = &mut state.files[self.number];
        let unsynced = Unsynced::SetLen(len);
        unsynced.apply(&mut contents.seen);
        contents.unsynced.push(unsynced);
        contents.blocks.retain(|block| *block < len.div_ceil(BLOCK));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.machine.lock();
        state.call()?;
        state.syncs += 1;
        let fails = state.faults.fail_sync_after.is_some_and(|after| state.syncs > after);
        let contents = &mut state.files[self.number];
        let unsynced = std::mem::take(&mut contents.unsynced);
        if fails {
            return Err(io::Error::other("the sync failed"));
        }
        unsynced.iter().for_each(|unsynced| unsynced.apply(&mut contents.durable));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.machine.lock();
        state.call()?;
        state.take_space(self.number, offset, data.len() as u64)?;
        let contents = &mut state.files[self.number];
        let unsynced = Unsynced::Write { offset, data: data.to_vec() };
        unsynced.apply(&mut contents.seen);
        contents.unsynced.push(unsynced);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(crash: Crash) -> Vec<u8> {
        let machine = Machine::new();
        let file = machine.file("f");
        file.set_len(2048).expect("works");
        file.write(0, &[1; 2048]).expect("works");
        file.sync_data().expect("works");
        file.write(256, &[2; 1024]).expect("works");
        let after = machine.crash(crash);
        let mut bytes = vec![0; 2048];
        after.file("f").read(0, &mut bytes).expect("works");
        bytes
    }

    #[test]
    fn a_crash_loses_tears_or_keeps_what_was_not_synced() {
        assert_eq!(written(Crash::LoseUnsynced), [1; 2048]);
        let whole = [&[1; 256][..], &[2; 1024][..], &[1; 768][..]].concat();
        assert_eq!(written(Crash::KeepAll), whole);
        let torn: BTreeSet<_> = (0..64).map(|seed| written(Crash::TearUnsynced { seed })).collect();
        assert_eq!(torn.len(), 8, "each of the three sectors survives or not");
        assert_eq!(written(Crash::TearUnsynced { seed: 3 }), written(Crash::TearUnsynced { seed: 3 }));
    }

    #[test]
    fn calls_fail_when_they_are_told_to() {
        let machine = Machine::new();
        let file = machine.file("f");
        machine.set_faults(Faults { fail_after: Some(1), ..Faults::default() });
        file.write(0, &[1]).expect("the first works");
        file.write(0, &[2]).expect_err("the second fails");
        let mut byte = [0];
        file.read(0, &mut byte).expect("reads go on");
        assert_eq!(byte, [1]);
        machine.set_faults(Faults { down_after: Some(0), ..Faults::default() });
        file.write(0, &[2]).expect_err("down");
        file.read(0, &mut byte).expect_err("down");
        machine.set_faults(Faults { blocks_max: Some(2), ..Faults::default() });
        file.write(4095, &[1; 2]).expect("two blocks");
        let full = file.write(8192, &[1]).expect_err("a third");
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn what_a_failed_sync_was_to_write_is_lost() {
        let machine = Machine::new();
        let file = machine.file("f");
        file.write(0, &[1]).expect("works");
        file.sync_data().expect("works");
        machine.set_faults(Faults { fail_sync_after: Some(0), ..Faults::default() });
        file.write(0, &[2]).expect("works");
        file.sync_data().expect_err("fails");
        machine.set_faults(Faults::default());
        file.sync_data().expect("works again, but it is too late");
        let mut byte = [0];
        machine.crash(Crash::LoseUnsynced).file("f").read(0, &mut byte).expect("works");
        assert_eq!(byte, [1]);
    }
}
