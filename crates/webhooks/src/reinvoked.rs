//! Which mutating webhooks are asked again.
//!
//! In: what was asked, and what changed the object. Out: whether one is asked in the second round. Never: a
//! third round.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/webhook/mutating/reinvocationcontext.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_policy::Reinvocation;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::configuration::Webhook;

/// See the module's doc.
#[derive(Default)]
pub struct Reinvoked {
    /// Whether this is the second round.
    is_again: bool,
    // By id: those that want to be asked again if the object changes after them.
    asked: BTreeSet<Arc<str>>,
    again: BTreeSet<Arc<str>>,
    /// The object as the last of them left it.
    left: Option<[u8; 32]>,
    /// Whether one of them changed the object in this round.
    is_changed: bool,
    has_fine_time: bool,
}

impl Reinvoked {
    /// Begins the first round.
    ///
    /// - `has_fine_time`: upstream's object has a time in it that is finer than what JSON says, so that the
    ///   first patch changes it, whatever it does.
    pub fn begun(has_fine_time: bool) -> Reinvoked {
        Reinvoked { has_fine_time, ..Reinvoked::default() }
    }

    /// Whether one of them has changed the object in this round.
    pub fn has_changed(&self) -> bool {
        self.is_changed
    }

    /// One has patched the object; whether that counts as a change.
    pub fn is_change(&mut self, differs: bool) -> bool {
        std::mem::take(&mut self.has_fine_time) || differs
    }

    /// Begins the second round.
    pub fn again(self) -> Reinvoked {
        Reinvoked { is_again: true, is_changed: false, ..self }
    }

    /// Which round it is, from 0.
    pub fn round(&self) -> usize {
        usize::from(self.is_again)
    }

    /// Before the first of them is asked about `object`.
    pub fn begin(&mut self, object: &Value) {
        if self.is_again && self.left != Some(digest(object)) {
            // Others changed it meanwhile.
            self.again.append(&mut self.asked);
        }
    }

    pub fn is_asked(&self, webhook: &Webhook) -> bool {
        // Once: for each webhook, in a set.
        !self.is_again || self.again.contains(&webhook.id)
    }

    /// One was asked.
    pub fn asked(&mut self, webhook: &Webhook, has_changed: bool) {
        if has_changed {
            self.again.append(&mut self.asked);
            self.is_changed = true;
        }
        if webhook.reinvocation == Reinvocation::IfNeeded {
            self.asked.insert(webhook.id.clone());
        }
    }

    /// After the last of them.
    pub fn end(&mut self, object: &Value) {
        if !self.is_again {
            self.left = Some(digest(object));
        }
    }
}

fn digest(object: &Value) -> [u8; 32] {
    let mut digest = Sha256::new();
    // What is hashed cannot fail to be written.
    let _ = serde_json::to_writer(&mut Hashing(&mut digest), object);
    digest.finalize().into()
}

struct Hashing<'d>(&'d mut Sha256);

impl std::io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn webhooks() -> Vec<Arc<Webhook>> {
        let hook = |name: &str| json!({ "name": name, "reinvocationPolicy": "IfNeeded" });
        let hooks = json!([hook("a"), hook("b")]);
        Webhook::read_all(&json!({ "metadata": { "name": "c" }, "webhooks": hooks }))
    }

    #[test]
    fn who_was_asked_before_a_change_is_asked_again_and_who_made_it_is_not() {
        let (hooks, object) = (webhooks(), json!({ "x": 1 }));
        let mut reinvoked = Reinvoked::default();
        reinvoked.begin(&object);
        reinvoked.asked(&hooks[0], false);
        reinvoked.asked(&hooks[1], true);
        reinvoked.end(&object);
        assert!(reinvoked.has_changed());
        let mut reinvoked = reinvoked.again();
        reinvoked.begin(&object);
        assert!(reinvoked.is_asked(&hooks[0]));
        assert!(!reinvoked.is_asked(&hooks[1]));
        // What it changes now was asked about before.
        reinvoked.asked(&hooks[0], true);
        assert!(reinvoked.is_asked(&hooks[1]));
    }

    #[test]
    fn the_first_patch_is_a_change_where_somebody_has_just_written() {
        let mut reinvoked = Reinvoked { has_fine_time: true, ..Reinvoked::default() };
        let counted: Vec<bool> = [false, false, true].map(|differs| reinvoked.is_change(differs)).into();
        assert_eq!(counted, [true, false, true]);
    }

    #[test]
    fn what_others_changed_meanwhile_is_asked_about_again() {
        let hooks = webhooks();
        let mut reinvoked = Reinvoked::default();
        reinvoked.asked(&hooks[0], false);
        reinvoked.end(&json!({ "x": 1 }));
        let mut reinvoked = reinvoked.again();
        reinvoked.begin(&json!({ "x": 2 }));
        assert!(reinvoked.is_asked(&hooks[0]));
    }
}
