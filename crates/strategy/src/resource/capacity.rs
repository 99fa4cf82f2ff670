//! How much of a device's capacity a claim may ask for.
//!
//! In: a capacity with its policy. Out: causes. Never: what is left of it.

use forebay_apimachinery::quantity::{self, Nanos};
use serde_json::Value;

use super::lists::bounded;
use crate::field::{Causes, Path};
use crate::value::{Members, child, list, text};

const OPTIONS_MAX: usize = 10;
const NANO: Nanos = 1_000_000_000;

/// A quantity, and how it was written.
#[derive(Clone, Copy)]
struct Amount<'v> {
    value: Nanos,
    shown: &'v str,
}

impl<'v> Amount<'v> {
    fn of(value: &'v Value) -> Amount<'v> {
        Amount { value: quantity::of(value), shown: value.as_str().unwrap_or("0") }
    }

    fn member(of: &'v Members, name: &str) -> Option<Amount<'v>> {
        of.get(name).map(Amount::of)
    }

    /// Rounded up to a whole number, as Go's `Value` has it.
    fn whole(self) -> Nanos {
        self.value.div_euclid(NANO) + Nanos::from(self.value.rem_euclid(NANO) != 0)
    }
}

/// - `is_shared`: whether the device may be given to several claims.
pub fn validate(capacity: &Members, is_shared: bool, at: &Path<'_>, causes: &mut Causes) {
    let Some(policy) = child(capacity, "requestPolicy") else { return };
    let at = at.child("requestPolicy");
    if !is_shared {
        return causes.forbidden(&at, "allowMultipleAllocations must be true");
    }
    let total = Amount::member(capacity, "value").unwrap_or(Amount { value: 0, shown: "0" });
    let (has_values, range) = (!list(policy, "validValues").is_empty(), child(policy, "validRange"));
    let default = Amount::member(policy, "default");
    match (has_values, range, default) {
        (true, Some(_), _) => {
            let detail = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" \
                          at the same time";
            causes.forbidden(&at, detail);
        }
        (true, None, None) => {
            causes.required(&at.child("default"), "required when validValues is defined");
        }
        (true, None, Some(default)) => values(policy, default, total, &at, causes),
        (false, Some(_), None) => {
            causes.required(&at.child("default"), "required when validRange is defined");
        }
        (false, Some(range), Some(default)) => {
            valid_range(range, default, total, &at.child("validRange"), causes);
        }
        (false, None, _) => {}
    }
}

/// Values to choose from, in ascending order; the default is one of them.
fn values(policy: &Members, default: Amount<'_>, total: Amount<'_>, at: &Path<'_>, causes: &mut Causes) {
    const NAME: &str = "validValues";
    let options: Vec<Amount<'_>> = list(policy, NAME).iter().map(Amount::of).collect();
    let values_at = at.child(NAME);
    for (index, pair) in options.windows(2).enumerate() {
        if pair[0].value > pair[1].value {
            let detail = "values must be sorted in ascending order";
            causes.invalid(&values_at.index(index + 1), pair[1].shown, detail);
        }
    }
    // Of too many nothing else is said, not even that the default is among them.
    let judged = bounded(policy, NAME, OPTIONS_MAX, at, causes).len();
    for (index, option) in options.iter().take(judged).enumerate() {
        if option.value > total.value {
            let detail = format!("option is larger than capacity value: {}", total.shown);
            causes.invalid(&values_at.index(index), option.shown, &detail);
        }
    }
    for (index, option) in options.iter().take(judged).enumerate() {
        // Few: at most `OPTIONS_MAX`.
        if options[..index].iter().any(|before| before.whole() == option.whole()) {
            causes.duplicate(&values_at.index(index), option.whole().to_string().as_str());
        }
    }
    if !options.iter().take(judged).any(|option| option.value == default.value) {
        let detail = "default value is not valid according to the requestPolicy";
        causes.invalid(&values_at, default.shown, detail);
    }
}

/// A range to choose from, in steps; the default is in it.
fn valid_range(range: &Members, default: Amount<'_>, total: Amount<'_>, at: &Path<'_>, causes: &mut Causes) {
    let Some(min) = Amount::member(range, "min") else {
        return causes.required(&at.child("min"), "required when validRange is defined");
    };
    let mut check = |wrong: bool, name: &str, bad: &str, detail: String| {
        if wrong {
            causes.invalid(&at.child(name), bad, &detail);
        }
    };
    let capacity = total.shown;
    let larger = |what: &str| format!("{what} is larger than capacity value: {capacity}");
    check(min.value > total.value, "min", min.shown, larger("min"));
    check(
        default.value < min.value,
        "min",
        default.shown,
        format!("default is less than min: {}", min.shown),
    );
    let max = Amount::member(range, "max");
    if let Some(max) = max {
        check(min.value > max.value, "max", min.shown, format!("min is larger than max: {}", max.shown));
        check(max.value > total.value, "max", max.shown, larger("max"));
        let detail = format!("default is more than max: {}", max.shown);
        check(default.value > max.value, "max", default.shown, detail);
    }
    let Some(step) = Amount::member(range, "step") else { return };
    let first = min.value.saturating_add(step.value);
    let shown = quantity::shown(first, text(range, "min"));
    check(first > total.value, "step", step.shown, larger(&format!("one step {shown}")));
    for value in std::iter::once(default).chain(max) {
        // A step of nothing leads nowhere.
        let on_step = step.whole() != 0 && (value.whole() - min.whole()) % step.whole() == 0;
        let detail = format!("value is not a multiple of a given step ({}) from ({})", step.shown, min.shown);
        check(!on_step, "step", value.shown, detail);
    }
}
