//! Tells the watches of what was served that it is served no more, or otherwise.
//!
//! In: what was served, and what is. Out: what is raised at each version's [`Ending`](crate::Ending).

use std::sync::Arc;

use crate::ending::Ended;
use crate::served::Served;

/// Tells the watches of `before` that have to end that they do. A change of the schema alone ends none: what
/// they send is what is stored, unless a webhook makes it.
pub fn retire(before: &[Arc<Served>], now: &[Arc<Served>]) {
    for old in before {
        let Some(ending) = old.kind.ending() else { continue };
        let successor = now.iter().find(|new| new.gvr == old.gvr && new.gvk == old.gvk);
        ending.raise(match successor.filter(|new| new.kind.ending().is_some()) {
            // What a webhook made, or makes from now on, is not what was sent until now.
            Some(new) if is_made(old) || is_made(new) => Ended { all: true, ..Ended::default() },
            Some(new) => {
                let gone = |label: &str| new.selectable.iter().all(|field| field.label != label);
                let fields = old.selectable.iter().enumerate().filter(|(_, field)| gone(&field.label));
                Ended {
                    all: false,
                    tables: new.kind.columns() != old.kind.columns(),
                    fields: fields.map(|(index, _)| index).collect(),
                }
            }
            None => Ended { all: true, ..Ended::default() },
        });
    }
}

/// Whether a webhook makes what is sent.
fn is_made(served: &Served) -> bool {
    served.converted.as_ref().is_some_and(|converted| converted.has_view())
}
