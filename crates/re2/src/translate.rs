//! Rewrites a Go (RE2) pattern into the syntax of the `regex` crate.
//!
//! In: a pattern. Out: an equivalent one without captures, or Go's error code and the text it names. The two
//! dialects differ in: Perl classes and `\b` (ASCII in Go), brackets (`[`, `&&`, `--`, `~~` are plain in Go),
//! braces that are no repetition (plain in Go), `\Q…\E`, octal escapes, stacked repetitions (an error in Go)
//! and group flags. Never compiles, never recurses.

use super::class::{self, Points};
use crate::limits::{PATTERN_DEPTH_MAX, REPEAT_MAX};

/// A refused pattern: Go's error code and the part of the pattern that it names.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) code: &'static str,
    pub(super) expression: String,
}

pub(super) fn refused<T>(code: &'static str, expression: &str) -> Result<T, Refused> {
    Err(Refused { code, expression: expression.to_owned() })
}

pub(super) fn translate(pattern: &str) -> Result<String, Refused> {
    let groups = vec![Group::default()];
    let mut t = Translator {
        whole: pattern,
        rest: pattern,
        out: String::new(),
        flags: String::new(),
        groups,
        points: Points::default(),
    };
    let mut last_repeat = None;
    while !t.rest.is_empty() {
        last_repeat = t.step(last_repeat)?;
    }
    match t.groups.len() {
        1 => Ok(t.out),
        _ => refused("missing closing )", pattern),
    }
}

struct Translator<'a> {
    whole: &'a str,
    rest: &'a str,
    out: String,
    /// Flags that hold from the next item on. They wait for it, because a repetition behind them is of the
    /// item before.
    flags: String,
    /// Open groups, the pattern itself first.
    groups: Vec<Group>,
    points: Points,
}

/// What repetition needs to know of an open group.
#[derive(Default)]
struct Group {
    /// Something stands before the cursor that can be repeated.
    repeatable: bool,
    /// Copies of its innermost part that the last item stands for, and the largest such number in the group.
    weight: u32,
    weight_max: u32,
}

impl<'a> Translator<'a> {
    /// Consumes one item; returns where it began if it was a repetition.
    fn step(&mut self, last_repeat: Option<&'a str>) -> Result<Option<&'a str>, Refused> {
        let before = self.rest;
        let Some(c) = before.chars().next() else { return Ok(None) };
        match c {
            '(' if before.starts_with("(?") => self.perl_group()?,
            '(' => {
                self.skip(1);
                self.open("(?:")?;
            }
            ')' => self.close()?,
            '|' => {
                self.push("|");
                self.skip(1);
                self.group().repeatable = false;
            }
            '^' | '$' => {
                self.item(if c == '^' { "(?:^)" } else { "(?:$)" });
                self.skip(1);
            }
            '.' => {
                self.item(".");
                self.skip(1);
            }
            '[' => {
                let (text, rest) = class::bracket(before, &mut self.points)?;
                self.item(&text);
                self.rest = rest;
            }
            '*' | '+' | '?' => {
                self.skip(1);
                self.repeat(before, last_repeat, &before[..1], None)?;
                return Ok(Some(before));
            }
            '{' => return self.counted(last_repeat),
            '\\' => self.escape()?,
            c => {
                self.literal(c);
                self.skip(c.len_utf8());
            }
        }
        Ok(None)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn group(&mut self) -> &mut Group {
        self.groups.last_mut().expect("the pattern itself is never closed")
    }

    /// Writes what is not a repetition, waiting flags first.
    fn push(&mut self, text: &str) {
        self.out.push_str(&std::mem::take(&mut self.flags));
        self.out.push_str(text);
    }

    fn item(&mut self, text: &str) {
        self.push(text);
        let group = self.group();
        group.repeatable = true;
        group.weight = 1;
        group.weight_max = group.weight_max.max(1);
    }

    fn literal(&mut self, c: char) {
        let text = regex::escape(c.encode_utf8(&mut [0; 4]));
        self.item(&text);
    }

    fn open(&mut self, text: &str) -> Result<(), Refused> {
        if self.groups.len() > PATTERN_DEPTH_MAX {
            return refused("expression nests too deeply", self.whole);
        }
        self.push(text);
        self.groups.push(Group::default());
        Ok(())
    }

    fn close(&mut self) -> Result<(), Refused> {
        if self.groups.len() == 1 {
            return refused("unexpected )", self.whole);
        }
        let closed = self.groups.pop().expect("two groups are open");
        self.skip(1);
        self.flags.clear();
        self.out.push(')');
        let group = self.group();
        group.repeatable = true;
        group.weight = closed.weight_max.max(1);
        group.weight_max = group.weight_max.max(group.weight);
        Ok(())
    }

    /// Applies the repetition `op`, which began at `before` and ends at the cursor.
    fn repeat(
        &mut self,
        before: &'a str,
        last_repeat: Option<&'a str>,
        op: &str,
        copies: Option<u32>,
    ) -> Result<(), Refused> {
        let lazy = self.rest.starts_with('?');
        if lazy {
            self.skip(1);
        }
        let rest = self.rest.len();
        if let Some(last) = last_repeat {
            return refused("invalid nested repetition operator", &last[..last.len() - rest]);
        }
        let text = &before[..before.len() - rest];
        let group = self.group();
        if !group.repeatable {
            return refused("missing argument to repetition operator", text);
        }
        if let Some(copies) = copies {
            group.weight = if copies == 0 { 1 } else { copies.saturating_mul(group.weight) };
            group.weight_max = group.weight_max.max(group.weight);
            if group.weight > REPEAT_MAX {
                return refused("invalid repeat count", text);
            }
        }
        self.out.push_str(op);
        if lazy {
            self.out.push('?');
        }
        Ok(())
    }

    /// `{2}`, `{2,}`, `{2,3}`; anything else is a plain brace.
    fn counted(&mut self, last_repeat: Option<&'a str>) -> Result<Option<&'a str>, Refused> {
        let before = self.rest;
        let Some((min, max, rest)) = parse_counts(before) else {
            self.literal('{');
            self.skip(1);
            return Ok(None);
        };
        let op = &before[..before.len() - rest.len()];
        let fits = |n: Option<u32>| n.is_some_and(|n| n <= REPEAT_MAX);
        if !fits(min) || max.is_some_and(|max| !fits(max) || max < min) {
            return refused("invalid repeat count", op);
        }
        self.rest = rest;
        self.repeat(before, last_repeat, op, max.unwrap_or(min))?;
        Ok(Some(before))
    }

    /// A backslash outside of brackets.
    fn escape(&mut self) -> Result<(), Refused> {
        let before = self.rest;
        let assertion = match before.as_bytes().get(1) {
            Some(b'A') => r"(?:\A)",
            Some(b'b') => r"(?:(?-u:\b))",
            Some(b'B') => r"(?:(?-u:\B))",
            Some(b'z') => r"(?:\z)",
            Some(b'C') => return refused("invalid escape sequence", r"\C"),
            Some(b'Q') => {
                let (literal, rest) = before[2..].split_once(r"\E").unwrap_or((&before[2..], ""));
                literal.chars().for_each(|c| self.literal(c));
                self.rest = rest;
                return Ok(());
            }
            _ => {
                if let Some((text, rest)) = class::shorthand(before, &mut self.points)? {
                    self.item(&format!("[{text}]"));
                    self.rest = rest;
                } else {
                    let (c, rest) = class::escaped(before)?;
                    self.item(&format!(r"\x{{{c:x}}}"));
                    self.rest = rest;
                }
                return Ok(());
            }
        };
        self.item(assertion);
        self.skip(2);
        Ok(())
    }

    /// `(?`: a named group, flags, or a group with flags.
    fn perl_group(&mut self) -> Result<(), Refused> {
        let before = self.rest;
        let name =
            before.strip_prefix("(?P<").filter(|n| !n.is_empty()).or_else(|| before.strip_prefix("(?<"));
        if let Some(name) = name.filter(|_| before.len() > 3) {
            return self.named_group(before, name);
        }
        let mut flags = Flags::default();
        self.skip(2);
        for (i, c) in before.char_indices().skip(2) {
            self.rest = &before[i + c.len_utf8()..];
            match c {
                'i' | 'm' | 's' | 'U' => flags.add(c),
                '-' if flags.off.is_none() => flags.off = Some(String::new()),
                ':' | ')' if flags.off.as_deref() != Some("") => return self.flags(c == ':', &flags),
                _ => break,
            }
        }
        refused("invalid or unsupported Perl syntax", &before[..before.len() - self.rest.len()])
    }

    fn named_group(&mut self, before: &'a str, name: &'a str) -> Result<(), Refused> {
        let Some((name, rest)) = name.split_once('>') else {
            return refused("invalid named capture", before);
        };
        if name.is_empty() || !name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
            return refused("invalid named capture", &before[..before.len() - rest.len()]);
        }
        self.rest = rest;
        self.open("(?:")
    }

    fn flags(&mut self, group: bool, flags: &Flags) -> Result<(), Refused> {
        let text = flags.text();
        match group {
            true => self.open(&format!("(?{text}:")),
            false => {
                if !text.is_empty() {
                    self.flags.push_str(&format!("(?{text})"));
                }
                Ok(())
            }
        }
    }
}

/// Flags of a group; each is named once, and turning off wins because it is written last.
#[derive(Default)]
struct Flags {
    on: String,
    off: Option<String>,
}

impl Flags {
    fn add(&mut self, flag: char) {
        let set = self.off.as_mut().unwrap_or(&mut self.on);
        if !set.contains(flag) {
            set.push(flag);
        }
    }

    fn text(&self) -> String {
        let Some(off) = &self.off else { return self.on.clone() };
        let on: String = self.on.chars().filter(|c| !off.contains(*c)).collect();
        format!("{on}-{off}")
    }
}

/// Parses `{min}`, `{min,}` or `{min,max}`; a number that is far too large reads as none.
#[allow(clippy::type_complexity, reason = "three values, used once")]
fn parse_counts(text: &str) -> Option<(Option<u32>, Option<Option<u32>>, &str)> {
    let (min, rest) = parse_count(text.strip_prefix('{')?)?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((min, Some(min), rest));
    }
    let rest = rest.strip_prefix(',')?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((min, None, rest));
    }
    let (max, rest) = parse_count(rest)?;
    Some((min, Some(max), rest.strip_prefix('}')?))
}

fn parse_count(text: &str) -> Option<(Option<u32>, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || (digits > 1 && text.starts_with('0')) {
        return None;
    }
    Some((text[..digits].parse().ok(), &text[digits..]))
}
