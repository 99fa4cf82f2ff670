//! A report as a table for people: a line for each client, what is asked for first.
//!
//! In: [`Flows`], which window of it, by what to sort, how wide and how high. Out: lines. Never: a line
//! longer than it may be, or a character that a terminal would obey.

use std::borrow::Cow;
use std::cmp::Reverse;

use crate::report::{Causes, Client, Figures, Flows, Lists, Used, Window};
use crate::text::printable;

/// What is listed first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Cpu,
    Bytes,
    Held,
    Watches,
    Lists,
}

impl Sort {
    pub const ALL: [(&str, Sort); 5] = [
        ("cpu", Sort::Cpu),
        ("bytes", Sort::Bytes),
        ("held", Sort::Held),
        ("watches", Sort::Watches),
        ("lists", Sort::Lists),
    ];

    pub fn named(name: &str) -> Option<Sort> {
        Sort::ALL.into_iter().find(|(of, _)| *of == name).map(|(_, sort)| sort)
    }

    fn of(self, usage: &Figures, window: Window) -> u64 {
        let used = usage.used(window);
        match self {
            Sort::Cpu => used.cpu_us,
            Sort::Bytes => used.bytes_sent,
            Sort::Held => usage.now.held_bytes,
            Sort::Watches => usage.now.watches,
            Sort::Lists => used.lists.sum() + used.watch_lists,
        }
    }
}

/// How a table is to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableShape {
    pub window: Window,
    pub sort: Sort,
    /// Characters of a line; `None` is as many as there are.
    pub width: Option<usize>,
    /// Clients at most.
    pub rows: Option<usize>,
}

impl TableShape {
    /// With what somebody named.
    ///
    /// # Errors
    /// What may be named instead.
    pub fn named(sort: Option<&str>, window: Option<&str>) -> Result<TableShape, &'static str> {
        let sort =
            sort.map(|name| Sort::named(name).ok_or("sort must be one of cpu, bytes, held, watches, lists"));
        let window = window.map(|name| Window::named(name).ok_or("window must be '1m', '10m' or 'all'"));
        let (sort, window) = (sort.transpose()?.unwrap_or_default(), window.transpose()?.unwrap_or_default());
        Ok(TableShape { sort, window, ..TableShape::default() })
    }
}

/// A column: what stands above it, and how it is filled.
struct Column {
    title: &'static str,
    is_number: bool,
    /// Which go first where there is no room for all: the highest.
    spare: u8,
    /// Where a text is cut that is too long.
    cut: Cut,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Front,
    Back,
}

const fn number(title: &'static str, spare: u8) -> Column {
    Column { title, is_number: true, spare, cut: Cut::Back }
}

const fn text(title: &'static str, spare: u8) -> Column {
    Column { title, is_number: false, spare, cut: Cut::Back }
}

const COLUMNS: [Column; 13] = [
    number("CPU%", 0),
    number("SENT", 1),
    number("HELD", 2),
    number("WATCHES", 2),
    number("BEHIND", 5),
    number("REQUESTS", 4),
    number("LISTS", 1),
    number("429", 3),
    // A service account's name is at the end of it.
    Column { cut: Cut::Front, ..text("USER", 0) },
    text("AGENT", 0),
    text("RESOURCE", 0),
    text("WHY", 0),
    text("FLOW", 6),
];
/// The texts may be cut so far before a column goes; the last of a line takes what is left.
const TEXT_WIDTH_MIN: usize = 12;
/// Between columns.
const GAP: usize = 2;

/// The table, its header first; everybody else and the sum of all come last.
pub fn lines(report: &Flows, layout: TableShape) -> Vec<String> {
    let TableShape { window, sort, .. } = layout;
    let seconds = report.seconds.of(window);
    let mut clients: Vec<&Client> = report.clients.iter().collect();
    clients.sort_by_key(|client| Reverse(sort.of(&client.figures, window)));
    let shown = layout.rows.unwrap_or(usize::MAX).min(clients.len());
    let mut rows = vec![COLUMNS.map(|column| column.title.to_string())];
    rows.extend(clients[..shown].iter().map(|client| {
        let flow = &client.flow;
        let of = [&*flow.level, &*flow.schema, &*flow.distinguisher];
        let flow = of.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let names = [&*client.user, &*client.user_agent, &*client.resource];
        row(&client.figures, window, seconds, names.map(or_dash), &or_dash(&flow))
    }));
    let none = || String::from("-");
    if report.folded > 0 {
        let names = ["(others)".to_string(), none(), none()];
        rows.push(row(&report.others, window, seconds, names, "-"));
    }
    rows.push(row(&report.all, window, seconds, ["(all)".to_string(), none(), none()], "-"));
    aligned(&rows, layout.width)
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".into() } else { printable(text).into_owned() }
}

fn row(
    usage: &Figures,
    window: Window,
    seconds: f64,
    [user, agent, resource]: [String; 3],
    flow: &str,
) -> [String; 13] {
    let (used, now) = (usage.used(window), &usage.now);
    let cpu = used.cpu_us as f64 / 10_000.0 / seconds.max(1.0);
    let behind = match now.behind {
        0 => "0".to_string(),
        behind => format!("{behind} ({})", span(now.lag_ms)),
    };
    [
        format!("{cpu:.1}"),
        bytes(used.bytes_sent),
        bytes(now.held_bytes),
        now.watches.to_string(),
        behind,
        used.requests.to_string(),
        (used.lists.sum() + used.watch_lists).to_string(),
        used.refused.to_string(),
        user,
        agent,
        resource,
        why(used),
        flow.to_string(),
    ]
}

/// Why there were lists, and which: `again 12, 410 3 (rv="" 14, rv=0 1)`.
fn why(used: &Used) -> String {
    let Causes { start, expired, again } = used.causes;
    let Lists { unset, zero, at_least, exact, page } = used.lists;
    let said = |parts: &[(&str, u64)]| {
        let mut parts: Vec<_> = parts.iter().filter(|(_, count)| *count > 0).collect();
        parts.sort_by_key(|(_, count)| Reverse(*count));
        parts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
    };
    let causes = said(&[("start", start), ("410", expired), ("again", again)]);
    let lists = said(&[
        ("rv=\"\"", unset),
        ("rv=0", zero),
        ("rv>=", at_least),
        ("rv=", exact),
        ("page", page),
        ("watch", used.watch_lists),
    ]);
    match (causes.is_empty(), lists.is_empty()) {
        (_, true) => "-".into(),
        (true, false) => format!("({lists})"),
        (false, false) => format!("{causes} ({lists})"),
    }
}

fn bytes(bytes: u64) -> String {
    scaled(bytes, &["B", "K", "M", "G", "T"], 1024)
}

fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..120_000 => format!("{}s", ms / 1_000),
        _ => format!("{}m", ms / 60_000),
    }
}

fn scaled(number: u64, units: &[&str], step: u64) -> String {
    let (mut value, mut at) = (number as f64, 0);
    while value >= step as f64 && at + 1 < units.len() {
        value /= step as f64;
        at += 1;
    }
    match at {
        0 if number == 0 => "0".into(),
        0 => format!("{number}{}", units[0]),
        _ if value < 10.0 => format!("{value:.1}{}", units[at]),
        _ => format!("{value:.0}{}", units[at]),
    }
}

/// The rows as lines of columns that stand below each other. Where there is not room for all, texts are cut,
/// then columns are left out.
fn aligned(rows: &[[String; 13]], width: Option<usize>) -> Vec<String> {
    let mut widths: [Option<usize>; 13] =
        std::array::from_fn(|at| rows.iter().map(|row| row[at].chars().count()).max());
    if let Some(width) = width {
        fit(&mut widths, width);
    }
    let last = widths.iter().rposition(Option::is_some);
    let line = |row: &[String; 13]| {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let Some(wide) = widths[at] else { continue };
            if !line.is_empty() {
                line.push_str(&" ".repeat(GAP));
            }
            let cell = shortened(cell, wide, COLUMNS[at].cut);
            match COLUMNS[at].is_number {
                true => line.push_str(&format!("{cell:>wide$}")),
                false if Some(at) == last => line.push_str(&cell),
                false => line.push_str(&format!("{cell:<wide$}")),
            }
        }
        match width {
            Some(width) => shortened(&line, width, Cut::Back).into_owned(),
            None => line,
        }
    };
    rows.iter().map(line).collect()
}

/// Makes columns narrower, or leaves them out, until they are no wider than `width` together.
fn fit(widths: &mut [Option<usize>; 13], width: usize) {
    loop {
        let kept = widths.iter().flatten().count();
        let total = widths.iter().flatten().sum::<usize>() + GAP * kept.saturating_sub(1);
        let Some(over) = total.checked_sub(width).filter(|over| *over > 0) else { return };
        let is_text = |at: &usize| !COLUMNS[*at].is_number;
        let widest = (0..widths.len()).filter(is_text).max_by_key(|at| widths[*at]);
        if let Some(wide) = widest.and_then(|at| widths[at].as_mut())
            && *wide > TEXT_WIDTH_MIN
        {
            // Down to the least, or by a few at a time: the others may be as wide.
            *wide -= over.min(*wide - TEXT_WIDTH_MIN).min(8);
            continue;
        }
        let spare = (0..widths.len()).filter(|at| widths[*at].is_some()).max_by_key(|at| COLUMNS[*at].spare);
        match spare.filter(|at| COLUMNS[*at].spare > 0) {
            Some(at) => widths[at] = None,
            // The lines are cut.
            None => return,
        }
    }
}

fn shortened(text: &str, width: usize, cut: Cut) -> Cow<'_, str> {
    // Once: a cell is a name within its limit, or a few numbers.
    let over = text.chars().count().saturating_sub(width);
    let place = |character: usize| text.char_indices().nth(character).map_or(text.len(), |(at, _)| at);
    match cut {
        _ if over == 0 => text.into(),
        _ if width == 0 => "".into(),
        Cut::Back => format!("{}…", &text[..place(width - 1)]).into(),
        Cut::Front => format!("…{}", &text[place(over + 1)..]).into(),
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
