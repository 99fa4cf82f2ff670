//! JSON, indented for people.
//!
//! In: compact JSON, in pieces cut anywhere. Out: the same with two spaces a level, as Go's `json.Indent`
//! writes it. Keeps nothing but where it is. Never: parses; what is not JSON comes out as some other thing
//! that is not JSON.

use forebay_apimachinery::json::weight;

/// Where an indenter is.
#[derive(Clone, Debug, Default)]
pub struct Indenter {
    depth: usize,
    in_string: bool,
    escaped: bool,
    // A bracket was opened and nothing has followed yet: an empty list stays on its line.
    opened: bool,
}

impl Indenter {
    /// Appends the indented form of `json`. A newline outside of strings is left out: indented answers end
    /// without one.
    pub fn push(&mut self, json: &[u8], out: &mut Vec<u8>) {
        self.push_until(json, usize::MAX, out);
    }

    /// The same until `out` has `full` bytes and at most a line more; how much of `json` that was. What is
    /// deep becomes hundreds of times longer.
    pub fn push_until(&mut self, json: &[u8], full: usize, out: &mut Vec<u8>) -> usize {
        for (at, &byte) in json.iter().enumerate() {
            if out.len() >= full {
                return at;
            }
            if self.in_string {
                self.string(byte, out);
            } else {
                self.structure(byte, out);
            }
        }
        json.len()
    }

    fn string(&mut self, byte: u8, out: &mut Vec<u8>) {
        out.push(byte);
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => self.in_string = false,
            _ => {}
        }
    }

    fn structure(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => return,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if !std::mem::take(&mut self.opened) {
                    self.line(out);
                }
                out.push(byte);
                return;
            }
            _ => {}
        }
        if std::mem::take(&mut self.opened) {
            self.line(out);
        }
        out.push(byte);
        match byte {
            b'{' | b'[' => {
                self.depth += 1;
                self.opened = true;
            }
            b',' => self.line(out),
            b':' => out.push(b' '),
            b'"' => self.in_string = true,
            _ => {}
        }
    }

    fn line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.resize(out.len() + 2 * self.depth, b' ');
    }
}

/// How long a JSON text is when it is indented: two spaces a level, on a line for each value.
pub fn indented_len(json: &[u8]) -> usize {
    weight::on_lines(json, |_, _| 0)
}

/// `json`, indented.
pub fn indent(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(indented_len(json));
    Indenter::default().push(json, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_wherever_it_is_cut() {
        let json = br#"{"a":[],"b":{},"c":[1,{"d":"x\",\\"},[null]],"e":"[{\n"}"#;
        let want = "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    {\n      \"d\": \"x\\\",\\\\\"\n    },\n    [\n      null\n    ]\n  ],\n  \"e\": \"[{\\n\"\n}";
        assert_eq!(String::from_utf8_lossy(&indent(json)), want);
        for cut in 0..json.len() {
            let (mut indenter, mut out) = (Indenter::default(), Vec::new());
            indenter.push(&json[..cut], &mut out);
            indenter.push(&json[cut..], &mut out);
            assert_eq!(String::from_utf8_lossy(&out), want, "cut at {cut}");
        }
    }

    #[test]
    fn the_newline_at_the_end_goes() {
        assert_eq!(indent(b"{}\n"), b"{}");
    }

    #[test]
    fn what_is_indented_is_weighed_as_long_as_it_becomes() {
        let deep = format!("{}{}{}", "[".repeat(100), "0,".repeat(10_000) + "0", "]".repeat(100));
        for json in [r#"{"a":[],"b":{"c":[1,"x,{[\"",null]}}"#, "{}", deep.as_str()] {
            let (weighed, made) = (indented_len(json.as_bytes()), indent(json.as_bytes()).len());
            assert!(made <= weighed && weighed < 2 * made + 16, "{made} as {weighed}");
        }
    }
}
