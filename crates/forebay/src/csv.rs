//! CSV as Go's `encoding/csv` reads it: comma, double quotes, quotes doubled inside, any number of fields a
//! record.
//!
//! Text in, records with the line they begin on out. Empty lines are no records.

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Counted from 1.
    pub line: u64,
    pub fields: Vec<String>,
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    pub line: u64,
    pub reason: &'static str,
}

/// Splits the text into records.
///
/// # Errors
/// A quote in a field that is not quoted, or a quoted field that does not end as one.
pub fn records(text: &str) -> Result<Vec<Record>, Malformed> {
    let mut scan = Scan { rest: text, line: 1 };
    let mut records = Vec::new();
    while !scan.rest.is_empty() {
        if !scan.skip_line_end() {
            records.push(scan.record()?);
        }
    }
    Ok(records)
}

struct Scan<'a> {
    rest: &'a str,
    line: u64,
}

impl Scan<'_> {
    fn record(&mut self) -> Result<Record, Malformed> {
        let mut record = Record { line: self.line, fields: Vec::new() };
        loop {
            record.fields.push(if self.skip("\"") { self.quoted()? } else { self.plain()? });
            if self.skip(",") {
                continue;
            }
            if self.rest.is_empty() || self.skip_line_end() {
                return Ok(record);
            }
            return Err(self.malformed("extraneous or missing \" in quoted-field"));
        }
    }

    fn plain(&mut self) -> Result<String, Malformed> {
        let len = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
        let field = &self.rest[..len];
        if field.contains('"') {
            return Err(self.malformed("bare \" in non-quoted-field"));
        }
        let ends_line = !self.rest[len..].starts_with(',');
        let kept = if ends_line { field.strip_suffix('\r').unwrap_or(field) } else { field };
        let kept = kept.to_owned();
        self.rest = &self.rest[len..];
        Ok(kept)
    }

    /// Behind the opening quote, to behind the closing one.
    fn quoted(&mut self) -> Result<String, Malformed> {
        let mut field = String::new();
        loop {
            let Some(len) = self.rest.find('"') else {
                return Err(self.malformed("extraneous or missing \" in quoted-field"));
            };
            let part = &self.rest[..len];
            self.line += part.bytes().filter(|b| *b == b'\n').count() as u64;
            field.push_str(&part.replace("\r\n", "\n"));
            self.rest = &self.rest[len + 1..];
            if !self.skip("\"") {
                return Ok(field);
            }
            field.push('"');
        }
    }

    fn skip(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip_line_end(&mut self) -> bool {
        let skipped = self.skip("\r\n") || self.skip("\n");
        self.line += u64::from(skipped);
        skipped
    }

    fn malformed(&self, reason: &'static str) -> Malformed {
        Malformed { line: self.line, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &str) {
        let got = match records(text) {
            Ok(records) => records
                .iter()
                .map(|record| format!("{}:{}", record.line, record.fields.join("|")))
                .collect::<Vec<_>>()
                .join(" "),
            Err(malformed) => format!("{}: {}", malformed.line, malformed.reason),
        };
        assert_eq!(got, want, "{text:?}");
    }

    #[test]
    fn text_is_split_as_go_splits_it() {
        check("", "");
        check("\n\r\n\n", "");
        check("a,b,c", "1:a|b|c");
        check("a,b\nc\n", "1:a|b 2:c");
        check("a,b\r\nc\r\n", "1:a|b 2:c");
        check("\n\na", "3:a");
        check("a,,b,", "1:a||b|");
        check(" a , b ", "1: a | b ");
        check("a,\"b,c\",d", "1:a|b,c|d");
        check("\"a\"\"b\"", "1:a\"b");
        check("\"\"", "1:");
        check("\"a\nb\",c\nd", "1:a\nb|c 3:d");
        check("# no,comment", "1:# no|comment");
    }

    #[test]
    fn stray_quotes_are_errors_with_their_line() {
        check("a\nb\"c", "2: bare \" in non-quoted-field");
        check("a, \"b\"", "1: bare \" in non-quoted-field");
        check("a\n\"b\"c,d", "2: extraneous or missing \" in quoted-field");
        check("\"a\nb", "1: extraneous or missing \" in quoted-field");
    }

    #[test]
    fn fuzz_csv() {
        let inputs: &[&[u8]] = &[b"token,user,uid,\"a,b\"\nt2,u2,2\r\n\n\"x\"\"y\"", b"a,b"];
        let corpus = forebay_fuzz::Corpus {
            inputs,
            words: &["\"", "\"\"", ",", "\r\n", "\n"],
            bytes_max: 256,
            one_in: 2,
        };
        forebay_fuzz::run("csv", &corpus, |input| {
            let text = String::from_utf8_lossy(input);
            let read = records(&text).map_err(|error| error.reason)?;
            // Written with every field in quotes it is read as the same fields.
            let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let line =
                |record: &Record| record.fields.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
            let again = records(&read.iter().map(line).collect::<String>()).map_err(|error| error.reason)?;
            let fields =
                |records: &[Record]| records.iter().map(|record| record.fields.clone()).collect::<Vec<_>>();
            assert_eq!(fields(&again), fields(&read));
            Ok::<_, &str>((read.len().min(8), read.iter().map(|record| record.fields.len()).max()))
        });
    }
}
