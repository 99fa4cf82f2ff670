//! A Kubernetes API server in the process of a test, with a client of [kube-rs](kube).
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use forebay_testing::TestServer;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, PostParams};
//!
//! let server = TestServer::start().await?;
//! let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
//! let mut map = ConfigMap::default();
//! map.metadata.name = Some("settings".into());
//! let created = maps.create(&PostParams::default(), &map).await?;
//! assert!(created.metadata.uid.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! - It is the server that `forebay serve` runs, put together by the same code: the same verbs, validation,
//!   watches, CRDs. What differs from kube-apiserver is in the project's COMPAT.md.
//! - Each server has its own store, in memory: nothing is written to a disk, and nothing is synced. Its port
//!   is a free one on 127.0.0.1, and its certificates are its own, so a client of another server never gets
//!   in by mistake.
//! - No controllers run, as with a kube-apiserver alone, and pods need no service account, as in envtest:
//!   nobody but the test writes. The flag `--controllers=*` brings both.
//! - Whoever is known may do everything, unless the flag `--authorization-mode=RBAC` says otherwise.
//! - [`TestServer::client`] is an administrator's. For other programs (kubectl, a controller in a process of
//!   its own) there is [`TestServer::kubeconfig`], for a client of your own [`TestServer::config`].
//! - Servers run on threads of their own, so a test may block, use a single-threaded runtime, or pause its
//!   clock. All servers of the process share these; each has one more for its store.
//! - Dropping a server ends it: connections are cut, its threads and memory are given back.
//!   [`TestServer::stop`] also waits for that.
//!
//! [`TestServer::builder`] takes the flags of `forebay serve`.
//!
//! In: flags. Out: a running server. Never: a file, a fixed port, a server that outlives its owner.

mod runtime;
mod server;

pub use server::{Builder, StartError, TestServer};
