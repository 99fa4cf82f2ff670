//! A cost or a size as it is known beforehand: no less than, no more than.

/// Both ends saturate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub min: u64,
    pub max: u64,
}

impl Bounds {
    pub(crate) const UNKNOWN: Bounds = Bounds { min: 0, max: u64::MAX };
    pub(crate) const ZERO: Bounds = Bounds { min: 0, max: 0 };
    pub(crate) const ONE: Bounds = Bounds { min: 1, max: 1 };

    pub(crate) fn new(min: u64, max: u64) -> Bounds {
        Bounds { min, max }
    }

    pub(crate) fn fixed(at: u64) -> Bounds {
        Bounds { min: at, max: at }
    }

    pub(crate) fn add(self, other: Bounds) -> Bounds {
        Bounds { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(crate) fn times(self, other: Bounds) -> Bounds {
        Bounds { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    pub(crate) fn scaled(self, factor: f64) -> Bounds {
        Bounds { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }

    pub(crate) fn union(self, other: Bounds) -> Bounds {
        Bounds { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

fn scaled(it: u64, factor: f64) -> u64 {
    const MAX: f64 = u64::MAX as f64;
    let it = it as f64;
    if it > 0.0 && factor > 0.0 && it > MAX / factor {
        return u64::MAX;
    }
    let up = (it * factor).ceil();
    if up >= MAX { u64::MAX } else { up as u64 }
}
