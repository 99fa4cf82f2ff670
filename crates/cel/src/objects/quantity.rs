//! Quantities, as `resource.Quantity` knows them.

use std::cmp::Ordering;

use forebay_apimachinery::quantity::{self, Nanos};

use crate::error::Error;

/// A quantity: its value, and the text whose form a sum takes.
#[derive(Clone, Debug)]
pub struct Quantity {
    pub(crate) nanos: Nanos,
    /// Whether upstream keeps it as a whole number: not where it was written with a part, even of nothing.
    is_whole: bool,
    pub text: String,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.nanos == other.nanos
    }
}

impl Quantity {
    pub(crate) fn cmp(&self, other: &Quantity) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }

    pub(crate) fn read(text: &str) -> Result<Quantity, Error> {
        // White space around it is no part of one here, though elsewhere it is passed over.
        let is_bare = text.trim() == text && !text.is_empty();
        let read = if is_bare { quantity::nanos(text) } else { Err(quantity::QuantityError::Format) };
        let nanos = read.map_err(|why| Error::new(why.to_string()))?;
        let is_whole = !text.contains('.') && quantity::is_whole(nanos) && !text.ends_with(['m', 'u', 'n']);
        let text = quantity::canonical(text, quantity::Precision::Nano)
            .map_err(|why| Error::new(why.to_string()))?;
        Ok(Quantity { nanos, is_whole, text: text.into_owned() })
    }

    pub(crate) fn moved(&self, by: Nanos) -> Quantity {
        let nanos = self.nanos.saturating_add(by);
        Quantity { nanos, is_whole: quantity::is_whole(nanos), text: quantity::shown(nanos, &self.text) }
    }

    /// As a whole number, where upstream has it as one.
    pub(crate) fn whole(&self) -> Option<i64> {
        self.is_whole.then(|| i64::try_from(self.nanos / quantity::ONE).ok()).flatten()
    }
}
