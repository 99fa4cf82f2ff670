//! Whose fields are in the way, in upstream's words.
//!
//! In: conflicts of a merge. Out: the answer, with a cause a field and manager. Never: more of them than an
//! answer tells.
//!
//! Source: apimachinery v0.36.3 `managedfields/internal/conflict.go`.

use std::fmt::Write;

use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::{CAUSES_MAX, Cause, CauseReason, FaultBytes, Reason, Status};
use forebay_merge::{Conflicts, Path, path_text};

use crate::entry::Manager;

/// The answer to an apply that wants what is somebody else's.
pub fn status_of(conflicts: &Conflicts) -> Status {
    let mut told = Told::default();
    conflicts.for_each(|manager, path| told.add(manager, path));
    let message = message(conflicts, &told);
    Status::new(Reason::Conflict, message).because(told.causes)
}

/// As many as an answer tells.
#[derive(Default)]
struct Told {
    causes: Vec<Cause>,
    bytes: FaultBytes,
}

impl Told {
    fn add(&mut self, manager: &str, path: &Path<'_>) {
        if self.causes.len() == CAUSES_MAX || self.bytes.is_full() {
            return;
        }
        let message = format!("conflict with {}", shown(manager));
        let cause = Cause::new(CauseReason::FieldManagerConflict, path_text(path), message);
        self.bytes.add(cause.message.len() + cause.field.len());
        self.causes.push(cause);
    }
}

/// What is told of them in one text: a line a field, below its manager.
fn message(conflicts: &Conflicts, told: &Told) -> String {
    if let ([cause], 1) = (&*told.causes, conflicts.count()) {
        return format!("Apply failed with 1 conflict: {}: {}", cause.message, cause.field);
    }
    let mut message = format!("Apply failed with {} conflicts: ", conflicts.count());
    let mut last: Option<&str> = None;
    for cause in &told.causes {
        if last != Some(&cause.message) {
            let line = if last.is_some() { "\n" } else { "" };
            let with = cause.message.trim_start_matches("conflict ");
            let _ = write!(message, "{line}conflicts {with}:");
        }
        let _ = write!(message, "\n- {}", cause.field);
        last = Some(&cause.message);
    }
    message
}

/// A manager by its identifier.
fn shown(identifier: &str) -> String {
    let manager = Manager::of(identifier);
    let mut shown = go_quote(&manager.name);
    if !manager.subresource.is_empty() {
        let _ = write!(shown, " with subresource {}", go_quote(&manager.subresource));
    }
    if !manager.applied {
        let _ = write!(shown, " using {}", manager.version);
    }
    shown
}
