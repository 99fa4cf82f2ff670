//! What happened, as lines: a hash of all of them, by which two runs of a seed are compared, and the last
//! ones, for whoever looks into a failure.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};

/// Lines kept for a failure.
const KEPT: usize = 60;

/// See the module's doc.
pub struct Trace {
    hasher: DefaultHasher,
    lines: u64,
    last: VecDeque<String>,
    print: bool,
}

impl Trace {
    /// - `print`: whether every line goes to stderr as well.
    pub fn new(print: bool) -> Trace {
        Trace { hasher: DefaultHasher::new(), lines: 0, last: VecDeque::new(), print }
    }

    pub fn line(&mut self, at_ms: u64, who: &str, what: fmt::Arguments<'_>) {
        let line = format!("{:>9.3} {who:<12} {what}", at_ms as f64 / 1000.0);
        if self.print {
            eprintln!("{line}");
        }
        self.hasher.write(line.as_bytes());
        self.lines += 1;
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    /// The same for the same lines.
    pub fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    pub fn lines(&self) -> u64 {
        self.lines
    }

    pub fn last(&self) -> String {
        self.last.iter().map(|line| format!("\n  {line}")).collect()
    }
}
