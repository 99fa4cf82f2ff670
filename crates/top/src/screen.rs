//! What is on the screen, and what a key does to it.
//!
//! In: what the server said, or why it did not; keys; how large the terminal is. Out: lines that fit. Never:
//! IO.

use forebay_usage::table::{self, Sort, TableShape};
use forebay_usage::{Flows, Window, printable};

/// See the module's doc.
pub(crate) struct Screen {
    address: String,
    layout: TableShape,
    flows: Option<Flows>,
    failed: Option<String>,
}

/// What follows from a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    Draw,
    Ask,
    Quit,
    Nothing,
}

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
/// Above the table: two lines of ours, and one for what went wrong.
const HEAD_LINES: usize = 3;
/// Of the table: its header, the others, and the sum.
const TABLE_LINES: usize = 3;

impl Screen {
    pub fn new(address: &str, layout: TableShape) -> Screen {
        Screen { address: printable(address).into_owned(), layout, flows: None, failed: None }
    }

    pub fn said(&mut self, flows: Flows) {
        (self.flows, self.failed) = (Some(flows), None);
    }

    /// What was said before stays.
    pub fn failed(&mut self, why: &str) {
        self.failed = Some(printable(why).into_owned());
    }

    pub fn key(&mut self, key: u8) -> Follows {
        let sort = match key {
            b'q' | b'Q' | CTRL_C | CTRL_D => return Follows::Quit,
            b' ' => return Follows::Ask,
            b't' => {
                self.layout.window = match self.layout.window {
                    Window::Minute => Window::TenMinutes,
                    Window::TenMinutes => Window::Total,
                    Window::Total => Window::Minute,
                };
                return Follows::Draw;
            }
            b'c' => Sort::Cpu,
            b'b' => Sort::Bytes,
            b'h' => Sort::Held,
            b'w' => Sort::Watches,
            b'l' => Sort::Lists,
            _ => return Follows::Nothing,
        };
        self.layout.sort = sort;
        Follows::Draw
    }

    /// What fits a terminal of so many columns and lines.
    pub fn lines(&self, (columns, rows): (usize, usize)) -> Vec<String> {
        let TableShape { window, sort, .. } = self.layout;
        let by = Sort::ALL.into_iter().find(|(_, of)| *of == sort).map_or("", |(name, _)| name);
        let seconds = self.flows.as_ref().map(|flows| flows.seconds.of(window));
        let span = match (window, seconds) {
            (_, None) => "asking".to_owned(),
            (Window::Total, Some(seconds)) => format!("since the start, {seconds:.0} s"),
            (_, Some(seconds)) => format!("the last {seconds:.0} s"),
        };
        let mut lines = vec![
            format!("forebay top  {}  {span}  by {by}", self.address),
            "c cpu  b bytes  h held  w watches  l lists  t time  q quit".to_owned(),
            self.failed.clone().unwrap_or_default(),
        ];
        if let Some(flows) = &self.flows {
            let room = rows.saturating_sub(HEAD_LINES + TABLE_LINES);
            lines.extend(table::lines(
                flows,
                TableShape { width: Some(columns), rows: Some(room), ..self.layout },
            ));
        }
        lines.truncate(rows);
        // Few: a terminal's.
        lines.iter_mut().for_each(|line| *line = line.chars().take(columns).collect());
        lines
    }

    /// The same as it is written: over what was there, and nothing behind it.
    pub fn drawn(&self, size: (usize, usize)) -> String {
        const HOME: &str = "\x1b[H";
        const REST_OF_LINE: &str = "\x1b[K";
        const BELOW: &str = "\x1b[J";
        let (bold, reverse, plain) = ("\x1b[1m", "\x1b[7m", "\x1b[0m");
        let line = |(at, line): (usize, String)| match at {
            0 => format!("{bold}{line}{plain}{REST_OF_LINE}"),
            HEAD_LINES => format!("{reverse}{line}{plain}{REST_OF_LINE}"),
            _ => format!("{line}{REST_OF_LINE}"),
        };
        let lines: Vec<String> = self.lines(size).into_iter().enumerate().map(line).collect();
        // No end of line behind the last one: it would move all up.
        format!("{HOME}{}{BELOW}", lines.join("\r\n"))
    }
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
