//! Scenarios that measure forebay and its rival, kube-apiserver on etcd, by the same client on the same
//! machine.
//!
//! In: the programs to run and a size. Out: [`report::Report`]: every figure of both, and their ratio. Never:
//! a figure from memory or from another machine; both running at once; anything left running or on disk.
//!
//! Scenarios: `start` to ready; `create` many objects; `restart` with them; `resident`, what they take in
//! memory, loaded, quiet and after a storm; `owners`, what managedFields of three managers take; `list`, what
//! each form of a LIST costs beside a file server;
//! `storm`, many clients that LIST them all at once while memory is read ten times a second, which `--svg`
//! draws; `readers`, a hundred of them of which twenty are slow; `watchlist`, informers that start at once;
//! `envtest`, many control planes at once; `fanout`, an update sent to many watchers; `idle`, many watchers
//! to whom nothing happens; `curve`, LISTs and updates as objects and watchers grow, which `--curves` draws;
//! `million`, a million objects in one process; `informer`, informers until they have all objects and at
//! rest, and `informer-paths`, what they do then, both beside client-go and kube-rs ([`mirrored`]);
//! `avalanche`, three servers of which one dies under full load ([`fleet`], [`reader`]), which `--arrivals`
//! draws; `fairness`, a greedy user beside a controller and nodes, with flow control and without;
//! `webhooks`, what one adds to a write, and what one that hangs does to others;
//! `hostile`, a catalogue of hostile requests and connections ([`hostile`]), each on a server of its own and
//! beside a bystander: `--only NAME` is for one of its rows, `--size 10` shows whether it works at all.
//!
//! What they write comes from a published seed ([`draw::SEED`]): pods of about 8 KB in four dozen shapes
//! ([`pods`]), or with `--objects` Leases, ConfigMaps and Secrets ([`objects`]).
//! `forebay-bench resident --ours-only --runs 1` is one run of one scenario on forebay alone, `--size 2000` a
//! small one; `--forebay FILE` says which binary.
//!
//! A new scenario is a file in `scenarios` and a line in [`scenarios::Scenario`].
#![allow(clippy::disallowed_methods, reason = "it measures the real clock and waits for other processes")]

pub mod arrivals;
pub mod aside;
pub mod balancer;
pub mod caller;
pub mod chart;
pub mod controller;
pub mod curves;
pub mod envtest;
pub mod fleet;
pub mod greed;
pub mod heartbeats;
pub mod informers;
pub mod initial;
pub mod lists;
pub mod machine;
pub mod mirrored;
pub mod offer;
pub mod page;
pub mod pending;
pub mod picture;
pub mod plot;
pub mod reader;
pub mod report;
pub mod sampler;
pub mod scenarios;
pub mod series;
pub mod stored;
pub mod updates;
pub mod users;
pub mod watchers;
pub mod waves;

pub use forebay_contenders::{
    Error, cage, client, contender, draw, forebay, guard, kubernetes, lab, load, objects, overload, pki,
    pods, proc, ratio, server, static_server, template, units,
};
pub use forebay_hostile as hostile;
