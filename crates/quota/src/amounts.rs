//! Amounts of resources by name: a `ResourceList` that is counted with.
//!
//! In: lists as the API has them. Out: sums, differences, texts. Never: which resource is whose.

use std::collections::BTreeMap;
use std::fmt;

use forebay_apimachinery::json::weight::{self, MEMBER_BYTES};
use forebay_apimachinery::quantity::{self, Nanos, ONE, QuantityFormat};
use forebay_apimachinery::steps;
use forebay_strategy::value::Members;
use serde_json::Value;

/// An amount, and how it is written.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    pub nanos: Nanos,
    format: QuantityFormat,
}

/// Amounts by the name of their resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, Amount>);

impl PartialEq for Amount {
    fn eq(&self, other: &Amount) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Amount {}

impl Amount {
    pub const ZERO: Amount = Amount { nanos: 0, format: QuantityFormat::DecimalSi };

    /// So many of something that is counted.
    pub fn count(number: usize) -> Amount {
        let whole = Nanos::try_from(number).unwrap_or(Nanos::MAX);
        Amount { nanos: whole.saturating_mul(ONE), format: QuantityFormat::DecimalSi }
    }

    /// The value of a member that is a quantity; none when it is none.
    pub fn of(value: &Value) -> Option<Amount> {
        let (nanos, format) = match value {
            Value::String(text) => quantity::read(text).ok()?,
            other => (quantity::of(other), QuantityFormat::DecimalSi),
        };
        Some(Amount { nanos, format })
    }

    /// The sum, written as the first of the two that is not nothing.
    #[must_use]
    pub fn plus(self, other: Amount) -> Amount {
        self.with(other, self.nanos.saturating_add(other.nanos))
    }

    /// The difference, written as a sum would be.
    #[must_use]
    pub fn minus(self, other: Amount) -> Amount {
        self.with(other, self.nanos.saturating_sub(other.nanos))
    }

    fn with(self, other: Amount, nanos: Nanos) -> Amount {
        Amount { nanos, format: if self.nanos == 0 { other.format } else { self.format } }
    }

    /// In thousandths, a part of one taken for a whole one.
    pub fn thousandths(self) -> Nanos {
        const STEP: Nanos = ONE / 1000;
        self.nanos.div_euclid(STEP) + Nanos::from(self.nanos.rem_euclid(STEP) > 0)
    }

    /// The same, a part of one taken for a whole one.
    #[must_use]
    pub fn rounded_up(self) -> Amount {
        let part = self.nanos.rem_euclid(ONE);
        let missing = if part == 0 { 0 } else { ONE - part };
        Amount { nanos: self.nanos.saturating_add(missing), ..self }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&quantity::written(self.nanos, self.format))
    }
}

impl Amounts {
    /// The amounts of a list as an object has it.
    pub fn of(list: &Members) -> Amounts {
        Amounts(list.iter().filter_map(|(name, value)| Some((name.clone(), Amount::of(value)?))).collect())
    }

    /// Nothing of each of these.
    pub fn none_of<'n>(names: impl IntoIterator<Item = &'n str>) -> Amounts {
        Amounts(names.into_iter().map(|name| (name.to_string(), Amount::ZERO)).collect())
    }

    pub fn to_value(&self) -> Value {
        let texts = self.0.iter().map(|(name, amount)| (name.clone(), Value::String(amount.to_string())));
        Value::Object(texts.collect())
    }

    pub fn get(&self, name: &str) -> Option<Amount> {
        self.0.get(name).copied()
    }

    pub fn set(&mut self, name: impl Into<String>, amount: Amount) {
        self.0.insert(name.into(), amount);
    }

    /// What they take.
    pub fn bytes(&self) -> usize {
        self.0.keys().map(|name| MEMBER_BYTES + weight::text(name.len())).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, Amount)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Adds to each amount, and takes over those that are new.
    pub fn add(&mut self, more: &Amounts) {
        steps::add(more.0.len() as u64);
        for (name, amount) in &more.0 {
            match self.0.get_mut(name) {
                Some(sum) => *sum = sum.plus(*amount),
                None => {
                    self.0.insert(name.clone(), *amount);
                }
            }
        }
    }

    /// Of each the larger one.
    pub fn raise(&mut self, to: &Amounts) {
        to.0.iter().for_each(|(name, amount)| self.raise_one(name, *amount));
    }

    /// The larger one of that name.
    pub fn raise_one(&mut self, name: &str, to: Amount) {
        steps::add(1);
        if self.0.get(name).is_none_or(|known| known.nanos < to.nanos) {
            self.0.insert(name.to_string(), to);
        }
    }

    /// What is more than in `less`, by name: nothing of what became less.
    #[must_use]
    pub fn beyond(&self, less: &Amounts) -> Amounts {
        let more = |(name, amount): (&String, &Amount)| {
            let rest = less.0.get(name).map_or(*amount, |less| amount.minus(*less));
            (rest.nanos > 0).then(|| (name.clone(), rest))
        };
        Amounts(self.0.iter().filter_map(more).collect())
    }

    /// Those whose name and amount are wanted.
    #[must_use]
    pub fn only(&self, is_wanted: impl Fn(&str, Amount) -> bool) -> Amounts {
        let wanted = self.0.iter().filter(|(name, amount)| is_wanted(name, **amount));
        Amounts(wanted.map(|(name, amount)| (name.clone(), *amount)).collect())
    }
}

/// `cpu=1,memory=2Gi`.
impl fmt::Display for Amounts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        out.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn amounts(list: Value) -> Amounts {
        Amounts::of(list.as_object().expect("a list"))
    }

    #[test]
    fn sums_are_written_as_their_first_addend() {
        for (one, other, sum) in [
            ("1Gi", "512Mi", "1536Mi"),
            ("512Mi", "1G", "1536870912"),
            ("0", "1Gi", "1Gi"),
            ("500m", "500m", "1"),
            ("1e3", "1", "1001"),
            ("1000Ki", "24Ki", "1Mi"),
            ("512", "1Ki", "1536"),
            ("1Ki", "0.5", "1024500m"),
        ] {
            let (one, other) = (amounts(json!({"x": one})), amounts(json!({"x": other})));
            let mut all = one;
            all.add(&other);
            assert_eq!(all.to_string(), format!("x={sum}"));
        }
    }

    #[test]
    fn what_became_less_is_nothing_more() {
        let new = amounts(json!({"cpu": "2", "memory": "1Gi", "pods": "1"}));
        let old = amounts(json!({"cpu": "500m", "memory": "2Gi", "pods": "1", "gone": "3"}));
        assert_eq!(new.beyond(&old).to_string(), "cpu=1500m");
    }

    #[test]
    fn a_part_of_one_is_rounded_up() {
        let up = |text: &str| Amount::of(&json!(text)).expect("a quantity").rounded_up().to_string();
        assert_eq!((up("1500m"), up("2Gi"), up("0.1")), ("2".into(), "2Gi".into(), "1".into()));
    }
}
