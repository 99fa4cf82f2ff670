//! Short texts for long lists: the first few, then how many more.
//!
//! In: the parts. Out: `a,b,c + 2 more...`. Never: more parts than asked for.

/// How many parts most lists show.
pub(crate) const SHOWN: usize = 3;

/// `a,b,c + 2 more...`, or `<unset>` when nothing would be shown.
pub(crate) fn shortened(parts: impl Iterator<Item = String>) -> String {
    let mut shown = Vec::with_capacity(SHOWN);
    let mut more = 0;
    for part in parts {
        if shown.len() < SHOWN {
            shown.push(part);
        } else {
            more += 1;
        }
    }
    match (shown.join(","), more) {
        (text, 0) if text.is_empty() => "<unset>".to_owned(),
        (text, more) => with_more(text, more),
    }
}

/// Appends ` + 2 more...` when there are more.
pub(crate) fn with_more(text: String, more: i64) -> String {
    match more {
        0 => text,
        more => format!("{text} + {more} more..."),
    }
}

/// Joins borrowed parts.
pub(crate) fn joined<'a>(parts: impl Iterator<Item = &'a str>, separator: &str) -> String {
    parts.collect::<Vec<_>>().join(separator)
}
