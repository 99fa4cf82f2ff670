//! Brings a target to where the rows begin, runs them, and says which of them hold.
//!
//! In: a [`Target`], the rows, the writes. Out: [`Results`]. Rows run at the same time: none of them writes.
//! Never: another order of writes on one target than on another.

use std::collections::BTreeMap;

use forebay_rt::{Clock, Duration, Instant};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::ask::{Asked, Revisions};
use super::history::{ApiResource, KINDS, Period, Write};
use super::shape::{Observation, Shown, is_as_wanted};
use super::table::{Row, Verb, When};
use super::target::{Target, Whose};

/// Requests in flight at a target: many rows wait three seconds, which costs nobody anything.
const AT_ONCE: usize = 64;
/// How long watches are, at least: until the last of them has begun (some wait 3 s) and the writes are done,
/// and the two seconds before the end of which a bookmark tells.
const WATCH_SECONDS: u64 = 9;
/// How long before a watch ends what it is to tell is written, at least.
const DELIVERY: Duration = Duration::from_secs(2);
/// How long a kind may take until it is served: a CRD that was made, a server that was started.
const SERVED_MAX: Duration = Duration::from_secs(60);

/// How one row on one kind went.
#[derive(Debug)]
pub struct Tested {
    pub row: usize,
    pub kind: &'static str,
    pub line: String,
    pub wanted: String,
    pub holds: bool,
}

/// How all of them went on one target.
#[derive(Debug)]
pub struct Results {
    pub target: String,
    pub whose: Whose,
    pub tested: Vec<Tested>,
    /// Rows about compacted history, where that was not to be had.
    pub left_out: usize,
    /// The writes were not done when watches ended: the machine is slower than it was a moment before, and no
    /// row is at fault.
    pub is_late: bool,
}

/// One row on one kind, as it is asked.
struct Case {
    at: usize,
    kind: ApiResource,
    asked: Asked,
}

struct Run<'a> {
    target: Target,
    rows: &'a [Row],
    writes: &'a [Write],
    revisions: BTreeMap<&'static str, Revisions>,
    has_compacted: bool,
    answers: Vec<(Case, Observation)>,
    left_out: usize,
    is_late: bool,
    patience: u64,
}

/// Runs every row on `target`, which ends.
///
/// - `patience`: how many times as long as would do on a machine that is busy evenly watches last.
///
/// # Errors
/// What kept a row from being asked.
pub async fn run(target: Target, rows: &[Row], writes: &[Write], patience: u64) -> Result<Results, String> {
    let name = target.name.clone();
    let mut run = Run {
        target,
        rows,
        writes,
        revisions: KINDS.iter().map(|kind| (kind.plural, Revisions::default())).collect(),
        has_compacted: false,
        answers: Vec::new(),
        left_out: 0,
        is_late: false,
        patience,
    };
    let done = run.all().await;
    let Run { target, revisions, answers, left_out, is_late, .. } = run;
    let whose = target.whose;
    let stopped = target.stop().await;
    done.and(stopped).map_err(|why| format!("{name}: {why}"))?;
    let tested = answers
        .into_iter()
        .map(|(case, answer)| tested(&case, &rows[case.at], &revisions[case.kind.plural], &answer, whose));
    let mut tested: Vec<Tested> = tested.collect();
    tested.sort_by_key(|tested| tested.row);
    Ok(Results { target: name, whose, tested, left_out, is_late })
}

fn tested(case: &Case, row: &Row, revisions: &Revisions, answer: &Observation, whose: Whose) -> Tested {
    let kind = &case.kind;
    let wanted = match (&row.ours, whose) {
        (Some((ours, _)), Whose::Ours) => ours,
        _ => &row.theirs,
    };
    let wanted = wanted
        .replace("{resource}", &kind.of_group(kind.plural))
        .replace("{kind}", &kind.of_group(kind.kind));
    let line = Shown { revisions, asked: &case.asked, row, kind }.line(answer, &wanted);
    let holds = is_as_wanted(&line, &wanted, answer, row);
    Tested { row: case.at, kind: kind.plural, line, wanted, holds }
}

impl Run<'_> {
    async fn all(&mut self) -> Result<(), String> {
        self.target.prepare().await?;
        self.served().await?;
        self.write(Period::Old).await?;
        // Every cache has what was written before it grows old: what one takes in later is young to it.
        self.served().await?;
        let now = self.target.now(&KINDS[0]).await?;
        self.has_compacted = self.target.age(now).await?;
        self.served().await?;
        let (clock, start) = (Clock::system(), Clock::system().now());
        self.write(Period::Static).await?;
        // The same number of writes is to come, and as many watches are to begin: a slow machine gets more
        // time for it.
        let writing = clock.now().duration_since(start).as_secs();
        let watch_seconds = (WATCH_SECONDS + 5 * writing) * self.patience;
        self.begin(watch_seconds).await?;
        let before = self.cases(|row| row.when == When::Before && row.verb != Verb::Watch)?;
        self.ask(before).await?;
        let watches = self.cases(|row| row.when == When::Before && row.verb == Verb::Watch)?;
        let start = clock.now();
        self.watch(watches, start + Duration::from_secs(watch_seconds)).await?;
        self.begin(watch_seconds).await?;
        let after = self.cases(|row| row.when == When::After)?;
        self.ask(after).await
    }

    /// Waits until every kind is served.
    async fn served(&self) -> Result<(), String> {
        let clock = Clock::system();
        let deadline = clock.now() + SERVED_MAX;
        for kind in &KINDS {
            while let Err(why) = self.target.now(kind).await {
                if clock.now() > deadline {
                    return Err(why);
                }
            }
        }
        Ok(())
    }

    async fn write(&mut self, period: Period) -> Result<(), String> {
        for write in self.writes.iter().filter(|write| write.period == period) {
            for kind in KINDS.iter().filter(|kind| kind.takes(write)) {
                let revision = self.target.write(kind, write).await?;
                self.revisions.entry(kind.plural).or_default().wrote(write, revision);
            }
        }
        Ok(())
    }

    /// Notes what is current, which brings the caches there, too.
    async fn begin(&mut self, watch_seconds: u64) -> Result<(), String> {
        for kind in &KINDS {
            let now = self.target.now(kind).await?;
            self.revisions.entry(kind.plural).or_default().begin(now, watch_seconds);
        }
        Ok(())
    }

    fn cases(&mut self, chosen: impl Fn(&Row) -> bool) -> Result<Vec<Case>, String> {
        let mut cases = Vec::new();
        for (at, row) in self.rows.iter().enumerate().filter(|(_, row)| chosen(row)) {
            for kind in &row.kinds {
                if row.is_of_old() && !self.has_compacted {
                    self.left_out += 1;
                    continue;
                }
                let asked = self.revisions[kind.plural].ask(row, kind)?;
                cases.push(Case { at, kind: *kind, asked });
            }
        }
        Ok(cases)
    }

    async fn ask(&mut self, cases: Vec<Case>) -> Result<(), String> {
        let (target, rows) = (&self.target, self.rows);
        let answers = stream::iter(cases.into_iter().map(|case| async move {
            let answer = target.ask(&case.kind, &rows[case.at], &case.asked).await?;
            Ok::<_, String>((case, answer))
        }));
        let answers: Vec<_> = answers.buffer_unordered(AT_ONCE).try_collect().await?;
        self.answers.extend(answers);
        Ok(())
    }

    /// Opens every watch, then writes, then reads them to their ends, the first of which is not before `end`.
    async fn watch(&mut self, cases: Vec<Case>, end: Instant) -> Result<(), String> {
        let (target, rows) = (&self.target, self.rows);
        let opened = stream::iter(cases.into_iter().map(|case| async move {
            let begun = target.watch(&case.kind, &rows[case.at], &case.asked.query).await?;
            // Read from now on, whoever else is still to begin.
            Ok::<_, String>((case, begun.map(|stream| tokio::spawn(stream.events()))))
        }));
        let opened: Vec<_> = opened.buffer_unordered(AT_ONCE).try_collect().await?;
        self.write(Period::Live).await?;
        self.is_late = Clock::system().now() + DELIVERY > end;
        for (case, begun) in opened {
            let answer = match begun {
                Ok(events) => events.await.map_err(|e| e.to_string())?,
                Err(refused) => Ok(refused),
            };
            let answer = answer.map_err(|why| format!("{}: {why}", self.rows[case.at].title))?;
            self.answers.push((case, answer));
        }
        Ok(())
    }
}
