//! A request that had its turn, until it is over.
//!
//! In: how far its answer is, and its reader. Out: the same to the machine; that it has left, when dropped.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use forebay_catalog::Turn;
use forebay_flow::{Awaited, FlowInput, Price};
use forebay_transport::Stalls;

use super::control::FlowControl;

/// Its place in the machine, from its arrival on.
pub struct Ticket {
    control: FlowControl,
    id: u64,
    /// What it takes, as far as is known.
    pub(super) price: Price,
    /// The CPU time that it came to, in nanoseconds.
    cpu_ns: AtomicU64,
    /// How long it waited for its turn.
    pub(super) waited: Duration,
}

impl Turn for Ticket {
    fn pause(&self) {
        self.control.tell([FlowInput::Paused { id: self.id, awaited: Awaited::Other }]);
    }

    fn pause_for_store(&self) {
        self.control.tell([FlowInput::Paused { id: self.id, awaited: Awaited::Store }]);
    }

    fn resume(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.control.resume(self.id))
    }
}

/// A watch whose initial state is being sent: when dropped, that is done.
pub struct Starting(Arc<Ticket>);

impl Ticket {
    pub(super) fn new(control: FlowControl, id: u64, price: Price) -> Ticket {
        let cpu_ns = AtomicU64::new(in_ns(price.cpu));
        Ticket { control, id, price, cpu_ns, waited: Duration::ZERO }
    }

    /// How long it waited for its turn.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// The CPU time that was foreseen.
    pub fn foreseen(&self) -> Duration {
        self.price.cpu
    }

    /// It is known to have come to something else than was foreseen.
    pub fn came_to(&self, cpu: Duration) {
        self.cpu_ns.store(in_ns(cpu), Ordering::Relaxed);
    }

    /// It waits for others: nobody works on it meanwhile, and nothing was done for it.
    pub fn waits(&self) {
        self.control.tell([FlowInput::Begun { id: self.id, cpu: Duration::ZERO }]);
    }

    /// The work on it is done; what it holds is its reader's to take. How much CPU time that took is not
    /// measured: what was foreseen is charged, unless more is known.
    pub fn answered(&self) {
        let cpu = Duration::from_nanos(self.cpu_ns.load(Ordering::Relaxed));
        self.control.tell([FlowInput::Answered { id: self.id, cpu }]);
    }

    /// A watch is at its reader's pace from now on.
    pub fn begun(&self) {
        self.control.tell([FlowInput::Begun { id: self.id, cpu: self.price.cpu }]);
    }

    /// Its reader has taken so many bytes of what it holds.
    pub fn given_back(&self, bytes: usize) {
        self.control.tell([FlowInput::GivenBack { id: self.id, bytes: bytes as u64 }]);
    }

    /// If others wait for what it holds while its reader stands still, that reader is let go of.
    pub fn read_by(&self, reader: Weak<dyn Stalls>) {
        self.control.read_by(self.id, reader);
    }

    /// Its reader goes on.
    pub fn touch(&self) {
        self.given_back(0);
    }

    /// For as long as the initial state of a watch is sent.
    pub fn starting(self: Arc<Self>) -> Starting {
        Starting(self)
    }
}

fn in_ns(cpu: Duration) -> u64 {
    u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX)
}

impl Starting {
    /// Its reader goes on.
    pub fn touch(&self) {
        self.0.touch();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.control.leave(self.id);
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.answered();
    }
}
