//! What a client asked and was told, and when.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A moment: later ones are greater, for every client of one recorder.
pub type Tick = u64;

/// What is asked of one key. Values differ from write to write, so that each says who wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Get,
    Create {
        value: String,
    },
    /// `expect`: the revision that must be there; whatever is there otherwise.
    Update {
        value: String,
        expect: Option<u64>,
    },
    /// An update of a kind that one may create so: what is not there is made, whatever was expected.
    Put {
        value: String,
        expect: Option<u64>,
    },
    Delete {
        expect: Option<u64>,
    },
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// A GET's object.
    Found {
        value: String,
        revision: u64,
    },
    /// It is not there.
    NotFound,
    /// Created or updated, at this revision.
    Written {
        revision: u64,
    },
    Deleted,
    AlreadyExists,
    /// Another revision is there than was expected.
    Conflict,
    /// None came: it may have been done, now or later.
    Unknown,
}

/// One call and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    pub key: String,
    pub call: Call,
    pub answer: Completion,
    pub begun: Tick,
    /// `None` where no answer came.
    pub ended: Option<Tick>,
}

/// Records operations of many clients. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    now: AtomicU64,
    operations: Mutex<Vec<Operation>>,
}

impl Recorder {
    /// Now, before a call is sent.
    pub fn begin(&self) -> Tick {
        self.0.now.fetch_add(1, Ordering::SeqCst)
    }

    /// Records a call that began at `begun` and was just answered, or will never be.
    pub fn end(&self, key: &str, begun: Tick, call: Call, answer: Completion) {
        // A read without an answer says nothing.
        if (&call, &answer) == (&Call::Get, &Completion::Unknown) {
            return;
        }
        let ended = (answer != Completion::Unknown).then(|| self.begin());
        let operation = Operation { key: key.to_owned(), call, answer, begun, ended };
        self.0.operations.lock().unwrap_or_else(PoisonError::into_inner).push(operation);
    }

    /// Everything recorded so far, in order of the answers.
    pub fn operations(&self) -> Vec<Operation> {
        self.0.operations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
