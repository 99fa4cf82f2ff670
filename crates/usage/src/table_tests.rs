//! Tables of a made-up report.

use expect_test::{Expect, expect};

use super::*;
use crate::report::{FlowName, InUse, Seconds};

fn client(user: &str, agent: &str, resource: &str, usage: Figures) -> Client {
    let flow = FlowName {
        schema: "global-default".into(),
        level: "global-default".into(),
        distinguisher: user.into(),
    };
    Client { user: user.into(), user_agent: agent.into(), resource: resource.into(), flow, figures: usage }
}

fn report() -> Flows {
    let polls = Used {
        requests: 125,
        refused: 2,
        lists: Lists { unset: 120, ..Lists::default() },
        causes: Causes { again: 115, expired: 4, start: 1 },
        bytes_sent: 1_234_567_890,
        cpu_us: 45_000_000,
        ..Used::default()
    };
    let follows = Used { requests: 3, watch_starts: 3, bytes_sent: 20_480, cpu_us: 3_000, ..Used::default() };
    let now = InUse { watches: 40, behind: 2, lag_ms: 12_345, held_bytes: 655_360 };
    let clients = vec![
        client(
            "system:serviceaccount:monitoring:exporter",
            "exporter/v1.2 (linux/amd64) kubernetes/$Format",
            "pods",
            Figures { now: InUse::default(), minute: polls.clone(), ..Figures::default() },
        ),
        client(
            "kubelet\x1b[31m",
            "kubelet/v1.36",
            "nodes",
            Figures { now: now.clone(), minute: follows, ..Figures::default() },
        ),
    ];
    let all = Figures { now, minute: Used { requests: 128, ..polls }, ..Figures::default() };
    let seconds = Seconds { minute: 60.0, ten_minutes: 540.0, total: 5_000.0 };
    Flows { seconds, clients, folded: 3, all, ..Flows::default() }
}

fn check(layout: TableShape, want: Expect) {
    let lines = lines(&report(), layout);
    if let Some(width) = layout.width {
        assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
    }
    want.assert_eq(&(lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n") + "\n"));
}

#[test]
fn all_columns_where_there_is_room() {
    check(
        TableShape::default(),
        expect![[r#"
        CPU%  SENT  HELD  WATCHES   BEHIND  REQUESTS  LISTS  429  USER                                       AGENT                                           RESOURCE  WHY                                    FLOW
        75.0  1.1G     0        0        0       125    120    2  system:serviceaccount:monitoring:exporter  exporter/v1.2 (linux/amd64) kubernetes/$Format  pods      again 115, 410 4, start 1 (rv="" 120)  global-default/global-default/system:serviceaccount:monitoring:exporter
         0.0   20K  640K       40  2 (12s)         3      0    0  kubelet�[31m                               kubelet/v1.36                                   nodes     -                                      global-default/global-default/kubelet�[31m
         0.0     0     0        0        0         0      0    0  (others)                                   -                                               -         -                                      -
        75.0  1.1G  640K       40  2 (12s)       128    120    2  (all)                                      -                                               -         again 115, 410 4, start 1 (rv="" 120)  -
    "#]],
    );
}

#[test]
fn names_are_cut_first_then_what_matters_least_goes() {
    check(
        TableShape { width: Some(120), ..TableShape::default() },
        expect![[r#"
        CPU%  SENT  HELD  WATCHES   BEHIND  REQUESTS  LISTS  429  USER          AGENT         RESOURCE  WHY
        75.0  1.1G     0        0        0       125    120    2  …ng:exporter  exporter/v1…  pods      again 115, …
         0.0   20K  640K       40  2 (12s)         3      0    0  kubelet�[31m  kubelet/v1.…  nodes     -
         0.0     0     0        0        0         0      0    0  (others)      -             -         -
        75.0  1.1G  640K       40  2 (12s)       128    120    2  (all)         -             -         again 115, …
    "#]],
    );
    check(
        TableShape { width: Some(80), sort: Sort::Watches, rows: Some(1), ..TableShape::default() },
        expect![[r#"
        CPU%  SENT  HELD  LISTS  USER          AGENT         RESOURCE  WHY
         0.0   20K  640K      0  kubelet�[31m  kubelet/v1.…  nodes     -
         0.0     0     0      0  (others)      -             -         -
        75.0  1.1G  640K    120  (all)         -             -         again 115, …
    "#]],
    );
    check(
        TableShape { width: Some(30), ..TableShape::default() },
        expect![[r#"
        CPU%  USER          AGENT    …
        75.0  …ng:exporter  exporter/…
         0.0  kubelet�[31m  kubelet/v…
         0.0  (others)      -        …
        75.0  (all)         -        …
    "#]],
    );
}

#[test]
fn any_width_is_kept_to() {
    for width in 0..200 {
        for (_, sort) in Sort::ALL {
            let lines = lines(&report(), TableShape { width: Some(width), sort, ..TableShape::default() });
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}");
            assert!(lines.iter().all(|line| !line.contains('\x1b')));
        }
    }
}

#[test]
fn sizes_and_times_are_short() {
    let sizes = [0, 1, 1_023, 1_024, 10_239, 10_240, 1 << 20, u64::MAX];
    assert_eq!(sizes.map(bytes), ["0", "1B", "1023B", "1.0K", "10.0K", "10K", "1.0M", "16777216T"]);
    assert_eq!([0, 999, 1_000, 119_999, 120_000].map(span), ["0ms", "999ms", "1s", "119s", "2m"]);
}
