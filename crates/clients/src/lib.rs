//! Real clients against the real binary: the harness that the tests of this crate share.
//!
//! In: the `forebay` binary, or kube-apiserver and etcd with `FOREBAY_TEST_SERVER=kube-apiserver`, so that
//! each test can be held against the rival. Out: a ready [`ControlPlane`], a [`Session`] of kubectl commands,
//! a [`Scenario`] of client-go, a test of [`Python`]. Never: a fixed port, a process or directory left
//! behind, a wait without a limit, a test left out under `CI=true`.

#![allow(clippy::disallowed_methods, reason = "waits for processes that keep no clock of ours")]

pub mod clientgo;
mod controllers;
pub mod envtest;
pub mod etcd;
pub mod https;
pub mod kubeadm;
pub mod needs;
pub mod node;
mod normal;
pub mod pki;
pub mod ports;
mod process;
pub mod python;
pub mod relay;
mod rival;
pub mod server;
pub mod session;
pub mod wait;
mod watchdog;

pub use clientgo::{Detector, Scenario};
pub use node::{Images, ServingNode};
pub use python::Python;
pub use server::{ControlPlane, Implementation};
pub use session::{BackgroundCommand, Session};

/// A definition of a custom resource, where manifests that need one begin; `SIDE` stands for what makes it
/// another one.
pub const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things-SIDE.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things-SIDE, singular: thing-SIDE, kind: ThingSIDE}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
";
