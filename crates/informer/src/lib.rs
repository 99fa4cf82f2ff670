//! Informers for any Kubernetes API server: a collection's objects in this process, kept current, and lists
//! asked for only where history is really gone.
//!
//! In: a `kube::Client`, and what to [watch](Watched). Out: [`Informer`]s: the state at a moment as a
//! [`View`], what happens as a [`Subscription`], and how it fares. Data flows one way:
//!
//! ```text
//! API server ──► driver ──► watch cache ──► View: get, list, indexes
//!               (reflector)            └──► subscriptions, each at its own pace
//! ```
//!
//! Objects are kept as the bytes that came, compressed in blocks, and read as a type when somebody asks
//! ([`Handle`]). Never: asks for `resourceVersion=0`, holds two states, waits for a handler.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use forebay_informer::{Factory, Notice, Options, Watched};
//! use k8s_openapi::api::core::v1::Pod;
//!
//! let factory = Factory::new(kube::Client::try_default().await?, Options::default());
//! let pods = factory.informer(&Watched::<Pod>::all().index("spec.nodeName"))?;
//! pods.synced().await?;
//! for pod in pods.view()?.indexed("spec.nodeName", "node-1")? {
//!     println!("{} {:?}", pod.name(), pod.field("status.phase")?);
//! }
//! let mut events = pods.subscribe();
//! while let Notice::Updated { new, .. } = events.next().await {
//!     println!("{}", new.typed()?.spec.as_ref().map_or(0, |spec| spec.containers.len()));
//! }
//! # Ok(())
//! # }
//! ```

mod bridge;
mod ceiling;
mod change;
mod driver;
mod encoding;
mod error;
mod factory;
mod handler_stats;
mod handlers;
mod index;
mod informer;
pub mod leader_election;
pub mod limits;
mod metrics;
mod own_writes;
mod progress;
mod reach;
mod refusal;
mod saved;
mod shared;
mod spans;
mod spill;
mod subscription;
mod transcode;
#[cfg(test)]
mod transcode_tests;
mod unseen;
mod upstream;
mod view;
mod watched;
mod way;
pub mod work_queue;

pub use ceiling::{AtLimit, OverLimit};
pub use encoding::Encoding;
pub use error::Error;
pub use factory::{Factory, Options, Server};
pub use forebay_apimachinery::Revision;
pub use forebay_client::reflector::{Fault, Why};
pub use forebay_connector::{Connected, Rate};
pub use forebay_view::{Checked, Handle, Metadata};
pub use handler_stats::HandlerStats;
pub use handlers::Handling;
pub use index::Index;
pub use informer::Informer;
pub use own_writes::OwnWrites;
pub use progress::{Health, Stats};
pub use subscription::{Notice, Subscription};
pub use view::View;
pub use watched::Watched;

#[doc = include_str!("../docs/from_client_go.md")]
pub mod coming_from_client_go {}

#[doc = include_str!("../docs/from_kube_rs.md")]
pub mod coming_from_kube_rs {}

#[doc = include_str!("../docs/metrics_and_spans.md")]
pub mod metrics_and_spans {}

/// Its example is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
