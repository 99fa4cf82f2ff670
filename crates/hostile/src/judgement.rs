//! What happened, held against the law.
//!
//! In: a row, and what it did. Out: what of it is against the row's law. Never: a time that is judged at size
//! 10, where only the outcome is.

use super::law::{BYSTANDER, Growth, REFUSED_BYTES, SEAT_BYTES, SEATS_REST_BYTES, TAKEN_BYTES};
use super::measure::Measure;
use super::row::Row;
use super::said::Said;
use super::stage::Dose;

/// What of `measure` is against the law, a few words each; nothing if all is well.
pub fn broken(row: &Row, measure: &Measure) -> Vec<String> {
    let law = &row.law;
    let mut broken = Vec::new();
    if !measure.survived {
        broken.push("died".to_owned());
    }
    broken.extend(measure.tally.all().filter(|said| !law.allows(*said)).map(|said| format!("says {said}")));
    if measure.tally.total() == 0 {
        broken.push("says nothing".to_owned());
    }
    if law.answers_max.is_some_and(|max| measure.tally.total() > max) {
        broken.push(format!("{} answers", measure.tally.total()));
    }
    if law.needs.is_some_and(|status| measure.tally.count(Said::Status(status)) == 0) {
        broken.push("lets nobody in".to_owned());
    }
    if law.open_max.is_some_and(|max| measure.tally.count(Said::Open) > max) {
        broken.push(format!("{} open", measure.tally.count(Said::Open)));
    }
    if let Some(text) = law.holds
        && measure.tally.has_success()
        && !measure.tally.text.contains(text)
    {
        broken.push(format!("without {text:?}"));
    }
    if measure.growth > growth_max(row, measure) {
        broken.push(format!("growth over {} MiB", growth_max(row, measure) >> 20));
    }
    if measure.seen.failures > 0 {
        broken.push(format!("bystander failed {} times", measure.seen.failures));
    }
    if measure.dose == Dose::Full {
        if measure.cpu > law.cpu {
            broken.push(format!("CPU over {} s", law.cpu.as_secs()));
        }
        if measure.seen.get_p99() > BYSTANDER {
            broken.push("GET p99".to_owned());
        }
    }
    broken
}

/// The most that the server may grow.
fn growth_max(row: &Row, measure: &Measure) -> u64 {
    match row.law.growth {
        Growth::One if measure.tally.has_success() => TAKEN_BYTES,
        Growth::One => REFUSED_BYTES,
        Growth::Any => row.memory.bytes().saturating_sub(measure.resident_before),
        Growth::Seats => SEAT_BYTES * measure.tally.count(Said::Open) as u64 + SEATS_REST_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bystander::BystanderStats;
    use crate::law::{CPU, Law};
    use crate::row::MemoryLimit;
    use crate::said::Tally;

    fn measured(dose: Dose, tally: &[Said]) -> Measure {
        let mut all = Tally::default();
        tally.iter().for_each(|said| all.add(*said));
        Measure {
            name: "a",
            from: "ours",
            dose,
            survived: true,
            tally: all,
            resident_before: 24 << 20,
            growth: 0,
            cpu: Duration::ZERO,
            took: Duration::ZERO,
            seen: BystanderStats::default(),
            broken: Vec::new(),
        }
    }

    fn row(law: Law) -> Row {
        Row { law, ..Row::BASE }
    }

    #[test]
    fn a_request_that_is_refused_may_cost_less_than_one_that_is_taken() {
        let row = row(Law::says(&[201, 400]));
        for (status, growth) in [(400, REFUSED_BYTES), (201, TAKEN_BYTES)] {
            let measure = |growth| Measure { growth, ..measured(Dose::Full, &[Said::Status(status)]) };
            assert_eq!(broken(&row, &measure(growth)), Vec::<String>::new());
            assert_eq!(broken(&row, &measure(growth + 1)), [format!("growth over {} MiB", growth >> 20)]);
        }
    }

    #[test]
    fn many_have_what_the_memory_limit_leaves_and_seats_their_share_each() {
        let limit = MemoryLimit::Gibibyte.bytes() - (24 << 20);
        let measure = |growth| Measure { growth, ..measured(Dose::Full, &[Said::Open, Said::Open]) };
        let many = row(Law::says(&[]).or(&[Said::Open]).many(1));
        assert!(broken(&many, &measure(limit)).is_empty() && !broken(&many, &measure(limit + 1)).is_empty());
        let seats = row(Law::says(&[]).or(&[Said::Open]).seats(1));
        let share = SEATS_REST_BYTES + 2 * SEAT_BYTES;
        assert!(
            broken(&seats, &measure(share)).is_empty() && !broken(&seats, &measure(share + 1)).is_empty()
        );
    }

    #[test]
    fn every_answer_is_looked_at_and_none_is_an_answer_too_little() {
        let law = Law::says(&[200]).or(&[Said::Closed]);
        let check = |law, tally: &[Said]| broken(&row(law), &measured(Dose::Ten, tally));
        assert_eq!(check(law, &[Said::Status(200), Said::Closed]), Vec::<String>::new());
        assert_eq!(check(law, &[Said::Status(200), Said::Status(500)]), ["says 500"]);
        assert_eq!(check(law, &[Said::Open]), ["says open"]);
        assert_eq!(check(law, &[]), ["says nothing"]);
        assert_eq!(check(law.at_most(1), &[Said::Status(200), Said::Closed]), ["2 answers"]);
        assert_eq!(check(law.needs(200), &[Said::Closed]), ["lets nobody in"]);
        assert_eq!(check(law.holds("jürgen"), &[Said::Status(200)]), ["without \"jürgen\""]);
    }

    #[test]
    fn times_are_judged_at_full_size_only() {
        let slow = |dose| Measure { cpu: CPU * 2, ..measured(dose, &[Said::Status(200)]) };
        let row = row(Law::says(&[200]));
        assert_eq!(broken(&row, &slow(Dose::Ten)), Vec::<String>::new());
        assert_eq!(broken(&row, &slow(Dose::Full)), ["CPU over 2 s"]);
    }
}
