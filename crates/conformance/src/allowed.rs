//! The differences that are meant, or known, each with its reason.
//!
//! In: a file of lines `because <reason>`, or `sometimes because <reason>` where it is a matter of time,
//! followed by the cases, one a line, that differ for it; a case that ends in `*` is all that begin so, one
//! that begins with `*` all that end so, one in two `*` all that hold it, and one around a `*` all that begin
//! and end so. Out: whether a difference is allowed, and which lines nothing needs any more. Never: a case
//! without a reason.

/// The lines of one file.
#[derive(Debug)]
pub struct Allowed {
    // case, whether it was needed
    cases: Vec<(String, bool)>,
}

impl Allowed {
    /// # Errors
    /// A case above the first reason.
    pub fn parse(text: &str) -> Result<Allowed, String> {
        let (mut cases, mut reason) = (Vec::new(), None);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            // What differs only sometimes is never stale.
            if line.starts_with("because ") {
                reason = Some(false);
            } else if line.starts_with("sometimes because ") {
                reason = Some(true);
            } else {
                let needed = reason.ok_or_else(|| format!("a case without a reason: {line}"))?;
                cases.push((line.to_owned(), needed));
            }
        }
        Ok(Allowed { cases })
    }

    /// Whether `case` may differ.
    pub fn permits(&mut self, case: &str) -> bool {
        let found = self.cases.iter_mut().find(|(allowed, _)| {
            match (allowed.strip_prefix('*'), allowed.strip_suffix('*')) {
                (Some(rest), Some(_)) => case.contains(rest.trim_end_matches('*')),
                (Some(end), None) => case.ends_with(end),
                (None, Some(begin)) => case.starts_with(begin),
                (None, None) => match allowed.split_once('*') {
                    Some((begin, end)) => case.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end)),
                    None => allowed == case,
                },
            }
        });
        found.map(|(_, needed)| *needed = true).is_some()
    }

    /// The lines that no difference needed.
    pub fn stale(&self) -> Vec<&str> {
        self.cases.iter().filter(|(_, needed)| !needed).map(|(case, _)| case.as_str()).collect()
    }
}

/// Fails unless each of `lines` is allowed by `text`, and each line there is needed.
///
/// # Panics
/// With all that is not as it should be. `FOREBAY_CONFORMANCE_REPORT` names a file that gets it, too.
pub fn check(text: &str, lines: &[String]) {
    let mut allowed = Allowed::parse(text).unwrap_or_else(|why| panic!("{why}"));
    let unexpected: Vec<&str> =
        lines.iter().filter(|line| !allowed.permits(line)).map(String::as_str).collect();
    let report = unexpected.join("\n");
    if let Some(path) = std::env::var_os("FOREBAY_CONFORMANCE_REPORT") {
        std::fs::write(path, &report).unwrap_or_else(|why| panic!("the report: {why}"));
    }
    assert!(unexpected.is_empty(), "{} differences:\n{report}", unexpected.len());
    assert!(allowed.stale().is_empty(), "no longer different: {:#?}", allowed.stale());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_allowed_by_name_or_by_its_beginning_and_idle_lines_show() {
        let mut allowed = Allowed::parse("# x\nbecause so\n  a b\n  c *\n  *: e\n  *mid*\n  f *: g\n  d\n")
            .expect("a file");
        assert!(
            allowed.permits("a b")
                && allowed.permits("a mid z")
                && allowed.permits("c anything")
                && allowed.permits("x: e")
                && allowed.permits("f x y: g")
                && !allowed.permits("f x y: g.h")
                && !allowed.permits("a")
        );
        assert_eq!(allowed.stale(), ["d"]);
        assert!(Allowed::parse("a\n").is_err());
    }
}
