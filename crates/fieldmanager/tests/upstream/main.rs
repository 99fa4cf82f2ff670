//! What Kubernetes' own packages answer is what this crate and the schema's types answer.

mod crds;
mod go;
mod objects;
mod random;
mod recorded;
mod repeated;
mod requests;
mod reset;
mod scale;
mod types;
