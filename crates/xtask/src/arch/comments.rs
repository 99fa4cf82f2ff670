//! Comments are as wide as the lines of code, which rustfmt leaves to who writes them.
//!
//! In: a source file. Out: each comment that is wider. Never: looks into a table, an example or a `Source:`,
//! whose words are not to be broken.

/// As `max_width` in `rustfmt.toml` has it.
const WIDTH: usize = 110;

/// - `path`: below `crates/`.
pub fn findings(path: &str, text: &str) -> Vec<String> {
    let (mut in_example, mut in_source, mut found) = (false, false, Vec::new());
    for (at, line) in text.lines().enumerate() {
        let said = said(line);
        let Some(said) = said.filter(|said| !said.is_empty()) else {
            (in_example, in_source) = (in_example && said.is_some(), false);
            continue;
        };
        in_example ^= said.starts_with("```");
        in_source |= said.starts_with("Source:");
        let is_kept = in_example || in_source || said.starts_with('|');
        if !is_kept && line.chars().count() > WIDTH {
            found.push(format!("{path}:{}: a comment wider than {WIDTH}", at + 1));
        }
    }
    found
}

/// What a line of comment says; none of a line that is no comment.
fn said(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let said = ["///", "//!", "//"].into_iter().find_map(|mark| line.strip_prefix(mark))?;
    Some(said.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_comments_are_found_where_words_may_be_broken() {
        let wide = "word ".repeat(30);
        for (text, count) in [
            (format!("/// {wide}"), 1),
            (format!("    // {wide}\n    // {wide}"), 2),
            (format!("let text = \"{wide}\";"), 0),
            (format!("//! | {wide} |"), 0),
            (format!("//! ```text\n//! {wide}\n//! ```\n//! {wide}"), 1),
            (format!("/// Source: {wide}\n/// {wide}\n///\n/// {wide}"), 1),
            (format!("//! ```text\nfn a() {{}}\n// {wide}"), 1),
        ] {
            assert_eq!(findings("a.rs", &text).len(), count, "{text}");
        }
    }
}
