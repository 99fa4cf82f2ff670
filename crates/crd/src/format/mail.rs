//! Mail addresses as Go's `net/mail` reads a single one: `a@b`, `Name <a@b>`, `group: a@b;`, with comments.
//!
//! In: a text. Out: whether it is one address. Comments nest by counting, so no text makes this recurse.

use super::net;

pub(super) fn is_address(text: &str) -> bool {
    let mut p = Parser { rest: text };
    p.address(true) == Some(1) && p.skip_comments().is_some() && p.rest.is_empty()
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// An address or, where `group` allows it, a group; returns how many addresses it names.
    fn address(&mut self, group: bool) -> Option<usize> {
        self.skip_space();
        if let Some(()) = self.attempt(Self::spec) {
            self.skip_space();
            if self.rest.starts_with('(') {
                self.comment()?;
            }
            return Some(1);
        }
        if self.rest.is_empty() {
            return None;
        }
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        if group && self.take(':') {
            return self.group();
        }
        (self.take('<') && self.attempt(Self::spec).is_some() && self.take('>')).then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        self.skip_space();
        if self.take(';') {
            return self.skip_comments().map(|()| 0);
        }
        let mut count = 0;
        loop {
            self.skip_space();
            count += self.address(false)?;
            self.skip_comments()?;
            if self.take(';') {
                return self.skip_comments().map(|()| count);
            }
            self.take(',').then_some(())?;
        }
    }

    /// Runs a step that leaves no trace when it fails.
    fn attempt(&mut self, step: impl Fn(&mut Self) -> Option<()>) -> Option<()> {
        let before = self.rest;
        let done = step(self);
        if done.is_none() {
            self.rest = before;
        }
        done
    }

    /// `local@domain`.
    fn spec(&mut self) -> Option<()> {
        self.skip_space();
        match self.rest.starts_with('"') {
            true => self.quoted()?.then_some(())?,
            false => self.strict_atom()?,
        }
        self.take('@').then_some(())?;
        self.skip_space();
        let Some(literal) = self.rest.strip_prefix('[') else { return self.strict_atom() };
        let (address, rest) = literal.split_once(']')?;
        self.rest = rest;
        net::is_ip(address).then_some(())
    }

    /// Words; one that cannot be read ends the phrase, if it is not the first.
    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            if words > 0 {
                self.skip_comments()?;
            }
            self.skip_space();
            let word = match self.rest.chars().next() {
                None => return (words > 0).then_some(()),
                Some('"') => self.attempt(|p| p.quoted().map(|_| ())),
                Some(_) => self.atom().map(|_| ()),
            };
            match word {
                Some(()) => words += 1,
                None => return (words > 0).then_some(()),
            }
        }
    }

    /// A quoted string; returns whether it holds anything.
    fn quoted(&mut self) -> Option<bool> {
        let mut escaped = false;
        for (i, c) in self.rest.char_indices().skip(1) {
            let printable = is_visible(c) || c == ' ' || c == '\t';
            match c {
                _ if escaped && printable => escaped = false,
                '"' if !escaped => {
                    self.rest = &self.rest[i + 1..];
                    return Some(i > 1);
                }
                '\\' if !escaped => escaped = true,
                _ if !escaped && printable => {}
                _ => return None,
            }
        }
        None
    }

    fn atom(&mut self) -> Option<&'a str> {
        let end = self.rest.find(|c| !is_atom(c)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!atom.is_empty()).then_some(atom)
    }

    fn strict_atom(&mut self) -> Option<()> {
        let atom = self.atom()?;
        (!atom.starts_with('.') && !atom.ends_with('.') && !atom.contains("..")).then_some(())
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn skip_comments(&mut self) -> Option<()> {
        self.skip_space();
        while self.rest.starts_with('(') {
            self.comment()?;
            self.skip_space();
        }
        Some(())
    }

    fn comment(&mut self) -> Option<()> {
        let mut depth = 0usize;
        let mut escaped = false;
        for (i, c) in self.rest.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &self.rest[i + 1..];
                return Some(());
            }
        }
        None
    }

    fn take(&mut self, c: char) -> bool {
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

fn is_visible(c: char) -> bool {
    matches!(c, '!'..='~') || !c.is_ascii()
}

fn is_atom(c: char) -> bool {
    is_visible(c) && !"()<>[]:;@\\,\"".contains(c)
}
