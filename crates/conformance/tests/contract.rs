//! The contract of GET, LIST and WATCH on ours, on its cache over each backend, and on a real kube-apiserver.
//!
//! `FOREBAY_CONTRACT_KUBECONFIG` names another server to run the same rows on, `FOREBAY_CONTRACT_URL` its
//! address where that is not the kubeconfig's. `FOREBAY_CONFORMANCE_REPORT` names a file that gets every row
//! with every target's answer.

use std::path::PathBuf;

use forebay_clients::needs;
use forebay_clients::server::Implementation;
use forebay_conformance::contract::local::Storage;
use forebay_conformance::contract::{Results, Target, Whose, history, report, run, table};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_row_holds_on_every_target() {
    let (rows, _) = table::rows().expect("the tables");
    let writes = history::writes().expect("the history");
    let dir = needs::cache_dir().expect("a directory").join(format!("contract-{}", std::process::id()));
    let on_disk = Storage::EmbeddedOnDisk(dir.clone());
    let over_http = in_time(|| Target::server(Implementation::Forebay), &rows, &writes);
    let in_memory = || Target::local("cache over memory", &Storage::EmbeddedInMemory);
    let memory = in_time(in_memory, &rows, &writes);
    let over_disk = || async {
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
        Target::local("cache over disk", &on_disk).await
    };
    let disk = in_time(over_disk, &rows, &writes);
    let real = async {
        if !needs::peers_or_skip() {
            return Ok(None);
        }
        in_time(|| Target::server(Implementation::KubeApiserver), &rows, &writes).await.map(Some)
    };
    let (http, memory, disk, real) = tokio::join!(over_http, memory, disk, real);
    let _ = std::fs::remove_dir_all(&dir);
    let mut results: Vec<Results> =
        [http, memory, disk].map(|ran| ran.unwrap_or_else(|why| panic!("{why}"))).into();
    results.extend(real.unwrap_or_else(|why| panic!("{why}")));
    judge(&rows, &results);
    if results.iter().any(|result| result.whose == Whose::Theirs) {
        compat_says_so(&rows, &results);
    }
}

/// Runs every row on what `start` starts: once more, with more time for watches, where the machine became so
/// slow that what they are to tell was written too late.
async fn in_time<F: Future<Output = Result<Target, String>>>(
    start: impl Fn() -> F,
    rows: &[table::Row],
    writes: &[history::Write],
) -> Result<Results, String> {
    let results = Box::pin(run(start().await?, rows, writes, 1)).await?;
    match results.is_late {
        true => Box::pin(run(start().await?, rows, writes, 4)).await,
        false => Ok(results),
    }
}

/// COMPAT.md has what the suite says. `FOREBAY_CONTRACT_UPDATE` writes it there.
fn compat_says_so(rows: &[table::Row], results: &[Results]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../COMPAT.md");
    let text = std::fs::read_to_string(&path).expect("COMPAT.md");
    let (begin, end) = ("<!-- contract: begin -->\n", "<!-- contract: end -->");
    let (before, rest) = text.split_once(begin).expect("where it begins");
    let (_, after) = rest.split_once(end).expect("where it ends");
    let said = format!("{}\n{}", report::markdown(rows, results), report::on_purpose(rows));
    let new = format!("{before}{begin}{said}{end}{after}");
    if std::env::var_os("FOREBAY_CONTRACT_UPDATE").is_some() {
        std::fs::write(&path, new).expect("COMPAT.md");
        return;
    }
    assert!(text == new, "COMPAT.md says otherwise; FOREBAY_CONTRACT_UPDATE=1 writes this there:\n{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_holds_on_the_server_that_the_environment_names() {
    let Some(kubeconfig) = std::env::var_os("FOREBAY_CONTRACT_KUBECONFIG") else { return };
    let url = std::env::var("FOREBAY_CONTRACT_URL").ok();
    let (rows, _) = table::rows().expect("the tables");
    let writes = history::writes().expect("the history");
    let target = Target::url(&PathBuf::from(kubeconfig), url.as_deref()).await;
    let target = target.unwrap_or_else(|why| panic!("{why}"));
    let results = run(target, &rows, &writes, 1).await.unwrap_or_else(|why| panic!("{why}"));
    eprintln!("{} rows were left out: they are about compacted history", results.left_out);
    judge(&rows, &[results]);
}

fn judge(rows: &[table::Row], results: &[Results]) {
    eprintln!("{}", report::markdown(rows, results));
    if let Some(path) = std::env::var_os("FOREBAY_CONFORMANCE_REPORT") {
        std::fs::write(path, report::recorded(rows, results)).expect("the report");
    }
    let broken = report::broken(rows, results);
    assert!(broken.is_empty(), "{broken}");
}
