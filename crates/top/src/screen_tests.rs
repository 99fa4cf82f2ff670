//! Screens of made-up servers.

use expect_test::{Expect, expect};
use forebay_usage::{Client, Figures, InUse, Lists, Seconds, Used};

use super::*;

fn flows() -> Flows {
    let client = |user: &str, watches: u64, unset: u64, cpu_us: u64| {
        let used = |times: u64| Used {
            lists: Lists { unset: unset * times, ..Lists::default() },
            cpu_us: cpu_us * times,
            ..Used::default()
        };
        let now = InUse { watches, ..InUse::default() };
        let figures = Figures { now, minute: used(1), ten_minutes: used(2), total: used(3) };
        Client {
            user: user.into(),
            user_agent: "x/1".into(),
            resource: "pods".into(),
            figures,
            ..Client::default()
        }
    };
    let clients = vec![client("a", 3, 1, 600_000), client("b", 7, 2, 60_000), client("c", 5, 3, 6_000)];
    let seconds = Seconds { minute: 58.2, ten_minutes: 571.0, total: 7_200.0 };
    Flows { seconds, clients, ..Flows::default() }
}

fn screen() -> Screen {
    Screen::new("https://127.0.0.1:6443", TableShape::default())
}

fn check(screen: &Screen, size: (usize, usize), want: Expect) {
    let lines: Vec<String> = screen.lines(size).iter().map(|line| line.trim_end().to_owned()).collect();
    want.assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn it_says_that_it_asks_until_there_is_an_answer() {
    check(
        &screen(),
        (80, 24),
        expect![[r#"
        forebay top  https://127.0.0.1:6443  asking  by cpu
        c cpu  b bytes  h held  w watches  l lists  t time  q quit

    "#]],
    );
}

#[test]
fn keys_sort_and_change_the_time() {
    let mut screen = screen();
    screen.said(flows());
    check(
        &screen,
        (80, 24),
        expect![[r#"
        forebay top  https://127.0.0.1:6443  the last 58 s  by cpu
        c cpu  b bytes  h held  w watches  l lists  t time  q quit

        CPU%  SENT  HELD  WATCHES  LISTS  429  USER   AGENT  RESOURCE  WHY
         1.0     0     0        3      1    0  a      x/1    pods      (rv="" 1)
         0.1     0     0        7      2    0  b      x/1    pods      (rv="" 2)
         0.0     0     0        5      3    0  c      x/1    pods      (rv="" 3)
         0.0     0     0        0      0    0  (all)  -      -         -
    "#]],
    );
    assert_eq!((screen.key(b'w'), screen.key(b't')), (Follows::Draw, Follows::Draw));
    check(
        &screen,
        (80, 24),
        expect![[r#"
        forebay top  https://127.0.0.1:6443  the last 571 s  by watches
        c cpu  b bytes  h held  w watches  l lists  t time  q quit

        CPU%  SENT  HELD  WATCHES  LISTS  429  USER   AGENT  RESOURCE  WHY
         0.0     0     0        7      4    0  b      x/1    pods      (rv="" 4)
         0.0     0     0        5      6    0  c      x/1    pods      (rv="" 6)
         0.2     0     0        3      2    0  a      x/1    pods      (rv="" 2)
         0.0     0     0        0      0    0  (all)  -      -         -
    "#]],
    );
    assert_eq!((screen.key(b'l'), screen.key(b't')), (Follows::Draw, Follows::Draw));
    check(
        &screen,
        (80, 7),
        expect![[r#"
        forebay top  https://127.0.0.1:6443  since the start, 7200 s  by lists
        c cpu  b bytes  h held  w watches  l lists  t time  q quit

        CPU%  SENT  HELD  WATCHES  LISTS  429  USER   AGENT  RESOURCE  WHY
         0.0     0     0        5      9    0  c      x/1    pods      (rv="" 9)
         0.0     0     0        0      0    0  (all)  -      -         -
    "#]],
    );
    let others = [b' ', b'x', b'q', CTRL_C].map(|key| screen.key(key));
    assert_eq!(others, [Follows::Ask, Follows::Nothing, Follows::Quit, Follows::Quit]);
}

#[test]
fn what_went_wrong_stands_above_what_was_said_before() {
    let mut screen = screen();
    screen.said(flows());
    screen.failed("cannot reach\x1b[2J it");
    check(
        &screen,
        (40, 6),
        expect![[r#"
        forebay top  https://127.0.0.1:6443  the
        c cpu  b bytes  h held  w watches  l lis
        cannot reach�[2J it
        CPU%  SENT  USER   AGENT  RESOURCE  WHY
         0.0     0  (all)  -      -         -
    "#]],
    );
    screen.said(flows());
    assert_eq!(screen.lines((40, 6))[2], "");
}

#[test]
fn any_terminal_is_kept_to() {
    let mut screen = screen();
    screen.said(flows());
    for columns in 0..100 {
        for rows in 0..12 {
            let lines = screen.lines((columns, rows));
            assert!(lines.len() <= rows && lines.iter().all(|line| line.chars().count() <= columns));
            assert!(!screen.drawn((columns, rows)).ends_with('\n'));
        }
    }
}
