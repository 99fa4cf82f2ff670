//! How many seats each level has: its nominal limit, how far that may move, and where it is now.
//!
//! In: shares, percentages and demand. Out: [`SeatBounds`], and the current limits. Never: when they are
//! computed.
//!
//! Source: KEP-1040; apiserver v1.36.3 `util/flowcontrol/{apf_controller,conc_alloc}.go`. Ours never sets the limit of a level that
//! has work below its nominal one, and divides only what the exempt levels left.

use crate::config::{LimitResponse, PriorityLevel};

/// Seats of a level, as it is configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeatBounds {
    pub nominal: u64,
    /// What is left when all that may be lent is.
    pub lower: u64,
    /// What it has when all that may be borrowed is.
    pub upper: u64,
}

/// What a level could use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wish {
    pub bounds: SeatBounds,
    pub exempt: bool,
    /// Most seats that it could have used at once, of late.
    pub high_watermark: u64,
    pub smoothed: f64,
}

/// Where the limits are now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Division {
    /// In the order of the wishes.
    pub current: Vec<u64>,
    pub targets: Vec<f64>,
    /// What every level has of its target, unless a bound is in its way.
    pub fair_fraction: f64,
}

/// The bounds of each level, in their order.
///
/// Limits are rounded up: the sum may be larger than the total by one for each level.
pub fn bounds(levels: &[&PriorityLevel], total: u64) -> Vec<SeatBounds> {
    let sum: u64 = levels.iter().map(|level| level.shares).sum();
    levels.iter().map(|level| bounds_of(level, total, sum)).collect()
}

fn bounds_of(level: &PriorityLevel, total: u64, sum: u64) -> SeatBounds {
    let nominal = (u128::from(total) * u128::from(level.shares)).div_ceil(u128::from(sum.max(1))) as u64;
    let percent = |percent: u64| (nominal * percent + 50) / 100;
    let borrowed = level.borrowing_percent.map_or(total, percent);
    let upper = nominal + if level.response == LimitResponse::Exempt { total } else { borrowed };
    SeatBounds { nominal, lower: nominal - percent(level.lendable_percent), upper }
}

/// Divides the seats by what the levels could use.
pub fn divide(wishes: &[Wish]) -> Division {
    let taken = wishes.iter().filter(|wish| wish.exempt).map(least);
    let nominal: u64 = wishes.iter().map(|wish| wish.bounds.nominal).sum();
    let total = nominal.saturating_sub(taken.sum());
    let limited: Vec<Range> = wishes.iter().filter(|wish| !wish.exempt).map(range).collect();
    let lowest: f64 = limited.iter().map(|range| range.low).sum();
    // What has work keeps its least, also where the exempt levels have taken more than there is.
    let fair_fraction = if total as f64 <= lowest { 0.0 } else { fraction(&limited, total as f64) };
    let mut shares = limited.iter().map(|range| range.at(fair_fraction));
    let current = wishes.iter().map(|wish| match wish.exempt {
        true => least(wish),
        false => shares.next().expect("one for each").round() as u64,
    });
    let targets = wishes.iter().map(|wish| range(wish).target).collect();
    Division { current: current.collect(), targets, fair_fraction }
}

/// What a level has at least: what it uses, up to its nominal limit.
fn least(wish: &Wish) -> u64 {
    let most = if wish.exempt { u64::MAX } else { wish.bounds.nominal };
    wish.high_watermark.min(most).max(wish.bounds.lower)
}

/// A target, and between what its multiples are cut.
#[derive(Clone, Copy)]
struct Range {
    low: f64,
    high: f64,
    target: f64,
}

impl Range {
    fn at(&self, fraction: f64) -> f64 {
        (self.target * fraction).max(self.low).min(self.high)
    }
}

/// Least target: of what wants nothing a multiple would be nothing, too.
const TARGET_MIN: f64 = 0.001;

fn range(wish: &Wish) -> Range {
    let low = least(wish) as f64;
    Range { low, high: wish.bounds.upper as f64, target: wish.smoothed.max(low).max(TARGET_MIN) }
}

/// The fraction at which all have `total` together; that at which all have the most where they cannot have so
/// much.
fn fraction(ranges: &[Range], total: f64) -> f64 {
    // The sum grows with the fraction, along straight lines between these places.
    let mut bends: Vec<(f64, f64)> = Vec::with_capacity(2 * ranges.len());
    for range in ranges {
        bends.push((range.low / range.target, range.target));
        bends.push((range.high / range.target, -range.target));
    }
    bends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut at, mut slope) = (0.0, 0.0);
    let mut sum: f64 = ranges.iter().map(|range| range.low).sum();
    for (bend, change) in bends {
        let next = sum + (bend - at) * slope;
        if next >= total && slope > 0.0 {
            return at + (total - sum) / slope;
        }
        (at, sum, slope) = (bend, next, slope + change);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use forebay_rt::Random;

    fn bounds_at(total: u64) -> String {
        let levels: Vec<PriorityLevel> =
            builtin::level_objects().map(|(_, it)| PriorityLevel::read(&it).unwrap()).collect();
        let bounds = bounds(&levels.iter().collect::<Vec<_>>(), total);
        let rows = levels.iter().zip(bounds);
        let rows = rows.map(|(level, at)| format!("{} {} {} {}", level.name, at.lower, at.nominal, at.upper));
        rows.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn built_in_levels_have_the_seats_that_upstream_gives_them() {
        assert_eq!(
            bounds_at(600),
            "catch-all 13 13 613, exempt 0 0 600, system 50 74 674, node-high 73 98 698, leader-election 25 25 625, \
             workload-high 49 98 698, workload-low 24 245 845, global-default 24 49 649"
        );
        // However few there are, nobody has none.
        assert!(bounds_at(2).starts_with("catch-all 1 1 3, exempt 0 0 2, system 1 1 3"), "{}", bounds_at(2));
    }

    fn wish(lower: u64, nominal: u64, upper: u64, watermark: u64, smoothed: f64) -> Wish {
        let bounds = SeatBounds { nominal, lower, upper };
        Wish { bounds, exempt: false, high_watermark: watermark, smoothed }
    }

    #[test]
    fn who_uses_nothing_lends_and_who_asks_for_more_borrows() {
        // Upstream's own two cases: 24 and 6 clients on 12 seats each; one bound by what is lent, one by what
        // may be borrowed.
        let lent = divide(&[wish(6, 12, 20, 24, 24.0), wish(8, 12, 18, 6, 6.0)]);
        assert_eq!(lent.current, [16, 8]);
        let borrowed = divide(&[wish(6, 12, 16, 24, 24.0), wish(4, 12, 18, 6, 6.0)]);
        assert_eq!(borrowed.current, [16, 8]);
    }

    #[test]
    fn what_exempt_levels_use_is_taken_from_what_is_divided() {
        let exempt = Wish { exempt: true, ..wish(0, 0, 100, 10, 10.0) };
        assert_eq!(
            divide(&[exempt, wish(5, 20, 120, 50, 50.0), wish(5, 20, 120, 0, 0.0)]).current,
            [10, 25, 5]
        );
        let all = Wish { high_watermark: 1_000, ..exempt };
        assert_eq!(
            divide(&[all, wish(5, 20, 120, 50, 50.0), wish(5, 20, 120, 0, 0.0)]).current,
            [1_000, 20, 5]
        );
    }

    #[test]
    fn a_division_is_in_bounds_in_proportion_and_whole() {
        let random = Random::seeded(7);
        for _ in 0..5_000 {
            let count = 1 + random.below(9);
            let wishes: Vec<Wish> = (0..count)
                .map(|_| {
                    let nominal = random.below(50);
                    let lower = random.below(nominal + 1);
                    let upper = nominal + random.below(60);
                    wish(lower, nominal, upper, random.below(120), random.below(120) as f64)
                })
                .collect();
            let division = divide(&wishes);
            let total: u64 = wishes.iter().map(|wish| wish.bounds.nominal).sum();
            let sum: u64 = division.current.iter().sum();
            let highest: u64 = wishes.iter().map(|wish| wish.bounds.upper).sum();
            assert!(sum.abs_diff(total.min(highest)) <= count, "{sum} of {total}: {wishes:?}");
            for (wish, current) in wishes.iter().zip(&division.current) {
                assert!((least(wish)..=wish.bounds.upper.max(least(wish))).contains(current));
                // Whoever has work has its nominal share of it.
                assert!(*current >= wish.bounds.nominal.min(wish.high_watermark));
            }
        }
    }
}
