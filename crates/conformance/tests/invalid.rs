//! Every kind's invalid and changed objects, to both servers: the same Status, the same object.
//!
//! In: `cases/`, and what `mutate` makes of the samples. Out: a table of shares on standard error. Fails on a
//! difference that `allowed/invalid.txt` does not have, and on a line there that is not needed any more.

use std::fmt::Write as _;

use forebay_clients::needs;
use forebay_conformance::{Allowed, Pair, cases, run};
use http::Method;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_are_answered_as_kube_apiserver_answers_them() {
    if !needs::peers_or_skip() {
        return;
    }
    let pair = Pair::start().await.expect("both servers");
    let namespace = json!({ "metadata": { "name": cases::NAMESPACE } });
    for peer in [&pair.ours, &pair.theirs] {
        let made = peer.send(Method::POST, "/api/v1/namespaces", Some(&namespace)).await.expect("an answer");
        assert_eq!(made.code, 201, "{}", made.body);
    }
    let mut allowed =
        Allowed::parse(include_str!("../allowed/invalid.txt")).expect("the allowed differences");
    let wanted = std::env::var("FOREBAY_CONFORMANCE_KIND").unwrap_or_default();
    let (mut table, mut report, mut failure, mut unexpected) =
        (String::new(), String::new(), String::new(), 0);
    for kind in cases::all().expect("the cases") {
        if !kind.title().contains(&wanted) {
            continue;
        }
        let tally = match run::kind(&pair, &kind).await {
            Ok(tally) => tally,
            Err(why) => {
                unexpected += 1;
                let _ = writeln!(failure, "{why}");
                continue;
            }
        };
        let (rows, alike) = (tally.rows, tally.rows - tally.different.len());
        let _ = writeln!(
            table,
            "{:60} {alike:4} of {rows:4} equal, of those refused {:4} of {:4}",
            kind.title(),
            tally.refused_alike,
            tally.refused
        );
        for different in tally.different {
            let is_allowed = allowed.permits(&different.case);
            unexpected += usize::from(!is_allowed);
            // The report has all of them, a failure only what nobody decided on.
            for text in [(!is_allowed).then_some(&mut failure), Some(&mut report)].into_iter().flatten() {
                let _ = writeln!(
                    text,
                    "{}\n  ours   {} {:?} {}\n  theirs {} {:?} {}",
                    different.case,
                    different.ours.code,
                    different.ours.warnings,
                    different.ours.body,
                    different.theirs.code,
                    different.theirs.warnings,
                    different.theirs.body
                );
            }
        }
    }
    eprintln!("{table}");
    if let Some(path) = std::env::var_os("FOREBAY_CONFORMANCE_REPORT") {
        std::fs::write(path, format!("{table}\n{report}")).expect("the report");
    }
    assert!(unexpected == 0, "{unexpected} answers differ:\n{failure}");
    assert!(!wanted.is_empty() || allowed.stale().is_empty(), "no longer different: {:#?}", allowed.stale());
}
