//! Sets of indexes of an indexed Job, as text: `0,3-5`.
//!
//! In: text, and how many indexes there are. Out: how many it names, or upstream's message. Never: a set in
//! memory; the text may name a hundred thousand.
//!
//! Source: kubernetes v1.36.3 `apis/batch/validation`.

use forebay_apimachinery::json::go_quote;

/// How many indexes the text names.
pub fn count(text: &str, completions: i64) -> Result<i64, String> {
    let mut total = 0;
    let mut last: Option<i64> = None;
    if text.is_empty() {
        return Ok(0);
    }
    for interval in text.split(',') {
        let (from, to) = parse(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= from) {
            return Err(format!("non-increasing order, previous: {last}, current: {from}"));
        }
        total += to - from + 1;
        last = Some(to);
    }
    Ok(total)
}

/// The first index that both texts name, where they can be read.
pub fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    if completed.is_empty() || failed.is_empty() {
        return None;
    }
    let read = |text: &'_ str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|interval| parse(interval, completions).ok()).collect()
    };
    let (completed, failed) = (read(completed), read(failed));
    let (mut completed, mut failed) = (completed.iter().peekable(), failed.iter().peekable());
    while let (Some(a), Some(b)) = (completed.peek(), failed.peek()) {
        if a.0 <= b.1 && b.0 <= a.1 {
            return Some(a.0.max(b.0));
        }
        if a.0 <= b.0 {
            completed.next();
        } else {
            failed.next();
        }
    }
    None
}

fn parse(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let mut parts = interval.split('-');
    let (from, to) = (parts.next().unwrap_or(""), parts.next());
    if parts.next().is_some() {
        return Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
            go_quote(interval)
        ));
    }
    let from = index(from, completions)?;
    let Some(to) = to else { return Ok((from, from)) };
    let to = index(to, completions)?;
    if from >= to {
        return Err(format!("non-increasing order, previous: {from}, current: {to}"));
    }
    Ok((from, to))
}

fn index(text: &str, completions: i64) -> Result<i64, String> {
    let Ok(index) = text.parse::<i64>() else {
        return Err(format!("cannot convert string to integer for index: {}", go_quote(text)));
    };
    if index >= completions {
        return Err(format!("too large index: {}", go_quote(text)));
    }
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_counted_in_order() {
        assert_eq!(count("", 5), Ok(0));
        assert_eq!(count("0,2-4", 5), Ok(4));
        for (text, message) in [
            ("5", r#"too large index: "5""#),
            ("1-9", r#"too large index: "9""#),
            ("2,1", "non-increasing order, previous: 2, current: 1"),
            ("3-2", "non-increasing order, previous: 3, current: 2"),
            ("a", r#"cannot convert string to integer for index: "a""#),
        ] {
            assert_eq!(count(text, 5), Err(message.into()), "{text}");
        }
    }

    #[test]
    fn overlaps_are_found_past_what_cannot_be_read() {
        assert_eq!(overlap("0-2,7", "x,3,7-9", 10), Some(7));
        assert_eq!(overlap("0-2", "3-4", 10), None);
        assert_eq!(overlap("", "3-4", 10), None);
    }
}
