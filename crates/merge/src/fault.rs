//! What is wrong with an object, field by field.
//!
//! In: paths and messages. Out: both, in upstream's words. Never: more than [`FAULT_BYTES_MAX`] of them.

use std::fmt;

use crate::element::{Path, path_text};
use crate::limits::FAULT_BYTES_MAX;

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeFault {
    /// `.spec.ports[0]`; empty for the object.
    pub path: String,
    pub message: String,
}

impl fmt::Display for TypeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// All that is wrong with an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    kept: Vec<TypeFault>,
    bytes: usize,
    /// Faults beyond what is kept.
    left_out: usize,
}

impl Faults {
    pub fn add(&mut self, path: &Path<'_>, message: impl Into<String>) {
        if self.bytes > FAULT_BYTES_MAX {
            self.left_out += 1;
            return;
        }
        let fault = TypeFault { path: path_text(path), message: message.into() };
        self.bytes += fault.path.len() + fault.message.len();
        self.kept.push(fault);
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// What is kept of them, in the order in which they were found.
    pub fn kept(&self) -> &[TypeFault] {
        &self.kept
    }

    /// `value` if nothing is wrong.
    pub fn or<T>(self, value: T) -> Result<T, Faults> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = &*self.kept {
            return only.fmt(f);
        }
        f.write_str("errors:")?;
        for fault in &self.kept {
            write!(f, "\n  {fault}")?;
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

impl std::error::Error for Faults {}
