//! A lab in which every scenario is quick, and our own server for it.

use std::path::PathBuf;
use std::time::Duration;

use forebay_bench::client::Protocol;
use forebay_bench::contender::Contender;
use forebay_bench::forebay::Forebay;
use forebay_bench::lab::Lab;
use forebay_bench::objects::Objects;
use forebay_bench::overload::Overload;

/// `target/<profile>/forebay`: a test is `target/<profile>/deps/<name>-<hash>`.
pub fn forebay() -> Contender {
    let this = std::env::current_exe().expect("a test knows its own path");
    let profile: PathBuf = this.ancestors().nth(2).expect("cargo puts tests two levels down").to_owned();
    Contender::Forebay(Forebay::at(&profile.join("forebay")).unwrap_or_else(|why| panic!("{why}")))
}

pub fn lab(protocol: Protocol) -> Lab {
    Lab {
        size: 10,
        objects: Objects::Pods,
        is_governed: false,
        clients: 4,
        listers: 4,
        rounds: 1,
        watchers: 10,
        crowd: 10,
        servers: 2,
        runs: Some(1),
        protocol,
        settle: Duration::ZERO,
        static_server: None,
        sizes: vec![10],
        crowds: vec![2],
        rival_max: 10,
        storm_writes: 0,
        million: 10,
        only: vec![],
        overload: Overload::default(),
        base: std::env::temp_dir(),
    }
}
