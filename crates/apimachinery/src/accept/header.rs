//! The `Accept` header.
//!
//! In: its text. Out: its clauses, the ones that the client likes best first. Never: knows what we serve.
//!
//! Source: `munnerz/goautoneg`, which kube-apiserver v1.36 uses; its order is kept, also where it is odd.

/// Clauses of a header that are looked at; browsers send about 8. Later ones are ignored, as sorting takes
/// the square.
pub const CLAUSES_MAX: usize = 64;

/// `application/json;as=Table;v=v1;g=meta.k8s.io;q=0.5`.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause<'h> {
    /// `application`, or `*`.
    pub media_type: &'h str,
    /// `json`, or `*`.
    pub subtype: &'h str,
    /// From 0 to 1, but not checked. Orders the clauses; a clause with 0 is not left out.
    pub q: f32,
    params: Vec<(&'h str, &'h str)>,
}

impl<'h> Clause<'h> {
    /// A parameter; the last one of its name counts. Never the empty text.
    pub fn param(&self, name: &str) -> Option<&'h str> {
        self.params.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// Whether the clause takes `application/json` and the like.
    pub fn takes(&self, media_type: &str, subtype: &str) -> bool {
        match (self.media_type, self.subtype) {
            ("*", "*") => true,
            (own, "*") => own == media_type,
            (own, own_subtype) => own == media_type && own_subtype == subtype,
        }
    }

    /// One clause, between two commas. `None` when it names no media type.
    fn parse(text: &'h str) -> Option<Clause<'h>> {
        let text = text.trim_matches(' ');
        let (name, params) = text.split_once(';').unwrap_or((text, ""));
        let (media_type, subtype) = match name.split_once('/') {
            None | Some((_, "")) if name.split('/').next()?.trim_matches(' ') == "*" => ("*", "*"),
            None | Some((_, "")) => return None,
            Some((media_type, subtype)) => (media_type.trim_matches(' '), subtype),
        };
        // A second slash with nothing behind it is overlooked.
        let subtype = match subtype.split_once('/') {
            None => subtype,
            Some((subtype, "")) => subtype,
            Some(_) => return None,
        };
        let mut clause =
            Clause { media_type, subtype: subtype.trim_matches(' '), q: 1.0, params: Vec::new() };
        for param in params.split(';') {
            let Some((key, value)) = param.split_once('=') else { continue };
            let value = match value.split_once('=') {
                None => value,
                Some((value, "")) => value,
                Some(_) => continue,
            };
            match key.trim_matches(' ') {
                _ if value.is_empty() => {}
                "q" => clause.q = value.parse().unwrap_or(0.0),
                key => clause.params.push((key, value.trim_matches(' '))),
            }
        }
        Some(clause)
    }

    /// Whether it stands before `other`. Not an order: with mixed wildcards and q-values it goes in circles.
    fn is_before(&self, other: &Clause) -> bool {
        self.q > other.q
            || (self.media_type != "*" && other.media_type == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }
}

/// The clauses of a header, best first.
pub fn parse_accept(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause> = header.split(',').filter_map(Clause::parse).take(CLAUSES_MAX).collect();
    // Insertion sort, step by step as Go does it for short lists: what comes of a comparison that is no order
    // depends on it.
    for unsorted in 1..clauses.len() {
        let mut at = unsorted;
        while at > 0 && clauses[at].is_before(&clauses[at - 1]) {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
    clauses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &str, want: &[&str]) {
        let got: Vec<String> = parse_accept(header)
            .iter()
            .map(|clause| {
                format!("{}/{} {} {:?}", clause.media_type, clause.subtype, clause.q, clause.params)
            })
            .collect();
        assert_eq!(got, want, "{header}");
    }

    #[test]
    fn clauses_are_cut_as_goautoneg_cuts_them() {
        check("", &[]);
        check("json, /,a/b/c,*/", &["*/* 1 []"]);
        check(
            "application/json;as=Table; v = v1 ;x=;y;q=0.5;z=a=b",
            &[r#"application/json 0.5 [("as", "Table"), ("v", "v1")]"#],
        );
        check(" * ;q=x", &["*/* 0 []"]);
    }

    #[test]
    fn better_clauses_come_first() {
        check("a/b;q=0.5,c/d,e/f;q=0.8", &["c/d 1 []", "e/f 0.8 []", "a/b 0.5 []"]);
        check("*/*,a/*,a/b", &["a/b 1 []", "a/* 1 []", "*/* 1 []"]);
        check("a/b,c/d", &["a/b 1 []", "c/d 1 []"]);
        check(
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8",
            &[
                "text/html 1 []",
                "application/xhtml+xml 1 []",
                "image/webp 1 []",
                "application/xml 0.9 []",
                "*/* 0.8 []",
            ],
        );
    }

    #[test]
    fn a_header_of_very_many_clauses_is_cut_off() {
        let header = "a/b,".repeat(100_000);
        assert_eq!(parse_accept(&header).len(), CLAUSES_MAX);
    }
}
